"""How an action is declared: what operators, rules and gates must know before it runs."""

from dataclasses import dataclass
from enum import StrEnum


class Disrupts(StrEnum):
    """What an action can disrupt; the gates decide by it."""

    NOTHING = "nothing"  # it only reads, or nobody notices it
    JOB = "job"  # the jobs that use this component
    NODE = "node"  # every job on the node
    FABRIC = "fabric"  # jobs on other nodes too


class Repeat(StrEnum):
    """What to do with a step of which it is unknown whether it was done."""

    SAFE = "safe"  # do it again
    PROBE = "probe"  # verify first
    NEVER = "never"  # do not repeat: verify, then a person


class Right(StrEnum):
    """What an action needs of the agent's process. A unit that only observes has none of these (deploy/systemd)."""

    ROOT = "user 0"  # systemd, the GPU driver, /sys and /dev/infiniband obey nobody else
    KILL = "CAP_KILL"  # signals to processes of other users
    NET_ADMIN = "CAP_NET_ADMIN"  # interfaces and network cards are set
    SYS_MODULE = "CAP_SYS_MODULE"  # kernel modules are loaded and unloaded
    SYS_ADMIN = "CAP_SYS_ADMIN"  # the GPU driver takes it for the administrator's


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of an action."""

    name: str
    # `text`, `int`, `float`, `bool` or `component`.
    type: str
    # Its meaning, with unit and limits.
    summary: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """The declaration of one action."""

    name: str
    summary: str
    disrupts: Disrupts
    repeat: Repeat
    # Default deadline of one attempt.
    timeout_s: float
    params: tuple[Param, ...] = ()
    # What a node's agent must be allowed to do by its unit; empty: an agent that only observes performs it too.
    needs: tuple[Right, ...] = ()
    # Who performs it: `node` (an agent) or `brain`.
    where: str = "node"
    # The node is unreachable while it lasts, and for some time after it.
    takes_node_away: bool = False
    # False: it prepares, fences or examines, so there is nothing to verify after it.
    heals: bool = True
    # It takes the node out of service in its scheduler, and leaves it so.
    drains: bool = False
    # It gives the node back to its scheduler.
    returns: bool = False
    # It only tests the node, and refuses or fails where something uses what it tests: on the way back into service, on a
    # node that the run itself has drained, it disrupts nobody.
    tests: bool = False
    # Its result carries figures that the node measured of itself; they are compared with those of its peers.
    measures: bool = False
