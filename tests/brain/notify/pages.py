"""One incident as the engine would hand it to the notifier, for the tests of this folder."""

from agent.contract.actions.spec import Disrupts
from brain.core.effects import SendPage
from brain.core.pack.spec import Knowledge, Paging, Priority, Rule, Runbook, Rung, Text, Verify
from brain.core.paging.queue import What
from brain.core.paging.subjects import of_incident
from brain.core.state import Evidence, Incident, IncidentState, Run, RunState, StepRecord

T0 = 1_700_000_000.0  # 2023-11-14T22:13:20Z
LINE = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def rule() -> Rule:
    """A rule with knowledge."""
    return Rule(
        name="gpu_lost",
        scope="gpu",
        when={"symptom": "gpu_off_bus"},
        severity=Priority.P1,
        because="The driver lost the PCIe connection to this GPU.",
        knowledge=Knowledge(
            cause=Text(en="A PCIe, power or heat fault.", zh="PCIe、供电或过热故障。"),
            todo=Text(
                en="Power the node off and on, then reseat the GPU.", zh="断电重启节点，再重新插拔 GPU。"
            ),
            links=("https://docs.nvidia.com/deploy/xid-errors/",),
        ),
        examples=(),
        runbook="gpu-lost",
    )


def runbook() -> Runbook:
    """Two rungs: collect, then bounce (which disrupts)."""
    return Runbook(
        name="gpu-lost",
        summary="Collects what is left to see, then asks people.",
        rungs=(
            Rung(name="evidence", do="evidence.collect", params={"component": "$component"}),
            Rung(
                name="bounce",
                do="link.bounce",
                params={"link": "link/eth1"},
                disrupts=Disrupts.NODE,
                verify=Verify(within_s=10, for_s=5),
            ),
        ),
    )


def run(state: RunState, *, why: str = "") -> Run:
    """A run that did its first rung."""
    return Run(
        id="inc-1.r1",
        incident="inc-1",
        runbook=runbook(),
        pack="abc",
        scope="gpu/n1/0000:3b:00",
        node="n1",
        params={"component": "gpu/0000:3b:00"},
        state=state,
        started_at=T0 + 2,
        rung=1,
        why=why,
        steps=[
            StepRecord(
                id="inc-1.r1.s0.a1",
                rung="evidence",
                action="evidence.collect",
                params={"component": "gpu/0000:3b:00"},
                at=T0 + 3,
                outcome="ok",
                why="bundle inc-1.r1.s0.a1.tar.gz,\n 12 files",
            )
        ],
    )


def incident(state: IncidentState = IncidentState.OPEN, evidence: list[Evidence] | None = None) -> Incident:
    """A lost GPU with three facts."""
    facts = evidence
    if facts is None:
        facts = [
            Evidence(
                id="n1:a:4", at=T0 - 5, node="n1", kind="gpu.xid", component="gpu/0000:3b:00", text=LINE
            ),
            Evidence(
                id="n1:a:5", at=T0 + 1, node="n1", kind="gpu.lost", component="gpu/0000:3b:00", text="lost"
            ),
            Evidence(
                id="n1:a:6", at=T0, node="n1", kind="gpu.removed", component="gpu/0000:3b:00", text="remove"
            ),
        ]
    return Incident(
        id="inc-1",
        cause="gpu_lost",
        state=state,
        severity=Priority.P1,
        scope="gpu/n1/0000:3b:00",
        node="n1",
        rule="gpu_lost",
        because="The driver lost the PCIe connection to this GPU.",
        runbook="gpu-lost",
        pack="abc",
        opened_at=T0,
        hold_off_until=T0 + 2,
        resolve_delay_s=30,
        page=Paging.OPEN,
        evidence=facts,
    )


def page(
    what: What = "open",
    *,
    about: Incident | None = None,
    to: str = "oncall",
    text: str = "opened",
    alerted: tuple[str, ...] = ("chat",),
) -> SendPage:
    """A page of that incident. `alerted`: the channels that have its alert."""
    subject = of_incident(about or incident())
    return SendPage(id="inc-1.p1", subject=subject, what=what, to=to, text=text, alerted=alerted)
