"""Gates that remember: a node that needs one remedy after the other, a cause on one node after the other."""

from collections.abc import Sequence

import pytest

from agent.contract.actions.spec import Disrupts
from agent.contract.counted import counted
from brain.core.healing import limits
from brain.core.healing.verdicts import Verdict
from brain.core.pack.spec import PAGE, Rung
from brain.core.people import SCHEDULE
from brain.core.state import Disruption, Node, RunState
from tests.brain.core.cell import NOW, Cell, Given, never, table, wait
from tests.brain.core.givens import (
    approved,
    healed,
    on,
    runbook,
    scheduler_says,
    site,
    started_by,
    treated,
    unanswered,
    under_way,
    waiting,
)

DAY = 86_400.0
A_SECOND = 1 / DAY


def often(count: int, period: str, node: str = "n1") -> Verdict:
    """The answer to a node that needs too many."""
    reason = f"{node} had {count} remedies within {period}: another one would hide what is wrong with it"
    return never("offender", reason)


def rungs(*wanted: Rung) -> Given:
    """The ladder is another one."""
    return runbook(rungs=wanted)


DRAIN = Rung(name="drain", do="scheduler.drain")
REBOOT = Rung(name="reboot", do="node.reboot")
REQUEUE = Rung(name="requeue", do="scheduler.requeue", params={"job": "j1"})
THREE_TODAY = healed(0.3, 0.2, 0.1)
SIX_IN_A_WEEK = healed(6, 5, 4, 3, 2, 1.5)
TEN_IN_A_MONTH = healed(29, 26, 23, 20, 17, 14, 11, 9, 8.5, 8)


@table(
    ("it never had one", [], None),
    ("two today", [healed(0.2, 0.1)], None),
    ("three today", [THREE_TODAY], often(3, "a day")),
    ("four today", [healed(0.4, 0.3, 0.2, 0.1)], often(4, "a day")),
    ("three, and the first falls out of the day just now", [healed(1, 0.2, 0.1)], None),
    ("three, and the first is just within the day", [healed(1 - A_SECOND, 0.2, 0.1)], often(3, "a day")),
    ("five in a week", [healed(6, 5, 4, 3, 2)], None),
    ("six in a week", [SIX_IN_A_WEEK], often(6, "7 days")),
    ("six, and the first falls out of the week just now", [healed(7, 5, 4, 3, 2, 1.5)], None),
    ("six, and the first is just within the week", [healed(7 - A_SECOND, 5, 4, 3, 2, 1.5)], often(6, "7 days")),
    ("nine in a month", [healed(29, 26, 23, 20, 17, 14, 11, 9, 8)], None),
    ("ten in a month", [TEN_IN_A_MONTH], often(10, "30 days")),
    ("ten, and the first falls out of the month just now", [healed(30, 26, 23, 20, 17, 14, 11, 9, 8.5, 8)], None),
    (
        "ten, and the first is just within the month",
        [healed(30 - A_SECOND, 26, 23, 20, 17, 14, 11, 9, 8.5, 8)],
        often(10, "30 days"),
    ),
    ("the shortest time is named", [healed(6, 5, 4, 0.3, 0.2, 0.1)], often(3, "a day")),
    ("the site allows one a day", [site(remedies_per_day=1), healed(0.1)], often(1, "a day")),
    ("the site allows one a week", [site(remedies_per_week=1), healed(3)], often(1, "7 days")),
    ("the site allows one a month", [site(remedies_per_month=1), healed(20)], often(1, "30 days")),
    ("another node had three", [healed(0.3, 0.2, 0.1, node="n2")], None),
    (
        "two nodes of a chassis had three together",
        [on("node/n7", "n7"), healed(0.3, 0.2, node="n7"), healed(0.1, node="n8")],
        often(3, "a day", "chassis/c7"),
    ),
    ("one node of a chassis had three, and this one none", [on("node/n7", "n7"), healed(0.4, 0.3, 0.2, node="n8")], None),
    (
        "one had four, and this one one: the one counts for two",
        [on("node/n7", "n7"), healed(0.5, 0.4, 0.3, 0.2, node="n8"), healed(0.1, node="n7")],
        often(3, "a day", "chassis/c7"),
    ),
    (
        "one a day is allowed, and another node of the chassis had it",
        [on("node/n7", "n7"), site(remedies_per_day=1), healed(0.1, node="n8")],
        None,
    ),
    ("two of them, and one in another chassis", [on("node/n7", "n7"), healed(0.3, 0.2, node="n8"), healed(0.1)], None),
    ("three today, and the run has begun", [THREE_TODAY, under_way()], None),
    ("three today, and a person asks for it", [THREE_TODAY, started_by("bea")], None),
    ("three today, and its inspection is due", [THREE_TODAY, started_by(SCHEDULE)], None),
    ("three today, and an approval does not cure the node", [THREE_TODAY, approved()], often(3, "a day")),
    ("the run is about the fabric", [on("fabric/default", ""), healed(0.3, 0.2, 0.1, node="")], None),
    ("three today, and the run only drains", [THREE_TODAY, rungs(DRAIN)], None),
    ("three today, and the run only moves a job", [THREE_TODAY, rungs(REQUEUE)], None),
    ("three today, and the run drains and reboots", [THREE_TODAY, rungs(DRAIN, REBOOT)], often(3, "a day")),
    ("three today, and the run may page after all", [THREE_TODAY, rungs(REBOOT, Rung(name="page", do=PAGE))], often(3, "a day")),
    ("three today, and the run only pages", [THREE_TODAY, rungs(Rung(name="page", do=PAGE))], None),
    (
        "three today, and the runbook says that its mild action disturbs the node",
        [THREE_TODAY, rungs(Rung(name="limit", do="gpu.power_limit", disrupts=Disrupts.NODE))],
        often(3, "a day"),
    ),
    ("three today, and the mild action is mild", [THREE_TODAY, rungs(Rung(name="limit", do="gpu.power_limit"))], None),
    (
        "three today, and the action disturbs the fabric around it",
        [THREE_TODAY, rungs(Rung(name="limit", do="gpu.power_limit", disrupts=Disrupts.FABRIC))],
        often(3, "a day"),
    ),
)  # fmt: skip
def test_offender(givens: list[Given], answer: Verdict | None) -> None:
    """Law 8: three remedies in a day, six in a week, ten in a month: whatever each was for, then a person looks at the node."""
    assert Cell(*givens).asks(limits.offender) == answer


UNANSWERED = never("answers", "n1 is heard, and has not answered what it was told to do")
TWO_LEFT = never("answers", "n1 is heard, and has left 2 steps without a result within a day")


def left_steps(*seconds_ago: float) -> Given:
    """n1 left steps without a result so long ago."""

    def given(cell: Cell) -> None:
        known = cell.state.nodes.setdefault("n1", Node(name="n1"))
        known.unanswered = [NOW - ago for ago in seconds_ago]

    return given


@table(
    ("it answers", [], None),
    ("it has not answered a step", [unanswered()], UNANSWERED),
    ("another node has not", [unanswered(node="n2")], None),
    ("it has started anew since", [unanswered(60, booted=30)], None),
    ("it had started anew before", [unanswered(60, booted=90)], UNANSWERED),
    ("it had started anew in the same moment", [unanswered(60, booted=60)], UNANSWERED),
    ("it has answered so far, and nobody heard it boot", [unanswered(NOW)], None),
    ("a person asks for it", [unanswered(), started_by("bea")], None),
    ("a person approved", [unanswered(), approved()], None),
    ("it is about the fabric", [unanswered(), on("fabric/default", "")], None),
    ("it left one today, and has answered since", [left_steps(60)], None),
    ("two today, and it has answered since", [left_steps(3600, 60)], TWO_LEFT),
    ("two, and it has started anew since", [left_steps(3600, 60), unanswered(60, booted=30)], TWO_LEFT),
    ("two, one of them yesterday", [left_steps(86_400, 60)], None),
    ("two today, and a person asks for it", [left_steps(3600, 60), started_by("bea")], None),
    ("two today, and a person approved", [left_steps(3600, 60), approved()], None),
)
def test_answers(givens: list[Given], answer: Verdict | None) -> None:
    """Law 15: a node that holds what others wait for, and says nothing, goes to a person."""
    assert Cell(*givens).asks(limits.answers) == answer


FIVE = ("m1", "m2", "m3", "m4", "m5")


def belong(
    nodes: Sequence[str],
    *,
    share: str = "",
    waiting: bool = False,
    minutes: int = 60,
    cause: str = "gpu-lost",
) -> Verdict:
    """The answer when faults belong together."""
    also = ", and others wait" if waiting else ""
    shared = f", they share {share}" if share else ""
    reason = f"{cause} was treated on {counted(len(nodes), 'node')} within {minutes} minutes ({', '.join(nodes[:6])}){also}"
    if not nodes:
        reason = f"at least 2 other nodes began to wait with {cause} within a day"
    reason += f": these belong together{shared}; `gpuward approve` lets this one go on"
    return wait("related", reason, 300)


TWO_ARE_MANY = site(same_cause_nodes=2)


@table(
    ("it is the first", [], None),
    ("four nodes had it", [treated(*FIVE[:4])], None),
    ("five nodes had it", [treated(*FIVE)], belong(FIVE)),
    ("seven nodes had it, and six are named", [treated(*FIVE, "m6", "m7")], belong((*FIVE, "m6", "m7"))),
    ("one node had it five times", [treated("m1", "m1", "m1", "m1", "m1")], None),
    ("four nodes had it, one of them twice", [treated(*FIVE[:4], "m1")], None),
    ("five nodes had it, one of them twice: each is named once", [treated("m1", *FIVE)], belong(FIVE)),
    ("five nodes had something else", [treated(*FIVE, cause="nic-broken")], None),
    ("four had it, and one something else", [treated(*FIVE[:4]), treated("m5", cause="nic-broken")], None),
    ("five had it, and the hour is over just now", [treated(*FIVE, seconds_ago=3600)], None),
    ("five had it, and the hour is almost over", [treated(*FIVE, seconds_ago=3599)], belong(FIVE)),
    ("five had it, the first of them long ago", [treated("m1", seconds_ago=4000), treated(*FIVE[1:])], None),
    ("the site counts over ten minutes", [site(breaker_within_s=600), treated(*FIVE, seconds_ago=599)], belong(FIVE, minutes=10)),
    ("the site counts two", [TWO_ARE_MANY, treated("m1", "m2")], belong(("m1", "m2"))),
    ("five had it, and this node was among them", [treated(*FIVE[:4], "n1")], None),
    ("five others had it, and so had this node", [treated(*FIVE, "n1")], None),
    ("five had it, and this run has begun", [treated(*FIVE), under_way()], None),
    ("five had it, and a person asks for this one", [treated(*FIVE), started_by("bea")], None),
    ("five had it, and a person approved", [treated(*FIVE), approved()], None),
    ("five had it, and the approval is void", [treated(*FIVE), approved(until=NOW - 1)], belong(FIVE)),
    ("five had it, and this is about the fabric", [treated(*FIVE), on("fabric/default", "")], None),
)  # fmt: skip
def test_related(givens: list[Given], answer: Verdict | None) -> None:
    """Law 6: the sixth node in an hour that needs the same remedy waits for a person, who hears which five had it."""
    assert Cell(*givens).asks(limits.related) == answer


@table(
    ("nothing in common", [TWO_ARE_MANY, treated("n5", "m2")], belong(("n5", "m2"))),
    ("the fabric and the cell are common to all", [TWO_ARE_MANY, treated("n5", "n4")], belong(("n5", "n4"))),
    ("the leaf switch", [site(same_cause_nodes=1), treated("n2")], belong(("n2",), share="leaf/l1")),
    ("the rack", [site(same_cause_nodes=1), treated("n3")], belong(("n3",), share="rack/r1")),
    ("the pod", [site(same_cause_nodes=1), treated("n4")], belong(("n4",), share="pod/p1")),
    ("the leaf of one and the rack of the other", [TWO_ARE_MANY, treated("n2", "n3")], belong(("n2", "n3"))),
    (
        "those before share a leaf, and this one does not",
        [TWO_ARE_MANY, on("gpu/n5/0", "n5"), treated("n1", "n2")],
        belong(("n1", "n2")),
    ),
    ("two places", [site(same_cause_nodes=1), treated("n6")], belong(("n6",), share="leaf/l1 and pod/p1")),
)  # fmt: skip
def test_what_related_nodes_share(givens: list[Given], answer: Verdict | None) -> None:
    """Law 6: a person who must find the cause hears which switch, rack or pod all of them have in common."""
    assert Cell(*givens).asks(limits.related) == answer


@table(
    ("one other node waits for this", [waiting("m1")], None),
    ("it waits with three faults", [waiting("m1"), waiting("m1"), waiting("m1")], None),
    ("two others wait", [waiting("m1"), waiting("m2")], belong(())),
    ("one of them for its approval", [waiting("m1"), waiting("m2", state=RunState.APPROVAL)], belong(())),
    ("one had it, and another waits", [treated("m2"), waiting("m1")], belong(("m2",), waiting=True)),
    ("one had it, and waits with one more", [treated("m1"), waiting("m1")], None),
    ("two had it, and another waits: the two say enough", [treated("m1", "m2"), waiting("m9")], belong(("m1", "m2"))),
    ("one of them waits for something else", [waiting("m1"), waiting("m2", gate="budget")], None),
    ("one of them for another cause", [waiting("m1"), waiting("m2", cause="nic-broken")], None),
    ("one of them goes on now", [waiting("m1"), waiting("m2", state=RunState.PERFORMING)], None),
    ("a person has taken one over", [waiting("m1"), waiting("m2", state=RunState.EXHAUSTED)], None),
    ("this node itself waits", [waiting("m1"), waiting("n1")], None),
    ("a fabric waits", [waiting("m1"), waiting("")], None),
    ("one has waited for a day just now", [waiting("m1"), waiting("m2", seconds=DAY)], None),
    ("one has waited for almost a day", [waiting("m1"), waiting("m2", seconds=DAY - 1)], belong(())),
    ("they wait, and a person approved this one", [waiting("m1"), waiting("m2"), approved()], None),
)  # fmt: skip
def test_related_nodes_wait_for_each_other(givens: list[Given], answer: Verdict | None) -> None:
    """Law 6: those that wait belong together too, each node once, and for a day (law 15)."""
    assert Cell(TWO_ARE_MANY, *givens).asks(limits.related) == answer


def test_the_jobs_that_ran_there_are_remembered_for_a_day() -> None:
    """The breaker and the turn at a budget count those of its own hour only."""
    old = treated("m1", seconds_ago=DAY + 1)
    cell = Cell(old, treated("m2", seconds_ago=DAY - 1), scheduler_says(("j1", "j2")), site(breaker_runs=2))
    limits.claim(cell.ctx(), cell.run)
    assert [(each.node, each.jobs) for each in cell.state.began] == [("m2", ()), ("n1", ("j1", "j2"))]
    assert not cell.state.tripped


@pytest.mark.parametrize(
    ("givens", "days_ago"),
    [
        pytest.param([], [0], id="a reset counts"),
        pytest.param([healed(3, 2)], [3, 2, 0], id="beside those before"),
        pytest.param([healed(30, 2)], [2, 0], id="what is a month old just now is forgotten"),
        pytest.param([healed(30 - A_SECOND, 2)], [30 - A_SECOND, 2, 0], id="what is not quite is kept"),
        pytest.param([site(remedies_per_month=3), healed(9, 8, 7, 6)], [7, 6, 0], id="no more are kept than are counted"),
        pytest.param([healed(2, node="n2")], [0], id="another node's are its own"),
        pytest.param([healed(2), under_way()], [2], id="a run counts once, however many rungs it has"),
        pytest.param([started_by("bea")], [], id="what a person asks for is no fault of the node"),
        pytest.param([started_by(SCHEDULE)], [], id="nor is its inspection"),
        pytest.param([rungs(DRAIN)], [], id="nor a drain alone"),
    ],
)  # fmt: skip
def test_which_remedies_a_node_is_charged_with(givens: list[Given], days_ago: list[float]) -> None:
    """Law 8: each run that heals by disturbing the whole node, when it first does; kept for 30 days."""
    cell = Cell(*givens)
    limits.claim(cell.ctx(), cell.run)
    assert cell.state.remedied.get("n1", []) == [NOW - days * DAY for days in days_ago]


def test_a_fabrics_remedy_is_charged_to_no_node() -> None:
    """It counts for the breaker as one place of its own, and for no node."""
    cell = Cell(on("fabric/default", ""))
    limits.claim(cell.ctx(), cell.run)
    assert cell.state.remedied == {}
    assert cell.state.began == [Disruption(at=NOW, node="fabric/default", cause="gpu-lost")]


def test_what_begins_is_remembered_with_its_node_and_cause() -> None:
    """So the next node with this cause is known to be related; the second rung of a run is no second remedy."""
    cell = Cell()
    limits.claim(cell.ctx(), cell.run)
    assert (cell.run.claimed, cell.run.counted) == (True, True)
    assert cell.state.began == [Disruption(at=NOW, node="n1", cause="gpu-lost")]
    limits.claim(cell.ctx(), cell.run)
    assert len(cell.state.began) == 1


def test_a_return_to_service_holds_its_node_and_is_no_remedy() -> None:
    """Law 1 and law 7: nobody else disturbs the node meanwhile, and no limit counts the way back."""
    cell = Cell(scheduler_says(("j1",)))
    ctx = cell.ctx()
    limits.occupy(ctx, cell.run)
    assert ctx.index.claims == {"inc-1.r1": "n1"}
    assert (cell.run.claimed, cell.run.counted, cell.run.jobs) == (True, False, [])
    assert (cell.state.began, cell.state.remedied) == ([], {})
