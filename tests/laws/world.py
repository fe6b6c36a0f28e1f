"""The world of a random story: its time, and its answers to what the engine asks for.

Facts and results come at any time or never; the engine is saved and restored at random points.
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
from agent.contract.messages import Scalar
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
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
)
from brain.core.jobs_seen import JobSeen
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Pack
from tests.laws import fleet
from tests.laws.cell import Cell, NodeTruth
from tests.laws.unsent import Unsent
from tests.laws.values import component_of, data_of

See = Callable[[Cell, Input, float, list[Effect]], None]

POLL_S = 300.0  # a timer of a run so far ahead is a question asked again and again
POLL_LATE_S = 3000.0  # in the rest of the quiet end it comes so late: its answer is the same every time
MOST_FIRED = 3000  # times of one timer in a story
RESTART_SHARE = 0.006  # of the inputs have a restart before them
TWIN_INPUTS = 10  # so long the engine that was not restarted goes along; then both know the same
_OUTCOMES = (*Outcome, None)  # None: nobody ever hears of it
_OUTCOME_WEIGHTS = list(accumulate(12 if one is Outcome.OK else 2 for one in _OUTCOMES))
FOR_PEOPLE = 1_000_000_000  # of several things that come at one moment these come last
_TOLD = frozenset((Note, ShowIncident, ShowRun))  # effects that the world has no answer to


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


def _of_people(coming: _Coming) -> bool:
    """Whether it is about who is hit."""
    match coming:
        case JobsAnswer(people=people):
            return people
        case TimerFired(name=name):
            return name.startswith("hit:")
    return False


def _for_people(node: str, number: int) -> JobsAnswer:
    """What runs on a node, for people: another job now and then, and sometimes nobody knows."""
    id_, job = f"jp-{number}", JobSeen(id=str(4711 + number % 3), name="train", user="alice", nodes=4)
    if number % 5 == 0:
        return JobsAnswer(id=id_, node=node, known=False, why="the scheduler does not answer", people=True)
    seen = () if number % 4 == 0 else (job,)
    return JobsAnswer(
        id=id_,
        node=node,
        known=True,
        jobs=tuple(one.id for one in seen),
        protected="9 (account prod)",  # what a gate must not see
        people=True,
        seen=seen,
        scheduler="slurm",
    )


class World:
    """A cell, an engine that looks after it, and what happens there. `see` is called after each input with its effects, before
    any of them is answered.
    """

    def __init__(self, seed: int, chance: random.Random, pack: Pack, cache: CompiledCache, see: See) -> None:
        self._chance = chance
        self.names = list(pack.places)
        self._cache = cache
        self.engine = Engine(actions=ACTIONS, compile_pack=cache)
        nodes = {name: NodeTruth(name=name) for name in self.names}
        self.story = Story(seed=seed, cell=Cell(pack=pack, actions=ACTIONS, nodes=nodes))
        self.now = fleet.START
        self._see = see
        self._queue: list[tuple[float, int, _Coming]] = []
        self._count = 0
        self._asked = self._unnumbered = 0  # questions of people, and what comes of them
        self._fired: Counter[str] = Counter()  # timers by name
        self._seqs: dict[str, int] = {}
        self._boots: dict[str, int] = {}
        self._obedient = False
        self._at_rest = False  # the quiet end after people have acknowledged
        self._twin: Engine | None = None  # the engine as it would be without the restart
        self._twin_until = 0

    # --- time ---

    def _put(self, coming: Input | Unsent) -> None:
        dice = not self._obedient and not _of_people(coming)
        if dice and self._chance.random() < RESTART_SHARE:
            self._restore()
        given = self._numbered(coming) if isinstance(coming, Unsent) else coming
        self.story.log.append((given, self.now))
        effects = self._handle(given)
        self._see(self.story.cell, given, self.now, effects)
        for effect in effects:
            if type(effect) not in _TOLD:
                self._take(effect)
        if dice and self._chance.random() < 0.01:  # the same again
            self.story.log.append((given, self.now))
            self._see(self.story.cell, given, self.now, self._handle(given))

    def _later(self, after_s: float, coming: _Coming) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + after_s, self._count, coming))

    def _later_for_people(self, after_s: float, coming: _Coming) -> None:
        """With numbers of their own, and no dice: without who is hit the story is the same."""
        self._unnumbered += 1
        heapq.heappush(self._queue, (self.now + after_s, FOR_PEOPLE + self._unnumbered, coming))

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
            case SetTimer(name=name, due=due) if name.startswith("hit:"):
                self._later_for_people(due - self.now, effect)
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
            case AskJobs(node=node, people=True):
                self._asked += 1
                self._later_for_people(0.2, _for_people(node, self._asked))
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

    def _event(
        self, node: str, kind: str, component: str, data: Mapping[str, Scalar], age_s: float = 0.0
    ) -> Unsent:
        boot = f"boot-{self._boots.get(node, 0)}"
        return Unsent(node=node, kind=kind, component=component, data=data, age_s=age_s, boot=boot)

    def _numbered(self, unsent: Unsent) -> EventSeen:
        seq = self._seqs[unsent.node] = self._seqs.get(unsent.node, 0) + 1
        return unsent.numbered(seq)
