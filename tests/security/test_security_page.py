"""docs/security.md and SECURITY.md say what is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
REPORT = (ROOT / "SECURITY.md").read_text()


def test_every_attack_has_a_test_that_exists() -> None:
    """Each row of a table of attacks names tests, and each of them is in its file."""
    _, _, tables = PAGE.partition("## Figures")[0].partition("attacks and what holds")
    rows = [line for line in tables.splitlines() if line.startswith("| ") and "what holds | test" not in line]
    assert len(rows) >= 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row.split("|")[3])
        assert named, f"no test: {row}"
        for file, function in named:
            assert re.search(rf"def {function}\(", (ROOT / file).read_text()), f"{file}::{function}"


def test_every_file_of_attacks_stands_on_the_page() -> None:
    """What is tried and stands nowhere helps nobody who judges us."""
    no_attack = {
        "test_security_page.py",
        "test_cell_init.py",
        "test_cell_page.py",
        "test_moved_cell.py",
        "test_wrong_configuration.py",
    }
    files = {file.name for file in Path(__file__).parent.glob("test_*.py")} - no_attack
    assert not {name for name in files if f"tests/security/{name}::" not in PAGE}


def test_reports_have_one_way_and_no_mail_address() -> None:
    """Private vulnerability reporting; and the files that a release's verification needs are there."""
    assert "private vulnerability reporting" in REPORT.lower()
    assert not re.search(r"[\w.]+@[\w.]+\.\w+", REPORT)
    for path in re.findall(r"deploy/release/[\w.]+", REPORT):
        assert (ROOT / path).exists(), path
