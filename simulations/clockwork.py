"""An engine and simulated machines in simulated time: the same inputs give the same notes, however fast it runs.

Pure: time is what is asked for, chance comes from a seed. No command can leave: the world is the machines below
(law 9).
"""

import heapq
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from agent.contract.commands import Outcome
from agent.contract.errors import ConfigError, Refused
from agent.contract.messages import Draft, Event
from brain.core.effects import AskPlan, Effect, Perform, SendPage, Step
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Leader,
    NodeState,
    PackLoaded,
    Said,
    StepPlan,
    StepResult,
)
from brain.core.spec import Pack
from brain.core.timeline import Timeline
from simulations.changes import After, CommandEnds
from simulations.facilities import Facilities
from simulations.faults import FAULTS
from simulations.machines import Machine

START = 1_700_000_000.0  # 2023-11-14T22:13:20Z; any moment would do
SILENT_AFTER_S = 15.0  # as the brain's own default
BEAT_S = 2.0
WAY_S = 0.005  # from a node to the brain, and back


class Clockwork:
    """A cell in simulated time. `timeline` holds what came of it: notes, incidents, runs, pages."""

    def __init__(self, engine: Engine, pack: Pack, nodes: Sequence[str], *, start: float = START) -> None:
        """`engine`: fresh; its actions must include every action of the pack's runbooks."""
        self.timeline = Timeline(engine, self._world)
        self.machines = {name: Machine(name) for name in nodes}
        self.start = start
        self._seq = dict.fromkeys(nodes, 0)
        self._held: dict[str, list[tuple[float, Draft]]] = {}  # silent nodes: what they will say
        self._silent_since: dict[str, float] = {}
        self._missed: dict[str, None] = {}  # silent for so long that the brain has noticed
        self._around = Facilities(self.machines)
        self._done: set[str] = set()  # command ids that a node was told
        self._due: list[tuple[float, str]] = []  # when to look at a machine; older entries may be stale
        self._next: dict[str, float] = {}  # the entry of each machine that counts
        self._drills: list[tuple[float, int, str, str]] = []
        self.timeline.feed(Leader(id="lead", epoch=1, brain="clockwork"), start)
        self.timeline.feed(PackLoaded(id="pack", pack=pack), start)

    def inject(self, fault: str, node: str = "", *, at_s: float) -> None:
        """A fault begins `at_s` after the start: on that node, or on all for a fault that befalls all."""
        if fault not in FAULTS:
            raise ConfigError(f"there is no fault {fault!r} (have: {', '.join(FAULTS)})")
        names = list(self.machines) if FAULTS[fault].nodes == "all" else [node]
        for name in names:
            if name not in self.machines:
                raise ConfigError(f"there is no node {name!r}")
            heapq.heappush(self._drills, (self.start + at_s, len(self._drills), fault, name))

    def run(self, until_s: float) -> Timeline:
        """Everything up to `until_s` after the start."""
        until = self.start + until_s
        while (at := self._next_at()) is not None and at <= until:
            while self._drills and self._drills[0][0] <= at:
                _, _, fault, node = heapq.heappop(self._drills)
                self._begin(fault, node, at)
            while self._due and self._due[0][0] <= at:
                due, node = heapq.heappop(self._due)
                if self._next.get(node) == due:
                    del self._next[node]
                    self._advance(node, at)
            self.timeline.run(at)
        self.timeline.run(until)
        return self.timeline

    def _next_at(self) -> float | None:
        times = [self._drills[0][0]] if self._drills else []
        times += [self._due[0][0]] if self._due else []
        next_input = self.timeline.next_at()
        times += [next_input] if next_input is not None else []
        return min(times, default=None)

    def _begin(self, fault: str, node: str, at: float) -> None:
        machine = self.machines[node]
        try:
            plan = FAULTS[fault].plan(machine)
        except Refused:
            return  # nothing is left on it that can break so
        machine.apply(plan, at)
        self._look(node, at)

    def _look(self, node: str, at: float) -> None:
        """Comes back when the machine's next change is due or it is heard again, now included."""
        machine = self.machines[node]
        times = [machine.silent_until] if at < machine.silent_until < math.inf else []
        if node in self._silent_since and node not in self._missed:
            times.append(self._silent_since[node] + SILENT_AFTER_S)
        times += [time for time in (machine.next_at(),) if time is not None]
        due = max(at, min(times, default=math.inf))
        if due < math.inf and due < self._next.get(node, math.inf):
            self._next[node] = due
            heapq.heappush(self._due, (due, node))

    def _advance(self, node: str, now: float) -> None:
        machine = self.machines[node]
        drafts = machine.advance(now)
        if machine.silent(now):
            since = self._silent_since.setdefault(node, now)
            self._held.setdefault(node, []).extend(drafts)
            if now - since >= SILENT_AFTER_S and node not in self._missed:
                self._missed[node] = None
                gone = NodeState(id=f"n:{node}:{since}:0", node=node, alive=False, silent_s=now - since)
                self.timeline.feed(gone, now)
        else:
            since = self._silent_since.pop(node, now)
            if node in self._missed:
                del self._missed[node]
                back = NodeState(id=f"n:{node}:{since}:1", node=node, alive=True)
                self.timeline.feed(back, now + BEAT_S)
            for at, draft in self._held.pop(node, []) + drafts:
                self._say(node, draft, at, now)
        self._look(node, now)

    def _say(self, node: str, draft: Draft, at: float, now: float) -> None:
        self._seq[node] += 1
        event = Event(
            id=f"{node}:sim:{self._seq[node]}",
            node=node,
            kind=draft.kind,
            component=draft.component,
            severity=draft.severity,
            at=datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
            age_s=max(0.0, now - at),
            boot=f"boot-{self.machines[node].boots}",
            count=draft.count,
            data=draft.data,
            evidence=draft.evidence,
        )
        self.timeline.feed(EventSeen(event=event), now + WAY_S)

    def _world(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        match effect:
            case Perform(step=step) if step.where == "brain":
                return self._around_it(step, now)
            case AskPlan(step=step):
                would = (f"{step.action} on a simulated machine",)
                return [(now + WAY_S, StepPlan(id=f"w:{step.id}", step=step.id, ok=True, lines=would))]
            case Perform(step=step):
                return self._command(step, now)
            case SendPage(id=page):
                return [(now, Delivery(id=f"d:{page}", page=page, ok=True, channel="clockwork"))]
            case _:
                return []

    def _around_it(self, step: Step, now: float) -> list[tuple[float, Input]]:
        """What the brain does itself: done to the machines at once, answered when it has ended."""
        deed = self._around.perform(step.action, step.node, step.params, step.why, now)
        for node in deed.touched:
            self._look(node, now)
        done = deed.performed
        result = StepResult(id=f"r:{step.id}:{now}", step=step.id, outcome=done.outcome, why=done.why)
        return [(now + done.took_s + WAY_S, result)]

    def say(self, word: str, *, at_s: float, who: str = "ann", **args: str) -> None:
        """A person's word, `at_s` after the start."""
        self.timeline.feed(Said(id=f"said:{at_s}:{word}", who=who, verb=word, args=args), self.start + at_s)

    def _command(self, step: Step, now: float) -> list[tuple[float, Input]]:
        """A node gets a command: its result comes up as its event, like everything that it says."""
        machine = self.machines.get(step.node)
        if machine is None or machine.silent(now):
            why = f"{step.node}: no agent listens there"
            failed = StepResult(id=f"r:{step.id}", step=step.id, outcome=Outcome.UNREACHABLE, why=why)
            return [(now + WAY_S, failed)]
        if step.id not in self._done:  # one id runs once, ever
            self._done.add(step.id)
            performed = machine.perform(step.action, step.params, now)
            ends = CommandEnds(
                command=step.id, outcome=performed.outcome.value, why=performed.why, took_s=performed.took_s
            )
            machine.apply([After(s=performed.took_s, change=ends)], now)
            self._look(step.node, now)
        return []


def bad_days(
    nodes: Sequence[str],
    *,
    seed: int,
    days: float,
    per_node_day: float,
    weights: Mapping[str, float] | None = None,
) -> list[tuple[float, str, str]]:
    """Faults of a fleet over time: (seconds after the start, fault, node), in order; the same for the same seed.

    `per_node_day`: faults of one node a day, on average. `weights`: fault → how often, relative to the others.
    """
    chance = random.Random(seed)  # noqa: S311  a simulation, not a secret
    weights = weights or {
        name: 1.0 for name, fault in FAULTS.items() if fault.nodes == "one" and fault.breaks
    }
    found: list[tuple[float, str, str]] = []
    at_s = 0.0
    while (at_s := at_s + chance.expovariate(per_node_day * len(nodes) / 86400)) < days * 86400:
        (fault,) = chance.choices(list(weights), list(weights.values()))
        found.append((at_s, fault, chance.choice(nodes)))
    return found
