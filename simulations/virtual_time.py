"""The virtual-time simulator: an engine and simulated machines. The same inputs give the same notes, however fast it runs.

Pure: time is an argument, chance comes from a seed. No command can leave: effects are performed on simulated machines
only (law 9).
"""

import heapq
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from agent.contract.commands import Outcome
from agent.contract.errors import ConfigError, Refused
from agent.contract.messages import Event, Scalar, UnsentEvent
from brain.core.effects import AskJobs, AskLook, AskPlan, CancelStep, Effect, Perform, SendPage, Step
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Leader,
    NodeState,
    OperatorCommand,
    PackLoaded,
    Reported,
    StepPlan,
    StepProgress,
    StepResult,
)
from brain.core.pack import vocabulary
from brain.core.pack.spec import Pack
from brain.core.rehearsal.timeline import Timeline
from simulations import events
from simulations.changes import AgentSays, CommandEnds, after
from simulations.drills import DRILLS
from simulations.drills.drill import of_one_leaf
from simulations.state import REHEARSAL, ActionTimes
from simulations.virtual_fleet import START, VirtualFleet

BEAT_S = 2.0
PROGRESS_S = 10  # between two reports of a long action, as the agent's own
LATENCY_S = 0.005  # from a node to the brain, and back


class Simulator(VirtualFleet):
    """A cell in virtual time. `timeline` holds what came of it: notes, incidents, runs, pages."""

    def __init__(
        self,
        engine: Engine,
        pack: Pack,
        nodes: Sequence[str],
        *,
        start: float = START,
        times: ActionTimes = REHEARSAL,
    ) -> None:
        """`engine`: a new one; its actions must include every action of the pack's runbooks."""
        super().__init__(nodes, start=start, times=times)
        self.timeline = self.timeline_of(engine)
        self._seq = dict.fromkeys(nodes, 0)
        # Actions of the brain that wait, such as a drain for jobs: (when it is asked again, step id); step id -> (step, since).
        self._asked: list[tuple[float, str]] = []
        self._under_way: dict[str, tuple[Step, float]] = {}
        # Step id -> when it is asked next: only that entry of `_asked` counts.
        self._asked_at: dict[str, float] = {}
        # Rung of a run -> when its wait began: its attempts share one, as those of the brain's own drain do.
        self._waits_since: dict[str, float] = {}
        # Ids of the commands that a node got.
        self._commands: set[str] = set()
        self.timeline.feed(Leader(id="lead", epoch=1, brain="simulator"), start)
        self.timeline.feed(PackLoaded(id="pack", pack=pack), start)

    def timeline_of(self, engine: Engine) -> Timeline:
        """What the engine's inputs and effects go through."""
        return Timeline(engine, self.perform)

    def inject(self, drill: str, node: str = "", *, at_s: float) -> None:
        """Begins a drill `at_s` after the start: on that node, on some of its leaf, or on all, as the drill says."""
        if drill not in DRILLS:
            raise ConfigError(f"there is no drill {drill!r} (have: {', '.join(DRILLS)})")
        affects, names = DRILLS[drill].nodes, list(self.machines)
        if affects != "all" and node not in self.machines:
            raise ConfigError(f"there is no node {node!r}")
        if affects != "all":
            names = of_one_leaf(names, node) if affects == "leaf" else [node]
        for name in names:
            self.call(self.start + at_s, partial(self._begin, drill, name))

    def command(self, verb: str, *, at_s: float, who: str = "ann", **args: Scalar) -> None:
        """A command of an operator, `at_s` after the start."""
        command = OperatorCommand(id=f"{verb}:{at_s}", who=who, verb=verb, args=args)
        self.timeline.feed(command, self.start + at_s)

    def run(self, until_s: float) -> Timeline:
        """Everything up to `until_s` after the start."""
        until = self.start + until_s
        while (at := self.next_at()) is not None and at <= until:
            self.pass_time(at)
            while self._asked and self._asked[0][0] <= at:
                due, waiting = heapq.heappop(self._asked)
                if waiting not in self._under_way or self._asked_at.get(waiting) != due:
                    continue  # cancelled, or asked earlier
                for due, given in self._ask_again(waiting, at):
                    self.timeline.feed(given, due)
            self.timeline.run(at)
        self.timeline.run(until)
        return self.timeline

    def next_at(self) -> float | None:
        """When something is due next, of machines, waiting actions or the engine; None: nothing ever."""
        times = [at for at in (super().next_at(), self.timeline.next_at()) if at is not None]
        times += [self._asked[0][0]] if self._asked else []
        return min(times, default=None)

    def look_now(self, nodes: frozenset[str], now: float) -> None:
        """The actions of the brain that wait for something on these nodes look again at once: it may have come."""
        for step_id, (step, _) in self._under_way.items():
            if step.node in nodes:
                self._ask_at(step_id, now)

    def _ask_at(self, step_id: str, at: float) -> None:
        """Asks an action that waits at this time, and not before or after."""
        self._asked_at[step_id] = at
        heapq.heappush(self._asked, (at, step_id))

    def _begin(self, drill: str, node: str, at: float) -> None:
        try:
            plan = DRILLS[drill].plan(self.machines[node].state)
        except Refused:
            return  # nothing healthy is left on it that can break this way
        self.apply(node, plan, at)

    def silent(self, node: str, since: float, now: float) -> None:
        """See VirtualFleet."""
        gone = NodeState(id=f"n:{node}:{since}:0", node=node, alive=False, silent_s=now - since)
        self.timeline.feed(gone, now)

    def heard_again(self, node: str, since: float, now: float) -> None:
        """See VirtualFleet."""
        self.timeline.feed(NodeState(id=f"n:{node}:{since}:1", node=node, alive=True), now + BEAT_S)

    def said(self, node: str, unsent: UnsentEvent, at: float, now: float) -> None:
        """See VirtualFleet."""
        self._seq[node] += 1
        if unsent.kind in vocabulary.KINDS:
            given = Reported(
                id=f"bmc:{node}:sim:{self._seq[node]}",
                source="bmc",
                node=node,
                kind=unsent.kind,
                component=unsent.component,
                severity=unsent.severity,
                data=unsent.data,
            )
            self.timeline.feed(given, now + LATENCY_S)
            return
        event = Event(
            id=f"{node}:sim:{self._seq[node]}",
            node=node,
            kind=unsent.kind,
            component=unsent.component,
            severity=unsent.severity,
            at=datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
            age_s=max(0.0, now - at),
            boot=f"boot-{self.machines[node].state.boots}",
            count=unsent.count,
            data=unsent.data,
            evidence=unsent.evidence,
        )
        self.timeline.feed(EventSeen(event=event), now + LATENCY_S)

    def perform(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        """Performs an effect; the inputs that come of it, with their times."""
        match effect:
            case Perform(step=step) if step.where == "brain":
                return self._perform_on_infrastructure(step, now)
            case AskJobs(node=node, people=people):
                said = self.infrastructure.answer(node, f"j:{node}:{now}:{people}", people=people)
                return [(now + LATENCY_S, said)]
            case CancelStep(step=step) if self._under_way.pop(step.id, None):
                stopped = StepResult(
                    id=f"c:{step.id}", step=step.id, outcome=Outcome.FAILED, why="stopped while it waited"
                )
                return [(now + LATENCY_S, stopped)]
            case AskPlan(step=step):
                lines = (f"{step.action} on a simulated machine",)
                return [(now + LATENCY_S, StepPlan(id=f"w:{step.id}", step=step.id, ok=True, lines=lines))]
            case Perform(step=step) | AskLook(step=step):
                return self._send_command(step, now)
            case SendPage(id=page):
                return [(now, Delivery(id=f"d:{page}", page=page, ok=True, channel="simulator"))]
            case _:
                return []

    def _perform_on_infrastructure(self, step: Step, now: float) -> list[tuple[float, Input]]:
        """An action of the brain itself: begun at once, answered when it has ended. One id is under way only once."""
        if step.id in self._under_way:
            return []
        self._under_way[step.id] = (step, self._waits_since.setdefault(step.id.rpartition(".")[0], now))
        return self._ask_again(step.id, now)

    def _ask_again(self, step_id: str, now: float) -> list[tuple[float, Input]]:
        """What an action of the brain has come to: it waits, or has ended."""
        step, since = self._under_way[step_id]
        performed = self.infrastructure.perform(
            step.action, step.node, step.params, step.why, now, waited_s=now - since
        )
        for node in performed.nodes:
            self.schedule(node, now)
        result = performed.result
        if result.again_s:
            self._ask_at(step_id, now + result.again_s)
            elapsed_s = now - since
            heard = StepProgress(
                id=f"g:{step.id}:{elapsed_s}", step=step.id, elapsed_s=elapsed_s, text=result.why
            )
            return [(now + LATENCY_S, heard)]
        del self._under_way[step_id]
        answer = StepResult(
            id=f"r:{step.id}:{now}", step=step.id, outcome=result.outcome, why=result.why, data=result.data
        )
        return [(now + result.took_s + LATENCY_S, answer)]

    def _send_command(self, step: Step, now: float) -> list[tuple[float, Input]]:
        """A command to a node, whose result is one of the node's events."""
        machine = self.machines.get(step.node)
        if machine is None or machine.state.unreachable(now):
            why = f"{step.node}: no agent listens there"
            failed = StepResult(id=f"r:{step.id}", step=step.id, outcome=Outcome.UNREACHABLE, why=why)
            return [(now + LATENCY_S, failed)]
        if step.id not in self._commands:  # one id runs once, ever
            self._commands.add(step.id)
            result = machine.perform(step.action, step.params, now)
            end = CommandEnds(
                command=step.id,
                outcome=result.outcome.value,
                why=result.why,
                took_s=result.took_s,
                blind=result.blind,
                data=result.data,
            )
            said = (
                after(at_s, AgentSays(unsent=events.command_progress(step.id, at_s)))
                for at_s in range(PROGRESS_S, math.ceil(result.took_s), PROGRESS_S)
            )
            machine.apply([*said, after(result.took_s, end)], now)
            self.schedule(step.node, now)
        return []


def random_days(
    nodes: Sequence[str],
    *,
    seed: int,
    days: float,
    per_node_day: float,
    weights: Mapping[str, float] | None = None,
) -> list[tuple[float, str, str]]:
    """The faults of a fleet over time, as drills: (seconds after the start, drill, node), in order.

    The same seed gives the same days. `per_node_day`: drills of one node a day, on average. `weights`: drill → how
    often, relative to the others; default: every drill of one node equally often.
    """
    chance = random.Random(seed)  # noqa: S311  a simulation, not a secret
    weights = weights or {
        name: 1.0 for name, drill in DRILLS.items() if drill.nodes == "one" and drill.breaks
    }
    found: list[tuple[float, str, str]] = []
    at_s = 0.0
    while (at_s := at_s + chance.expovariate(per_node_day * len(nodes) / 86400)) < days * 86400:
        (drill,) = chance.choices(list(weights), list(weights.values()))
        found.append((at_s, drill, chance.choice(nodes)))
    return found
