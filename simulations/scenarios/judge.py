"""How far what happened in a story is what a good engineer would want."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from brain.core.pack.spec import Pack
from brain.core.state import Incident
from simulations.scenarios.ending import SceneEnd
from simulations.scenarios.names import FABRIC, nodes
from simulations.scenarios.play import play
from simulations.scenarios.spec import Sight, StoryExpect, Tale

NOTHING = "nothing"
LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An incident that was expected, and the one that was found for it; NOTHING: none."""

    cause: str
    place: str
    found_cause: str
    found_place: str
    cause_right: bool
    place_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryJudgement:
    """A story that was played."""

    tale: Tale
    pairs: tuple[Pair, ...]
    # what is not as expected
    unmet: tuple[str, ...]
    # incidents that people see
    seen: int
    # steps that disturbed something and should not have been
    needless: int
    pages: int
    # what happened and why, in a few sentences
    line: str

    @property
    def cause_right(self) -> bool:
        """Every expected cause was found."""
        return all(pair.cause_right for pair in self.pairs)

    @property
    def place_right(self) -> bool:
        """Every expected cause was found, and at its place."""
        return all(pair.place_right for pair in self.pairs)

    @property
    def right(self) -> bool:
        """Everything is as expected."""
        return not self.unmet


def judge(tale: Tale, pack: Pack | None = None) -> StoryJudgement:
    """Plays a story and compares its end with what is expected. `pack`: the rules; None: gpuward's own."""
    return of_end(tale, play(tale, pack))


def of_end(tale: Tale, outcome: SceneEnd) -> StoryJudgement:
    """Compares the end of a story with what is expected."""
    expect = tale.expect
    pairs = tuple(_pairs(expect, outcome.seen))
    if expect.or_incidents and not all(pair.place_right for pair in pairs):
        instead = replace(expect, incidents=expect.or_incidents)
        other = tuple(_pairs(instead, outcome.seen))
        if all(pair.place_right for pair in other):
            expect, pairs = instead, other
    needless = _needless(expect, outcome)
    unmet = (
        *(_missed(pair) for pair in pairs if not pair.place_right),
        *_too_many(expect, outcome.seen),
        *_ends(expect, outcome.seen),
        *([f"{len(needless)} needless steps: {_listed(needless)}"] if needless else []),
        *_work(expect, outcome),
        *_people(expect, outcome),
    )
    return StoryJudgement(
        tale=tale,
        pairs=pairs,
        unmet=unmet,
        seen=len(outcome.seen),
        needless=len(needless),
        pages=len(outcome.pages),
        line=outcome.line(),
    )


def _any_of(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns


def _fits(text: str, patterns: str | tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in _any_of(patterns))


def _pairs(expect: StoryExpect, seen: list[Incident]) -> Iterator[Pair]:
    """Each expected incident with the best of those that no other one has taken."""
    left = list(seen)
    chosen: dict[int, Incident] = {}
    for rank in (_exact, _same_cause, _same_place, _widest):
        for number, sight in enumerate(expect.incidents):
            if number not in chosen and (found := rank(sight, left)) is not None:
                chosen[number] = found
                left.remove(found)
    for number, sight in enumerate(expect.incidents):
        one = chosen.get(number)
        cause_right = one is not None and _fits(one.cause, sight.cause)
        yield Pair(
            cause=" or ".join(_any_of(sight.cause)),
            place=" or ".join(_any_of(sight.place)),
            found_cause=one.cause if one else NOTHING,
            found_place=one.scope if one else NOTHING,
            cause_right=cause_right,
            place_right=cause_right and one is not None and _fits(one.scope, sight.place),
        )
    if not expect.incidents:
        one = _widest(None, left)
        fine = one is None or (expect.most or 0) > 0
        yield Pair(
            cause=NOTHING,
            place=NOTHING,
            found_cause=NOTHING if fine or one is None else one.cause,
            found_place=NOTHING if fine or one is None else one.scope,
            cause_right=fine,
            place_right=fine,
        )


def _exact(sight: Sight, left: list[Incident]) -> Incident | None:
    """Of several at one place one that ends as expected."""
    here = [one for one in left if _fits(one.cause, sight.cause) and _fits(one.scope, sight.place)]
    return next((one for one in here if _fits(one.state.value, sight.state)), next(iter(here), None))


def _same_cause(sight: Sight, left: list[Incident]) -> Incident | None:
    return next((one for one in left if _fits(one.cause, sight.cause)), None)


def _same_place(sight: Sight, left: list[Incident]) -> Incident | None:
    return next((one for one in left if _fits(one.scope, sight.place)), None)


def _widest(_: Sight | None, left: list[Incident]) -> Incident | None:
    return max(left, key=lambda one: len(one.affected), default=None)


def _missed(pair: Pair) -> str:
    if pair.cause == NOTHING:
        return f"people see {pair.found_cause} at {pair.found_place}, and should see nothing"
    return f"expected {pair.cause} at {pair.place}, found {pair.found_cause} at {pair.found_place}"


def _too_many(expect: StoryExpect, seen: list[Incident]) -> Iterator[str]:
    most = len(expect.incidents) if expect.most is None else expect.most
    if len(seen) > most:
        count = Counter(f"{one.cause} of a {one.scope.partition('/')[0]}" for one in seen)
        named = _listed([f"{n} × {name}" for name, n in count.most_common()])
        yield f"{len(seen)} incidents are seen, not {most}: {named}"


def _ends(expect: StoryExpect, seen: list[Incident]) -> Iterator[str]:
    for sight in expect.incidents:
        one = _exact(sight, seen)
        if one is not None and not _fits(one.state.value, sight.state):
            yield f"{one.cause} ends {one.state.value}, not {' or '.join(_any_of(sight.state))}"


def _needless(expect: StoryExpect, outcome: SceneEnd) -> list[str]:
    """The steps that disturbed nodes which should have been left alone."""
    allowed = nodes(expect.disturbed)
    within: dict[str, None] = {}
    found = []
    for one in outcome.scene.done:
        if not one.disturbs:
            continue
        node = one.step.node or FABRIC
        room = expect.disturbed_most is None or len(within) < expect.disturbed_most or node in within
        if node in allowed and room:
            within[node] = None
        else:
            found.append(f"{one.step.action} on {node} at {one.at_s:.0f} s")
    return found


def _work(expect: StoryExpect, outcome: SceneEnd) -> Iterator[str]:
    for node, wanted in expect.done.items():
        done = outcome.actions(node)
        missing = [action for action in wanted if action not in done]
        if missing:
            yield f"{node}: {', '.join(missing)} was not done, but {', '.join(done) or 'nothing'}"
    if expect.out is not None and sorted(outcome.out) != sorted(nodes(expect.out)):
        yield f"out of service at the end: {_listed(outcome.out) or 'none'}, not {expect.out or 'none'}"
    forbidden = [
        f"{one.step.action} on {one.step.node}" for one in outcome.work if one.step.action in expect.never
    ]
    if forbidden:
        yield f"{_listed(forbidden)} was done"
    said = " ".join(outcome.reasons("run.held") + outcome.reasons("run.approval"))
    yield from (f"no run is held because of {words!r}" for words in expect.held if words not in said)


def _people(expect: StoryExpect, outcome: SceneEnd) -> Iterator[str]:
    if len(outcome.pages) > expect.pages:
        yield f"{len(outcome.pages)} pages, not at most {expect.pages}"
    told = " ".join(str(page) for page in outcome.scene.log.pages)
    yield from (f"no page says {words!r}" for words in expect.told if words not in told)


def _listed(parts: list[str]) -> str:
    more = f" and {len(parts) - LISTED} more" if len(parts) > LISTED else ""
    return ", ".join(parts[:LISTED]) + more
