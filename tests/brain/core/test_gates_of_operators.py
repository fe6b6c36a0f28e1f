"""Gates that operators set: holds, modes, maintenance windows. What they stop, where, and until when."""

import pytest

from brain.core.healing import gates, modes
from brain.core.healing.verdicts import Verdict
from brain.core.pack.spec import Mode, Rung
from tests.brain.core.cell import GPU, NOW, Cell, Given, ask_a_person, table, wait
from tests.brain.core.givens import (
    approved,
    held,
    in_maintenance,
    no_modes,
    on,
    operator_sets,
    runbook,
    shadow,
    site_sets,
    started_by,
)

BESIDE = "gpu/n1/0000:5e:00"


def by_bea(scope: str) -> Verdict:
    """The answer to a hold."""
    return wait("hold", f"bea holds {scope}: cabling", gates.AGAIN_S)


def slower() -> Given:
    """The run only limits its GPU's power."""
    return runbook(rungs=(Rung(name="limit", do="gpu.power_limit", params={"gpu": "$component"}),))


def fabric_run() -> Given:
    """The run is about the fabric."""
    return on("fabric/default", "")


@table(
    ("nobody holds anything", [], None),
    ("its GPU is held", [held(GPU)], by_bea(GPU)),
    ("its node is held", [held("node/n1")], by_bea("node/n1")),
    ("its leaf switch is held", [held("leaf/l1")], by_bea("leaf/l1")),
    ("its rack is held", [held("rack/r1")], by_bea("rack/r1")),
    ("everything is held", [held("all")], by_bea("all")),
    ("a GPU beside it is held: the reset disturbs the whole node", [held(BESIDE)], by_bea(BESIDE)),
    ("another node is held", [held("node/n2")], None),
    ("another rack is held", [held("rack/r2")], None),
    ("another is held, and its own", [held("node/n2"), held("node/n1")], by_bea("node/n1")),
    ("the hold ends in a second", [held("node/n1", until=NOW + 1)], by_bea("node/n1")),
    ("the hold ends now", [held("node/n1", until=NOW)], None),
    ("the hold has ended", [held("node/n1", until=NOW - 1)], None),
    ("one has ended, another has not", [held("node/n1", until=NOW - 1), held("all")], by_bea("all")),
    ("an approval is no release", [held("node/n1"), approved()], by_bea("node/n1")),
    ("a GPU beside it is held, and the rung disturbs one job only", [held(BESIDE), slower()], None),
    ("its own GPU is held, and the rung disturbs one job only", [held(GPU), slower()], by_bea(GPU)),
    ("the fabric's run, and a node in it is held", [fabric_run(), held("node/n2")], by_bea("node/n2")),
    ("the fabric's run, and a rack in it is held", [fabric_run(), held("rack/r2")], by_bea("rack/r2")),
    ("the fabric's run, and a rack that has no node in it is held", [fabric_run(), held("rack/r9")], None),
    ("a leaf's run, and a rack with a node of that leaf is held", [on("leaf/l1", ""), held("rack/r2")], by_bea("rack/r2")),
    ("a leaf's run, and a rack without one is held", [on("leaf/l1", ""), held("rack/r4")], None),
)  # fmt: skip
def test_hold(givens: list[Given], answer: Verdict | None) -> None:
    """Law 2: nothing disruptive begins where a person holds; what is held elsewhere or was held stops nothing."""
    assert Cell(*givens).asks(gates.hold) == answer


@pytest.mark.parametrize(
    ("givens", "node", "mode"),
    [
        pytest.param([no_modes()], "n1", "observe", id="a site that has said nothing observes"),
        pytest.param([], "n1", "auto", id="the site lets everything go"),
        pytest.param([no_modes(), site_sets("auto", nodes="sim-*")], "sim-7", "auto", id="auto for sim-*: sim-7"),
        pytest.param([no_modes(), site_sets("auto", nodes="sim-*")], "n1", "observe", id="auto for sim-*: not n1"),
        pytest.param([no_modes(), site_sets("auto", runbook="reset-*")], "n1", "auto", id="auto for reset-*: this one"),
        pytest.param([no_modes(), site_sets("auto", runbook="drain-*")], "n1", "observe", id="auto for drain-*: not this one"),
        pytest.param(
            [no_modes(), site_sets("auto", "reset-gpu", "n2")], "n1", "observe", id="the right runbook on another node"
        ),
        pytest.param(
            [no_modes(), site_sets("auto", "drain-node", "n1")], "n1", "observe", id="another runbook on the right node"
        ),
        pytest.param([no_modes(), site_sets("auto", "reset-gpu", "n1")], "n1", "auto", id="both fit"),
        pytest.param([site_sets("approve"), site_sets("observe", nodes="n1")], "n1", "observe", id="the last setting wins"),
        pytest.param([site_sets("observe", nodes="n1"), site_sets("approve")], "n1", "approve", id="the last, not the narrowest"),
        pytest.param([site_sets("observe"), operator_sets("auto")], "n1", "auto", id="a person's word wins over the site's"),
        pytest.param([operator_sets("observe")], "n1", "observe", id="also the cautious one"),
        pytest.param([operator_sets("observe"), operator_sets("approve")], "n1", "approve", id="the last word of people wins"),
        pytest.param([operator_sets("observe", nodes="sim-*")], "n1", "auto", id="said of other nodes"),
        pytest.param([operator_sets("observe", nodes="sim-*")], "sim-7", "observe", id="said of these nodes"),
        pytest.param([operator_sets("observe", runbook="drain-*")], "n1", "auto", id="said of other runbooks"),
        pytest.param([operator_sets("observe", runbook="reset-*")], "n1", "observe", id="said of this runbook"),
        pytest.param([operator_sets("observe", "reset-gpu", "n2")], "n1", "auto", id="said of this runbook on another node"),
        pytest.param([operator_sets("observe", "drain-node", "n1")], "n1", "auto", id="said of another runbook on this node"),
        pytest.param([shadow()], "n1", "observe", id="a brain in shadow mode observes"),
        pytest.param([shadow(), operator_sets("auto")], "n1", "observe", id="whatever people say"),
        pytest.param([runbook(at_most=Mode.APPROVE)], "n1", "approve", id="auto, but the runbook wants an approval"),
        pytest.param([runbook(at_most=Mode.OBSERVE)], "n1", "observe", id="auto, but the runbook only observes"),
        pytest.param(
            [runbook(at_most=Mode.APPROVE), site_sets("observe")], "n1", "observe", id="the site is stricter than the runbook"
        ),
        pytest.param(
            [runbook(at_most=Mode.APPROVE), operator_sets("auto")], "n1", "approve", id="no person may loosen the runbook"
        ),
    ],
)  # fmt: skip
def test_the_mode_in_force(givens: list[Given], node: str, mode: str) -> None:
    """What a person said last, else the site's last setting that fits runbook and node; never looser than the runbook."""
    cell = Cell(*givens)
    assert modes.mode_of(cell.ctx(), "reset-gpu", node, cell.run.runbook.at_most).value == mode


OBSERVES = wait("mode", "reset-gpu is in observe mode for this node", gates.AGAIN_S)
WANTS_APPROVAL = ask_a_person("mode", "reset-gpu is in approve mode")


@table(
    ("auto", [], None),
    ("observe", [operator_sets("observe")], OBSERVES),
    ("observe, and approved", [operator_sets("observe"), approved()], OBSERVES),
    ("observe, and a person started it", [operator_sets("observe"), started_by("bea")], OBSERVES),
    ("approve", [operator_sets("approve")], WANTS_APPROVAL),
    ("approve, and approved", [operator_sets("approve"), approved()], None),
    ("approve, and a person started it: that is agreement", [operator_sets("approve"), started_by("bea")], None),
    ("approve, and the schedule started it: that is none", [operator_sets("approve"), started_by("schedule")], WANTS_APPROVAL),
    (
        "approve, the schedule started it and a person approved",
        [operator_sets("approve"), started_by("schedule"), approved()],
        None,
    ),
    (
        "approve, and the approval is void",
        [operator_sets("approve"), approved(until=NOW - 1)],
        ask_a_person("mode", "reset-gpu is in approve mode; the approval of bea is void: its time is over"),
    ),
    ("the site wants approval for other nodes", [site_sets("approve", nodes="sim-*")], None),
    ("the runbook wants approval everywhere", [runbook(at_most=Mode.APPROVE)], WANTS_APPROVAL),
)  # fmt: skip
def test_mode(givens: list[Given], answer: Verdict | None) -> None:
    """Observe does nothing, approve needs a person, and a schedule is no person."""
    assert Cell(*givens).asks(gates.mode) == answer


def fans(scope: str) -> Verdict:
    """The answer to a maintenance window."""
    return ask_a_person("maintenance", f"{scope} is in maintenance: new fans")


@table(
    ("no window", [], None),
    ("before it", [in_maintenance("node/n1", NOW + 1, NOW + 100)], None),
    ("at its first moment", [in_maintenance("node/n1", NOW, NOW + 100)], fans("node/n1")),
    ("within it", [in_maintenance("node/n1", NOW - 50, NOW + 50)], fans("node/n1")),
    ("in its last second", [in_maintenance("node/n1", NOW - 100, NOW + 1)], fans("node/n1")),
    ("at its end it is over", [in_maintenance("node/n1", NOW - 100, NOW)], None),
    ("long after it: a window ends", [in_maintenance("node/n1", NOW - 90_000, NOW - 80_000)], None),
    ("its rack's window", [in_maintenance("rack/r1", NOW - 50, NOW + 50)], fans("rack/r1")),
    ("everybody's window", [in_maintenance("all", NOW - 50, NOW + 50)], fans("all")),
    ("another node's window", [in_maintenance("node/n2", NOW - 50, NOW + 50)], None),
    ("another rack's window", [in_maintenance("rack/r2", NOW - 50, NOW + 50)], None),
    ("within it, and approved", [in_maintenance("node/n1", NOW - 50, NOW + 50), approved()], None),
    (
        "within it, and the approval was for later",
        [in_maintenance("node/n1", NOW - 50, NOW + 50), approved(until=NOW - 1)],
        fans("node/n1"),
    ),
    (
        "one is over, the next has begun",
        [in_maintenance("node/n1", NOW - 90, NOW - 50), in_maintenance("rack/r1", NOW - 10, NOW + 50)],
        fans("rack/r1"),
    ),
    (
        "a fabric's run, in a window of one of its nodes",
        [on("fabric/default", ""), in_maintenance("node/n1", NOW - 50, NOW + 50)],
        None,
    ),
)  # fmt: skip
def test_maintenance(givens: list[Given], answer: Verdict | None) -> None:
    """Law 2: while people are at work there, only with an approval; before, after and elsewhere as always."""
    assert Cell(*givens).asks(gates.maintenance) == answer
