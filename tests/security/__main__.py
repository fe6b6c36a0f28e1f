"""Plays the attacks and writes their figures into docs/security.md: `python -m tests.security` (make attacks), as root."""

import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/security.md"
MARK = "<!-- figures -->"
TESTS = ("tests/security", "tests/real/test_oidc.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What the cases of one test tried."""

    test: str
    tried: int
    refused: int
    through: int


def read(report: Path) -> list[Attack]:
    """The attacks of a JUnit report, the cases of one test added up, by name."""
    found: dict[str, Attack] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  pytest's own file, a moment ago
        given = {one.get("name", ""): int(one.get("value", "0")) for one in case.iter("property")}
        if "tried" not in given:
            continue
        name = case.get("name", "").partition("[")[0]
        before = found.get(name, Attack(test=name, tried=0, refused=0, through=0))
        found[name] = Attack(
            test=name,
            tried=before.tried + given["tried"],
            refused=before.refused + given["refused"],
            through=before.through + given["through"],
        )
    return [found[name] for name in sorted(found)]


def table(attacks: Iterable[Attack]) -> str:
    """Markdown, with a line for the sum."""
    rows = list(attacks)
    whole = Attack(
        test="all",
        tried=sum(row.tried for row in rows),
        refused=sum(row.refused for row in rows),
        through=sum(row.through for row in rows),
    )
    lines = ["| attack | attempts | refused by name | got through |", "|---|---|---|---|"]
    lines += [
        f"| {row.test.removeprefix('test_').replace('_', ' ')} | {row.tried:,} | {row.refused:,} | {row.through:,} |"
        for row in (*rows, whole)
    ]
    return "\n".join(lines)


def main() -> int:
    """Entry point; that of pytest when a test failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        status = pytest.main(
            [*TESTS, "-q", f"--junitxml={report}", "-o", "junit_family=xunit1", *sys.argv[1:]]
        )
        if status:
            return int(status)
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
        _, _, after = rest.partition(MARK)
        PAGE.write_text(f"{before}{MARK}\n{table(read(report))}\n{MARK}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
