"""All ways in which a runbook can go against one fault, as a tree of plays. Pure.

Each step is tried with each of its possible ends. What follows depends on where the run stands and on what it has done, not on
how it came there: a step that was reached before in the same circumstances is shown once, and named where it is reached again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent.contract.actions.spec import ActionSpec, Disrupts
from agent.shared.words import later
from brain.core.operators.requests import REQUEST
from brain.core.pack.compiled import Compiled, CompiledCache
from brain.core.pack.spec import Pack, Paging
from brain.core.state import IncidentState
from simulations.ladder.ends import StepEnd, possible
from simulations.ladder.fault import ToldFault
from simulations.ladder.play import Play
from simulations.ladder.played import LadderPlayed, TriedStep

MOST_PLAYS = 3_000
MOST_FINE = (
    600  # plays that tell circumstances finely apart; a ladder with more ways is played with coarser ones
)
MOST_RUNS = 3  # later runs are as this one: a remedy that may be tried again for ever goes round


class WayEnd(StrEnum):
    """How a way ends."""

    HEALED = later("healed")
    PAGED = later("a person is told")
    LISTED = later("listed only, as its rule wants it")  # `page: never`
    FORGOTTEN = later("nobody is told, and nothing is healed")  # must not be
    WRONG = later("closed, and the fault is there")  # must not be
    KEPT = later("closed, and the node is still out of service")  # must not be


GOOD = (WayEnd.HEALED, WayEnd.PAGED, WayEnd.LISTED)


@dataclass(slots=True, kw_only=True)
class Leaf:
    """The end of a way."""

    verdict: WayEnd
    after_s: float  # since the fault began
    states: tuple[str, ...]  # of its incidents
    pages: int  # that tell something: no repeats, no resolutions
    text: str  # of the newest of them; empty: none
    out_of_service: bool
    disrupted: Disrupts  # the worst that was done on the way


@dataclass(slots=True, kw_only=True)
class StepBranch:
    """One end of a step, and what follows."""

    end: StepEnd
    then: "Fork | Leaf | None" = None  # None: what `again` names
    again: int = 0  # number of the step where the same was shown
    rounds: "Round | None" = None  # that step is on the way here: it goes round


class Round(StrEnum):
    """What a way is that comes back to where it was."""

    TOLD = later("it goes round, and a person is told")
    SILENT = later("it goes round for ever, and nobody is told")  # must not be


@dataclass(slots=True, kw_only=True)
class Fork:
    """A step, with each of its ends."""

    number: int
    asked: TriedStep
    after_s: float  # since the fault began
    branches: list[StepBranch] = field(default_factory=list)


Way = tuple[tuple[str, StepEnd], ...]  # (rung, how its step ended) of each step


@dataclass(slots=True, kw_only=True)
class Tree:
    """What is known of a runbook and a fault."""

    runbook: str
    cause: str
    root: Fork | Leaf
    plays: int
    # Whether circumstances were told finely apart (see _circumstances); a ladder with too many ways is played with coarser ones.
    fine: bool = True

    def leaves(self) -> Iterator[tuple[Way, Leaf | Round]]:
        """(steps with their ends, how it ends) of every way, each shown once."""
        if isinstance(self.root, Leaf):
            yield (), self.root
        else:
            yield from _leaves(self.root, ())


def _leaves(fork: Fork, way: Way) -> Iterator[tuple[Way, Leaf | Round]]:
    for branch in fork.branches:
        here = (*way, (fork.asked.rung.name, branch.end))
        if isinstance(branch.then, Fork):
            yield from _leaves(branch.then, here)
        elif branch.then is not None:
            yield here, branch.then
        elif branch.rounds is not None:
            yield here, branch.rounds


class TooMany(Exception):
    """A ladder has more ways than are played."""


@dataclass(slots=True, kw_only=True)
class _Player:
    pack: Pack
    actions: Mapping[str, ActionSpec]
    fault: Callable[[], ToldFault]
    cause: str
    requests: str
    compile_pack: Callable[[Pack], Compiled]
    fine: bool = True
    plays: int = 0
    seen: dict[tuple[object, ...], int] = field(default_factory=dict)

    def played(self, script: Sequence[StepEnd]) -> LadderPlayed:
        self.plays += 1
        if self.plays > (MOST_FINE if self.fine else MOST_PLAYS):
            raise TooMany
        play = Play(
            self.pack,
            self.actions,
            self.fault(),
            script,
            self.compile_pack,
            cause=self.cause,
            requests=self.requests,
        )
        return play.run()

    def root(self) -> Fork | Leaf:
        """All of it."""
        played = self.played(())
        return leaf(played) if played.waits is None else self.fork((), played, played.waits, {})

    def fork(
        self, script: tuple[StepEnd, ...], played: LadderPlayed, asked: TriedStep, way: Mapping[int, int]
    ) -> Fork:
        """A step that is new. `way`: number of a step on the way here -> pages until then."""
        number = self.seen[_circumstances(played, asked, fine=self.fine)] = len(self.seen) + 1
        way = {**way, number: len(played.pages)}
        fork = Fork(number=number, asked=asked, after_s=asked.at - played.begun_at)
        for end in possible(self.actions[asked.step.action], asked.rung, asked.step, broken=asked.broken):
            fork.branches.append(self.branch(end, (*script, end), way))
        return fork

    def branch(self, end: StepEnd, script: tuple[StepEnd, ...], way: Mapping[int, int]) -> StepBranch:
        """What follows after a script."""
        played = self.played(script)
        if played.waits is None:
            return StepBranch(end=end, then=leaf(played))
        again = self.seen.get(_circumstances(played, played.waits, fine=self.fine))
        if again is None:
            return StepBranch(end=end, then=self.fork(script, played, played.waits, way))
        told = len(played.pages) > way.get(again, 0) or any(
            one.pages.sent and one.state is not IncidentState.CLOSED for one in played.incidents
        )
        return StepBranch(
            end=end, again=again, rounds=(Round.TOLD if told else Round.SILENT) if again in way else None
        )


def grown(
    pack: Pack,
    actions: Mapping[str, ActionSpec],
    fault: Callable[[], ToldFault],
    *,
    runbook: str,
    cause: str,
    compile_pack: Callable[[Pack], Compiled] | None = None,
    fine: bool = True,
) -> Tree:
    """The tree of a runbook. `cause`: of the fault; empty: a person starts it. `fine`: circumstances are told finely apart where
    that does not take too many plays. TooMany: it has more ways than are played.
    """
    cache = compile_pack or CompiledCache()
    for finely in (True, False) if fine else (False,):
        player = _Player(
            pack=pack,
            actions=actions,
            fault=fault,
            cause=cause or f"{REQUEST}-{runbook}",
            requests="" if cause else runbook,
            compile_pack=cache,
            fine=finely,
        )
        try:
            return Tree(runbook=runbook, cause=cause, root=player.root(), plays=player.plays, fine=finely)
        except TooMany:
            if not finely:
                raise
    raise AssertionError("one of them returns or raises")


def _circumstances(played: LadderPlayed, asked: TriedStep, *, fine: bool) -> tuple[object, ...]:
    """All on which it depends what follows: where the run stands, whether the fault is there, and what was done to the node."""
    disturbed = frozenset(
        one.rung.name for one in played.steps if one.run == asked.run and one.disrupts is not Disrupts.NOTHING
    )
    returns_s, *around = played.around  # see `Play._around`
    if asked.run >= MOST_RUNS:  # what goes round for ever comes back at ever other times
        returns_s = returns_s is not None
    if not fine:
        returns_s, around = None, around[-1:]
    lost = any(one.end is StepEnd.RETURNS for one in played.steps)
    return (
        asked.runbook, min(asked.run, MOST_RUNS), asked.returning, asked.number, asked.attempt, asked.broken, disturbed, lost,
        played.drained, returns_s, *around,
    )  # fmt: skip


def _closed(played: LadderPlayed) -> WayEnd:
    """Everything is closed. A fault that nothing tells again is closed after a while: people were told of it before."""
    if not played.broken:
        return WayEnd.KEPT if played.drained else WayEnd.HEALED
    if played.pages:
        return WayEnd.PAGED
    return WayEnd.LISTED if all(one.page is Paging.NEVER for one in played.incidents) else WayEnd.WRONG


def leaf(played: LadderPlayed) -> Leaf:
    """How a way ended: what became of its incidents, whether people were told since its last step, and where the node is."""
    closed = all(one.state is IncidentState.CLOSED for one in played.incidents)
    told = played.told()
    if closed and played.incidents:
        verdict = _closed(played)
    elif (
        all(one.id in told for one in played.incidents if one.state is not IncidentState.CLOSED)
        and played.incidents
    ):
        verdict = WayEnd.PAGED
    else:
        verdict = WayEnd.FORGOTTEN
    worst = max((one.disrupts for one in played.steps), key=list(Disrupts).index, default=Disrupts.NOTHING)
    return Leaf(
        verdict=verdict,
        after_s=played.settled_at() - played.begun_at,
        states=tuple(one.state.value for one in played.incidents),
        pages=len(played.calls()),
        text=next((page.text for page in reversed(played.calls())), ""),
        out_of_service=played.drained,
        disrupted=worst,
    )
