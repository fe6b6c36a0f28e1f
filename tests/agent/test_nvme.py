"""NVMe disks: what their health page says, controllers that refuse or do not answer, and what of it is reported."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.base import CollectorSetup
from agent.collectors.nvme import NvmeCollector
from agent.collectors.samples_node import NvmeHealth
from agent.config import AgentConfig
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.smart_log import PAGE_BYTES, SmartLog, smart_log
from agent.host import Host
from agent.sources.base import SourceSetup
from agent.sources.nvme import NvmeSource, NvmeSourceOptions
from tests.agent.following import once

# Of a disk that is well: 38 degrees Celsius, all of its spare, threshold 10 %, 7 % used.
WELL = bytes((0, *(38 + 273).to_bytes(2, "little"), 100, 10, 7)).ljust(PAGE_BYTES, b"\0")


def page(**changes: int) -> bytes:
    """A page with other values: by the names of the specification's fields."""
    at = {"warning": (0, 1), "kelvin": (1, 2), "spare": (3, 1), "threshold": (4, 1), "used": (5, 1)}
    at |= {"unsafe_shutdowns": (144, 16), "media_errors": (160, 16), "critical_min": (196, 4)}
    made = bytearray(WELL)
    for name, value in changes.items():
        first, size = at[name]
        made[first : first + size] = value.to_bytes(size, "little")
    return bytes(made)


def disk(at_s: float = 0.0, **changes: int) -> NvmeHealth:
    return NvmeHealth(name="nvme0", log=smart_log(page(**changes)), model="PM9A3", serial="S64H", mono_s=at_s)


def events_of(collector: NvmeCollector, *samples: NvmeHealth) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
    return unsent_events


def conditions(unsent: UnsentEvent) -> set[str]:
    """What it says is wrong."""
    return {name for name, value in unsent.data.items() if value is True and name != "answers"} | (
        set() if unsent.data["answers"] else {"silent"}
    )


def test_the_page_of_a_disk_that_is_well() -> None:
    """Each field in its unit."""
    assert smart_log(page(media_errors=2**127, critical_min=90, unsafe_shutdowns=5)) == SmartLog(
        spare_warning=False,
        temperature_warning=False,
        unreliable=False,
        read_only=False,
        unprotected=False,
        temperature_c=38,
        spare_percent=100,
        spare_threshold_percent=10,
        used_percent=7,
        media_errors=2**53 - 1,
        critical_min=90,
    )


@given(st.binary(min_size=PAGE_BYTES, max_size=PAGE_BYTES))
def test_any_page_is_read_and_judged(made: bytes) -> None:
    """Whatever a controller says."""
    events_of(NvmeCollector(), NvmeHealth(name="nvme0", log=smart_log(made)))


@pytest.mark.parametrize("byte", [0x00, 0xFF, 0x5A])
async def test_a_page_that_nobody_filled_says_nothing(tmp_path: Path, byte: int) -> None:
    """Else its zeros clear the counters, and the next page seems to tell of new errors, for which the node is drained; its ones
    are every condition at once.
    """
    pages = [page(media_errors=5), bytes((byte,)) * PAGE_BYTES, page(media_errors=5), page(media_errors=5)]
    watched, collector = source(machine(tmp_path, nvme0="pcie live"), lambda _: pages.pop(0)), NvmeCollector()
    for _ in range(4):
        found = [one for one in await once(watched) if isinstance(one, NvmeHealth)]
        assert events_of(collector, *found) == []


def test_fields_that_say_nothing_are_not_read() -> None:
    """Counters of all ones, a temperature of 0 K, a threshold of spare above 100 %."""
    odd = {"media_errors": 2**128 - 1, "critical_min": 2**32 - 1, "kelvin": 0, "threshold": 255}
    collector = NvmeCollector()
    assert events_of(collector, disk(media_errors=5), disk(600, **odd), disk(1200, media_errors=5)) == []
    assert collector.remembered() == {"S64H": {"media_errors": 5, "critical_temperature_min": 0}}
    (told,) = events_of(collector, disk(1800, warning=1, **odd))
    assert not {"media_errors", "temperature_c"} & told.data.keys()
    assert told.evidence.endswith("spare 100 % (threshold 255 %), 7 % of its life used")


def test_a_page_of_another_length_is_refused() -> None:
    """With its length."""
    with pytest.raises(ValueError, match="512 bytes, not 511"):
        smart_log(bytes(511))


@pytest.mark.parametrize(
    ("changes", "wrong", "severity"),
    [
        ({}, set(), None),
        ({"unsafe_shutdowns": 400, "media_errors": 12, "critical_min": 3}, set(), None),  # its history
        ({"spare": 10}, set(), None),
        ({"spare": 9}, {"spare_low"}, Severity.WARNING),
        ({"spare": 0, "threshold": 0}, set(), None),
        ({"warning": 0x01}, {"spare_low"}, Severity.WARNING),
        ({"warning": 0x02}, {"hot"}, Severity.WARNING),
        ({"warning": 0x04}, {"unreliable"}, Severity.ERROR),
        ({"warning": 0x08}, {"read_only"}, Severity.ERROR),
        ({"warning": 0x10}, {"unprotected"}, Severity.WARNING),
        ({"warning": 0x20}, {"unprotected"}, Severity.WARNING),
        ({"warning": 0xC0}, set(), None),  # bits that have no meaning yet
        ({"used": 99}, set(), None),
        ({"used": 100}, {"worn"}, Severity.WARNING),
        ({"used": 255, "warning": 0x09}, {"worn", "spare_low", "read_only"}, Severity.ERROR),
    ],
)
def test_what_a_page_means(changes: dict[str, int], wrong: set[str], severity: Severity | None) -> None:
    """One event with all of it, or none."""
    found = events_of(NvmeCollector(), disk(**changes))
    assert [(one.kind, conditions(one), one.severity) for one in found] == (
        [("disk.health", wrong, severity)] if wrong else []
    )


def test_a_condition_ends_with_the_second_reading_without_it() -> None:
    """A bit at its limit comes and goes with each reading."""
    hot, cool = disk(warning=0x02), disk()
    found = events_of(NvmeCollector(), cool, hot, cool, hot, cool, cool, cool)
    assert [conditions(one) for one in found] == [{"hot"}, set()]
    assert found[-1].severity is Severity.INFO


def test_what_lasts_is_reported_each_hour_and_what_comes_to_it_at_once() -> None:
    """The brain forgets what is not repeated."""
    samples = [disk(600.0 * n, used=101, warning=0x01 if n >= 8 else 0) for n in range(15)]
    found = events_of(NvmeCollector(), *samples)
    assert [conditions(one) for one in found] == [
        {"worn"},
        {"worn"},
        {"worn", "spare_low"},
        {"worn", "spare_low"},
    ]
    assert found[0].evidence == (
        "nvme0 PM9A3 S64H: its expected life is over; spare 100 % (threshold 10 %), 101 % of its life used, "
        "0 media errors, 38 °C"
    )


def test_another_disk_in_its_place_is_well_at_once() -> None:
    """Known by its serial number; its counters are its own."""
    old = disk(warning=0x08, media_errors=7)
    new = replace(disk(60.0, media_errors=9), serial="S999")
    found = events_of(NvmeCollector(), old, new)
    assert [(conditions(one), one.data["serial"]) for one in found] == [
        ({"read_only"}, "S64H"),
        (set(), "S999"),
    ]


def test_a_controller_that_does_not_answer() -> None:
    """Nothing is known of its disk then: what it said before is neither over nor repeated."""
    ill, silent = disk(used=101), NvmeHealth(name="nvme0", log=None, waited_s=10.0)
    found = events_of(NvmeCollector(), ill, silent, replace(silent, waited_s=70.0), ill)
    assert [conditions(one) for one in found] == [{"worn"}, {"silent"}, {"worn"}]
    assert found[1].data == {"answers": False, "waited_s": 10.0, "model": "", "serial": ""}


def test_counters_that_grow() -> None:
    """Each growth; the first value is history."""
    found = events_of(
        NvmeCollector(),
        disk(media_errors=3, critical_min=10),
        disk(600.0, media_errors=3, critical_min=10),
        disk(1200.0, media_errors=5, critical_min=12),
    )
    assert [(one.kind, one.data["counter"], one.data["delta"], one.severity) for one in found] == [
        ("disk.counter", "media_errors", 2, Severity.ERROR),
        ("disk.counter", "critical_temperature_min", 2, Severity.WARNING),
    ]
    assert found[0].data["interval_s"] == 600.0


def test_what_grew_while_no_agent_ran_is_reported_by_the_next_one() -> None:
    """The disk is known by its serial number; what does not fit in the file is passed over."""
    first = NvmeCollector()
    events_of(first, disk(media_errors=3))
    kept: dict[str, Any] = {**first.remembered(), "damaged": 5, "odd": {"media_errors": "7"}}
    again = NvmeCollector.of(CollectorSetup(remembered={NvmeCollector.remembers: kept}))
    (found,) = events_of(again, replace(disk(5.0, media_errors=4), name="nvme3"))
    assert (found.component, found.data["delta"], found.data["value"]) == ("disk/nvme3", 1, 4)
    assert "interval_s" not in found.data
    assert events_of(again, replace(disk(10.0, media_errors=4), name="nvme3")) == []


# ----- the source


def machine(tmp_path: Path, **controllers: str) -> Host:
    """Controller → `transport state`."""
    for name, words in controllers.items():
        folder = tmp_path / "sys/class/nvme" / name
        folder.mkdir(parents=True)
        transport, state = words.split()
        for file, text in {
            "transport": transport,
            "state": state,
            "model": "PM9A3  ",
            "serial": " S64H",
        }.items():
            (folder / file).write_text(f"{text}\n")
    return Host(root=tmp_path)


def source(host: Host, ask: Callable[[str], bytes], deadline_s: float = 30.0) -> NvmeSource:
    return NvmeSource(host, NvmeSourceOptions(nvme_interval_s=600), ask=ask, deadline_s=deadline_s)


async def test_every_local_controller_that_works_is_asked(tmp_path: Path) -> None:
    """Not those of a storage server, nor one that is reset: its driver lets nobody open it. One without a page is left out."""
    host = machine(tmp_path, nvme0="pcie live", nvme1="pcie resetting", nvme2="tcp live", nvme3="pcie live")
    asked: list[str] = []

    def ask(device: str) -> bytes:
        asked.append(device)
        if device == "/dev/nvme3":
            raise OSError("/dev/nvme3 answered Get Log Page with status 0x4109")
        return WELL

    found = await once(source(host, ask))
    assert sorted(asked) == ["/dev/nvme0", "/dev/nvme3"]
    assert [replace(one, mono_s=0.0) for one in found if isinstance(one, NvmeHealth)] == [disk()]


async def test_who_may_not_ask_is_told_by_an_error(tmp_path: Path) -> None:
    """The supervisor reports it once, with what the source needs."""

    def ask(device: str) -> bytes:
        raise PermissionError(13, "Permission denied", device)

    with pytest.raises(PermissionError):
        await once(source(machine(tmp_path, nvme0="pcie live"), ask))


async def test_a_controller_that_hangs_costs_one_thread(tmp_path: Path) -> None:
    """The others are read each time; it is asked again when the kernel has let it go."""
    go = threading.Event()

    def ask(device: str) -> bytes:
        if device == "/dev/nvme0":
            go.wait(60)
        return WELL

    host = machine(tmp_path, nvme0="pcie live", nvme1="pcie live")
    watched = source(host, ask, deadline_s=0.5)
    for _ in range(2):
        answers = {
            one.name: one.log is not None for one in await once(watched) if isinstance(one, NvmeHealth)
        }
        assert answers == {"nvme0": False, "nvme1": True}
    threads = [thread for thread in threading.enumerate() if thread.name == "nvme nvme0"]
    assert len(threads) == 1
    assert threads[0].daemon
    go.set()
    while threads[0].is_alive():
        await asyncio.sleep(0.001)
    assert all(one.log for one in await once(watched) if isinstance(one, NvmeHealth))


def test_it_is_read_only_where_it_is_asked_for() -> None:
    """A reading wakes a disk, and needs a right that the unit as shipped does not have."""

    def made(**options: float) -> NvmeSource | None:
        return NvmeSource.of(SourceSetup(host=Host(), config=AgentConfig(plugins=options)))

    assert made() is None
    assert made(nvme_interval_s=600.0) is not None
    recorded = Host(root=Path("/recorded"))
    config = AgentConfig(plugins={"nvme_interval_s": 600.0})
    assert NvmeSource.of(SourceSetup(host=recorded, config=config)) is None
