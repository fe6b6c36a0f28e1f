"""A page says only what is true: its words about drains, switches and evidence are made from what happened."""

from dataclasses import replace

import pytest

from brain.core.healing import told
from brain.core.pack import lint
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import TOLD, Runbook, Rung
from tests.brain.core.climb import QUIET, Climb, rung
from tests.brain.lint_kit import PACK, RULE, RUNBOOK
from tests.shipped import shipped_pack

SHIPPED = {book.name: book for book in shipped_pack().runbooks}
TONIGHT = ("nothing to do", "Nothing more to do")


def page(text: str) -> Rung:
    """The last rung."""
    return Rung(name="tell", do="page", params={"text": text})


def last_page(it: Climb) -> str:
    """What people read at the end."""
    return it.time.pages[-1].text


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        (["ok", "ok"], "n1 gets no new jobs (so it is)."),
        (["ok", "refused"], "n1 could NOT be drained (so it is): new jobs may start there."),
        (["ok", "unreachable"], "n1 could NOT be drained (so it is): new jobs may start there."),
        (
            ["ok", "failed"],
            "The drain of n1 did not end well (so it is): check whether new jobs may start there.",
        ),
        (
            ["ok", "unknown"],
            "The drain of n1 did not end well (so it is): check whether new jobs may start there.",
        ),
    ],
)
def test_the_page_after_a_drain_says_how_it_went(outcomes: list[str], says: str) -> None:
    """The shipped drain-node, whose drain the scheduler accepts, refuses, or does not answer."""
    it = Climb(*(replace(one, retries=0) for one in SHIPPED["drain-node"].rungs))
    for outcome in outcomes:
        it.answer(outcome)
    assert says in last_page(it)
    assert "The evidence is kept" in last_page(it)
    assert not any(claim in last_page(it) for claim in TONIGHT)


def test_a_page_without_a_drain_says_that_there_was_none() -> None:
    """The drain's precheck was not met, so new jobs may start."""
    drain = Rung(name="drain", do="scheduler.drain", when={"symptom": "link_flaps"})
    it = Climb(rung("bounce"), drain, page("$drained"))
    it.answer()
    assert last_page(it) == "n1 was not drained: new jobs may start there."


@pytest.mark.parametrize("outcome", ["unreachable", "refused", "failed"])
def test_a_drain_that_succeeded_stands_whatever_a_later_rung_comes_to(outcome: str) -> None:
    """The BMC is dead, so the node cannot be switched off; it was drained before, and still is."""
    it = Climb(rung("drain", "scheduler.drain"), Rung(name="off", do="node.isolate"), page("$drained"))
    it.answer()
    it.answer(outcome)
    assert last_page(it) == "n1 gets no new jobs (so it is)."


def test_what_was_done_is_told_rung_by_rung() -> None:
    """The last attempt of each, with its reason and whether it helped."""
    it = Climb(
        rung("bounce", verify=QUIET), rung("again", retries=1), Rung(name="off", do="node.isolate"),
        page("$done $switched_off $evidence"),
    )  # fmt: skip
    it.answer()
    it.wait(60)
    it.answer("failed")
    it.answer("unreachable")
    it.answer("refused")
    assert last_page(it) == (
        "What was done: bounce: done, it did not help; again: unreachable (so it is); off: refused (so it is). "
        "n1 was NOT switched off (so it is). There is NO evidence of this run."
    )


def test_a_node_that_is_switched_off_is_said_to_be() -> None:
    """And it gets no jobs."""
    it = Climb(Rung(name="off", do="node.isolate"), page("$switched_off $drained $done"))
    it.answer()
    assert last_page(it) == ("n1 is switched off. n1 gets no new jobs (so it is). What was done: off: done.")


def test_a_node_that_was_drained_before_it_could_not_be_fenced_gets_no_new_jobs() -> None:
    """A fencing that did not reach its node does not undo the drain before it."""
    it = Climb(
        Rung(name="drain", do="scheduler.drain"), Rung(name="off", do="node.isolate"), page("$drained")
    )
    it.answer()
    it.answer("unreachable")
    assert last_page(it) == "n1 gets no new jobs (so it is)."


def test_a_drain_that_may_have_been_done_before_it_was_unreachable_is_not_denied() -> None:
    """The first attempt left its mark, perhaps; the second one found no scheduler."""
    it = Climb(Rung(name="drain", do="scheduler.drain", retries=1), page("$drained"))
    it.answer("unknown")
    it.answer("unreachable")
    says = "The drain of n1 did not end well (so it is): check whether new jobs may start there."
    assert last_page(it) == says


def test_a_page_that_comes_first_says_that_nothing_was_done() -> None:
    """Other words of the text stay."""
    it = Climb(page("$done $unknown"), rung("bounce"))
    assert "Nothing else was done. $unknown" in [one.text for one in it.time.pages]


def test_every_word_of_a_page_can_be_told() -> None:
    """`gpuward check` and the engine know the same words."""
    assert tuple(told.WORDS) == TOLD


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("The node gets no new jobs. $drained", "claims what may not be so ('new jobs')"),
        ("The node is drained. $drained", "claims what may not be so ('drained')"),
        ("$drained Nothing more to do tonight", "claims what may not be so ('Nothing more to do')"),
        ("$drained It does not work after a reboot", "claims what may not be so ('reboot')"),
        ("$drained The evidence is there", "claims what may not be so ('evidence')"),
        ("Look at it.", "a rung may drain the node: say by $drained whether it did"),
        (
            "$drained $when",
            "a page has no '$when' (its text has: $drained, $done, $evidence, $switched_off, $node, $distrust, $repair)",
        ),
        ("$drained Later run `gpuward return NODE` after a `reboot`.", ""),
        ("$done $drained $evidence $switched_off Open a ticket.", ""),
    ],
)
def test_check_refuses_a_text_that_claims_what_a_rung_may_not_have_done(text: str, finding: str) -> None:
    """Advice and commands are allowed."""
    drain = Rung(name="drain", do="scheduler.drain")
    tell = Rung(name="tell", do="page", params={"to": "oncall", "text": text})
    book: Runbook = replace(RUNBOOK, rungs=(*RUNBOOK.rungs, drain, tell))
    found = lint.problems(replace(PACK, rules=(RULE,), runbooks=(book,)), ACTIONS)
    assert [finding in one for one in found] == ([True] if finding else [])


def test_no_shipped_page_claims_anything_by_itself() -> None:
    """Each shipped runbook that may drain says whether it did."""
    assert (
        len([book for book in SHIPPED.values() if any("$drained" in str(one.params) for one in book.rungs)])
        > 10
    )
