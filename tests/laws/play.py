"""Plays stories before all oracles."""

import collections
import time
from dataclasses import dataclass, field

from brain.core.effects import Effect, SetTimer
from brain.core.inputs import Input, TimerFired
from brain.core.pack.compiled import CompiledCache
from tests.laws import oracles
from tests.laws.cell import Cell
from tests.laws.moment import moment
from tests.laws.story import Teller
from tests.laws.truth import observed, shown

MOVES = 30
SILENT = {TimerFired, SetTimer}  # a timer that led to nothing but another one says nothing of the cell


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of many stories."""

    stories: int = 0
    inputs: int = 0
    seconds: float = 0.0
    violations: dict[int, list[str]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )  # law -> sentences


def play(seed: int, cache: CompiledCache, tally: Tally, moves: int = MOVES) -> None:
    """One story; its violations go to the tally."""
    judges = oracles.all_of_them()

    def see(cell: Cell, given: Input, now: float, effects: list[Effect]) -> None:
        cell.now = now
        kinds = frozenset(map(type, (given, *effects)))
        if kinds <= SILENT:
            return
        made = moment(given, now, effects)
        shown(cell, made)
        for number in oracles.concerned(kinds):
            judge = judges[number]
            for text in judge.see(cell, made):
                tally.violations[judge.law].append(f"story {seed}: {text}")
        observed(cell, made)

    began = time.perf_counter()
    story = Teller(seed, moves, cache, see).play()
    for judge in judges:
        for text in judge.end(story):
            tally.violations[judge.law].append(f"story {seed}: {text}")
    tally.stories += 1
    tally.inputs += len(story.log)
    tally.seconds += time.perf_counter() - began
