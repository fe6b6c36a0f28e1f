"""One oracle for each safety law, written from the law's text (design, section 6). None looks into the engine's state.

An oracle sees each moment before the cell's truth takes it over, and the end of the story.
It yields a sentence for each violation.
"""

import functools

from tests.laws.oracle import Oracle
from tests.laws.oracles_of_acts import (
    HoldsAndWindows,
    IntentFirst,
    NeverTwice,
    NoOldNews,
    OneRunPerNode,
    SharedCause,
    UnknownCodes,
)
from tests.laws.oracles_of_ends import (
    BackInService,
    EverythingEnds,
    ForItselfOnly,
    NobodyIsAskedTwice,
    PagesArrive,
    SameAfterRestart,
    WayBack,
)


@functools.cache
def concerned(kinds: frozenset[type]) -> tuple[int, ...]:
    """Which of `all_of_them` look at a moment with these kinds of inputs and effects."""
    return tuple(n for n, judge in enumerate(all_of_them()) if not kinds.isdisjoint(judge.looks_at))


def all_of_them() -> list[Oracle]:
    """Fresh ones for one story."""
    return [
        OneRunPerNode(),
        HoldsAndWindows(),
        NeverTwice(),
        UnknownCodes(),
        SharedCause(),
        BackInService(),
        PagesArrive(),
        EverythingEnds(),
        IntentFirst(),
        NobodyIsAskedTwice(),
        NoOldNews(),
        ForItselfOnly(),
        WayBack(),
        SameAfterRestart(),
    ]
