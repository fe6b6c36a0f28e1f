"""What a test run says last, in one process and in several."""

from collections.abc import Callable

import pytest

from tests.small_run import OWN_PROCESS, SmallRun

Said = Callable[..., list[str]]

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


@pytest.fixture
def said(small_run: SmallRun) -> Said:
    """The lines that pytest prints for a text of tests."""

    def lines(text: str, *options: str) -> list[str]:
        return small_run(text, "tests.closing_line", *options).outlines

    return lines


@pytest.mark.parametrize("options", [(), ("-q", "-q"), ("-q", "-q", "-n", "2"), ("-n", "2", "-rsfE")])
def test_the_last_lines_count_by_reason(said: Said, options: tuple[str, ...]) -> None:
    """Each once, however quiet the run is and however many processes it has; an error at a test's end is a failure."""
    lines = said(TINY, *options)
    assert lines[-2:] == [
        "3 passed, 2 failed, 3 left out (2 need root; 1 needs apt-get install opensm)",
        "3 passed, 2 failed, 3 skipped",
    ]
    assert sum("left out" in line for line in lines) == 1


def test_when_nothing_was_left_out_no_reason_is_given(said: Said) -> None:
    """Thousands are told apart for people only."""
    many = "import pytest\n@pytest.mark.parametrize('n', range(1200))\ndef test_good(n):\n    pass\n"
    assert said(many, "-q")[-2:] == [
        "1,200 passed, 0 failed, 0 left out",
        "1200 passed, 0 failed, 0 skipped",
    ]


def test_a_file_that_cannot_be_read_is_a_failure(said: Said) -> None:
    """It has no tests to count, and the run is not a good one."""
    assert said("import no_such_module\n", "-q")[-1] == "0 passed, 1 failed, 0 skipped"


ENDS = {
    "interrupted": ("", "raise KeyboardInterrupt"),
    "pytest.exit": ("import pytest", "pytest.exit('enough')"),
    "at the first failure": ("", "raise AssertionError"),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_was_not_run_did_not_pass(said: Said, end: str) -> None:
    """A program that adds up the last line would take a run that was broken off for a good one."""
    head, body = ENDS[end]
    many = "\n".join(f"def test_{n}(): pass" for n in range(7))
    text = f"{head}\ndef test_good(): pass\ndef test_end():\n    {body}\n{many}\n"
    own = (OWN_PROCESS,) if end == "interrupted" else ()
    failed = int(end == "at the first failure")
    assert said(text, "-q", "-x", *own)[-2:] == [
        f"1 passed, {failed} failed, 0 left out, {8 - failed} not run",
        "1 passed, 8 failed, 0 skipped",
    ]


def test_a_worker_that_dies_takes_its_test_with_it(said: Said) -> None:
    """The others are run by another one."""
    text = "import os\ndef test_good(): pass\ndef test_dies(): os._exit(3)\ndef test_other(): pass\n"
    assert said(text, "-q", "-n", "2")[-1] == "2 passed, 1 failed, 0 skipped"


def test_the_others_when_a_file_cannot_be_read(said: Said, pytester: pytest.Pytester) -> None:
    """pytest then runs none of them."""
    pytester.makepyfile(test_broken="import no_such_module\n")
    assert said(TINY, "-q", "test_broken.py")[-2:] == [
        "0 passed, 1 failed, 0 left out, 8 not run",
        "0 passed, 9 failed, 0 skipped",
    ]


def test_a_run_that_never_began_is_no_good_one(said: Said) -> None:
    """A file that is not there, for instance."""
    assert "0 passed, 1 failed, 0 skipped" in said(TINY, "-q", "test_nowhere.py")


def test_expected_failures_are_counted(said: Said) -> None:
    """As left out; one that passes has passed."""
    mark = "@pytest.mark.xfail(reason='known to fail')\n"
    text = f"import pytest\n{mark}def test_bad(): assert False\n{mark}def test_good(): pass\n"
    assert said(text, "-q")[-2:] == [
        "1 passed, 0 failed, 1 left out (1 known to fail)",
        "1 passed, 0 failed, 1 skipped",
    ]


def test_to_list_tests_is_no_run(said: Said) -> None:
    """None of them was to be run."""
    assert said(TINY, "-q", "--collect-only")[-1] == "0 passed, 0 failed, 0 skipped"
