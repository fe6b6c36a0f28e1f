"""The same news is told once: what people know already, repeats remind them of."""

from brain.core.paging import escalation
from tests.brain.core.pager import Pager


def told(it: Pager) -> list[tuple[str, str, str]]:
    """What, to whom, and the text of each page."""
    return [(page.what, page.to, page.text) for _, page in it.sent]


def test_the_same_update_is_paged_once() -> None:
    """A fault that comes every ten minutes says the same each time."""
    it = Pager()
    it.opens("a")
    for _ in range(5):
        it.pages("a", "update", "tried twice: a person must take it from here")
    assert told(it) == [
        ("open", "oncall", "it is lost"),
        ("update", "oncall", "tried twice: a person must take it from here"),
    ]


def test_other_news_and_other_groups_are_told() -> None:
    """Each channel group learns each text."""
    it = Pager()
    it.opens("a")
    for text in ("one", "two", "one"):
        it.pages("a", "update", text)
    it.pages("a", "update", "one", to="network")
    assert told(it)[1:] == [
        ("update", "oncall", "one"),
        ("update", "oncall", "two"),
        ("open", "network", "one"),
    ]


def test_a_question_that_was_answered_is_asked_again() -> None:
    """An approval is wanted anew after the one that was given is used up."""
    it = Pager()
    (incident,) = it.opens("a")
    it.pages("a", "update", "approval wanted")
    escalation.answered(incident)
    it.pages("a", "update", "approval wanted")
    assert [text for _, _, text in told(it)] == ["it is lost", "approval wanted", "approval wanted"]


def test_only_the_newest_news_are_remembered() -> None:
    """An incident's state stays bounded."""
    it = Pager()
    (incident,) = it.opens("a")
    for number in range(3 * escalation.MAX_SAID):
        it.pages("a", "update", f"news {number}")
    assert len(incident.pages.said) == escalation.MAX_SAID
