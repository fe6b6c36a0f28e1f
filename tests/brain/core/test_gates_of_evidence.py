"""Gates that look at the fault itself: is it this node's own, has a storm had time to show, is it old news?"""

from dataclasses import replace

import pytest

from brain.core.faults.at_once import BESIDE_S
from brain.core.healing import gates
from brain.core.healing.verdicts import Verdict
from brain.core.state import Burst, Evidence, RunState
from tests.brain.core.cell import GPU, NOW, Cell, Given, ask_a_person, table, wait
from tests.brain.core.givens import approved, on, opened, sick, site, stale, started_by


def many(nodes: int, scope: str) -> Verdict:
    """The answer to a shared cause that began ten minutes ago."""
    return wait("shared", f"{nodes} nodes of {scope} show it: the cause is taken to be shared", 30)


OTHERS = "it is not known yet whether other nodes show it too"


@table(
    ("this node alone shows it", [], None),
    ("many nodes of its leaf show it", [sick("leaf/l1", "off_bus_leaf", 6)], many(6, "leaf/l1")),
    ("many nodes of the cell show it", [sick("cell", "off_bus_cell", 30)], many(30, "cell")),
    ("many nodes of another leaf show it", [sick("leaf/l5", "off_bus_leaf", 6)], None),
    ("its leaf switch has a fault of its own", [sick("leaf/l1", "leaf_hot")], None),
    (
        "many show what this incident is not about",
        [on("gpu/n1/0000:5e:00"), sick("cell", "hot_cell", 30)],
        None,
    ),
    (
        "the run is about the fabric itself",
        [on("fabric/default", ""), sick("cell", "off_bus_cell", 30)],
        None,
    ),
    (
        "an approval does not make it this node's own",
        [sick("cell", "off_bus_cell", 30), approved()],
        many(30, "cell"),
    ),
)
def test_shared(givens: list[Given], answer: Verdict | None) -> None:
    """Law 6: what many nodes show at once is not cured on one of them."""
    assert Cell(*givens).asks(gates.shared) == answer


@pytest.mark.parametrize(
    ("since_s", "caused_s", "again_s"),
    [(10, 0, 15), (360, 0, 18), (86_400, 0, 600), (86_400, 400, 20)],
    ids=["it has just begun", "for six minutes", "for a day", "the first fault stood there long before"],
)
def test_a_shared_cause_that_lasts_is_asked_about_less_often(
    since_s: float, caused_s: float, again_s: float
) -> None:
    """Its end wakes the run anyway: a run that asked each 15 s for days would fill the log."""
    cell = Cell(sick("cell", "off_bus_cell", 30))
    wide = cell.state.symptoms["off_bus_cell@cell"]
    wide.since = NOW - since_s
    wide.cause_at = NOW - caused_s if caused_s else 0.0
    verdict = cell.asks(gates.shared)
    assert verdict is not None
    assert verdict.retry_s == again_s


def test_a_spread_of_another_symptom_is_not_this_fault() -> None:
    """Law 6 looks at the incident's own symptoms: `off_bus` is spread, this incident is about heat."""
    cell = Cell(sick("cell", "off_bus_cell", 30), sick(GPU, "hot"))
    cell.incident.symptoms = [f"hot@{GPU}"]
    assert cell.asks(gates.shared) is None
    cell.incident.symptoms = [f"hot@{GPU}", f"off_bus@{GPU}"]
    assert cell.asks(gates.shared) == many(30, "cell")


def test_a_shared_cause_of_units_with_an_at_sign() -> None:
    """A unit's name may hold the sign that stands between a symptom and its scope: `user@1000.service`."""
    cell = Cell(sick("cell", "off_bus_cell", 30))
    cell.incident.symptoms = ["off_bus@service/n1/user@1000.service"]
    assert cell.asks(gates.shared) == many(30, "cell")


@table(
    ("it has just begun", [opened(0)], wait("settling", OTHERS, 2)),
    ("it is half as old as it must be", [opened(1.5)], wait("settling", OTHERS, 0.5)),
    ("it is just old enough", [opened(2)], None),
    ("it is old", [opened(600)], None),
    ("the site waits longer", [site(hold_off_s=900), opened(600)], wait("settling", OTHERS, 300)),
    ("the site does not wait", [site(hold_off_s=0), opened(0)], None),
    ("an approval does not make it older", [opened(0), approved()], wait("settling", OTHERS, 2)),
)  # fmt: skip
def test_young(givens: list[Given], answer: Verdict | None) -> None:
    """Nothing disruptive in the first moments, and the run is asked again exactly when they are over."""
    assert Cell(*givens).asks(gates.settling) == answer


ARRIVED_OLD = "its facts were over 120 s old when they arrived"
LOOKS = wait("stale", f"{ARRIVED_OLD}: the node looks again", 35)


def looked(seconds_ago: float) -> Given:
    """The node has looked again; it was asked two seconds before."""

    def given(cell: Cell) -> None:
        cell.run.looked_at = NOW - seconds_ago
        cell.run.looked_since = NOW - seconds_ago - 2

    return given


def asked_in_vain(seconds: float) -> Given:
    """The node has been asked to look again for so long."""

    def given(cell: Cell) -> None:
        cell.run.asked_since, cell.run.unseen = NOW - seconds, "n1 is not heard"

    return given


def told(seconds_ago: float, kind: str = "gpu.off_bus") -> Given:
    """The incident's newest evidence is so old."""

    def given(cell: Cell) -> None:
        fact = Evidence(id="e", at=NOW - seconds_ago, node="n1", kind=kind, component="gpu/0", text="")
        earlier = replace(fact, id="d", at=NOW - seconds_ago - 9000)
        cell.incident.evidence = [earlier, fact]

    return given


def shown(seconds_ago: float, *on_nodes: float, over: bool = False) -> Given:
    """The newest fact of its symptom is so old; on its members, if it counts nodes. Over: it is not active any more."""

    def given(cell: Cell) -> None:
        symptom = cell.state.symptoms[f"off_bus@{GPU}"]
        symptom.last, symptom.active = NOW - seconds_ago, not over
        symptom.members = {f"m{number}": NOW - ago for number, ago in enumerate(on_nodes)}

    return given


def seen(seconds_ago: float) -> Given:
    """The newest fact is so old."""

    def given(cell: Cell) -> None:
        told(seconds_ago)(cell)
        shown(seconds_ago)(cell)

    return given


def silent(*, now: bool = True) -> Given:
    """The node has fallen silent, and is still; or it is heard again."""

    def given(cell: Cell) -> None:
        cell.boots(NOW - 9000)
        cell.state.nodes["n1"].alive = not now

    return given


def asked_for_approval() -> Given:
    """The run has asked for an approval, and waits for it."""

    def given(cell: Cell) -> None:
        cell.run.state = RunState.APPROVAL

    return given


def moved(seconds_ago: float) -> Given:
    """A step of the run has ended so long ago."""

    def given(cell: Cell) -> None:
        cell.run.moved_at = NOW - seconds_ago

    return given


def booted(seconds_ago: float) -> Given:
    """The node's present boot is so old."""

    def given(cell: Cell) -> None:
        cell.boots(NOW - seconds_ago)

    return given


def looks(why: str) -> Verdict:
    """The answer when the node is asked to look again."""
    return wait("stale", f"{why}: the node looks again", 35)


LOST = "node.unreachable"
TOO_OLD = "its newest fact is over 120 s old"
NEW_BOOT = "n1 has started anew since its newest fact"
UNHEARD = "n1 is not heard; an approval is needed"
NOTHING_NEW = "the node has looked again and reports nothing new; an approval is needed"


@table(
    ("its facts were fresh", [], None),
    ("its facts were old: the node looks again", [stale()], LOOKS),
    ("old, and a person approved", [stale(), approved()], None),
    ("old, and the approval is void", [stale(), approved(until=NOW - 1)], LOOKS),
    ("old, and it has looked", [stale(), looked(5)], ask_a_person("stale", f"{ARRIVED_OLD}: {NOTHING_NEW}")),
    ("old, and it looked two minutes ago", [stale(), looked(120)], ask_a_person("stale", f"{ARRIVED_OLD}: {NOTHING_NEW}")),
    ("old, and it looked long ago", [stale(), looked(121)], LOOKS),
    (
        "old, it looked long ago, and people are asked since",
        [stale(), looked(121), asked_for_approval()],
        ask_a_person("stale", f"{ARRIVED_OLD}: {NOTHING_NEW}"),
    ),
    ("old, people are asked, and it never looked", [stale(), asked_for_approval()], LOOKS),
    (
        "old, and no node could look: it is the fabric's",
        [stale(), on("fabric/default", "")],
        ask_a_person("stale", f"{ARRIVED_OLD}: there is no fresh one; an approval is needed"),
    ),
    (
        "old, it looked, and nothing is known any more of what it was",
        [stale(), shown(9000, over=True), looked(5)],
        ask_a_person("stale", f"{ARRIVED_OLD}: {NOTHING_NEW}"),
    ),
    ("old, and its symptom was seen again since", [stale(), told(4000), shown(120)], None),
    ("old, and so is what was seen since", [stale(), told(4000), shown(121)], LOOKS),
    ("old, and one of the nodes that it counts shows it", [stale(), told(4000), shown(4000, 20)], None),
    (
        "of an earlier boot, and it has just looked",
        [seen(60), looked(9), booted(5)],
        wait("stale", f"{NEW_BOOT}: the node looks again", 1),
    ),
    ("of an earlier boot, in which it looked a while ago", [seen(60), looked(10), booted(5)], looks(NEW_BOOT)),
    ("old, and it does not answer", [stale(), asked_in_vain(90)], ask_a_person("stale", f"{ARRIVED_OLD}: {UNHEARD}")),
    ("the newest fact is two minutes old", [seen(120)], None),
    ("it has become old while the run waited", [seen(121)], looks(TOO_OLD)),
    ("what a look has told has become old", [seen(121), looked(120)], looks(TOO_OLD)),
    ("old, but the run itself was at work since", [seen(4000), moved(20)], None),
    ("and then it waited", [seen(4000), moved(150)], looks(TOO_OLD)),
    ("of an earlier boot", [seen(60), booted(30)], looks(NEW_BOOT)),
    ("of this boot", [seen(60), booted(90)], None),
    ("of the moment of the boot: a little before, as clocks go", [seen(30.5), booted(30)], None),
    ("a second before the boot", [seen(31), booted(30)], None),
    ("more than a second before the boot", [seen(31.5), booted(30)], looks(NEW_BOOT)),
    ("of an earlier boot, in which a look found it", [seen(60), looked(60), booted(30)], looks(NEW_BOOT)),
    ("of an earlier boot, in which a look found nothing", [seen(60), looked(45), booted(30)], looks(NEW_BOOT)),
    (
        "of an earlier boot, and a look in this one found nothing",
        [seen(60), looked(15), booted(30)],
        ask_a_person("stale", f"{NEW_BOOT}: {NOTHING_NEW}"),
    ),
    ("its symptom was seen again since", [told(4000), shown(20)], None),
    ("its symptom was not seen again, whatever else was", [told(20), shown(4000)], looks(TOO_OLD)),
    ("its symptom is over: what was told last counts", [told(20), shown(4000, over=True)], None),
    ("its symptom is over, and was told long ago", [told(4000), shown(20, over=True)], looks(TOO_OLD)),
    ("one of the nodes that it counts shows it", [told(4000), shown(4000, 3000, 20)], None),
    ("none of the nodes that it counts shows it any more", [told(4000), shown(4000, 3000, 2000)], looks(TOO_OLD)),
    ("it was seen at the place itself since", [told(4000), shown(20, 3000, 2000)], None),
    ("the node is silent now: the brain itself sees that", [told(4000, LOST), shown(4000), silent()], None),
    ("the node was silent, and is heard", [told(4000, LOST), shown(4000), silent(now=False)], looks(TOO_OLD)),
    ("nobody knows the node that was silent", [told(4000, LOST), shown(4000)], looks(TOO_OLD)),
    (
        "the node is silent, and its fault is another",
        [told(4000), shown(4000), silent()],
        wait("stale", f"{TOO_OLD}: the node looks again", 10),
    ),
    ("an operator's run rests on no fact", [seen(4000), started_by("bea")], None),
)  # fmt: skip
def test_stale(givens: list[Given], answer: Verdict | None) -> None:
    """Law 13: what was old when it arrived may be over by now: a fresh sign or a person."""
    assert Cell(*givens).asks(gates.stale) == answer


@pytest.mark.parametrize(("ago_s", "again_s"), [(100.0, None), (BESIDE_S, None), (0.5, 0.5), (-20.0, 21.0)])
def test_who_fell_ill_by_himself_waits_for_no_burst_of_others(ago_s: float, again_s: float | None) -> None:
    """A few nodes that fell ill at once hold the others only while these may be the first of another burst."""
    cell = Cell(sick("cell", "off_bus_cell", 30))
    wide = cell.state.symptoms["off_bus_cell@cell"]
    wide.members["n1"] = NOW - ago_s
    assert cell.asks(gates.shared) == many(31, "cell")
    wide.at_once, wide.bursts = True, [Burst(since=NOW - 650, until=NOW - 600, size=8)]
    verdict = cell.asks(gates.shared)
    assert (verdict.retry_s if verdict else None) == again_s
    wide.members["n1"] = NOW - 600  # one of them
    assert cell.asks(gates.shared) == many(31, "cell")


def test_what_many_show_besides_hides_no_shared_cause() -> None:
    """Of several symptoms of the cell the one that counts need not be the first."""
    cell = Cell(sick("cell", "hot_cell", 30), sick("cell", "off_bus_cell", 30))
    assert cell.asks(gates.shared) == many(30, "cell")
