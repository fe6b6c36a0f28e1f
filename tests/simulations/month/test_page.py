"""The manual's page about simulations: its commands run and print what it says, its file is that of docs/examples."""

import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from simulations.month.profile import KINDS
from simulations.simulate import simulate
from tests import manual

PAGE = "simulation.md"


def test_the_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with the manual's profile."""
    shutil.copytree(manual.EXAMPLES / "simulation", tmp_path / "site/simulation")
    monkeypatch.chdir(tmp_path)
    commands = list(manual.typed(PAGE))
    assert len(commands) >= 4
    for one in commands:
        name, verb, *args = shlex.split(one.command)
        assert (name, verb) == ("gpuward", "simulate")
        result = CliRunner(env={"COLUMNS": "100"}).invoke(simulate, args)
        assert result.exit_code == 0, result.output
        assert manual.Ids().seen(one.shows, result.output) == "", result.output


def test_the_files_of_the_page_are_the_examples() -> None:
    """To the letter: a profile and a scenario."""
    found = [block for block in manual.blocks(PAGE) if block.language == "yaml"]
    assert len(found) == 2
    for block in found:
        example = manual.EXAMPLES / block.title.removeprefix("site/")
        assert block.text == example.read_text(encoding="utf-8")


def test_the_page_has_every_kind_with_what_ends_it() -> None:
    """One row each, in their order, as the code has it."""
    text = (manual.ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    for kind in KINDS.values():
        cures = ", ".join(f"{fix.name.lower()} {share:g}" for fix, share in kind.cures.items())
        row = f"| `{kind.name}` | {kind.summary} | {kind.harm.name.lower()} | {cures} | {kind.cured.name.lower()} |"
        assert row in text
    assert f"of {len(KINDS)} kinds" in text
