"""The virtual-time simulator: an engine and simulated machines. The same inputs give the same notes, however fast it runs.

Pure: time is an argument, chance comes from a seed. No command can leave: effects are performed on simulated machines
only (law 9).
"""

import heapq
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

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
    StepPlan,
    StepProgress,
    StepResult,
)
from brain.core.pack.spec import Pack
from brain.core.rehearsal.timeline import Timeline
from simulations.changes import CommandEnds, after
from simulations.drills import DRILLS
from simulations.drills.drill import of_one_leaf
from simulations.infrastructure import Infrastructure
from simulations.machines import Machine

START = 1_700_000_000.0  # 2023-11-14T22:13:20Z; any moment would do
UNREACHABLE_AFTER_S = 15.0  # as the brain's own default
BEAT_S = 2.0
LATENCY_S = 0.005  # from a node to the brain, and back


class Simulator:
    """A cell in virtual time. `timeline` holds what came of it: notes, incidents, runs, pages."""

    def __init__(self, engine: Engine, pack: Pack, nodes: Sequence[str], *, start: float = START) -> None:
        """`engine`: a new one; its actions must include every action of the pack's runbooks."""
        self.timeline = Timeline(engine, self._perform)
        self.machines = {name: Machine(name) for name in nodes}
        self.start = start
        self._seq = dict.fromkeys(nodes, 0)
        # What unreachable nodes will send when they are back.
        self._unsent: dict[str, list[tuple[float, UnsentEvent]]] = {}
        self._unreachable_since: dict[str, float] = {}
        # Nodes that the brain knows to be unreachable.
        self._missed: dict[str, None] = {}
        self._infrastructure = Infrastructure(self.machines)
        # Actions of the brain that wait, such as a drain for jobs: (when it is asked again, step id); step id -> (step, since).
        self._asked: list[tuple[float, str]] = []
        self._under_way: dict[str, tuple[Step, float]] = {}
        # Rung of a run -> when its wait began: its attempts share one, as those of the brain's own drain do.
        self._waits_since: dict[str, float] = {}
        # Ids of the commands that a node got.
        self._commands: set[str] = set()
        # When to advance a machine; only the entries that are also in `_next` count.
        self._due: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}
        self._drills: list[tuple[float, int, str, str]] = []
        self.timeline.feed(Leader(id="lead", epoch=1, brain="simulator"), start)
        self.timeline.feed(PackLoaded(id="pack", pack=pack), start)

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
            heapq.heappush(self._drills, (self.start + at_s, len(self._drills), drill, name))

    def command(self, verb: str, *, at_s: float, who: str = "ann", **args: Scalar) -> None:
        """A command of an operator, `at_s` after the start."""
        command = OperatorCommand(id=f"{verb}:{at_s}", who=who, verb=verb, args=args)
        self.timeline.feed(command, self.start + at_s)

    def run(self, until_s: float) -> Timeline:
        """Everything up to `until_s` after the start."""
        until = self.start + until_s
        while (at := self._next_at()) is not None and at <= until:
            while self._drills and self._drills[0][0] <= at:
                _, _, drill, node = heapq.heappop(self._drills)
                self._begin(drill, node, at)
            while self._due and self._due[0][0] <= at:
                due, node = heapq.heappop(self._due)
                if self._next.get(node) == due:
                    del self._next[node]
                    self._advance(node, at)
            while self._asked and self._asked[0][0] <= at:
                _, waiting = heapq.heappop(self._asked)
                if waiting not in self._under_way:
                    continue  # cancelled
                for due, given in self._ask_again(waiting, at):
                    self.timeline.feed(given, due)
            self.timeline.run(at)
        self.timeline.run(until)
        return self.timeline

    def _next_at(self) -> float | None:
        times = [self._drills[0][0]] if self._drills else []
        times += [self._due[0][0]] if self._due else []
        times += [self._asked[0][0]] if self._asked else []
        next_input = self.timeline.next_at()
        times += [next_input] if next_input is not None else []
        return min(times, default=None)

    def _begin(self, drill: str, node: str, at: float) -> None:
        machine = self.machines[node]
        try:
            plan = DRILLS[drill].plan(machine.state)
        except Refused:
            return  # nothing healthy is left on it that can break this way
        machine.apply(plan, at)
        self._schedule(node, at)

    def _schedule(self, node: str, at: float) -> None:
        """Advances the machine when its next change is due or its reachability changes, at once included."""
        machine = self.machines[node]
        back_at = machine.state.unreachable_until
        times = [back_at] if at < back_at < math.inf else []
        if node in self._unreachable_since and node not in self._missed:
            times.append(self._unreachable_since[node] + UNREACHABLE_AFTER_S)
        times += [time for time in (machine.next_at(),) if time is not None]
        due = max(at, min(times, default=math.inf))
        if due < math.inf and due < self._next.get(node, math.inf):
            self._next[node] = due
            heapq.heappush(self._due, (due, node))

    def _advance(self, node: str, now: float) -> None:
        """Sends what the machine reports, or keeps it while the node is unreachable."""
        machine = self.machines[node]
        reported = machine.advance(now)
        if machine.state.unreachable(now):
            since = self._unreachable_since.setdefault(node, now)
            self._unsent.setdefault(node, []).extend(reported)
            if now - since >= UNREACHABLE_AFTER_S and node not in self._missed:
                self._missed[node] = None
                gone = NodeState(id=f"n:{node}:{since}:0", node=node, alive=False, silent_s=now - since)
                self.timeline.feed(gone, now)
        else:
            since = self._unreachable_since.pop(node, now)
            if node in self._missed:
                del self._missed[node]
                back = NodeState(id=f"n:{node}:{since}:1", node=node, alive=True)
                self.timeline.feed(back, now + BEAT_S)
            for at, unsent in self._unsent.pop(node, []) + reported:
                self._send(node, unsent, at, now)
        self._schedule(node, now)

    def _send(self, node: str, unsent: UnsentEvent, at: float, now: float) -> None:
        self._seq[node] += 1
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

    def _perform(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        """Performs an effect; the inputs that come of it, with their times."""
        match effect:
            case Perform(step=step) if step.where == "brain":
                return self._perform_on_infrastructure(step, now)
            case AskJobs(node=node, people=people):
                said = self._infrastructure.answer(node, f"j:{node}:{now}:{people}", people=people)
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
        performed = self._infrastructure.perform(
            step.action, step.node, step.params, step.why, now, waited_s=now - since
        )
        for node in performed.nodes:
            self._schedule(node, now)
        result = performed.result
        if result.again_s:
            heapq.heappush(self._asked, (now + result.again_s, step_id))
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
            machine.apply([after(result.took_s, end)], now)
            self._schedule(step.node, now)
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
