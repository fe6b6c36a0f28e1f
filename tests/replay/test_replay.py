"""Law of replay, over versions: the kept recordings give the same notes, effects and states as when they were made."""

from typing import Any

import pytest

from tests.replay import recording, words

GROUPS = ("drills", "examples", "stories", "random")


@pytest.mark.parametrize("group", GROUPS)
def test_a_recorded_log_gives_what_it_gave(group: str) -> None:
    """Effect by effect and state by state. A change that is meant to differ makes the recordings again, and says why."""
    found, packs = recording.load(group)
    player = recording.Player(packs)
    for one in found:
        now = player.play(one.name, one.log, observe_all=one.observe_all)
        for number, (was, came) in enumerate(zip(one.effects, now.effects, strict=True), 1):
            _same(was, came, f"{one.name}: input {number}: {one.log[number - 1]}")
        for after, state in one.snapshots.items():
            _same(state, now.snapshots[after], f"{one.name}: state after {after} inputs")
    player.close()


def test_the_recordings_are_worth_something() -> None:
    """All drills, every rule's examples, random logs; and in them most of what an engine can do."""
    effects: dict[str, int] = {}
    notes: dict[str, int] = {}
    for group in GROUPS:
        found, _ = recording.load(group)
        assert found
        for effect in (effect for one in found for given in one.effects for effect in given):
            effects[effect["effect"]] = effects.get(effect["effect"], 0) + 1
            if effect["effect"] == "Note":
                notes[effect["kind"]] = notes.get(effect["kind"], 0) + 1
    assert min(effects.values()) > 3
    assert len(effects) == 10
    assert len(notes) > 45


def _same(was: Any, came: Any, where: str) -> None:
    assert words.today(came) == words.today(was), where
