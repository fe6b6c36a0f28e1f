"""One play of a runbook: the real engine, a fault, and steps that end as a script says. Nothing can be reached (law 9).

A play goes on until a step leaves for which the script says nothing, or until nothing more is to be waited for.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agent.contract.actions.spec import ActionSpec, Disrupts
from agent.contract.commands import Outcome
from agent.contract.messages import Event, UnsentEvent
from brain.core.effects import AskJobs, AskLook, AskPlan, CancelStep, Effect, Perform, SendPage, Step
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    JobsAnswer,
    Leader,
    NodeState,
    OperatorCommand,
    PackLoaded,
    StepPlan,
    StepProgress,
    StepResult,
)
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.rehearsal.examples import START, alone, patience
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident, IncidentState, Run, RunState
from simulations import events
from simulations.ladder.ends import NINE_MINUTES_S, StepEnd
from simulations.ladder.fault import ToldFault
from simulations.ladder.played import LadderPlayed, TriedStep

PERSON = "ann"  # who approves, a minute after she was asked
FABRIC = "default"
APPROVES_S = 60.0
SHOWS_S = 2.0  # until a part that is still broken shows it again
BOOT_S = 720.0  # a node is away
TEST_S = 180.0
LONG_S = 90.0  # a step that disrupts something
SHORT_S = 5.0
PROGRESS_S = 40.0
MISSED_S = 16.0  # a node that says nothing is known to be unreachable
END_S = 2 * 86_400.0  # how long after its last step a play waits for its end
_ENDS_BADLY = (StepEnd.FAILS, StepEnd.SILENT, StepEnd.DIES)
_OF_A_BOOT = ("down:", "up:")
_SAID_ONCE = ("command.", "agent.started")
_OUTCOMES = {StepEnd.FAILS: Outcome.FAILED, StepEnd.REFUSED: Outcome.REFUSED}


class Play:
    """See the module."""

    def __init__(
        self,
        pack: Pack,
        actions: Mapping[str, ActionSpec],
        fault: ToldFault,
        script: Sequence[StepEnd],
        compile_pack: Callable[[Pack], Compiled],
        *,
        cause: str,
        requests: str = "",
    ) -> None:
        """`cause`: of the incident whose steps end by the script; those of others work. `requests`: the runbook that a person
        starts; empty: the fault leads to it.
        """
        self.played = LadderPlayed()
        self._actions, self._fault, self._script = actions, fault, script
        self._cause, self._requests = cause, requests
        self._on_fabric = any(one.name == requests and one.scope == "fabric" for one in pack.runbooks)
        self._timeline = Timeline(
            Engine(actions=actions, compile_pack=compile_pack), self._perform, copies=False
        )
        self._boots: dict[str, int] = dict.fromkeys(fault.nodes, 0)
        self._by_id: dict[str, TriedStep] = {}
        self._asked_people: set[tuple[str, int, int]] = set()
        self._approved: set[str] = set()
        self._coming: list[
            tuple[float, int, Input, int | None]
        ] = []  # at, order, what, its node's boot: see `_arrives`
        self._up_at: dict[str, float] = {}  # when a node that boots is up
        self._count = 0
        self._epoch = 1
        self._drained: dict[str, None] = {}  # nodes that are out of service, by the scheduler
        self._healed_at = math.inf if fault.facts else -math.inf
        self._returns_at = math.inf
        self._patience_s = patience(pack)
        settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),))
        feed = self._timeline.feed
        played = alone(pack, fault.example, settings)
        if requests:
            played = replace(played, places={name: Place(fabric=FABRIC) for name in fault.nodes})
        feed(PackLoaded(id="pack", pack=played), START)
        feed(Leader(id="lead-1", epoch=1, brain="b1"), START)
        for name in fault.nodes:
            feed(NodeState(id=f"known:{name}", node=name, alive=True), START)

    def run(self) -> LadderPlayed:
        """Plays it."""
        timeline, played = self._timeline, self.played
        begun = START + 1
        if self._requests:
            on = {"node": self._fault.nodes[0]}
            if self._on_fabric:
                on = {"fabric": FABRIC}
            args = {"runbook": self._requests, "why": "a rehearsal", **on}
            timeline.feed(OperatorCommand(id="start", who=PERSON, verb="start", args=args), begun)
        self._all(self._fault.told(begun, self._boots))
        played.begun_at = begun
        moved = begun + self._fault.lasts_s + self._patience_s
        while (at := self._next_at()) is not None and played.waits is None:
            moved = max([moved, *(step.ended_at for step in played.steps)])
            if self._returns_at < math.inf:
                moved = max(moved, self._returns_at + self._fault.lasts_s + self._patience_s)
            if at > moved + END_S or (at > moved and self._is_over()):
                break
            self._arrives(at)
            timeline.run(at)
            for run in list(timeline.runs.values()):
                self._all(self._approves(run, timeline.now))
        played.ended_at, played.broken = timeline.now, self._broken(timeline.now)
        played.incidents = [one for one in timeline.incidents.values() if self._ours(one)]
        played.drained = bool(self._drained)
        played.around = self._around(timeline.now)
        timeline.engine.close()
        return played

    def _ours(self, incident: Incident) -> bool:
        return incident.state is not IncidentState.EXPLAINED

    def _around(self, now: float) -> tuple[object, ...]:
        """When the fault comes back; whether a node is away; the incidents that the remedies have led to; whether an earlier step
        of what a person asked for ended badly, which she is told at the end.
        """
        state, waits = self._timeline.engine.state, self.played.waits
        returns_s = round(self._returns_at - now) if now < self._returns_at < math.inf else None
        away = any(at > now for at in self._up_at.values())
        others = frozenset(
            one.cause
            for one in state.incidents.values()
            if one.cause != self._cause and one.state is not IncidentState.CLOSED
        )
        ends = {
            one.rung.name: one.end for one in self.played.steps if waits and one.rung.name != waits.rung.name
        }
        unclear = bool(self._requests) and any(end in _ENDS_BADLY for end in ends.values())
        return returns_s, away, others, unclear

    def _broken(self, now: float) -> bool:
        return now < self._healed_at or now >= self._returns_at

    def _is_over(self) -> bool:
        """Whether nothing more is to be waited for: all is closed, or people were told and gpuward does no more."""
        ours = [one for one in self._timeline.incidents.values() if self._ours(one)]
        told = self.played.told()
        return bool(ours) and all(
            one.state is IncidentState.CLOSED or (one.state is IncidentState.NEEDS_HUMAN and one.id in told)
            for one in ours
        )

    def _all(self, told: Iterable[tuple[float, Input]]) -> None:
        for at, given in told:
            self._count += 1
            heapq.heappush(self._coming, (at, self._count, given, self._boot_of(given)))

    def _boot_of(self, given: Input) -> int | None:
        """The boot of its node in which this can happen: a start that another one overtakes is never over, and a step whose
        node dies never answers. None: it may come later, as facts of a fault that is there.
        """
        if isinstance(given, NodeState):
            return self._boots.get(given.node) if given.id.startswith(_OF_A_BOOT) else None
        if isinstance(given, EventSeen) and given.event.kind.startswith(_SAID_ONCE):
            return int(given.event.boot.removeprefix("boot-"))
        return None

    def _next_at(self) -> float | None:
        times = [self._timeline.next_at(), self._coming[0][0] if self._coming else None]
        return min((at for at in times if at is not None), default=None)

    def _arrives(self, until: float) -> None:
        """Feeds what comes until then. A node numbers its events as it sends them."""
        while self._coming and self._coming[0][0] <= until:
            at, _, given, boot = heapq.heappop(self._coming)
            if isinstance(given, NodeState) and boot not in (None, self._boots.get(given.node)):
                continue
            if isinstance(given, EventSeen):
                node = given.event.node
                if boot not in (None, self._boots.get(node, 0)):
                    continue
                if boot is None and at < self._up_at.get(node, 0.0):
                    later = self._up_at[node] + SHOWS_S
                    self._all([(later, given)] if self._broken(later) else [])
                    continue
                event = replace(given.event, boot=f"boot-{self._boots.get(node, 0)}")
                given = EventSeen(event=self._fault.sent(event))
            self._timeline.feed(given, at)

    def _perform(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        """What comes of an effect, which waits here until its time."""
        self._all(self._follows(effect, now))
        return ()

    def _follows(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        match effect:
            case SendPage():
                self.played.pages.append((now, effect))
                return [
                    (
                        now + 0.1,
                        Delivery(id=f"d:{effect.id}:{now}", page=effect.id, ok=True, channel="people"),
                    )
                ]
            case AskJobs(node=node, people=people):
                ours = node in self._drained
                answer = JobsAnswer(
                    id=f"j:{node}:{now}:{people}", node=node, known=True, people=people, scheduler="a scheduler",
                    drained="gpuward" if ours else "", ours=ours or None,
                )  # fmt: skip
                return [(now + 0.1, answer)]
            case AskPlan(step=step):
                return [(now + 0.1, StepPlan(id=f"w:{step.id}", step=step.id, ok=True, lines=(step.action,)))]
            case AskLook(step=step):
                return self._look(step, now)
            case CancelStep(step=step):
                stopped = StepResult(
                    id=f"c:{step.id}:{now}", step=step.id, outcome=Outcome.FAILED, why="stopped"
                )
                return [(now + 0.1, stopped)]
            case Perform(step=step):
                return self._step(step, now)
        return ()

    def _approves(self, run: Run, now: float) -> Iterator[tuple[float, Input]]:
        """A run that waits for an approval gets it."""
        key = (run.id, run.rung, len(run.steps))
        if run.state is RunState.APPROVAL and key not in self._asked_people:
            self._asked_people.add(key)
            self._approved.add(run.id)
            said = OperatorCommand(
                id=f"approve:{run.id}:{now}", who=PERSON, verb="approve", args={"id": run.id}
            )
            yield now + APPROVES_S, said

    def _look(self, step: Step, now: float) -> Iterator[tuple[float, Input]]:
        if self._broken(now):
            yield from self._fault.shown(now + 1, step.node, self._boots)
        yield now + 1.1, self._answer(step, Outcome.OK, "looked", now + 1.1)

    def _answer(self, step: Step, outcome: Outcome, why: str, at: float) -> Input:
        if step.where == "brain" or not step.node:
            return StepResult(id=f"r:{step.id}:{at}", step=step.id, outcome=outcome, why=why)
        return EventSeen(event=self._says(step.node, events.command_result(step.id, outcome.value, why, 1.0)))

    def _progress(self, step: Step, done_s: float) -> Input:
        if step.where == "brain" or not step.node:
            return StepProgress(id=f"g:{step.id}:{done_s}", step=step.id, elapsed_s=done_s)
        return EventSeen(event=self._says(step.node, events.command_progress(step.id, done_s)))

    def _says(self, node: str, unsent: UnsentEvent) -> Event:
        return Event(
            id="", node=node, kind=unsent.kind, component=unsent.component, severity=unsent.severity,
            at="", age_s=0.0, boot=f"boot-{self._boots.get(node, 0)}", count=1, data=unsent.data, evidence=unsent.kind,
        )  # fmt: skip

    def _step(self, step: Step, now: float) -> Iterable[tuple[float, Input]]:
        """A step leaves. One id is done once; a leader that died is followed by one that asks for it again."""
        if (again := self._by_id.get(step.id)) is not None:
            if again is self.played.waits or again.end is not StepEnd.LEADER_DIES or again.ended_at > now:
                return ()
            self._serves(step)
            return [(now + SHORT_S, self._answer(step, Outcome.OK, "done", now + SHORT_S))]
        asked = self._by_id[step.id] = self._of(step, now)
        if not self._concerns(step):
            asked.end = StepEnd.WORKS
            return list(self._ends(asked, now, self._took_s(step)))
        number = len(self.played.steps)
        if number >= len(self._script):
            self.played.waits = asked
            return ()
        self.played.steps.append(asked)
        asked.end = self._script[number]
        took_s = self._took_s(step)
        asked.ended_at = now + (step.timeout_s if asked.end is StepEnd.SILENT else took_s)
        return list(self._ends(asked, now, took_s))

    def _concerns(self, step: Step) -> bool:
        """Whether it is of an incident of the fault, and not of what its remedies have led to, such as a node that is away."""
        incidents = self._timeline.engine.state.incidents
        return incidents[step.incident].cause == self._cause

    def _of(self, step: Step, now: float) -> TriedStep:
        run = self._timeline.engine.state.runs[step.run]
        runbook, back = run.runbook, bool(run.worked)
        rungs = runbook.return_to_service if back else runbook.rungs
        approved = run.id in self._approved
        self._approved.discard(run.id)
        runs = dict.fromkeys([*(one.step.run for one in self.played.steps), run.id])
        return TriedStep(
            step=step, at=now, run=len(runs), runbook=runbook.name, rung=rungs[run.rung],
            number=run.rung + 1, attempt=run.attempt, returning=back, approved=approved, broken=self._broken(now),
            disrupts=step.disrupts,
        )  # fmt: skip

    def _took_s(self, step: Step) -> float:
        spec = self._actions[step.action]
        usual_s = SHORT_S if step.disrupts is Disrupts.NOTHING else LONG_S
        usual_s = BOOT_S if spec.takes_node_away else TEST_S if spec.tests else usual_s
        return min(usual_s, step.timeout_s / 2)  # well within its time

    def _ends(self, asked: TriedStep, now: float, took_s: float) -> Iterator[tuple[float, Input]]:
        step, end, at = asked.step, asked.end, now + took_s
        away = self._actions[step.action].takes_node_away and end in (
            StepEnd.WORKS,
            StepEnd.HEALS,
            StepEnd.STAYS,
            StepEnd.RETURNS,
        )
        if end is StepEnd.SILENT:
            return
        if end is StepEnd.LEADER_DIES:
            self._epoch += 1
            asked.ended_at = now + 1
            yield now + 1, Leader(id=f"lead-{self._epoch}", epoch=self._epoch, brain=f"b{self._epoch}")
            return
        if end is StepEnd.DIES:
            asked.ended_at = at = now + BOOT_S
        if (away or end is StepEnd.DIES) and step.node:
            yield from self._boot(step.node, now + 1, at)
            if end is StepEnd.DIES:
                yield from self._fault.shown(at + SHOWS_S, step.node, self._boots) if self._broken(at) else ()
                return
        for number in range(1, int(took_s / PROGRESS_S) + 1 if not away else 0):
            yield now + number * PROGRESS_S, self._progress(step, number * PROGRESS_S)
        if end in _OUTCOMES:
            why = (
                "it did not do what it should"
                if end is StepEnd.FAILS
                else "there is nothing to do it with here"
            )
            yield at, self._answer(step, _OUTCOMES[end], why, at)
            return
        if end in (StepEnd.HEALS, StepEnd.RETURNS):
            yield from self._fault.over(at - 0.5, self._timeline.engine.state, self._boots)
            self._healed_at, self._returns_at = at - 0.5, math.inf
        self._serves(step)
        yield at, self._answer(step, Outcome.OK, "done", at)
        if end is StepEnd.STAYS or (away and self._broken(at)):
            for node in self._fault.nodes:
                yield from self._fault.shown(at + SHOWS_S, node, self._boots)
        if end is StepEnd.RETURNS:
            self._returns_at = at + NINE_MINUTES_S
            yield from self._fault.told(self._returns_at, self._boots)

    def _serves(self, step: Step) -> None:
        """What a step that was done makes of the service of its node."""
        spec = self._actions[step.action]
        if spec.drains:
            self._drained[step.node] = None
        elif spec.returns:
            self._drained.pop(step.node, None)

    def _boot(self, node: str, down: float, up: float) -> Iterator[tuple[float, Input]]:
        self._boots[node] = self._boots.get(node, 0) + 1
        self._up_at[node] = up - 1
        yield down + MISSED_S, NodeState(id=f"down:{node}:{down}", node=node, alive=False, silent_s=MISSED_S)
        yield up - 1, EventSeen(event=self._says(node, events.agent_started("1", "6.1.0", 8, booted=True)))
        yield up - 1, NodeState(id=f"up:{node}:{up}", node=node, alive=True)
