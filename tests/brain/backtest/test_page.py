"""The manual's page about backtests: its commands run, and print what it says."""

import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from brain.cli.backtest_command import backtest
from tests import manual


def test_the_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with the manual's recording, a site's rules, and those from before a change."""
    shutil.copytree(manual.EXAMPLES / "recording", tmp_path / "docs/examples/recording")
    for name in ("rules", "runbooks"):
        shutil.copytree(manual.ROOT / name, tmp_path / "site" / name)
        shutil.copytree(manual.ROOT / name, tmp_path / "before" / name)
    rules = tmp_path / "before/rules/gpu.yaml"
    before, found, after = rules.read_text(encoding="utf-8").partition("\n  gpu-lost:\n")
    assert found
    rules.write_text(before + found + after.replace("severity: P1", "severity: P2", 1), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = list(manual.typed("backtest.md"))
    assert len(commands) == 3
    for one in commands:
        name, verb, *args = shlex.split(one.command)
        assert (name, verb) == ("gpuward", "backtest")
        result = CliRunner(env={"COLUMNS": "100"}).invoke(backtest, args)
        assert result.exit_code == 0, result.output
        assert manual.Ids().seen(one.shows, result.output) == "", result.output
