"""What a change of rules gains, loses and alters, as a page for a pull request."""

import json
import shutil
from pathlib import Path

import pytest

from tests.brain.backtest.kit import DOWN, HELLO, LOST, UP, ask, folder, syslog
from tests.shipped import ROOT

LOGS = {
    "n1.log": syslog("n1", ("03:11:00", UP), ("03:12:00", DOWN), ("03:20:00", UP), ("05:30:00", HELLO)),
    "n2.log": syslog("n2", ("04:12:00", LOST)),
    "topology.yaml": ["n1: {leaf: l1, rack: r1}", "n2: {leaf: l1, rack: r1}"],
}


def changed(where: Path, file: str, rule: str, old: str, new: str) -> Path:
    """The shipped rules, with one line of one rule changed."""
    for name in ("rules", "runbooks"):
        shutil.copytree(ROOT / name, where / name)
    path = where / "rules" / file
    before, found, after = path.read_text(encoding="utf-8").partition(f"\n  {rule}:\n")
    assert found
    assert old in after
    path.write_text(before + found + after.replace(old, new, 1), encoding="utf-8")
    return where


def compare(tmp_path: Path, file: str, rule: str, old: str, new: str, *options: str) -> str:
    """The shipped rules against those before a change."""
    before = changed(tmp_path / "before", file, rule, old, new)
    return ask(folder(tmp_path / "logs", LOGS), "--against", str(before), *options)


def test_a_severity_that_changes_is_named_with_its_pages(tmp_path: Path) -> None:
    """At its place, before and after."""
    text = compare(tmp_path, "gpu.yaml", "gpu-lost", "severity: P1", "severity: P3")
    assert "#### Incidents that change" in text
    row = next(line for line in text.splitlines() if "| severity |" in line)
    assert row == "| gpu-lost | gpu/n2/0000:3b:00 | 2026-11-24T04:12:00Z | severity | P3 | P1 |"
    assert "| P1 | 0 | 1 | +1 |" in text


def test_what_only_one_of_them_finds_is_in_its_own_table(tmp_path: Path) -> None:
    """A rule that no longer matches loses its incident and its decision; the other way round they are gained."""
    rules = (ROOT / "rules/gpu.yaml").read_text(encoding="utf-8")
    assert "severity: P1" in rules
    plain = folder(tmp_path / "logs", LOGS)
    before = changed(tmp_path / "before", "gpu.yaml", "gpu-lost", "runbook: gpu-lost", "runbook: reset-gpu")
    found = json.loads(ask(plain, "--against", str(before), "--json"))["difference"]
    assert [one["changes"]["runbook"] for one in found["altered"]] == [["reset-gpu", "gpu-lost"]]
    assert [one["runbook"] for one in found["decisions_gained"]] == ["gpu-lost"]
    assert [one["runbook"] for one in found["decisions_lost"]] == ["reset-gpu"]
    assert found["gained"] == found["lost"] == []
    text = ask(plain, "--against", str(before))
    assert "#### Decisions only after the change (1)" in text
    assert "#### Decisions only before the change (1)" in text


def test_a_cause_that_is_new_is_gained(tmp_path: Path) -> None:
    """Which rules with another set of names would do."""
    plain = folder(tmp_path / "logs", LOGS)
    before = tmp_path / "before"
    shutil.copytree(ROOT / "runbooks", before / "runbooks")
    shutil.copytree(ROOT / "rules", before / "rules")
    path = before / "rules/gpu.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            "\n  gpu-lost:\n", "\n  gpu-missing:\n    cause: gpu-missing\n", 1
        ),
        encoding="utf-8",
    )
    text = ask(plain, "--against", str(before))
    assert "| P1 | gpu-lost | gpu/n2/0000:3b:00 |" in text.partition("#### Incidents only after")[2]
    assert "| P1 | gpu-missing | gpu/n2/0000:3b:00 |" in text.partition("#### Incidents only before")[2]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_same_rules_change_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    """And the page says so in one sentence."""
    text = ask(folder(tmp_path, LOGS), "--against", str(ROOT / "rules"), *options)
    if options:
        assert json.loads(text)["difference"]["same"]
    else:
        assert "**Nothing changes**" in text
        assert "#### Incidents" not in text


def test_the_page_is_the_same_twice(tmp_path: Path) -> None:
    """So that a pull request's comment changes only with the rules."""
    before = changed(tmp_path / "before", "gpu.yaml", "gpu-lost", "severity: P1", "severity: P2")
    plain = folder(tmp_path / "logs", LOGS)
    assert ask(plain, "--against", str(before)) == ask(plain, "--against", str(before))


def test_a_wrong_rule_is_named_with_file_line_and_key(tmp_path: Path) -> None:
    """As `gpuward check` does."""
    from click.testing import CliRunner

    from brain.cli.backtest_command import backtest

    before = changed(tmp_path / "before", "gpu.yaml", "gpu-lost", "severity: P1", "severity: P7")
    error = (
        CliRunner().invoke(backtest, [str(folder(tmp_path / "logs", LOGS)), "--rules", str(before)]).exception
    )
    assert "rules/gpu.yaml:" in str(error)
    assert "severity" in str(error)


def test_what_a_log_says_is_no_markup(tmp_path: Path) -> None:
    """Neither a table's end, nor a link, nor the name of somebody who would be called."""
    from brain.cli.backtest.difference import _cell

    assert _cell("a|b\n[x](http://e) @ann <b>") == "a\\|b \\[x\\](http://e) \\@ann \\<b\\>"
