"""A link of n1 goes down, and the test is the world: it answers each step of the runbook, and says what the link does."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agent.contract.commands import Outcome
from brain.core.effects import AskLook, Effect, Perform
from brain.core.inputs import Input, Leader, NodeState, StepProgress, StepResult
from brain.core.pack.spec import Mode, Runbook, Rung, Verify
from brain.core.state import Incident, Run, RunState
from tests.brain.world import Story, pack

LINK = "link/eth1"
SYMPTOM = "link_down@link/n1/eth1"
QUIET = Verify(within_s=60, for_s=10)


def rung(name: str, do: str = "link.bounce", **more: Any) -> Rung:
    """A rung with the parameters that its action needs."""
    params = {"link.bounce": {"link": LINK}, "nic.reset": {"nic": "nic/mlx5_0"}}.get(do, {})
    return Rung(name=name, do=do, params=params, **more)


class Climb(Story):
    """At 3 s the first rung begins."""

    def __init__(
        self, *rungs: Rung, return_to_service: tuple[Rung, ...] = (), mode: Mode = Mode.AUTO, **settings: Any
    ) -> None:
        self.effects: list[Effect] = []
        self.sees = True  # the node looks again when it is asked
        self._answers = 0
        book = Runbook(
            name="bounce", summary="repair a link", rungs=rungs, return_to_service=return_to_service
        )
        super().__init__(replace(pack(mode, **settings), runbooks=(book,)))
        self.link(up=False, at=1)
        self.run(3)

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        self.effects.append(effect)
        if isinstance(effect, AskLook):
            if self.sees:
                yield from super()._answer(effect, now)
        elif isinstance(effect, Perform):
            self.performed.append(effect)
        else:
            yield from super()._answer(effect, now)

    def link(self, *, up: bool, at: float | None = None, name: str = LINK) -> None:
        """The link's state, now or then."""
        self.event(self.time.now if at is None else at, "link.state", name, up=up)
        self.run(max(self.time.now, at or 0))

    def node(self, *, alive: bool) -> None:
        """The node falls silent, or is heard again."""
        self._answers += 1
        self.time.feed(NodeState(id=f"n{self._answers}", node="n1", alive=alive), self.time.now)
        self.wait(0)

    def progresses(self) -> None:
        """The newest step gives a sign of life."""
        self._answers += 1
        step = self.performed[-1].step.id
        self.time.feed(StepProgress(id=f"g{self._answers}", step=step, elapsed_s=1.0, text=""), self.time.now)
        self.wait(0)

    def lead(self) -> None:
        """Another brain leads from now on."""
        self._answers += 1
        self.time.feed(Leader(id=f"l{self._answers}", epoch=1 + self._answers, brain="b2"), self.time.now)
        self.wait(0)

    def answer(self, outcome: str = "ok", step: str = "") -> None:
        """The step under way (or that one) has ended so."""
        self._answers += 1
        told = StepResult(
            id=f"a{self._answers}",
            step=step or self.performed[-1].step.id,
            outcome=Outcome(outcome),
            why="so it is",
        )
        self.time.feed(told, self.time.now)
        self.wait(0)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.run(self.time.now + seconds)

    @property
    def steps(self) -> list[str]:
        """What was performed: rung and attempt, `s1.a1`; during the return to service `b1.a1`."""
        return [perform.step.id.partition(".r1.")[2] for perform in self.performed]

    @property
    def incident(self) -> Incident:
        """The link's."""
        (incident,) = self.incidents("link-down")
        known: Incident = incident
        return known

    @property
    def climber(self) -> Run:
        """The incident's newest run."""
        return self.time.runs[self.incident.runs[-1]]

    @property
    def state(self) -> RunState:
        """Where it stands."""
        return self.climber.state
