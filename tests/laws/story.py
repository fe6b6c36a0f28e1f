"""One random story: facts, operators, results, leaders, reloads, restarts; and what the engine made of it.

All chance comes from the seed. Facts may come late, twice and out of order; nodes fall silent and lie; results come at any
time or never; the engine is saved and restored at random points.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import orjson

from agent.contract.commands import Outcome
from agent.contract.kinds import KINDS
from agent.contract.messages import Scalar, Severity
from brain.adapters.snapshot import dump, parse
from brain.core.effects import (
    AskJobs,
    AskLook,
    AskPlan,
    CancelStep,
    Effect,
    Note,
    Perform,
    SendPage,
    SetTimer,
    ShowIncident,
    ShowRun,
    Step,
    WriteIntent,
)
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsAnswer,
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    Reported,
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
)
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Match, Mode, Symptom
from tests.laws import fleet, words
from tests.laws.cell import Cell, NodeTruth
from tests.laws.unsent import Unsent
from tests.laws.values import any_value, component_of, data_of

UNKNOWN_XID = 4242  # no catalogue has it
QUIET_END_S = (
    1.2 * 86400.0
)  # how long a story goes on after its last move: all that waits must have ended or told

See = Callable[[Cell, Input, float, list[Effect]], None]

HEARD_AT_FIRST = 8  # so many nodes have been heard before the first move
ACK_AFTER_S = 2 * 3600.0  # when people acknowledge what they were paged for, in the quiet end
POLL_S = 300.0  # a timer of a run so far ahead is a question asked again and again
POLL_LATE_S = 3000.0  # in the rest of the quiet end it comes so late: its answer is the same every time

MOST_FIRED = 3000  # times of one timer in a story
RESTART_SHARE = 0.006  # of the inputs have a restart before them
TWIN_INPUTS = 10  # so long the engine that was not restarted goes along; then both know the same


@dataclass(slots=True, kw_only=True)
class Story:
    """What was played: the log, and the truth of its cell."""

    seed: int
    cell: Cell
    log: list[tuple[Input, float]] = field(default_factory=list)
    end_at: float = 0.0  # when the last move was made; after it everything is obedient
    differ: list[str] = field(default_factory=list)  # inputs whose effects were others after a restart


_Coming = Input | Unsent | SetTimer


def _known(engine: Engine) -> bytes:
    """An engine's state as a snapshot holds it, without the pack: it never changes and takes long to write."""
    pack, engine.state.pack = engine.state.pack, None
    try:
        return dump(engine.state)
    finally:
        engine.state.pack = pack


class Teller:
    """Tells one story. `see` is called after each input with its effects, before any of them is answered."""

    def __init__(self, seed: int, moves: int, cache: CompiledCache, see: See) -> None:
        self._chance = random.Random(seed)
        size = self._chance.choice(fleet.SIZES)
        self._modes = self._chance.choice(
            ((Mode.AUTO,), (Mode.AUTO,), (Mode.AUTO, Mode.APPROVE), tuple(Mode))
        )
        self._careful = self._chance.random() < 0.5
        self._size = size
        pack = fleet.pack(size, self._modes[0], careful=self._careful)
        self.names = list(pack.places)
        self._cache = cache
        self.engine = Engine(actions=ACTIONS, compile_pack=cache)
        nodes = {name: NodeTruth(name=name) for name in self.names}
        self.story = Story(seed=seed, cell=Cell(pack=pack, actions=ACTIONS, nodes=nodes))
        self.now = fleet.START
        self._moves = moves
        self._see = see
        self._queue: list[tuple[float, int, _Coming]] = []
        self._count = 0
        self._fired: Counter[str] = Counter()  # timers by name
        self._seqs: dict[str, int] = {}
        self._boots: dict[str, int] = {}
        self._obedient = False
        self._at_rest = False  # the quiet end after people have acknowledged
        self._twin: Engine | None = None  # the engine as it would be without the restart
        self._twin_until = 0
        self._favourites = self._chance.sample(pack.symptoms, 6)  # a story is about few faults, not about all
        self._sick = self._chance.sample(self.names, min(size, self._chance.choice((1, 2, 5, 20))))

    def play(self) -> Story:
        """The whole story."""
        self._put(PackLoaded(id="pack-0", pack=self.story.cell.pack))
        self._lead()
        for name in self._chance.sample(self.names, min(len(self.names), HEARD_AT_FIRST)):
            self._put(self._event(name, "agent.started", "node", {}))
        for _ in range(self._moves):
            self._move()
            self._pass(self._chance.choice((0.0, 0.0, 0.3, 1.0, 3.0, 10.0, 60.0, 400.0, 4000.0)))
        self._settle()
        self.engine.close()
        return self.story

    def _settle(self) -> None:
        """From here on the world does what it is told, nobody says anything any more, and days pass."""
        self._obedient = True
        self.story.end_at = self.now
        for step, at_work in list(self.story.cell.under_way.items()):
            self._later(5.0, self._result(at_work.step, Outcome.OK, step))
        for name, node in self.story.cell.nodes.items():
            if not node.alive:
                self._put(NodeState(id=self._id("n"), node=name, alive=True))
        self._pass(ACK_AFTER_S)
        state = self.engine.state
        for about in [*state.incidents, *state.alert_groups]:
            self._put(OperatorCommand(id=self._id("o"), who="ann", verb="ack", args={"id": about}))
        self._at_rest = True
        self._pass(QUIET_END_S - ACK_AFTER_S)

    # --- time ---

    def _put(self, coming: Input | Unsent) -> None:
        if not self._obedient and self._chance.random() < RESTART_SHARE:
            self._restore()
        given = self._numbered(coming) if isinstance(coming, Unsent) else coming
        self.story.log.append((given, self.now))
        effects = self._handle(given)
        self._see(self.story.cell, given, self.now, effects)
        for effect in effects:
            if type(effect) not in _TOLD:
                self._take(effect)
        if not self._obedient and self._chance.random() < 0.01:  # the same again
            self.story.log.append((given, self.now))
            self._see(self.story.cell, given, self.now, self._handle(given))

    def _later(self, after_s: float, coming: _Coming) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + after_s, self._count, coming))

    def _pass(self, seconds: float) -> None:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            at, _, coming = heapq.heappop(self._queue)
            self.now = max(self.now, at)
            if not isinstance(coming, SetTimer):
                self._put(coming)
            elif self.engine.state.timers.get(coming.name) == coming.due:
                name, due = coming.name, coming.due
                self._fired[name] += 1
                if (
                    self._fired[name] > MOST_FIRED
                ):  # each is a message of the log, and a brain would write it for ever
                    raise RuntimeError(f"story {self.story.seed}: the timer {name} comes to no rest")
                self._put(TimerFired(id=f"t:{name}:{due}", name=name, due=due))
            # else it is stale: the shell fires it or not, it changes nothing
        self.now = until

    def _restore(self) -> None:
        """The brain is restarted from its snapshot."""
        state = parse(_known(self.engine))
        state.pack = self.engine.state.pack
        self._twin, self._twin_until = self.engine, len(self.story.log) + TWIN_INPUTS
        self.engine = Engine(state, actions=ACTIONS, compile_pack=self._cache)

    def _handle(self, given: Input) -> list[Effect]:
        """The effects; after a restart, those of the engine that was not restarted must be the same (law: restart)."""
        effects = self.engine.handle(given, self.now)
        if self._twin is not None:
            other = self._twin.handle(given, self.now)
            if (effects or other) and orjson.dumps(effects) != orjson.dumps(other):
                self.story.differ.append(f"{type(given).__name__} {given.id}")
                self._twin = None
            elif len(self.story.log) > self._twin_until:
                if _known(self.engine) != _known(self._twin):
                    self.story.differ.append(f"the states some inputs later, after {given.id}")
                self._twin = None
        return effects

    def _id(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"

    # --- the world's answers ---

    def _take(self, effect: Effect) -> None:
        chance = self._chance
        match effect:
            case SetTimer(name=name, due=due):
                after = due - self.now
                if self._at_rest and after >= POLL_S and name.startswith("run:"):
                    after += POLL_LATE_S
                self._later(after, effect)
            case WriteIntent(step=step):
                after = 0.0 if self._obedient else chance.choice((0.0, 0.0, 0.01, 3.0))
                epoch = self.story.cell.epoch
                self._later(after, Intent(id=f"i:{step.id}:{epoch}", step=step.id, epoch=epoch, brain="b"))
            case Perform(step=step) | AskLook(step=step):
                self._perform(step)
            case CancelStep(step=step):
                self._later(1.0, self._result(step, Outcome.UNKNOWN, step.id))
            case SendPage(id=page):
                ok = self._obedient or chance.random() < 0.85
                why = "" if ok else "refused"
                self._later(
                    chance.uniform(0, 5), Delivery(id=self._id("d"), page=page, ok=ok, channel="c", why=why)
                )
            case AskPlan(step=step):
                self._later(0.1, StepPlan(id=self._id("w"), step=step.id, ok=True, lines=("would do it",)))
            case AskJobs(node=node):
                self._later(0.2, self._jobs(node))

    def _jobs(self, node: str) -> JobsAnswer:
        answers: tuple[dict[str, Any], ...] = (
            {"known": True},
            {"known": True, "jobs": ("4711",)},
            {"known": True, "jobs": ("9",), "protected": "9 (account prod)"},
            {"known": False, "why": "the scheduler does not answer"},
        )
        given = answers[0] if self._obedient else self._chance.choices(answers, (6, 2, 1, 1))[0]
        return JobsAnswer(id=self._id("j"), node=node, **given)

    def _perform(self, step: Step) -> None:
        chance = self._chance
        if self._obedient:
            self._later(1.0, self._result(step, Outcome.OK, step.id))
            return
        outcome = chance.choices(_OUTCOMES, cum_weights=_OUTCOME_WEIGHTS)[0]
        after = chance.choice((0.1, 2.0, 30.0, 200.0))
        if chance.random() < 0.2:
            self._later(
                after / 2, StepProgress(id=self._id("g"), step=step.id, elapsed_s=after / 2, text="at work")
            )
        if outcome is not None:
            self._later(after, self._result(step, outcome, step.id))
        if outcome is Outcome.OK and step.node:
            for fact in self._cured(step):
                self._later(after + chance.choice((0.0, 1.0, 8.0)), fact)

    def _result(self, step: Step, outcome: Outcome, step_id: str) -> Input | Unsent:
        why = f"it is {outcome.value}"
        if step.where == "node":
            data = {"command": step_id, "outcome": outcome.value, "why": why}
            return self._event(step.node, "command.result", "node", data)
        return StepResult(id=self._id("r"), step=step_id, outcome=outcome, why=why)

    def _cured(self, step: Step) -> Iterator[Unsent]:
        """What a node says when a step has helped: its symptoms' own clearing facts, most of the time."""
        if self._chance.random() < 0.3:
            return
        if ACTIONS[step.action].takes_node_away:
            self._boots[step.node] = self._boots.get(step.node, 0) + 1
        for key, symptom in self.engine.state.symptoms.items():
            if symptom.active and f"/{step.node}" in key:
                spec = next((one for one in self.story.cell.pack.symptoms if one.name == symptom.name), None)
                for match in spec.clear[:1] if spec is not None else ():
                    component = "node" if symptom.scope.startswith("node/") else component_of(symptom.scope)
                    yield self._event(step.node, match.kind, component, data_of(match))

    # --- moves ---

    def _lead(self) -> None:
        self.story.cell.epoch += 1
        epoch = self.story.cell.epoch
        self._put(Leader(id=f"leader-{epoch}", epoch=epoch, brain=f"b{epoch % 2}"))

    def _event(
        self, node: str, kind: str, component: str, data: Mapping[str, Scalar], age_s: float = 0.0
    ) -> Unsent:
        boot = f"boot-{self._boots.get(node, 0)}"
        return Unsent(node=node, kind=kind, component=component, data=data, age_s=age_s, boot=boot)

    def _numbered(self, unsent: Unsent) -> EventSeen:
        seq = self._seqs[unsent.node] = self._seqs.get(unsent.node, 0) + 1
        return unsent.numbered(seq)

    def _fact(self, node: str, symptom: Symptom, match: Match) -> Unsent:
        wanted = match.where.get("component_type", symptom.scope)
        kind = wanted if isinstance(wanted, str) and wanted in fleet.COMPONENTS else "node"
        age_s = self._chance.choices((0.0, 3.0, 200.0, 9000.0), (10, 2, 1, 1))[0]
        return self._event(
            node, match.kind, self._chance.choice(fleet.COMPONENTS[kind]), data_of(match), age_s
        )

    def _move(self) -> None:
        chance = self._chance
        what = chance.choices(_MOVE_NAMES, cum_weights=_MOVE_WEIGHTS)[0]
        node = chance.choice(self._sick if chance.random() < 0.8 else self.names)
        if what in ("fact", "storm", "creep", "cleared"):
            self._facts(what, node)
        elif what == "silent":
            self._put(NodeState(id=self._id("n"), node=node, alive=False, silent_s=20.0))
        elif what == "heard":
            self._put(NodeState(id=self._id("n"), node=node, alive=True))
        elif what == "reboot":
            self._boots[node] = self._boots.get(node, 0) + 1
            self._put(self._event(node, "agent.started", "node", {}))
        elif what == "any":
            self._any_kind(node)
        elif what == "unknown":
            data: dict[str, Scalar] = {
                "code": UNKNOWN_XID + chance.randint(0, 3),
                "name": "unknown",
                "action": "UNKNOWN",
            }
            self._put(self._event(node, "gpu.xid", "gpu/0000:3b:00", data))
        elif what == "leader":
            self._lead()
        elif what == "reload":
            pack = fleet.pack(self._size, chance.choice(self._modes), careful=self._careful)
            self.story.cell.pack = pack
            self._put(PackLoaded(id=self._id("p"), pack=pack))
        elif what == "forged":
            self._forge(node)
        elif what == "garbage":
            self._put(Malformed(id=self._id("m"), subject="x", node=node, why="not JSON"))
        elif what == "reported":
            self._put(
                Reported(
                    id=self._id("ufm"),
                    source="ufm",
                    node=node,
                    kind="ib.cable",
                    component="port/mlx5_0.1",
                    severity=Severity.WARNING,
                    data={"what": "hot"},
                )
            )
        else:
            self._command(node)

    def _forge(self, node: str) -> None:
        """A node reports how another one's step has ended, or the brain's own."""
        at_work = [one.step for one in self.story.cell.under_way.values()]
        foreign = [step for step in at_work if step.node != node or step.where == "brain"]
        if foreign:
            step = self._chance.choice(foreign)
            outcome = self._chance.choice(list(Outcome)).value
            data = {"command": step.id, "outcome": outcome, "why": "so it says"}
            self._put(self._event(node, "command.result", "node", data))

    def _facts(self, what: str, node: str) -> None:
        chance = self._chance
        symptom = chance.choice(self._favourites)
        matches = symptom.clear if what == "cleared" else symptom.on
        if not matches:
            return
        match = chance.choice(matches)
        if what in ("fact", "cleared"):
            for _ in range(chance.choice((1, 1, 3))):
                self._later(chance.uniform(0, 5), self._fact(node, symptom, match))
            return
        count = min(len(self.names), chance.choice((3, 6, 9, 24, 60)))
        pause_s = 0.1 if what == "storm" else chance.choice((10.0, 20.0, 60.0))
        first = chance.randrange(len(self.names))  # neighbours, as a leaf's are
        for number in range(count):
            name = self.names[(first + number) % len(self.names)]
            self._later(number * pause_s, self._fact(name, symptom, match))

    def _any_kind(self, node: str) -> None:
        """A well-formed event of any kind that is declared, with any values."""
        kind = self._chance.choice(list(KINDS.values()))
        types = [one for one in kind.component.replace(" ", "").split(",") if one in fleet.COMPONENTS] or [
            "node"
        ]
        component = self._chance.choice(fleet.COMPONENTS[self._chance.choice(types)])
        data = {
            one.name: any_value(self._chance, one.type) for one in kind.fields if self._chance.random() < 0.9
        }
        if kind.name not in ("command.result", "command.progress"):
            self._put(self._event(node, kind.name, component, data))

    def _command(self, node: str) -> None:
        """What an operator says, sense or nonsense."""
        verb, args = words.said(self._chance, self.engine.state, self.story.cell.pack, node)
        who = self._chance.choice(("ann", "bob"))
        self._put(OperatorCommand(id=self._id("o"), who=who, verb=verb, args=args))


_MOVES = {
    "fact": 40,
    "storm": 2,
    "creep": 3,
    "cleared": 8,
    "silent": 4,
    "heard": 4,
    "reboot": 2,
    "any": 12,
    "unknown": 2,
    "command": 16,
    "leader": 1,
    "reload": 1,
    "garbage": 1,
    "forged": 2,
    "reported": 1,
}
_MOVE_NAMES, _MOVE_WEIGHTS = list(_MOVES), list(accumulate(_MOVES.values()))
_OUTCOMES = (*Outcome, None)  # None: nobody ever hears of it
_OUTCOME_WEIGHTS = list(accumulate(12 if one is Outcome.OK else 2 for one in _OUTCOMES))
_TOLD = frozenset((Note, ShowIncident, ShowRun))  # effects that the world has no answer to
