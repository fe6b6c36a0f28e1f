"""The shape of an action's declaration: what people, rules and gates must know before it runs."""

from dataclasses import dataclass
from enum import StrEnum


class Disrupts(StrEnum):
    """What an action can disturb; the gates judge by it."""

    NOTHING = "nothing"  # reads only, or is not noticed by anybody
    JOB = "job"  # the jobs that use this component
    NODE = "node"  # every job on the node
    FABRIC = "fabric"  # jobs on other nodes too


class Repeat(StrEnum):
    """What to do with a step of which nobody knows whether it was done."""

    SAFE = "safe"  # do it again
    PROBE = "probe"  # verify first
    NEVER = "never"  # do not repeat: verify, then a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of an action."""

    name: str
    type: str  # text | int | float | bool | component
    summary: str  # with unit and limits
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """What people, rules and gates must know of an action."""

    name: str
    summary: str
    disrupts: Disrupts
    repeat: Repeat
    timeout_s: float  # default deadline of one attempt
    params: tuple[Param, ...] = ()
    where: str = "node"  # node: an agent performs it · brain: the brain does
    silences: bool = False  # the node is not heard while it lasts, and for some time after it
    heals: bool = True  # False: it prepares, fences or examines, so that nothing can be verified after it
