"""A kernel of its own (QEMU): the agent beside a real RDMA device, nic.reset on cards with devlink, an NVMe disk's health page.
One boot for all.
"""

import pytest

from tests.real import qemu_guest
from tests.real.qemu_guest import OperatorCommand

RDMA, CARDS, DISKS = (
    "tests.real.qemu.rdma",
    "tests.real.qemu.cards",
    "tests.real.qemu.disks",
)  # one more module here is one more script in the guest

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("qemu-system-x86"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(qemu_guest.missing()), reason=qemu_guest.missing() or "-"),
]


@pytest.fixture(scope="module")
def said() -> dict[str, list[OperatorCommand]]:
    """What the scripts printed."""
    return qemu_guest.guest(RDMA, CARDS, DISKS)


@pytest.fixture(scope="module")
def stories(said: dict[str, list[OperatorCommand]]) -> dict[str, OperatorCommand]:
    """By their names."""
    return {row["story"]: row for row in said[CARDS]}


def test_the_port_of_a_real_rdma_device_goes_down_and_comes_back(
    said: dict[str, list[OperatorCommand]],
) -> None:
    """Down with its physical state, up again, the driver's own counter of it; and nothing else about the device."""
    events = [event for event in said[RDMA] if event["component"] == "port/rxe0.1"]
    states = [event for event in events if event["kind"] == "ib.port_state"]
    assert states[0]["data"] == {"state": "DOWN", "before": "ACTIVE", "phys_state": "Disabled"}
    assert states[-1]["data"] == {"state": "ACTIVE", "before": "DOWN", "phys_state": "LinkUp"}
    assert (states[0]["severity"], states[-1]["severity"]) == ("warning", "info")
    # On the way up a slow reader may see it train.
    assert all(event["data"]["phys_state"] == "Polling" for event in states[1:-1])
    (counted,) = [event for event in events if event["kind"] != "ib.port_state"]
    assert counted["kind"] == "ib.errors"
    counter = counted["data"]
    assert (counter["counter"], counter["delta"]) == ("link_downed", 1), "read from hw_counters"


def test_the_agent_says_nothing_else_in_the_guest(said: dict[str, list[OperatorCommand]]) -> None:
    """Its start, its inventory, that there is no NVML, and the two links that really changed; the cards that are broken
    beside it are another story.
    """
    own = [
        event
        for event in said[RDMA]
        if "/card" not in event["component"] and "/0000:" not in event["component"]
    ]
    kinds = {event["kind"] for event in own if not event["kind"].startswith("ib.")}
    assert kinds - {"agent.sources_run"} <= {
        "agent.started",
        "node.inventory",
        "node.inventory.nic",
        "nvml.absent",
        "link.state",
    }
    for link in ("link/v0", "link/v1"):
        states = [event["severity"] for event in own if event["component"] == link]
        # A slow reader may see the two ends of the cable come up one after the other.
        assert (states[0], states[-1]) == ("warning", "info"), link
    assert {event["component"] for event in own if event["kind"] == "link.state"} == {"link/v0", "link/v1"}


@pytest.mark.parametrize(
    ("needs", "last"),
    [
        ("1", "link: card0 down and up"),
        ("2", "health: fw_fatal, tx recovered"),
        ("4", "driver: gwcard reloaded"),
    ],
)
def test_a_card_is_reset_as_gently_as_it_can_be(
    stories: dict[str, OperatorCommand], needs: str, last: str
) -> None:
    """The way that heals it is the last one; then it is as before, and so is another card of the same driver."""
    story = stories[f"needs {needs}"]
    assert story["said"].startswith("0000:00:05.0 is healthy: link: card0 down and up")
    assert story["said"].endswith(last)
    assert story["after"] == {"up": True, "link": True, "mtu": 5000}
    assert story["other"] == {"up": True, "link": True, "mtu": 1500}


def test_every_way_is_tried_before_a_harder_one(stories: dict[str, OperatorCommand]) -> None:
    """And what each came to is said, for the page."""
    said = stories["needs 4"]["said"]
    order = [
        "link:",
        "none of its links",
        "health:",
        "Input/output error",
        "reload: driver initialised",
        "driver:",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places)


def test_a_reload_takes_an_address_that_nobody_gives_back(stories: dict[str, OperatorCommand]) -> None:
    """The card is healthy, but the node is not as it was: that is no success."""
    story = stories["needs 3"]
    assert story["said"].startswith("ActionError: 0000:00:05.0 is healthy, but")
    assert "card0 10.8.0.1/24" in story["said"]
    assert story["after"] == {"up": True, "link": True, "mtu": 5000}


@pytest.mark.parametrize("way", ["link", "driver"])
def test_cut_short_in_the_worst_moment(stories: dict[str, OperatorCommand], way: str) -> None:
    """While the link is down, and while no driver is loaded: all interfaces are back when it has ended."""
    story = stories[f"cancelled at {way}"]
    assert story["cancelled"]
    assert story["after"]["up"]
    assert story["after"]["mtu"] == 5000
    assert story["other"] == {"up": True, "link": True, "mtu": 1500}
    assert story["left"] == 0


def test_the_agent_died_while_no_driver_was_loaded(stories: dict[str, OperatorCommand]) -> None:
    """Its successor loads the driver and sets up what was up; without a note of it nothing is touched."""
    story = stories["died"]
    assert not story["untouched"]
    assert story["after"] == {"up": True, "link": True, "mtu": 5000}
    assert story["other"] == {"up": True, "link": True, "mtu": 1500}
    assert story["left"] == 0


@pytest.mark.parametrize(
    ("component", "why"),
    [
        ("twin", "carries the control path (card1)"),
        ("unknown", "no network card"),
        ("bridge", "no network card"),
        ("loopback", "no network card"),
    ],
)
def test_what_is_refused(stories: dict[str, OperatorCommand], component: str, why: str) -> None:
    """The card of the control path, and what is no card."""
    (said,) = stories[f"plan {component}"]["plan"]
    assert said.startswith("Refused")
    assert why in said


def test_beside_the_control_path_some_ways_are_closed(stories: dict[str, OperatorCommand]) -> None:
    """The other function of its card: no firmware, no driver. Another card of its driver: no driver."""
    closed = {
        name: [step.split()[2].strip(":") for step in stories[f"plan {name}"]["plan"] if "leave out" in step]
        for name in ("one", "other")
    }
    assert closed == {"one": ["health", "driver"], "other": ["driver"]}
    assert "health left out" in stories["beside"]["said"]
    assert stories["beside"]["twin"]["link"], "the control path's function was not touched"


def test_an_mtu_within_the_limits_of_the_driver(stories: dict[str, OperatorCommand]) -> None:
    """mtu.set asks the driver first."""
    assert (
        stories["mtu 9001"]["said"] == "Refused: the driver of card0 takes an MTU from 68 to 9000, not 9001"
    )
    assert stories["mtu 9001"]["after"]["mtu"] == 5000
    assert stories["mtu 9000"]["after"]["mtu"] == 9000


def test_a_disk_that_says_it_is_failing_and_then_that_it_is_well(
    said: dict[str, list[OperatorCommand]],
) -> None:
    """Read from its controller; nothing while it is well."""
    _, failing, well = said[DISKS]
    assert {event["kind"] for event in (failing, well)} == {"disk.health"}
    assert {event["component"] for event in (failing, well)} == {"disk/nvme0"}
    assert (failing["severity"], well["severity"]) == ("error", "info")
    wrong = {name for name, value in failing["data"].items() if value is True}
    assert wrong == {"answers", "unreliable", "read_only"}
    assert {name for name, value in well["data"].items() if value is True} == {"answers"}
    assert (well["data"]["serial"], well["data"]["model"]) == ("DISK-0", "QEMU NVMe Ctrl")
    # As QEMU makes it: 323 K, and it knows nothing of spare, so its threshold is 0 as well.
    assert [well["data"][key] for key in ("temperature_c", "spare_percent", "used_percent")] == [50, 0, 0]


def test_who_may_read_a_health_page(said: dict[str, list[OperatorCommand]]) -> None:
    """The kernel asks for CAP_SYS_ADMIN, which nvme.conf gives the agent's own user; a reading leaves nothing behind."""
    first = said[DISKS][0]
    assert first["rights"] == {"observer": "PermissionError", "with nvme.conf": "512 bytes"}
    assert first["cost"]["grown_kib"] < 512, first["cost"]
