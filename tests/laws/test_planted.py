"""Do the oracles notice a broken law? A defect is planted in the engine; stories are told until one shows it."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from brain.adapters import snapshot
from brain.core.context import Context
from brain.core.healing import drains, gates
from brain.core.pack.compiled import CompiledCache
from brain.core.paging import queue
from tests.laws import oracles, story
from tests.laws.play import Tally, play

CACHE = CompiledCache()
STORIES = 60  # so many are told before the defect counts as not noticed
Patch = pytest.MonkeyPatch


def without(gate: str, patch: Patch) -> None:
    """No run is held for this reason."""
    patch.setattr(gates, "GATES", tuple(one for one in gates.GATES if one.__name__ != gate))


def others_forgotten(patch: Patch) -> None:
    """A node is given back whoever else wants it drained."""
    patch.setattr(drains, "others", lambda _ctx, _run: [])


def pages_sent_once(patch: Patch) -> None:
    """A page that no channel took is not sent again."""
    patch.setattr(queue, "_retry", lambda *_: None)
    patch.setattr(queue, "redeliver", lambda *_: None)


def timers_lost(patch: Patch) -> None:
    """A snapshot forgets the timers."""

    def parse(body: bytes) -> Any:
        state = snapshot.parse(body)
        state.timers.clear()
        return state

    patch.setattr(story, "parse", parse)


def runs_asleep(patch: Patch) -> None:
    """Nothing wakes a run that waits."""

    def set_timer(self: Context, name: str, due: float) -> None:
        if not name.startswith("run:"):
            real(self, name, due)

    real = Context.set_timer
    patch.setattr(Context, "set_timer", set_timer)


# law, defect, the first story that is told
DEFECTS: tuple[tuple[int, Callable[[Patch], None], int], ...] = (
    (0, timers_lost, 12),
    (1, functools.partial(without, "budget"), 37),
    (2, functools.partial(without, "hold"), 40),
    (2, functools.partial(without, "maintenance"), 55),
    (2, functools.partial(without, "protected"), 4),
    (8, others_forgotten, 23),
    (10, pages_sent_once, 8),
    (13, functools.partial(without, "stale"), 12),
    (14, runs_asleep, 14),
)


@pytest.mark.parametrize(("law", "plant", "first"), DEFECTS)
def test_a_planted_defect_is_noticed(
    monkeypatch: Patch, law: int, plant: Callable[[Patch], None], first: int
) -> None:
    """By the oracle of its law, and by all of them alike when they look at every moment."""
    plant(monkeypatch)
    found = next((seed for seed in range(first, first + STORIES) if broken(seed).get(law)), None)
    assert found is not None
    asked_when_concerned = broken(found)
    everybody = tuple(range(len(oracles.all_of_them())))
    monkeypatch.setattr(oracles, "concerned", lambda _kinds: everybody)
    assert broken(found) == asked_when_concerned


@pytest.mark.parametrize("seed", [12, 23, 37, 40])
def test_the_engine_itself_breaks_no_law(seed: int) -> None:
    """In the stories that show the defects; `make stories` tells thousands."""
    assert broken(seed) == {}


def broken(seed: int) -> dict[int, list[str]]:
    """What one story shows, by law."""
    tally = Tally()
    play(seed, CACHE, tally)
    return dict(tally.violations)
