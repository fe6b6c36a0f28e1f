"""What a simulated cell really is while a story goes on: nodes, drains, jobs, and what the inputs and effects say of it.

Kept by the story itself from inputs and effects alone, so that oracles need not trust the engine's state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.actions.spec import ActionSpec, Disrupts
from agent.contract.commands import Outcome
from brain.core.effects import Step
from brain.core.pack.spec import Pack
from brain.core.state import Incident, Run


@dataclass(slots=True, kw_only=True)
class StepUnderWay:
    """A step that was performed and has no result yet."""

    step: Step
    since: float
    disrupts: Disrupts


@dataclass(slots=True, kw_only=True)
class HoldTold:
    """A hold as operators put it."""

    scope: str
    since: float
    until: float  # 0: until released


@dataclass(slots=True, kw_only=True)
class NodeTruth:
    """What is so of one node."""

    name: str
    alive: bool = True
    heard_at: float = 0.0  # the newest event or "alive again" on the log
    drained_for: dict[str, float] = field(default_factory=dict)  # incident -> since when its drain stands
    drained_by_person: bool = False
    jobs_answer: tuple[float, bool, str] | None = (
        None  # (when, known, protected job) of the scheduler's last answer
    )


@dataclass(slots=True, kw_only=True)
class Cell:
    """The truth of one story."""

    pack: Pack
    actions: Mapping[str, ActionSpec]
    nodes: dict[str, NodeTruth]
    epoch: int = 0
    now: float = 0.0  # of the last input
    holds: dict[str, HoldTold] = field(default_factory=dict)  # id of the command -> hold
    under_way: dict[str, StepUnderWay] = field(default_factory=dict)  # step id -> it
    approvals: dict[str, float] = field(default_factory=dict)  # incident -> when somebody last approved
    ended: dict[str, tuple[float, Outcome]] = field(default_factory=dict)  # step id -> its first result
    incidents: dict[str, Incident] = field(default_factory=dict)  # as the engine has last shown them
    runs: dict[str, Run] = field(default_factory=dict)  # likewise

    def node(self, name: str) -> NodeTruth:
        """The truth of a node, made when it is first named."""
        if name not in self.nodes:
            self.nodes[name] = NodeTruth(name=name)
        return self.nodes[name]

    def disrupts(self, step: Step) -> Disrupts:
        """What a step disturbs."""
        return step.disrupts
