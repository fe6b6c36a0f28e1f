"""The manual's page about simulations: its commands run and print what it says, its file is that of docs/examples."""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from simulations.faults import Fix
from simulations.month.kinds import FaultKind
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
    assert "\n".join(row(kind) for kind in KINDS.values()) in text
    assert f"of {len(KINDS)} kinds" in text


def row(kind: FaultKind) -> str:
    """Its row of the table."""
    remedies = [listed(kind.cures)] if kind.cures else []
    remedies += [f"for a while {listed(kind.soothes)}"] if kind.soothes else []
    remedies += [f"worse by {listed(kind.worsens)}"] if kind.worsens else []
    where = f" ({kind.reach.value})" if kind.reach else ""
    seen = f"`{kind.seen_as}`" if kind.seen_as else "nothing"
    cells = (
        f"`{kind.name}`",
        kind.summary + where,
        kind.harm.name.lower(),
        "; ".join(remedies),
        kind.cured.name.lower(),
        seen,
    )
    return f"| {' | '.join(cells)} |"


def listed(shares: Mapping[Fix, float]) -> str:
    """Remedies with their shares."""
    return ", ".join(f"{fix.name.lower()} {share:g}" for fix, share in shares.items())
