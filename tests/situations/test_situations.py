"""Every situation ends as its data says, and docs/safety.md tells it."""

import pytest

from tests.situations import page
from tests.situations.situation import Verdict
from tests.situations.table import ALL, THEMES, judged


@pytest.mark.parametrize("what", list(ALL))
def test_what_happens_is_what_is_expected(what: str) -> None:
    """The verdict is the one in the data; one that is not as expected has its reason there."""
    found, situation = judged(what), ALL[what]
    assert found.verdict is situation.verdict, f"{found.unmet}; {found.line}"
    assert bool(situation.reason) == (situation.verdict is not Verdict.AS_EXPECTED)


def test_every_situation_stands_once() -> None:
    """Their names are their keys."""
    assert len(ALL) == sum(len(theme) for theme in THEMES.values())


def test_the_page_is_fresh() -> None:
    """`make safety` would change nothing."""
    if page.PAGE.read_text() != page.page(page.figures()):
        pytest.fail("docs/safety.md is out of date: run `make safety`", pytrace=False)
