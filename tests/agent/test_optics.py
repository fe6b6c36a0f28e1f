"""Optical modules: what is reported of what they say, and how they are asked, also of this machine's kernel."""

import asyncio
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.optics import OpticsCollector, dbm
from agent.collectors.samples_node import Optics
from agent.config import AgentConfig
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.optics import module_of
from agent.contract.optics_cmis import LANES
from agent.contract.optics_module import HALF_BYTES, LOWER, UPPER, Half
from agent.host import Host
from agent.shared.module_memory import read_half, request
from agent.sources.base import SourceSetup
from agent.sources.optics import OpticsSource, OpticsSourceOptions
from tests.agent.following import once
from tests.contract.optics_memories import OSFP, OSFP_COPPER, QSFP, SFP, SFP_COPPER, Memory, changed

RECEIVE_LOW = changed(OSFP, LANES, 150, 0x02)
BIAS_HIGH = changed(OSFP, LANES, 143, 0x04)
HOT = changed(OSFP, LOWER, 9, 0x01)


def sample(memory: Memory, at_s: float = 0.0) -> Optics:
    module = module_of(memory)
    assert module is not None
    return Optics(link="eth2", module=module, port="mlx5_2.1", mono_s=at_s)


def events_of(collector: OpticsCollector, *samples: Optics, kind: str = "optics.module") -> list[UnsentEvent]:
    unsent_events = [unsent for one in samples for unsent in collector.feed(one, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
    return [unsent for unsent in unsent_events if unsent.kind == kind]


def conditions(unsent: UnsentEvent) -> set[str]:
    """What it says is wrong."""
    return {name for name in ("receive_low", "laser_dying", "hot", "other") if unsent.data[name]}


@pytest.mark.parametrize(
    ("memory", "wrong"),
    [
        (OSFP, set()),
        (OSFP_COPPER, set()),
        (RECEIVE_LOW, {"receive_low"}),
        (changed(OSFP, LANES, 152, 0x02), set()),  # a warning
        (changed(RECEIVE_LOW, LANES, 147, 0x02), {"receive_low"}),  # that lane gets no light at all
        (changed(changed(OSFP, LANES, 150, 0x0F), LANES, 147, 0x0F), set()),  # nobody sends any
        (changed(OSFP, LANES, 149, 0x01), {"other"}),
        (BIAS_HIGH, {"laser_dying"}),
        (changed(OSFP, LANES, 140, 0x01), {"laser_dying"}),
        (changed(OSFP, LANES, 135, 0x01), {"laser_dying"}),
        (changed(OSFP, LANES, 144, 0x01), {"other"}),
        (HOT, {"hot"}),
        (changed(OSFP, LOWER, 9, 0x32), {"other"}),
        (changed(QSFP, LOWER, 3, 0x0F), set()),
        (changed(QSFP, LOWER, 3, 0x01), {"receive_low"}),
    ],
)
def test_what_a_module_says_is_told(memory: Memory, wrong: set[str]) -> None:
    """One event with all of it, or none."""
    found = events_of(OpticsCollector(), sample(memory))
    assert [(conditions(one), one.severity) for one in found] == (
        [(wrong, Severity.WARNING)] if wrong else []
    )


def test_a_person_reads_what_it_is_in_one_line() -> None:
    """Which module, what is beyond its limit, and what it measures."""
    memory = changed(changed(changed(RECEIVE_LOW, LANES, 188, 0x02), LANES, 189, 0xF7), LANES, 145, 0x08)
    (found,) = events_of(OpticsCollector(), sample(memory))
    assert (found.kind, found.component) == ("optics.module", "link/eth2")
    assert found.evidence == (
        "eth2 NVIDIA MMS4X00-NS MT2321FT00042: it receives too little light; alarms: receive_low on lane 2; "
        "warnings: bias_high on lane 4; temperature_c 51.5; receive_dbm -11.2; transmit_dbm 1.3; bias_ma 90.4"
    )
    assert (found.data["receive_dbm"], found.data["port"], found.data["cable"]) == (-11.2, "mlx5_2.1", False)


def test_a_condition_ends_with_the_second_reading_without_it() -> None:
    """A value at its limit comes and goes."""
    well = sample(OSFP)
    found = events_of(OpticsCollector(), well, sample(HOT), well, sample(HOT), well, well, well)
    assert [conditions(one) for one in found] == [{"hot"}, set()]
    assert found[-1].severity is Severity.INFO


def test_what_lasts_is_told_each_hour_and_what_comes_to_it_at_once() -> None:
    """The brain forgets what is not repeated."""
    both = changed(BIAS_HIGH, LANES, 150, 0x02)
    found = events_of(
        OpticsCollector(), *(sample(both if n >= 8 else BIAS_HIGH, 600.0 * n) for n in range(15))
    )
    assert [conditions(one) for one in found] == [
        *[{"laser_dying"}] * 2,
        *[{"laser_dying", "receive_low"}] * 2,
    ]


def test_another_module_in_its_place_begins_afresh() -> None:
    """What was said of the old one is over at once; both are named."""
    new = changed(OSFP, UPPER, 178, ord("9"))
    collector = OpticsCollector()
    found = [one for memory in (RECEIVE_LOW, new, new) for one in collector.feed(sample(memory), 0.0)]
    assert [(one.kind, one.data["serial"]) for one in found] == [
        ("node.inventory.module", "MT2321FT00042"),
        ("optics.module", "MT2321FT00042"),
        ("node.inventory.module", "MT2321FT00049"),
        ("optics.module", "MT2321FT00049"),
    ]
    assert conditions(found[3]) == set()


def test_a_cable_is_named() -> None:
    """Its serial number is the same at the other end."""
    (found,) = events_of(OpticsCollector(), sample(OSFP_COPPER), kind="node.inventory.module")
    assert found.data == {
        "vendor": "NVIDIA",
        "part": "MCP4Y10-N001",
        "serial": "MT2247VS05512",
        "revision": "A4",
        "layout": "CMIS",
        "copper": True,
        "cable": True,
        "port": "mlx5_2.1",
    }


_HALVES = st.binary(min_size=HALF_BYTES, max_size=HALF_BYTES)


@given(st.sampled_from((0x03, 0x11, 0x19)), _HALVES, _HALVES, _HALVES, _HALVES)
def test_any_memory_is_judged(
    identifier: int, lower: bytes, upper: bytes, third: bytes, fourth: bytes
) -> None:
    """Whatever a module says."""
    memory = {LOWER: bytes((identifier,)) + lower[1:], UPPER: upper}
    memory |= {half: third for half in SFP if half not in memory}
    memory |= {half: fourth for half in OSFP if half not in memory}
    events_of(OpticsCollector(), sample(memory))


def test_power_as_people_compare_it() -> None:
    """No light at all is the least that modules print."""
    assert [dbm(power) for power in (1000.0, 500.0, 0.05, 0.0)] == [0.0, -3.0, -40.0, -40.0]


# ----- the source


def machine(tmp_path: Path, **links: str) -> Host:
    """Interface → its flags, and `vf` for a virtual function, `rdma` for one with such a device, `no` for none of a device."""
    for link, words in links.items():
        folder = tmp_path / "sys/class/net" / link
        folder.mkdir(parents=True)
        flags, _, kind = words.partition(" ")
        (folder / "flags").write_text(f"{flags}\n")
        (folder / "dev_port").write_text("1\n")
        if kind != "no":
            (folder / "device").mkdir()
            (folder / "device/vendor").write_text("0x15b3\n")
        if kind == "vf":
            (folder / "device/physfn").mkdir()
        if kind == "rdma":
            (folder / "device/infiniband/mlx5_2").mkdir(parents=True)
    return Host(root=tmp_path)


def source(host: Host, ask: Callable[[str, Half], bytes], deadline_s: float = 30.0) -> OpticsSource:
    options = OpticsSourceOptions(optics_interval_s=600)
    return OpticsSource(host, options, ask=ask, deadline_s=deadline_s, confirm_s=0.0)


async def test_modules_of_interfaces_that_are_set_up_are_read(tmp_path: Path) -> None:
    """Not of bridges, virtual functions, or what is set down; drivers without such a memory are left out."""
    host = machine(
        tmp_path, eth0="0x1003", eth1="0x1002", eth2="0x1003 rdma", eth3="0x1003 vf", br0="0x1003 no", eth4="broken"
    )  # fmt: skip
    asked: list[tuple[str, Half]] = []

    def ask(link: str, half: Half) -> bytes:
        asked.append((link, half))
        if link == "eth0":
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return OSFP[half]

    found = await once(source(host, ask))
    assert [replace(one, mono_s=0.0) for one in found if isinstance(one, Optics)] == [
        replace(sample(OSFP), port="mlx5_2.2")
    ]
    assert asked.count(("eth0", LOWER)) == 1
    assert {link for link, _ in asked} == {"eth0", "eth2"}


async def test_copper_is_told_apart_by_few_questions(tmp_path: Path) -> None:
    """The bus is slow, and the kernel's lock is held meanwhile."""
    memories = {"eth0": SFP_COPPER, "eth1": OSFP_COPPER}
    asked: list[tuple[str, Half]] = []

    def ask(link: str, half: Half) -> bytes:
        asked.append((link, half))
        return memories[link][half]

    found = await once(source(machine(tmp_path, eth0="0x1003", eth1="0x1003"), ask))
    assert all(one.module.copper for one in found if isinstance(one, Optics))
    assert sorted(asked) == [("eth0", LOWER), ("eth1", LOWER), ("eth1", UPPER)]


async def test_a_flag_that_was_only_kept_is_not_told(tmp_path: Path) -> None:
    """Reading takes it away; what is still so sets it again, and the second reading counts."""
    readings = {"eth0": [HOT, OSFP], "eth1": [HOT, HOT]}

    def ask(link: str, half: Half) -> bytes:
        memory = readings[link][0]
        if half == LANES:  # the last half of a reading
            readings[link].pop(0)
        return memory[half]

    found = await once(source(machine(tmp_path, eth0="0x1003", eth1="0x1003"), ask))
    assert {one.link: bool(one.module.flags) for one in found if isinstance(one, Optics)} == {
        "eth0": False,
        "eth1": True,
    }
    assert readings == {"eth0": [], "eth1": []}


async def test_who_may_not_read_modules_is_told_by_an_error(tmp_path: Path) -> None:
    """The supervisor reports it once, with what the source needs."""

    def ask(link: str, half: Half) -> bytes:
        raise PermissionError(errno.EPERM, "Operation not permitted", f"{link} {half}")

    with pytest.raises(PermissionError):
        await once(source(machine(tmp_path, eth0="0x1003"), ask))


async def test_a_module_that_hangs_costs_one_thread(tmp_path: Path) -> None:
    """The others are read each time; it is asked again when it has answered."""
    go = threading.Event()

    def ask(link: str, half: Half) -> bytes:
        if link == "eth0":
            go.wait(60)
        return OSFP[half]

    watched = source(machine(tmp_path, eth0="0x1003", eth1="0x1003"), ask, deadline_s=0.5)
    for _ in range(2):
        assert [one.link for one in await once(watched) if isinstance(one, Optics)] == ["eth1"]
    threads = [thread for thread in threading.enumerate() if thread.name == "optics eth0"]
    assert len(threads) == 1
    assert threads[0].daemon
    go.set()
    while threads[0].is_alive():
        await asyncio.sleep(0.001)
    assert len(await once(watched)) == 2


def test_modules_are_read_only_where_it_is_asked_for() -> None:
    """A reading needs a right that the unit as shipped does not have."""

    def made(root: Path, **options: float) -> OpticsSource | None:
        return OpticsSource.of(SourceSetup(host=Host(root=root), config=AgentConfig(plugins=options)))

    assert made(Path("/")) is None
    assert made(Path("/"), optics_interval_s=600.0) is not None
    assert made(Path("/recorded"), optics_interval_s=600.0) is None


# ----- the kernel


def test_the_message_is_as_the_kernel_declares_it() -> None:
    """include/uapi/linux/ethtool_netlink.h: the nested header with the device's name, then five numbers."""
    assert request("eth2", Half(0x51, 3, 128)) == b"".join(
        (
            bytes((31, 1, 0, 0)),
            struct.pack("=HHHH", 16, 0x8001, 9, 2) + b"eth2\0\0\0\0",
            struct.pack("=HHI", 8, 2, 128) + struct.pack("=HHI", 8, 3, 128),
            *(struct.pack("=HHBxxx", 5, kind, value) for kind, value in ((4, 3), (5, 0), (6, 0x51))),
        )
    )


def _refusal(link: str) -> int | None:
    with pytest.raises(OSError) as refused:
        read_half(link, LOWER)
    return refused.value.errno


def test_this_kernel_knows_the_question() -> None:
    """A loopback device has no module; without the right it is not even looked for."""
    assert _refusal("lo") == (errno.EOPNOTSUPP if os.geteuid() == 0 else errno.EPERM)


@pytest.mark.skipif(os.geteuid() != 0, reason="others may not ask at all")
def test_an_interface_that_is_not_there() -> None:
    """Said so by the kernel; a name that is too long for one is never cut."""
    assert _refusal("gone0") == errno.ENODEV
    assert _refusal("a-name-that-is-too-long") == errno.ENODEV
    assert all(_refusal(name) is not None for _, name in socket.if_nameindex() if name.startswith("veth"))
