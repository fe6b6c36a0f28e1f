"""Scenarios as a site has them: files of its own, their schema, what is shown of them, and what is wrong with them."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from brain.marked_yaml import read
from docs import scenario_schema
from simulations.scenarios import files
from simulations.scenarios.load import ScenarioError
from simulations.simulate import simulate
from tests.stories.load import files as corpus

ROOT = Path(__file__).parents[3]
NIGHT = ROOT / "docs/examples/simulation/our-night.yaml"


def night(folder: Path, old: str, new: str) -> Path:
    """The example with one text changed."""
    text = NIGHT.read_text()
    assert old in text
    file = folder / "night.yaml"
    file.write_text(text.replace(old, new))
    return file


def test_a_night_as_it_should_be() -> None:
    """The whole course of one scenario, and status 0."""
    done = CliRunner().invoke(simulate, [str(NIGHT)])
    assert done.exit_code == 0, done.output
    for word in ("0:01:32 page.sent", "bmc.power_cycle on n003", "1 of 1 scenario as expected"):
        assert word in done.output


def test_what_is_not_as_expected_is_said(tmp_path: Path) -> None:
    """Each thing that is not, on a line; status 1."""
    done = CliRunner().invoke(simulate, [str(night(tmp_path, "pages: 4", "pages: 1"))])
    assert done.exit_code == 1
    assert "✘ 2 pages, not at most 1" in done.output
    done = CliRunner().invoke(simulate, [str(night(tmp_path, "disturbed: n003", "disturbed: n004"))])
    assert "needless steps" in done.output


def test_several_are_a_line_each(tmp_path: Path) -> None:
    """A file with the scenario twice, once with another expectation."""
    text = NIGHT.read_text()
    one = text[text.index("  the-rack-that-lost-a-phase:") :]
    file = tmp_path / "nights.yaml"
    file.write_text(
        text + one.replace("the-rack-that-lost-a-phase", "another").replace("rack/rack-2", "rack/rack-1")
    )
    done = CliRunner().invoke(simulate, [str(file)])
    assert done.exit_code == 1
    assert "✔ the-rack-that-lost-a-phase: " in done.output
    assert "✘ another: " in done.output
    assert "1 of 2 scenarios as expected" in done.output


def test_the_same_bytes_every_time() -> None:
    """As JSON, with the course."""
    one, other = (CliRunner().invoke(simulate, [str(NIGHT), "--json"]).output for _ in range(2))
    assert one == other
    (found,) = json.loads(one)["scenarios"]
    assert (found["right"], found["pages"], found["needless_steps"]) == (True, 2, 0)
    assert {"at_s", "kind", "scope", "text"} == set(found["course"][0])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("gpu_lost: until power", "gpu_lots: until power", ": stories.the-rack-that-lost-a-phase.timeline.1"),
        ("gpu_lost: until power", "xid: 79, hot: true", "needs one of port_down, "),
        ("on: n003", "on: n070", "the site has no node n070"),
        ("gpu_lost: until power", "drill: nope", "there is no drill 'nope' (have: "),
        ("title: nights of ours", "titel: nights of ours", "has the keys title and stories, and no others"),
        ("    until: 7200", "    until: [7200", "is not YAML"),
        (
            "    until: 7200",
            "    until: 7200000000",
            "stories.the-rack-that-lost-a-phase.until: more than 0 seconds, and at most 366 days",
        ),
        (
            "nodes: 64",
            "nodes: 640000",
            "stories.the-rack-that-lost-a-phase.site.nodes: from 1 to 20000 nodes",
        ),
        ("dark: 900", "dark: 900, times: 0", "timeline.0.times: from 1 to 1000000 times"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    """File, line and key."""
    file = night(tmp_path, old, new)
    done = CliRunner().invoke(simulate, [str(file)])
    assert isinstance(done.exception, ScenarioError)
    assert isinstance(done.exception, ConfigError), "the command line tells it in words, without a traceback"
    assert says in str(done.exception)
    assert str(done.exception).startswith("night.yaml:")


def test_a_file_that_is_not_there_and_a_name_that_there_is_not(tmp_path: Path) -> None:
    """Both are told."""
    for name, says in (
        (str(tmp_path / "none.yaml"), "none.yaml"),
        ("no-such-night", "there is no profile 'no-such-night'"),
    ):
        done = CliRunner().invoke(simulate, [name])
        assert isinstance(done.exception, ConfigError)
        assert says in str(done.exception)


@pytest.mark.parametrize(
    "args",
    [
        [str(NIGHT), "--days", "3"],
        [str(NIGHT), "--nodes", "4"],
        ["--runbook", "persistence-on", "llama3-54d"],
        ["--runbook", "persistence-on", "--html", "report.html"],
    ],
)
def test_what_does_not_go_together_is_a_mistake(args: list[str]) -> None:
    """And is not taken in silence."""
    done = CliRunner().invoke(simulate, args)
    assert done.exit_code == 2
    assert "leave " in done.output


def test_the_schema_is_that_of_the_files() -> None:
    """All scenarios that gpuward comes with keep to it, and so does the example; what is printed is what is in the package."""
    schema = scenario_schema.schema()
    validator = jsonschema_rs.Draft202012Validator(schema)
    for path in (*corpus(), NIGHT):
        assert list(validator.iter_errors(read(path, path.name).value)) == [], path
    assert (
        CliRunner().invoke(simulate, ["--schema"]).output
        == files.SCHEMA.read_text()
        == scenario_schema.text()
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gpu_lost: until power", "gpu_lots: until power"),
        ("gpu_lost: until power", "gpu_lost: until dawn"),
        ("gpu_lost: until power", "gpu_lost: until power, hot: true"),
        ("    until: 7200", "    until: soon"),
        ("      pages: 4", "      page: 4"),
    ],
)
def test_an_editor_sees_what_is_wrong(tmp_path: Path, old: str, new: str) -> None:
    """By the schema alone."""
    validator = jsonschema_rs.Draft202012Validator(scenario_schema.schema())
    assert list(validator.iter_errors(read(night(tmp_path, old, new), "night.yaml").value))
