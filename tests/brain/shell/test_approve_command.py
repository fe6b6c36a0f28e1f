"""`gpuward approve`: what is approved is what somebody has read, and no other step."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.shared.words import speaking
from brain.cli import operator_commands
from brain.cli.main import FOLDERS, group
from tests.brain.top.kit import Served, link_down, served
from tests.brain.top.test_acting import WHAT, approved_by


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Served]:
    """A real server; a run waits for an approval."""
    with served(tmp_path, link_down()) as one:
        yield one


def typed(whole: Served, *args: str, answer: str = "") -> Result:
    """One command line, with what somebody types then."""
    env = {"GPUWARD_URL": whole.url, "GPUWARD_TOKEN_FILE": str(whole.tokens["ann"])}
    return CliRunner().invoke(group({}), ["approve", *args], input=answer, env=env)


def run_of(whole: Served) -> tuple[str, str]:
    """The run that waits, and its incident."""
    (run,) = [one for one in whole.brain.story.time.runs.values() if one.runbook.name == "bounce"]
    return run.id, run.incident


def test_a_script_says_which_step(whole: Served) -> None:
    """Without it nothing is approved, whatever waits; the line to type stands there. Of another step neither."""
    run, incident = run_of(whole)
    for args in ((incident,), (run, "--json")):
        told = typed(whole, *args, answer="y\n")
        assert told.exit_code == 2
        assert f"it is {WHAT} now: gpuward approve {run} --rung bounce" in told.output
    assert typed(whole, run, "--rung", "reboot").exit_code == 1
    assert approved_by(whole) == ""
    assert typed(whole, run, "--rung", "bounce").exit_code == 0
    assert approved_by(whole) == "ann"


@pytest.mark.parametrize(
    ("language", "says"), [("en", "Disrupts: the node, with all of its jobs"), ("zh", "影响")]
)
def test_a_person_reads_it_first(
    whole: Served, monkeypatch: pytest.MonkeyPatch, language: str, says: str
) -> None:
    """Step, place, what it disrupts, why; whoever only types Enter has said nothing."""
    monkeypatch.setattr(operator_commands, "_asked", lambda: True)  # click plays the terminal
    _, incident = run_of(whole)
    with speaking(language, FOLDERS):
        for answer, by in (("\n", ""), ("n\n", ""), ("y\n", "ann")):
            told = typed(whole, incident, answer=answer)
            assert WHAT in told.output
            assert says in told.output
            assert approved_by(whole) == by, told.output


def test_what_waits_for_nothing_says_so(whole: Served) -> None:
    """And in which state it is instead."""
    run, incident = run_of(whole)
    assert typed(whole, run, "--rung", "bounce").exit_code == 0
    told = typed(whole, incident)
    assert told.exit_code == 1
    assert f"{run} waits for no approval: it is " in told.output
    assert "no incident 'inc-none'" in typed(whole, "inc-none").output
