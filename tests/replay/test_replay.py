"""Law of replay, over versions: the kept recordings give the same notes, effects and states as when they were made."""

from typing import Any

import pytest

from brain.core.pack.rulebook import Matcher
from tests.matchers import each_matcher
from tests.replay import recording, words

WHAT_TO_DO = """\
The engine no longer does with this log what it did when the log was recorded.
If you did not mean that, it is a bug. If you did: `python -m tests.replay again`, and say in the commit what differs and why.
If only a word or a key was renamed: a row in tests/replay/words.py."""
GROUPS = ("drills", "examples", "stories", "random")


@each_matcher
@pytest.mark.parametrize("group", GROUPS)
def test_a_recorded_log_gives_what_it_gave(group: str, matcher: Matcher) -> None:
    """Effect by effect and state by state, whichever matcher a brain has: two brains of a cell may differ in it.

    A change that is meant to differ makes the recordings again, and says why.
    """
    found, packs = recording.load(group)
    player = recording.Player(packs, matcher=matcher)
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
    assert len(effects) == 11
    assert len(notes) > 45


def _same(was: Any, came: Any, where: str) -> None:
    if was == came:
        return
    was, came = words.today(was), words.today(came)
    if was != came:
        pytest.fail(f"{where}\n{chr(10).join(_differences(was, came, 'it'))}\n{WHAT_TO_DO}", pytrace=False)


def _differences(was: Any, came: Any, path: str) -> list[str]:
    """The parts that differ, each in a line."""
    if isinstance(was, dict) and isinstance(came, dict):
        names = [*was, *(name for name in came if name not in was)]
        pairs = [(was.get(name, "(absent)"), came.get(name, "(absent)"), f"{path}.{name}") for name in names]
    elif isinstance(was, list) and isinstance(came, list) and len(was) == len(came):
        pairs = [(*two, f"{path}[{number}]") for number, two in enumerate(zip(was, came, strict=True))]
    else:
        return [f"{path}: was {was!r:.500}, is {came!r:.500}"]
    return [line for one, other, where in pairs if one != other for line in _differences(one, other, where)]


def test_a_difference_is_shown_with_what_to_do() -> None:
    """Not two states of a hundred lines, one below the other."""
    was = {"runs": {"r": {"state": "acting", "tries": 1}}, "now": 5.0}
    came = {"runs": {"r": {"state": "acting", "tries": 2, "why": ""}}, "now": 5.0}
    assert _differences(was, came, "it") == [
        "it.runs.r.tries: was 1, is 2",
        "it.runs.r.why: was '(absent)', is ''",
    ]
    with pytest.raises(pytest.fail.Exception, match=r"python -m tests\.replay again"):
        _same(was, came, "drill: input 5")
