"""Brains that crash at any moment: no step is repeated that must not be, no run is lost, and none is stuck."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.actions.spec import ActionSpec, Repeat
from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.core.effects import Effect, Perform, SendPage, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import Delivery, EventSeen, Input, Intent, Leader, PackLoaded, TimerFired
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.state import RunState
from tests.brain.world import pack

CACHE = CompiledCache()


@dataclass
class World:
    """The log, a node with a journal, and one brain after the other."""

    specs: dict[str, ActionSpec]
    lost_journal: bool = False  # the node forgets what it did (a reinstalled node)
    log: list[tuple[Input, float]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    now: float = 0.0
    done: list[str] = field(default_factory=list)  # step ids in the order in which the node did them
    journal: dict[str, float] = field(default_factory=dict)  # step id -> when its result comes
    sent: set[str] = field(default_factory=set)
    seq: int = 0
    engine: Engine | None = None
    read: int = 0
    epoch: int = 0
    pages: int = 0

    def append(self, given: Input) -> None:
        """Appends to the log, once for each id (the stream drops repeated message ids)."""
        if given.id not in self.ids:
            self.ids.add(given.id)
            self.log.append((given, self.now))

    def event(self, kind: str, component: str, **data: Any) -> None:
        """The node sends an event."""
        self.seq += 1
        event = Event(
            id=f"n1:s:{self.seq}",
            node="n1",
            kind=kind,
            component=component,
            severity=Severity.ERROR,
            at="",
            age_s=0.0,
            boot="b",
            count=1,
            data=data,
        )
        self.append(EventSeen(event=event))

    def new_brain(self) -> None:
        """Starts a new brain: it replays the log without performing anything, then leads."""
        self.engine = Engine(actions=self.specs, compile_pack=CACHE)
        self.read = 0
        while self.read < len(self.log):
            given, at = self.log[self.read]
            self.engine.handle(given, at)
            self.read += 1
        self.epoch += 1
        self.append(Leader(id=f"l:{self.epoch}", epoch=self.epoch, brain=f"b{self.epoch}"))

    def step(self, die_after: int | None) -> bool:
        """Handles one input. With `die_after` the brain performs so many of its effects and crashes. False: no input was left."""
        assert self.engine is not None
        if self.read >= len(self.log):
            return False
        given, at = self.log[self.read]
        effects = self.engine.handle(given, at)
        self.read += 1
        if self.engine.state.epoch == self.epoch:
            for effect in effects if die_after is None else effects[:die_after]:
                self.perform(effect)
        if die_after is not None:
            self.new_brain()
        return True

    def perform(self, effect: Effect) -> None:
        """What the shell and the node do."""
        if isinstance(effect, WriteIntent):
            step = effect.step.id
            self.append(Intent(id=f"i:{step}:{self.epoch}", step=step, epoch=self.epoch, brain="b"))
        elif isinstance(effect, SendPage):
            self.pages += 1
            self.append(Delivery(id=f"d:{effect.id}:{self.pages}", page=effect.id, ok=True, channel="c"))
        elif isinstance(effect, Perform):
            step = effect.step.id
            if step not in self.journal or self.lost_journal:
                self.done.append(step)
            self.journal[step] = self.now + 2.0
            self.sent.discard(step)

    def time(self, seconds: float) -> None:
        """Time passes: results arrive, and due timers fire."""
        assert self.engine is not None
        self.now += seconds
        for step, at in list(self.journal.items()):
            if at <= self.now and step not in self.sent:
                self.sent.add(step)
                self.event("command.result", "node", command=step, outcome="ok", why="did it", took_s=1.0)
        for name, due in sorted(self.engine.state.timers.items(), key=lambda entry: entry[1]):
            if due <= self.now:
                self.append(TimerFired(id=f"t:{name}:{due}", name=name, due=due))


def play(specs: dict[str, ActionSpec], deaths: dict[int, int], *, lost_journal: bool) -> World:
    """A link goes down and no bounce helps. `deaths`: number of an input -> effects that the brain performs before it crashes."""
    world = World(specs=specs, lost_journal=lost_journal)
    world.append(PackLoaded(id="p", pack=pack()))
    world.new_brain()
    world.event("link.state", "link/eth1", up=False)
    handled = 0
    for _ in range(400):
        while world.step(deaths.get(handled)):
            handled += 1
        world.time(1.0)
    return world


def specs_of(repeat: Repeat) -> dict[str, ActionSpec]:
    """All actions, with this repeat class."""
    return {
        name: ActionSpec(
            name=name,
            summary=spec.summary,
            disrupts=spec.disrupts,
            repeat=repeat,
            timeout_s=5,
            params=spec.params,
        )
        for name, spec in ACTIONS.items()
    }


deaths = st.dictionaries(st.integers(0, 30), st.integers(0, 6), max_size=6)


@settings(max_examples=150, deadline=None)
@given(deaths, st.sampled_from(Repeat))
def test_wherever_brains_die_no_command_runs_twice_and_no_run_is_stuck(
    where: dict[int, int], repeat: Repeat
) -> None:
    """The node's journal makes each command unique; every run ends and people are paged."""
    world = play(specs_of(repeat), where, lost_journal=False)
    assert len(world.done) == len(set(world.done))
    assert world.engine is not None
    runs = list(world.engine.state.runs.values())
    assert runs, "the run is not lost"
    assert all(run.state is RunState.EXHAUSTED for run in runs), [
        (run.id, run.state, run.why) for run in runs
    ]
    assert world.pages


@settings(max_examples=150, deadline=None)
@given(deaths)
def test_what_must_never_be_repeated_is_not_even_if_the_node_forgets(where: dict[int, int]) -> None:
    """Law 4 without the help of the node's journal: the intent on the log is enough."""
    world = play(specs_of(Repeat.NEVER), where, lost_journal=True)
    rungs = [step.rpartition(".a")[0] for step in world.done]
    assert len(rungs) == len(set(rungs)), world.done


def test_every_point_of_death_alone() -> None:
    """Every point, not a sample: each input of the story, after each number of effects."""
    for handled in range(25):
        for performed in range(6):
            for repeat in Repeat:
                world = play(specs_of(repeat), {handled: performed}, lost_journal=False)
                assert len(world.done) == len(set(world.done))
                assert world.engine is not None
                assert all(run.state is RunState.EXHAUSTED for run in world.engine.state.runs.values())
                outcomes = [step.outcome for run in world.engine.state.runs.values() for step in run.steps]
                assert "" not in outcomes
                assert Outcome.OK.value in outcomes
