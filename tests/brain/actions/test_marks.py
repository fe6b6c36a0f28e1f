"""The marks of a drain, as text that schedulers keep for us: added, removed and known again, and never a person's words."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract import drain_reason
from brain.actions.marks import (
    MAX_WHY,
    Mark,
    added,
    of_a_person,
    ours,
    owns,
    read,
    taken_over,
    without,
    written,
)

TEXT = st.text(max_size=300)
INCIDENTS = st.sampled_from([f"inc-{n}" for n in range(6)])
MARKS = st.lists(st.builds(Mark, incident=INCIDENTS, why=TEXT), min_size=1, max_size=6)


def _standing(wanted: list[Mark]) -> tuple[Mark, ...]:
    """The marks that drains of these incidents, one after the other, leave in a scheduler."""
    reason = ""
    for mark in wanted:
        reason = written(added(read(reason), mark))
    return read(reason)


@given(MARKS)
def test_each_incident_has_one_mark_and_all_of_them_are_known_again(wanted: list[Mark]) -> None:
    """Whatever the causes say: quotes, brackets, line breaks and other scripts are no part of a mark."""
    standing = _standing(wanted)
    assert [mark.incident for mark in standing] == list(dict.fromkeys(mark.incident for mark in wanted))
    reason = written(standing)
    assert read(reason) == standing
    assert reason.isascii()
    assert reason.isprintable()
    assert not set(reason) & set("\"'\\`")


@given(MARKS, st.sets(INCIDENTS))
def test_who_lets_go_takes_his_own_mark(wanted: list[Mark], owners: set[str]) -> None:
    """What is left are the others', with their words; and asked twice it is the same."""
    standing = _standing(wanted)
    left = without(standing, owners)
    assert [mark.incident for mark in left] == [
        mark.incident for mark in standing if mark.incident not in owners
    ]
    assert without(left, owners) == left
    assert without(standing, None) == ()
    for mark in wanted:
        assert owns(left, mark.incident) is (mark.incident not in owners)


@settings(derandomize=True)  # one change in 65,536 has the same checksum
@given(MARKS, st.text(min_size=1, max_size=20), st.integers(min_value=0))
def test_a_reason_that_a_person_has_touched_is_his(wanted: list[Mark], typed: str, at: int) -> None:
    """Something added anywhere: no mark is read from it, so nothing of it is undone."""
    reason = written(_standing(wanted))
    at %= len(reason) + 1
    assert not ours(reason[:at] + typed + reason[at:]) or typed in reason


@pytest.mark.parametrize(
    "change", [("79", "80"), ("gpuward", "Gpuward"), (" #", " # "), ("[inc-1]", "[inc-2]")]
)
def test_a_retyped_reason_is_not_ours(change: tuple[str, str]) -> None:
    """Cut, lengthened or retyped it is somebody else's."""
    reason = written([Mark(incident="inc-1", why='xid 79 "on"\n gpu/0000:3b:00 \\ 显卡')])
    assert reason.startswith("gpuward: xid 79 on gpu/0000:3b:00 [inc-1] #")
    assert ours(reason)
    for other in (
        reason.replace(*change),
        reason[:-1],
        f"{reason} ",
        f"{reason}\nadmin",
        f"admin: {reason}",
        "",
    ):
        assert not ours(other)


def test_a_mark_of_an_unknown_owner_goes_with_any_other() -> None:
    """A reason with our checksum that names no incident: whoever lets go may take it."""
    text = "gpuward: xid 79"
    reason = f"{text} #{zlib.crc32(text.encode()) & 0xFFFF:04x}"
    assert read(reason) == (Mark(incident="", why="xid 79"),)
    assert without(read(reason), {"inc-1"}) == ()


def test_many_incidents_fit_into_a_reason() -> None:
    """The more there are, the shorter their words; no mark is lost."""
    marks = _standing([Mark(incident=f"inc-{n}", why="x" * 500) for n in range(40)])
    assert len(marks) == 40
    assert len(written(marks)) < 40 * 40
    assert len(written(marks[:1])) < MAX_WHY + 40


def test_the_words_of_a_prolog_stay_with_who_takes_its_drain_over() -> None:
    """They go with that mark; a reason of anybody else changes no mark."""
    mark, reason = (
        Mark(incident="inc-1", why="gpu-lost on gpu/0000:3b:00"),
        drain_reason.written("GPU is lost"),
    )
    assert (ours(reason), of_a_person(reason)) == (False, False)
    taken = written([taken_over(mark, reason), Mark(incident="inc-2", why="link-down")])
    assert [one.why for one in read(taken)] == [
        "gpu-lost on gpu/0000:3b:00; its prolog: GPU is lost",
        "link-down",
    ]
    assert [one.why for one in without(read(taken), {"inc-1"})] == ["link-down"]
    for others in ("", "Prolog error", f"{reason} ann", "gpuward-agent: GPU is lost"):
        assert of_a_person(others)
        assert taken_over(mark, others) is mark
