"""What a test run says last, in one process and in several."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TINY = """
import pytest

@pytest.fixture
def broken():
    yield
    raise RuntimeError("on the way out")

@pytest.mark.parametrize("number", range(3))
def test_good(number):
    pass

def test_bad():
    assert False

def test_good_until_its_end(broken):
    pass

@pytest.mark.skipif(True, reason="needs root")
@pytest.mark.parametrize("number", range(2))
def test_root(number):
    pass

def test_tool():
    pytest.skip("needs apt-get install opensm")
"""


def said(folder: Path, text: str, *options: str) -> list[str]:
    """The lines that pytest prints for a file of tests."""
    (folder / "test_tiny.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.closing_line", *options]
    ran = subprocess.run(
        [*command, "test_tiny.py"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    return ran.stdout.splitlines()


@pytest.mark.parametrize("options", [(), ("-q", "-q"), ("-q", "-q", "-n", "2"), ("-n", "2", "-rsfE")])
def test_the_last_lines_count_by_reason(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Each once, however quiet the run is and however many processes it has; an error at a test's end is a failure."""
    lines = said(tmp_path, TINY, *options)
    assert lines[-2:] == [
        "3 passed, 2 failed, 3 left out (2 need root; 1 needs apt-get install opensm)",
        "3 passed, 2 failed, 3 skipped",
    ]
    assert sum("left out" in line for line in lines) == 1


def test_when_nothing_was_left_out_no_reason_is_given(tmp_path: Path) -> None:
    """Thousands are told apart for people only."""
    many = "import pytest\n@pytest.mark.parametrize('n', range(1200))\ndef test_good(n):\n    pass\n"
    assert said(tmp_path, many, "-q")[-2:] == [
        "1,200 passed, 0 failed, 0 left out",
        "1200 passed, 0 failed, 0 skipped",
    ]


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    """It has no tests to count, and the run is not a good one."""
    assert said(tmp_path, "import no_such_module\n", "-q")[-1] == "0 passed, 1 failed, 0 skipped"
