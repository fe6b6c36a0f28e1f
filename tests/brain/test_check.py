"""`gpuward check` as a person meets it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from brain.cli.check import check

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of our rules and runbooks."""
    for name in ("rules", "runbooks"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def run(folder: Path, *more: str) -> Result:
    """`gpuward check` on a folder's rules and runbooks."""
    options = ["--rules", str(folder / "rules"), "--runbooks", str(folder / "runbooks"), *more]
    return CliRunner().invoke(check, options)


def change(file: Path, old: str, new: str) -> int:
    """Replaces the first `old`; returns its line."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


def test_our_own_rules_are_well() -> None:
    """Without options it checks what came with gpuward; status 0."""
    result = CliRunner().invoke(check, [])
    assert result.exit_code == 0, result.output
    assert result.output.endswith("all well\n")


def test_the_counts(folder: Path) -> None:
    """JSON has stable names, and every rule, symptom and runbook is covered."""
    data = json.loads(run(folder, "--json").output)
    assert data["ok"] is True
    assert data["faults"] == []
    assert len(data["version"]) == 12
    assert data["rules"] == data["rules_with_examples"] > 10
    assert data["symptoms"] == data["symptoms_used"]
    assert data["runbooks"] == data["runbooks_reachable"]
    assert data["examples"] == data["examples_passed"] > 50


def test_a_file_that_cannot_be_read(folder: Path) -> None:
    """Status 1, the place, and nothing that only follows from it."""
    line = change(folder / "rules" / "gpu.yaml", "severity: P1", "severity: urgent")
    result = run(folder)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"rules/gpu.yaml:{line}: rules.gpu-lost.severity: must be 'P0', 'P1', 'P2' or 'P3', not 'urgent'",
        "1 error: no brain will load these rules and runbooks",
    ]


def test_lint_names_the_line(folder: Path) -> None:
    """What is wrong beyond types is named with file and line too, in rules and in runbooks."""
    line = change(folder / "rules" / "node.yaml", "runbook: link-bounce", "runbook: link-bunce")
    other = change(folder / "runbooks" / "gpu-lost.yaml", "do: evidence.collect", "do: evidence.destroy")
    result = run(folder)
    assert result.exit_code == 1
    assert (
        f"rules/node.yaml:{line}: rules.link-down.runbook: there is no runbook 'link-bunce'" in result.output
    )
    assert (
        f"runbooks/gpu-lost.yaml:{other}: rungs.0.do: there is no action 'evidence.destroy'" in result.output
    )


def test_an_example_that_does_not_hold(folder: Path) -> None:
    """The example's line, what was expected and what came."""
    change(folder / "rules" / "node.yaml", "within_s: 7200", "within_s: 700")
    result = run(folder, "--json")
    assert result.exit_code == 1
    data = json.loads(result.output)
    assert data["ok"] is False
    assert data["examples"] == data["examples_passed"] + 1
    (fault,) = data["faults"]
    assert fault["file"] == "rules/node.yaml"
    assert fault["key"] == "rules.link-flapping.examples.2"
    assert fault["text"] == (
        "for half a second, three times within two hours: expected 1 incidents, came: no incident"
    )
    text = (folder / "rules" / "node.yaml").read_text(encoding="utf-8").splitlines()
    assert "for half a second, three times within two hours" in text[fault["line"] - 1]


def test_no_folder(tmp_path: Path) -> None:
    """A wrong path is an error, not an empty pack that is well."""
    result = run(tmp_path)
    assert result.exit_code == 1
    assert f"{tmp_path / 'rules'}: there is no such folder" in result.output
