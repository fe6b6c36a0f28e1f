"""What a brain that answers says of itself, and that the doctor must not pass over: nobody would call that installation well."""

import os
from pathlib import Path

import pytest

from brain.cli.checkup import counterparts, fleet, machine
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


def test_a_file_of_rules_that_everybody_may_write(tmp_path: Path) -> None:
    """The folder is closed, and one file in it, or in a folder below, is not: whoever writes it decides what is done to nodes."""
    below = tmp_path / "rules/site"
    below.mkdir(parents=True)
    found = site(tmp_path, rules="rules")
    for file in (below / "mine.yaml", tmp_path / "rules/ours.yaml"):
        file.write_text("rules: {}\n")
        file.chmod(0o644)
        assert lines(machine.files(found), Health.FAIL) == []
        file.chmod(0o646)
        assert lines(machine.files(found), Health.FAIL) == [
            f"{file} can be changed by everybody → chmod o-w {file}"
        ]
        file.chmod(0o644)


@pytest.mark.root
def test_rules_of_somebody_else(tmp_path: Path) -> None:
    """They may be a deployment's; a person shall have seen it."""
    file = tmp_path / "rules/mine.yaml"
    file.parent.mkdir()
    file.write_text("rules: {}\n")
    os.chown(file, 65534, 65534)
    (text,) = lines(machine.files(site(tmp_path, rules="rules")), Health.WARN)
    assert text.startswith(f"{file} can be changed by nobody, who is neither root nor the brain's user root")
