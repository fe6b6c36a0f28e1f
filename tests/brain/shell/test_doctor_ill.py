"""What a brain that answers says of itself, and that the doctor must not pass over: nobody would call that installation well."""

from pathlib import Path

from brain.cli.checkup import counterparts, fleet
from brain.cli.checkup.lines import Health
from tests.brain.shell.doctor_kit import answers, gathered, lines, node, site

SINCE = "2026-11-30T02:00:00.000Z"


def test_a_breaker_that_has_tripped(tmp_path: Path) -> None:
    """Nothing disruptive begins any more, on any node, before somebody resets it. A brain of 0.2.0 does not say so."""
    (text,) = lines(fleet.brain(site(tmp_path, brain=answers(node("n1"), breaker_since=SINCE))), Health.FAIL)
    assert f"the breaker has tripped at {SINCE}: nothing disruptive begins" in text
    assert "`gpuward reset`" in text
    for well in (answers(node("n1"), breaker_since=None), answers(node("n1"))):
        assert lines(fleet.brain(site(tmp_path, brain=well)), Health.FAIL) == []


async def test_an_archive_that_the_brain_cannot_write(tmp_path: Path) -> None:
    """Root, who asks, may read it; the brain's user may not write there, and has said so."""
    (tmp_path / "share").mkdir()
    archive = {"url": str(tmp_path / "share")}
    ill = answers(archive_failing="/share: the brain's user may not write in /share")
    (text,) = lines(
        await gathered(counterparts.archive(site(tmp_path, brain=ill, archive=archive))),
        Health.FAIL,
        "archive",
    )
    assert text.startswith("b1 cannot write it: /share: the brain's user may not write in /share")
    for well in (answers(archive_failing=""), answers(), None):
        told = await gathered(counterparts.archive(site(tmp_path, brain=well, archive=archive)))
        assert lines(told, Health.OK, "archive")


def test_pages_that_reach_nobody(tmp_path: Path) -> None:
    """A channel may well be reached that takes nothing: its key was revoked, say. A brain of 0.2.0 does not say so."""
    (text,) = lines(fleet.brain(site(tmp_path, brain=answers(node("n1"), pages_failing=2))), Health.FAIL)
    assert text.startswith("2 pages that no channel takes: people are told nothing")
    for well in (answers(node("n1"), pages_failing=0), answers(node("n1"))):
        assert lines(fleet.brain(site(tmp_path, brain=well)), Health.FAIL) == []
