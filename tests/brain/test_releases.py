"""One fault on ever more nodes that share a version is a fault of the version (decision 56)."""

from dataclasses import replace

import pytest

from agent.contract.messages import Severity
from brain.core.faults import releases
from brain.core.faults.fisher import p_at_least
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.state import Incident, IncidentState
from tests.brain.healthy_months import Month, false_alarms
from tests.brain.world import Story
from tests.shipped import shipped_pack

WHOLE = shipped_pack()
SHIPPED = replace(WHOLE, runbooks=tuple(replace(one, every_s=0) for one in WHOLE.runbooks))  # no inspections
COMPILED = Compiled(SHIPPED)
HOUR = 3600.0
DAY = 24 * HOUR
NEW, OLD = "580.82.07", "550.90.07"


def tells(story: Story, at: float, node: str, driver: str, **more: str) -> None:
    """A node reports what it is made of."""
    story.event(
        at, "node.inventory", node=node, digest=driver, changed=False, kernel=more.get("kernel", "5.15.0"), driver=driver,
        gpus=8, gpu_models="8 NVIDIA H100 80GB HBM3", nics=9, nic_firmware="9 MT4129 28.39.1002", cpus=192,
        memory_mb=2063880, product="G593-SD0", bios="F17",
    )  # fmt: skip


def cell(new: int = 45, nodes: int = 200) -> Story:
    """The shipped rules in auto mode; the first `new` nodes have the newer driver."""
    story = Story(replace(SHIPPED, settings=Settings(modes=(ModeSetting(mode=Mode.AUTO),))), heals=False)
    for number in range(nodes):
        tells(story, 1 + number / 10, f"n{number}", NEW if number < new else OLD)
    return story


def xid(story: Story, at: float, node: str, code: int = 119) -> None:
    """The GSP of a GPU does not answer."""
    story.event(
        at, "gpu.xid", "gpu/0000:3b:00", node=node, code=code, name="GSP_RPC_TIMEOUT", severity=Severity.FATAL, action="RESET_GPU"
    )  # fmt: skip


def suspected(story: Story) -> list[Incident]:
    """The incidents of a version."""
    return story.incidents("release-suspected")


def test_ever_more_nodes_with_one_driver() -> None:
    """The fifth makes it the driver's: one incident, in words, one page; no further node is reset for it."""
    story = cell()
    for number in range(5):
        xid(story, DAY * (1 + number * 1.2), f"n{number * 5}")
    story.run(7 * DAY)
    (found,) = suspected(story)
    assert (found.scope, found.node, found.runbook) == (f"release/driver/{NEW}", "", "")
    text = found.evidence[0].text
    assert text.startswith(
        "5 of 45 nodes with GPU driver 580.82.07 had XID 119 within 5 days, and 0 of 155 with others"
    )
    assert "p = 0.0005, 2 questions asked" in text
    xid(story, 7 * DAY + 10, "n39")
    story.run(7 * DAY + 2 * HOUR)
    assert not any(step.step.node == "n39" for step in story.performed)
    told = [
        (page.subject.scope, page.what) for page in story.time.pages if page.subject.cause != "fleet-drift"
    ]
    assert told.count((found.scope, "open")) == 1
    assert not any(scope.startswith("gpu/n39/") for scope, _ in told)
    assert suspected(story)[0].nodes == 6
    story.run(40 * DAY)
    assert suspected(story)[0].state is IncidentState.CLOSED
    assert story.engine.state.fault_free()


def test_a_node_without_the_version_is_healed_as_ever() -> None:
    """The version explains what its own nodes show, and nothing else."""
    story = cell()
    for number in range(5):
        xid(story, DAY * (1 + number), f"n{number * 5}")
    xid(story, 6 * DAY, "n150")
    story.run(6 * DAY + HOUR)
    assert suspected(story)
    assert any(step.step.node == "n150" for step in story.performed)


def test_what_falls_ill_together_counts_once() -> None:
    """A job that ends badly on twelve nodes with one driver says nothing of the driver."""
    story = cell()
    for number in range(3):
        xid(story, DAY * (1 + number), f"n{number}")
    for number in range(12):
        xid(story, 5 * DAY + number, f"n{20 + number}")
    story.run(6 * DAY)
    assert not suspected(story)


def test_nodes_of_both_kinds() -> None:
    """Where the others fall ill as often, no version is suspected."""
    story = cell()
    for number in range(12):
        xid(story, DAY * (1 + number / 2), f"n{number * 16}")
    story.run(9 * DAY)
    assert not suspected(story)


def test_a_roll_out_by_people() -> None:
    """Nodes that fall ill while they are upgraded, one a minute, had the version before when they did."""
    story = cell(new=0)
    for number in range(45):
        at = DAY + number * 60
        if number % 4 == 0:
            xid(story, at, f"n{number}")
        tells(story, at + 300, f"n{number}", "")  # it boots, and its driver is not loaded yet
        tells(story, at + 320, f"n{number}", NEW)
    story.run(3 * DAY)
    assert not suspected(story)


def test_a_reboot_forgets_no_version() -> None:
    """A node that tells no driver while it boots has the one that it had, and what happened to it counts."""
    story = cell()
    for number in range(5):
        at = DAY * (1 + number)
        xid(story, at, f"n{number * 5}")
        tells(story, at + 600, f"n{number * 5}", "")
        tells(story, at + 700, f"n{number * 5}", NEW)
    story.run(7 * DAY)
    assert len(suspected(story)) == 1


def test_people_roll_it_back() -> None:
    """With the last node that has the version its incident is over."""
    story = cell()
    for number in range(5):
        xid(story, DAY * (1 + number), f"n{number * 5}")
    story.run(6 * DAY)
    for number in range(45):
        tells(story, 6 * DAY + number * 60, f"n{number}", OLD)
    story.run(6 * DAY + 2 * HOUR)
    assert suspected(story)[0].state is IncidentState.CLOSED
    assert not suspected(story)[0].unproven


def test_who_closes_it_is_not_asked_again_within_a_week() -> None:
    """The nodes are healed one by one from then on."""
    story = cell()
    for number in range(5):
        xid(story, DAY * (1 + number), f"n{number * 5}")
    story.run(6 * DAY)
    story.say(6 * DAY, "close", id=suspected(story)[0].id)
    xid(story, 7 * DAY, "n31")
    story.run(7 * DAY + HOUR)
    assert [one.state for one in suspected(story)] == [IncidentState.CLOSED]
    assert any(step.step.node == "n31" for step in story.performed)


def test_one_node_neither_makes_nor_hides_it() -> None:
    """It may say what it will, of every XID: it is one node (law 15)."""
    story = cell()
    for number in range(60):
        xid(story, DAY + number * 600, "n1", code=40 + number)
    story.run(2 * DAY)
    assert not suspected(story)
    for code in range(5000):
        xid(story, 2 * DAY + code, "n150", code=1000 + code)
    for number in range(6):
        xid(story, DAY * (3 + number), f"n{number * 5}")
    xid(story, 8 * DAY, "n150")
    story.run(9 * DAY)
    assert [one.scope for one in suspected(story)] == [f"release/driver/{NEW}"]
    assert len(story.engine.state.ill) <= releases.MAX_ALONE + 70


@pytest.mark.parametrize(
    "month", [*(Month(seed=n, nodes=256) for n in range(18)), *(Month(seed=n, nodes=1024) for n in (1, 2))]
)
def test_a_healthy_month(month: Month) -> None:
    """Chance alone, heavy tails and roll-outs suspect no version."""
    assert false_alarms(COMPILED, month) == []


def test_a_month_with_a_bad_driver() -> None:
    """The same months are no excuse: a fault on every fifth node with one driver is seen."""
    assert any("driver" in text for text in false_alarms(COMPILED, Month(seed=1, nodes=256, bad="570.10")))


@pytest.mark.parametrize(
    ("counts", "p"),
    [((7, 40, 0, 160), 8.17e-06), ((5, 10, 5, 10), 0.6719), ((0, 5, 3, 5), 1.0), ((3, 3, 0, 3), 0.05)],
)
def test_fishers_exact_test(counts: tuple[int, int, int, int], p: float) -> None:
    """The values of scipy.stats.fisher_exact(alternative="greater")."""
    assert p_at_least(*counts) == pytest.approx(p, rel=1e-3)
