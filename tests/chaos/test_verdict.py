"""What a chaos run is judged by: each function finds what it is there for, and nothing else."""

from collections.abc import Sequence

import pytest

from tests.chaos import verdict
from tests.chaos.outside import Received
from tests.chaos.verdict import Injected, Look, Window

CAUSES = ("nobody_leads",)


def page(
    id_: str, *, at: float = 0.0, what: str = "open", cause: str = "xid-79", listed: str = ""
) -> Received:
    """A page as the receiver outside noted it."""
    return Received(at=at, page=id_, what=what, cause=cause, dedup_key=id_.rpartition(".p")[0], listed=listed)


def told(id_: str, delivered: str = "") -> dict[str, str]:
    """The same page as the log has it."""
    return {"id": id_, "delivered": delivered, "text": "open to oncall: it is broken"}


def test_a_step_that_two_performed_is_found() -> None:
    """By whichever two processes."""
    assert not verdict.steps_twice(["node-a i.r1.s1.a1 gpu.reset", "node-a i.r1.s1.a2 gpu.reset"])
    assert verdict.steps_twice(["brain-a i.r1.s1.a1 bmc.cycle", "brain-b i.r1.s1.a1 bmc.cycle"]) == [
        "bmc.cycle i.r1.s1.a1 was performed by brain-a and brain-b"
    ]


@pytest.mark.parametrize(
    ("waits", "runs", "decided"),
    [
        ("inc-2 has switched n1 off: it is judged when that incident is over", [], True),
        ("inc-2.r1 is at work on n1: it is judged when that has ended", [], False),
        ("", [{"state": "approval", "why": "its newest fact is old"}], True),
        (
            "",
            [{"state": "held", "why": "these belong together; `gpuward approve` lets this one go on"}],
            True,
        ),
        ("", [{"state": "held", "why": "1 disruptive run in leaf/leaf-1"}], False),
        ("", [{"state": "approval", "why": ""}, {"state": "performing", "why": ""}], False),
    ],
)
def test_what_waits_for_a_person_is_decided(waits: str, runs: list[dict[str, str]], decided: bool) -> None:
    """Nobody is there who says so in a chaos run."""
    incident = {"id": "i", "node": "n1", "cause": "x", "state": "healing", "waits": waits}
    found = verdict.undecided([Injected(drill="d", node="n1", at=0)], [incident], lambda _: runs)
    assert found == [] if decided else len(found) == 1


@pytest.mark.parametrize(
    ("incidents", "wrong"),
    [
        ([], 1),
        ([{"id": "i", "node": "n1", "cause": "x", "state": "closed"}], 0),
        ([{"id": "i", "node": "n1", "cause": "x", "state": "healing"}], 1),
        ([{"id": "i", "node": "n1", "cause": "x", "state": "open", "runbook": ""}], 0),
        ([{"id": "i", "node": "n1", "cause": "x", "state": "open", "runbook": "r"}], 1),
        ([{"id": "i", "node": "", "cause": "shared-x", "state": "needs_human"}], 0),
        ([{"id": "i", "node": "n2", "cause": "x", "state": "closed"}], 1),
    ],
)
def test_a_fault_that_came_to_nothing_is_found(incidents: list[dict[str, str]], wrong: int) -> None:
    """No incident of its node nor of many nodes, or one that neither ended nor came to a person."""
    assert len(verdict.undecided([Injected(drill="d", node="n1", at=0)], incidents)) == wrong


def test_a_fault_that_passes_may_have_been_seen_by_nobody() -> None:
    """A node that was unreachable for a moment, while no brain led."""
    assert not verdict.undecided([Injected(drill="d", node="n1", at=0, passes=True)], [])


@pytest.mark.parametrize(
    ("sent", "received", "lost"),
    [
        (told("i.p1", "by hook"), [page("i.p1")], False),
        (told("i.p1", "by hook"), [], True),
        (
            told("i.p1"),
            [page("i.p2")],
            False,
        ),  # no channel took it; a later page, which says more, took its place
        (told("i.p2"), [page("i.p1")], True),
        (
            told("i.p1", "by hook, in one page with others (grp-1)"),
            [page("grp-1.p1", listed="[P1] i x on y")],
            False,
        ),
        (
            told("i.p1", "by hook, in one page with others (grp-1)"),
            [page("grp-1.p1", listed="[P1] j x on y")],
            True,
        ),
        (told("i.p1", "by hook, in one page with others (grp-1)"), [], True),
        (told("i.p1"), [page("nobody_leads-a-17.resolve")], True),
    ],
)
def test_a_page_that_nobody_got_is_found(
    sent: dict[str, str], received: Sequence[Received], lost: bool
) -> None:
    """What the log says does not count: what the receiver has does."""
    assert bool(verdict.pages_lost([sent], received)) is lost


def test_an_alert_that_was_opened_twice_is_found() -> None:
    """A page that came twice under one id is one page; after its resolution the alert may be opened again."""
    once = [page("i.p1"), page("i.p1"), page("i.p2", what="resolve"), page("i.p3")]
    assert not verdict.pages_doubled(once)
    assert verdict.repeated(once) == 1
    assert len(verdict.pages_doubled([page("i.p1"), page("i.p2")])) == 1


def test_times_without_a_leader_are_found() -> None:
    """Between two looks of whichever brain; not before the first one led."""
    looks = [
        Look(at=0, brain="a", leads=False),
        Look(at=1, brain="a", leads=True),
        Look(at=2, brain="b", leads=True),
        Look(at=3, brain="a", leads=False),
        Look(at=4, brain="b", leads=False),
        Look(at=9, brain="a", leads=True),
    ]
    assert verdict.windows(looks, ("a", "b")) == [Window(began=4, ended=9)]


@pytest.mark.parametrize(
    ("lasted_s", "pages", "calls", "dark"),
    [
        (10.0, [], [], False),  # too short to be told of
        (30.0, [], [100.0, 107.0], True),  # the switch outside was called on
        (30.0, [], [100.0], False),  # the switch outside was not called any more
        (30.0, [page("n.p1", at=110.0, cause="nobody_leads")], [107.0], False),
        (30.0, [page("n.p1", at=125.0, cause="nobody_leads")], [107.0], True),  # too late
        (30.0, [page("n.p1", at=110.0, cause="xid-79")], [107.0], True),  # of something else
    ],
)
def test_a_time_in_the_dark_is_found(
    lasted_s: float, pages: list[Received], calls: list[float], dark: bool
) -> None:
    """Somebody is told within 15 s when nobody leads: by a page, or as the dead man's switch is no longer called."""
    window = Window(began=100.0, ended=100.0 + lasted_s)
    assert bool(verdict.in_the_dark([window], pages, calls, CAUSES)) is dark


def test_two_brains_that_do_not_agree_are_found() -> None:
    """About which incidents there are, and what became of them."""
    ours = [{"id": "i", "cause": "x", "state": "closed", "scope": "node/n"}]
    assert not verdict.differ(ours, ours)
    assert len(verdict.differ(ours, [ours[0] | {"state": "healing"}])) == 1
    assert len(verdict.differ(ours, [])) == 1
