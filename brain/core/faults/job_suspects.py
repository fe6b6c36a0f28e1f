"""A job that is suspected: the nodes where one fault was treated lately share nothing but the job that ran there. Pure.

A job that breaks its nodes takes that with it when it is requeued. What ran on a node is the scheduler's answer when its remedy
began (`State.began`). The gate `related` holds the next node; this tells people once, of the job. It explains nothing, so a job
lets nothing be done that would not be done without it, and silences nothing (decision 65).
"""

from collections.abc import Sequence

from agent.contract.components import check
from agent.contract.counted import counted
from agent.contract.errors import ContractError
from agent.contract.messages import Event, Severity, clip
from brain.core.context import Context
from brain.core.faults import symptoms
from brain.core.pack.topology import JOB
from brain.core.pack.vocabulary import FLEET_JOB
from brain.core.state import SymptomState

_SHOWN = 12  # nodes that the evidence names


def suspected(ctx: Context, job: str, cause: str, nodes: Sequence[str]) -> list[SymptomState]:
    """The last of these nodes waits, because one fault was treated on all others within a day and the job ran on each of them.
    Returns the symptom of the job. A job whose name is no name of a part is not told by itself.
    """
    try:
        component = check(f"{JOB}/{job}")
    except ContractError:
        return []
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    text = (
        f"{cause} came to {counted(len(nodes), 'node')} within a day ({', '.join(nodes[:_SHOWN])}{more}), and job {job} ran on "
        f"each of them then; on {nodes[-1]} nothing more is done for it without an approval"
    )
    event = Event(
        id=ctx.cause, node=nodes[-1], kind=FLEET_JOB, component=component, severity=Severity.ERROR, at="", age_s=0.0, boot="",
        count=1, data={"cause": cause, "job": clip(job, 120), "nodes": len(nodes)}, evidence=clip(text),
    )  # fmt: skip
    return symptoms.feed(ctx, event)
