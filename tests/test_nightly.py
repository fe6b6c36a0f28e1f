"""What is left to the nightly run, and what may not be."""

import pytest

from tests import nightly
from tests.small_run import SmallRun

MARKERS = "markers =\n    nightly(why): x\n    component(name): x\n"
TWO = """
import pytest
@pytest.mark.component('slurm')
def test_it(): pass
@pytest.mark.nightly('the same once more')
@pytest.mark.component({})
def test_again(): pass
"""
LEFT_OUT = ("-q", "-m", nightly.CI)


def test_ci_leaves_out_what_is_nightly(small_run: SmallRun) -> None:
    """And nobody counts it as left out for another reason; the nightly run has all."""
    small_run(TWO.format("'slurm'"), "tests.nightly", *LEFT_OUT, ini=MARKERS).assert_outcomes(
        passed=1, deselected=1
    )
    small_run(TWO.format("'slurm'"), "tests.nightly", "-q", ini=MARKERS).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (TWO.format("'ipmitool'"), "ipmitool"),
        ("import pytest\n@pytest.mark.nightly('again')\ndef test_it(): pass\n", "test_tiny.py"),
    ],
    ids=["a component", "a file"],
)
def test_ci_keeps_something_of_each(small_run: SmallRun, text: str, gone: str) -> None:
    """It is named; what runs everything does not mind."""
    done = small_run(text, "tests.nightly", *LEFT_OUT, ini=MARKERS)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert f"CI would have no test of it any more, all are nightly: {gone}" in done.stderr.str()
    assert small_run(text, "tests.nightly", "-q", ini=MARKERS).ret == 0


def test_a_mark_says_why(small_run: SmallRun) -> None:
    done = small_run(
        "import pytest\n@pytest.mark.nightly\ndef test_it(): pass\n", "tests.nightly", "-q", ini=MARKERS
    )
    assert "test_it: nightly(why) needs a reason" in done.stderr.str()


def test_each_value_is_in_a_combination_that_ci_runs() -> None:
    """Of three moments and two sorts CI has three."""
    found = nightly.covering("why", ("a", "b", "c"), (1, 2))
    assert [one.values for one in found] == [(x, y) for x in "abc" for y in (1, 2)]
    assert [one.values for one in found if not one.marks] == [("a", 1), ("b", 2), ("c", 1)]
