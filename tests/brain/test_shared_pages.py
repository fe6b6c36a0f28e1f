"""What people read of a switch or a fabric that fails: one page each, and only what is true."""

import pytest

from brain.core.effects import SendPage
from brain.core.pack.spec import Mode
from brain.notify.compose import compose, compose_from
from brain.notify.message import PageMessage
from tests.brain.test_switch_comes_back import WENT_S, Leaf

SHARED = pytest.mark.parametrize(
    ("others", "scope"), [pytest.param(400, "leaf/l1", id="leaf"), pytest.param(40, "cell", id="fabric")]
)


def gone(others: int, mode: Mode = Mode.AUTO) -> Leaf:
    """A leaf with a cable that was bad before, whose switch goes."""
    it = Leaf(others=others, mode=mode)
    it.port(10, "DOWN", "n0")
    it.run(WENT_S - 1)
    it.port(WENT_S, "DOWN", *it.nodes[1:])
    return it


def pages(it: Leaf, scope: str) -> list[SendPage]:
    """Of the shared cause."""
    return [one for one in it.time.pages if one.subject.scope == scope]


def read(it: Leaf, page: SendPage) -> PageMessage:
    """The page, with what was done until the end of the story."""
    return compose(page, runs=[it.time.runs[run] for run in page.subject.runs])


@SHARED
@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.OBSERVE])
def test_those_on_call_are_called_once_and_the_network_is_told(others: int, scope: str, mode: Mode) -> None:
    """The rule pages those on call; what the runbook would add for them is in that page."""
    it = gone(others, mode).run(WENT_S + 200)
    told = [(page.what, page.to) for page in pages(it, scope)]
    assert told == [("open", "oncall"), ("open", "network")][: 2 if mode is Mode.AUTO else 1]


@SHARED
def test_a_runbook_that_only_pages_has_not_given_up(others: int, scope: str) -> None:
    """It has tried nothing. And nothing began before the switch went."""
    it = gone(others).run(WENT_S + 4000)
    assert {page.what for page in pages(it, scope)} == {"open", "repeat"}
    for page in (read(it, page) for page in pages(it, scope)):
        assert "gave up" not in page.to_text().lower()
        assert "nothing left to try" not in page.to_text()
    assert all(page.subject.since >= WENT_S for page in pages(it, scope))
    (run,) = [one for one in it.time.runs.values() if one.scope == scope]
    assert run.why == "people are told: a person must take it from here"


def test_the_page_of_a_fabric_names_no_leaf_that_it_does_not_know() -> None:
    """It may be one leaf of a small cell, or a spine."""
    it = gone(40).run(WENT_S + 200)
    assert not [page.text for page in pages(it, "cell") if "one leaf" in page.text or "A leaf" in page.text]


def test_what_is_well_again_is_marked() -> None:
    """A page that is repeated shows what led to it, and who is back."""
    it = gone(400).run(WENT_S + 60)
    it.port(WENT_S + 70, "ACTIVE", "n1", "n2")
    it.run(WENT_S + 400)
    page = next(one for one in pages(it, "leaf/l1") if one.what == "repeat")
    lines = compose_from(it.engine.state, page).evidence
    assert {line.split()[1]: "(well again)" in line for line in lines} == {
        "n1": True,
        "n2": True,
    } | dict.fromkeys([line.split()[1] for line in lines[2:]], False)
    assert len(lines) >= 3
