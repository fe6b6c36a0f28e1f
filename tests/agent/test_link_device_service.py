"""Timelines for the collectors of links, devices, services and of the agent's own hearing."""

from collections.abc import Sequence

import pytest

from agent.collectors.agent_health import AgentHealthCollector
from agent.collectors.base import Collector
from agent.collectors.device import DeviceCollector
from agent.collectors.link import LinkCollector
from agent.collectors.samples import Device, LinkState, Overrun, Sample, Unit
from agent.collectors.service import ServiceCollector
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent


def events_of(collector: Collector, samples: Sequence[Sample]) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
        assert unsent.kind in collector.kinds
    return unsent_events


def link(
    flags: str, name: str = "eth0", *, first: bool = False, before: str = "", kind: str = ""
) -> LinkState:
    """`U` set up, `C` carrier, `S` slave of a bond; operstate follows."""
    admin_up, carrier = "U" in flags, "C" in flags
    operstate = "up" if admin_up and carrier else "down"
    return LinkState(
        name=name,
        admin_up=admin_up,
        carrier=carrier,
        slave="S" in flags,
        operstate=operstate,
        first=first,
        before=before,
        kind=kind,
    )


def removed(name: str) -> LinkState:
    return LinkState(name=name, admin_up=False, carrier=False, operstate="down", removed=True)


@pytest.mark.parametrize(
    ("samples", "edges"),
    [
        ([link("UC", first=True), link("U"), link("UC")], ["down", "up"]),
        ([link("UC", first=True), link("U"), link("U"), link("U")], ["down"]),
        (
            [link("UC", first=True), link(""), link("U"), link("UC")],
            ["down", "down", "up"],
        ),  # set up, and then trained
        (
            [link("UC", first=True), link("U"), link("")],
            ["down", "down"],
        ),  # then a person set it down: worth knowing
        ([link("U", first=True), link("U")], []),  # never had a cable
        ([link("U", first=True), link("UC"), link("U")], ["up", "down"]),  # had one since
        ([link("", first=True), link("")], []),
        ([link("", first=True), link("U")], ["down"]),  # set up, no cable yet
        ([link("UC"), link("UC")], []),  # a new interface
        ([link("UC", "lo", first=True), link("U", "lo")], []),
        ([link("UC", "a b", first=True), link("U", "a b")], []),  # a name that no component can have
    ],
)
def test_only_edges_of_links_are_facts(samples: list[Sample], edges: list[str]) -> None:
    """What a link lost or got since the agent knows it; never what it did not have at start."""
    unsent_events = events_of(LinkCollector(), samples)
    assert ["up" if unsent.data["up"] else "down" for unsent in unsent_events] == edges
    assert all((unsent.severity is Severity.INFO) == unsent.data["up"] for unsent in unsent_events)


def test_an_interface_that_is_set_up_again_and_has_no_carrier_says_so() -> None:
    """So that one that stays without a carrier can be told from one that a person keeps down."""
    samples = [link("UC", first=True), link(""), link("U"), link("UC"), link("U")]
    reported = [(d.data["admin_up"], d.data.get("set_up")) for d in events_of(LinkCollector(), samples)]
    assert reported == [(False, None), (True, True), (True, None), (True, None)]


def test_a_slave_reports_that_it_is_one() -> None:
    """Rules go by its bond; without a bond the field is left out."""
    unsent_events = events_of(LinkCollector(), [link("UCS", first=True), link("US"), link("U"), link("UC")])
    assert [unsent.data.get("slave") for unsent in unsent_events] == [True, None]


def test_an_interface_without_a_tracked_state_counts_by_its_carrier() -> None:
    """Interfaces of drivers that report operstate `unknown` are up when they have a carrier."""
    unknown = LinkState(name="tun0", admin_up=True, carrier=True, operstate="unknown", first=True)
    dormant = LinkState(name="tun0", admin_up=True, carrier=True, operstate="dormant")
    assert [d.data["up"] for d in events_of(LinkCollector(), [unknown, dormant, unknown])] == [False, True]


def test_removed_links() -> None:
    """Hardware that vanishes is an error, a container's veth an info; what was never known is nothing."""
    gone = [removed("eth0"), removed("veth1"), removed("x0")]
    unsent_events = events_of(LinkCollector(), [link("UC", "eth0"), link("UC", "veth1", kind="veth"), *gone])
    assert [(d.kind, d.component, d.severity) for d in unsent_events] == [
        ("link.removed", "link/eth0", Severity.ERROR),
        ("link.removed", "link/veth1", Severity.INFO),
    ]


def test_a_renamed_link_stays_the_same_link() -> None:
    """State is kept over a rename: what it lost meanwhile is an edge under the new name."""
    samples = [link("UC", "eth0", first=True), link("U", "ens5", before="eth0"), removed("eth0")]
    assert [(d.component, d.data["up"]) for d in events_of(LinkCollector(), samples)] == [
        ("link/ens5", False)
    ]


def test_ignored_links() -> None:
    """The config's list, with `*` for any rest, is passed over."""
    collector = LinkCollector(ignore=("lo", "veth*"))
    samples = [link("UC", "veth12"), link("U", "veth12"), link("UC", "vet"), link("U", "vet")]
    assert [d.component for d in events_of(collector, samples)] == ["link/vet"]


def counted(changes: int | None, flags: str = "UC", mtu: int = 9000, kind: str = "") -> LinkState:
    """An interface with the kernel's count of its carrier changes."""
    up = "C" in flags
    return LinkState(
        name="eth0",
        admin_up=True,
        carrier=up,
        operstate="up" if up else "down",
        kind=kind,
        mtu=mtu,
        carrier_changes=changes,
    )


@pytest.mark.parametrize(
    ("samples", "unseen"),
    [
        ([counted(2), counted(2)], []),
        ([counted(2), counted(3, "U"), counted(4)], []),  # every change was seen
        ([counted(2), counted(4)], [2]),  # down and up between two samples
        ([counted(2), counted(5, "U")], [2]),
        ([counted(2), counted(None), counted(9)], []),  # an older kernel does not count
        ([counted(9), counted(1)], []),  # another interface under the same name
        ([counted(2, kind="veth"), counted(8, kind="veth")], []),
    ],
)
def test_a_link_that_blinked_unseen(samples: list[Sample], unseen: list[int]) -> None:
    """The kernel merges its messages, and counts all changes."""
    unsent_events = [d for d in events_of(LinkCollector(), samples) if d.kind == "link.carrier_changes"]
    assert [unsent.data["unseen"] for unsent in unsent_events] == unseen


def test_another_mtu() -> None:
    """Reported with both values; an unknown one is not reported."""
    samples = [counted(1), counted(1, mtu=0), counted(1, mtu=1500), counted(1), counted(1, mtu=1500)]
    assert [(d.kind, dict(d.data)) for d in events_of(LinkCollector(), samples)] == [
        ("link.mtu", {"mtu": 9000, "before": 1500}),
        ("link.mtu", {"mtu": 1500, "before": 9000}),
    ]


def gpu(change: str, driver: str = "") -> Device:
    return Device(
        change=change,
        subsystem="pci",
        sysname="0000:3b:00.0",
        pci_class=0x030200,
        vendor=0x10DE,
        driver=driver,
    )


def test_a_gpu_leaves_the_bus_and_comes_back() -> None:
    """Its removal is fatal and names the driver that was bound before; its return is reported as such."""
    unsent_events = events_of(
        DeviceCollector(), [gpu("bind", "nvidia"), gpu("unbind"), gpu("remove"), gpu("add"), gpu("add")]
    )
    assert [(d.kind, d.component, d.severity, dict(d.data)) for d in unsent_events] == [
        ("gpu.removed", "gpu/0000:3b:00", Severity.FATAL, {"driver": "nvidia"}),
        ("gpu.returned", "gpu/0000:3b:00", Severity.INFO, {"by": "udev"}),
        ("device.changed", "pcie/0000:3b:00", Severity.INFO, {"change": "add", "subsystem": "pci"}),
    ]


@pytest.mark.parametrize(
    ("device", "component"),
    [
        (
            Device(change="remove", subsystem="pci", sysname="10000:e1:00.0", vendor=0x144D),
            "pcie/10000:e1:00",
        ),
        (
            Device(
                change="remove", subsystem="pci", sysname="0000:03:00.0", vendor=0x10DE, pci_class=0x068000
            ),
            "pcie/0000:03:00",
        ),
        (Device(change="add", subsystem="net", sysname="eth0"), "link/eth0"),
        (Device(change="remove", subsystem="infiniband", sysname="mlx5_0"), "nic/mlx5_0"),
        (Device(change="remove", subsystem="block", sysname="nvme0n1"), "disk/nvme0n1"),
        (Device(change="remove", subsystem="block", sysname="cciss/c0d0"), "disk/cciss/c0d0"),
        (Device(change="add", subsystem="block", sysname="loop7"), ""),
        (Device(change="change", subsystem="block", sysname="sda"), ""),
        (Device(change="add", subsystem="usb", sysname="1-1"), ""),
        (Device(change="add", subsystem="pci", sysname="odd name"), ""),
        (Device(change="add", subsystem="net", sysname="lo"), ""),
    ],
)
def test_added_and_removed_devices(device: Device, component: str) -> None:
    """Each kind of device has its component; what is made by software or has an odd name is passed over."""
    assert [unsent.component for unsent in events_of(DeviceCollector(), [device])] == (
        [component] if component else []
    )


def unit(active: str, sub: str, result: str = "", *, first: bool = False) -> Unit:
    return Unit(name="nvidia-persistenced.service", active=active, sub=sub, result=result, first=first)


def test_a_service_fails_and_is_started_again() -> None:
    """Every change of the active state is one fact; sub-states on the way are none."""
    samples = [
        unit("active", "running", first=True),
        unit("deactivating", "stop-sigterm"),
        unit("deactivating", "final-sigterm"),
        unit("failed", "failed", "exit-code"),
        unit("activating", "start"),
        unit("active", "running", "success"),
    ]
    unsent_events = events_of(ServiceCollector(), samples)
    assert [(d.data["active"], d.severity) for d in unsent_events] == [
        ("deactivating", Severity.INFO),
        ("failed", Severity.ERROR),
        ("activating", Severity.INFO),
        ("active", Severity.INFO),
    ]
    assert unsent_events[1].component == "service/nvidia-persistenced.service"
    assert unsent_events[1].data["result"] == "exit-code"


def test_at_start_only_a_failed_service_is_a_fact() -> None:
    """Inactive may be how it shall be; failed is not."""
    assert events_of(ServiceCollector(), [unit("inactive", "dead", first=True)]) == []
    (unsent,) = events_of(ServiceCollector(), [unit("failed", "failed", "oom-kill", first=True)])
    assert unsent.severity is Severity.ERROR


def test_a_service_that_systemd_restarts_after_a_crash_is_an_error() -> None:
    """With Restart= the unit never reads `failed`: the sub-state shows it."""
    samples = [unit("active", "running", first=True), unit("activating", "auto-restart", "signal")]
    (unsent,) = events_of(ServiceCollector(), samples)
    assert (unsent.severity, unsent.data["sub"]) == (Severity.ERROR, "auto-restart")


def test_an_overrun_of_the_kernel_log_is_reported() -> None:
    """Silence after an overrun is no health: the loss is an event with its number."""
    (unsent,) = events_of(AgentHealthCollector(), [Overrun(lost=15904, mono_s=1.0)])
    assert (unsent.component, unsent.data) == ("node", {"lost": 15904})
