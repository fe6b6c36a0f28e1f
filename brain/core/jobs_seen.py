"""A job on a node, as people know it: what a scheduler says of it, made short and inert. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from agent.contract.inert import inert
from agent.contract.messages import clip

MAX_SEEN = 32  # jobs of one node that an answer lists
MAX_ID, MAX_WORD = 200, 80  # characters
MAX_NODES_OF_JOB = 1_000_000  # and of GPUs: a larger number is a mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """A job on a node. Every text is short, and nothing in it acts on what shows it."""

    # Slurm's id, or namespace/pod
    id: str
    # that its owner gave it; of a pod its controller's. Empty: none
    name: str = ""
    # its user; of a pod its namespace. Empty: not known
    user: str = ""
    # how many nodes it has in all; 0: not known
    nodes: int = 0
    # how many GPUs it has on this node; 0: none, or not known
    gpus: int = 0


def seen(job: JobSeen) -> JobSeen:
    """The job as it may stand on the log, whatever its owner has called it."""
    return JobSeen(
        id=_word(job.id, MAX_ID),
        name=_word(job.name, MAX_WORD),
        user=_word(job.user, MAX_WORD),
        nodes=_number(job.nodes),
        gpus=_number(job.gpus),
    )


def listed(jobs: Iterable[JobSeen]) -> tuple[JobSeen, ...]:
    """The first MAX_SEEN of them, the largest first: of many small ones the large one is what people ask about."""
    return tuple(seen(job) for job in sorted(jobs, key=lambda job: -job.nodes)[:MAX_SEEN])


def _word(text: str, limit: int) -> str:
    return clip(inert(text[: limit + 1]), limit)


def _number(count: int) -> int:
    return count if 0 <= count <= MAX_NODES_OF_JOB else 0
