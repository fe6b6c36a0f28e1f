"""File systems: which are queried, one that hangs, one that fails, one that is missing, one that is full."""

import asyncio
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.mount import MountCollector, MountOptions
from agent.collectors.samples_node import Mount
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent
from agent.filesystems import mount_table
from agent.host import Host
from agent.sources.mounts import MountSource, MountSourceOptions
from tests.agent.following import once

MOUNTS = r"""/dev/nvme0n1p2 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
/dev/nvme0n1p2 /var/bind ext4 rw 0 0
/dev/loop3 /snap/core/1 squashfs ro 0 0
/dev/sr0 /images ext4 ro 0 0
10.1.0.5@o2ib:/fs1 /lustre lustre rw,flock 0 0
nfs1:/soft /soft\040ware nfs4 ro 0 0
overlay /var/lib/docker/overlay2/a/merged overlay rw 0 0
nfs1:/pv /var/lib/kubelet/pods/1/volumes/x nfs4 rw 0 0
tmpfs /scratch tmpfs rw 0 0
broken line
"""


def events_of(collector: MountCollector, *samples: Mount) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
    return unsent_events


def test_which_file_systems_are_asked() -> None:
    """Disks and file servers, each once; no images, no containers, no memory, unless the config names it."""
    assert [m.path for m in mount_table.listed(MOUNTS, ())] == ["/", "/lustre", "/soft ware"]
    assert [m.path for m in mount_table.listed(MOUNTS, ("/scratch",))] == [
        "/",
        "/lustre",
        "/soft ware",
        "/scratch",
    ]


@given(st.text(max_size=300))
def test_any_mount_table_is_read(text: str) -> None:
    """An odd line is passed over."""
    assert all(m.path or m.fstype for m in mount_table.listed(text + "\n/dev/sda1 / ext4 rw 0 0", ()))


def mount(
    state: str = "ok", *, used: float = 10, inodes: float = 10, total: int = 10**11, remote: bool = False
) -> Mount:
    return Mount(
        path="/data",
        fstype="lustre" if remote else "ext4",
        remote=remote,
        state=state,
        total_bytes=total,
        free_bytes=round(total * (100 - used) / 100),
        files=1000,
        files_free=round(10 * (100 - inodes)),
    )


def test_a_mount_that_hangs_and_answers_again() -> None:
    """Once each; its fullness is not judged while it hangs."""
    unsent_events = events_of(
        MountCollector(MountOptions()),
        mount(),
        mount("hung"),
        mount("hung"),
        mount("error"),
        mount(),
        mount(),
    )
    assert [(d.component, d.data["state"], d.data["before"], d.severity) for d in unsent_events] == [
        ("mount//data", "hung", "ok", Severity.ERROR),
        ("mount//data", "error", "hung", Severity.ERROR),
        ("mount//data", "ok", "error", Severity.INFO),
    ]


def test_what_lasts_is_reported_each_hour() -> None:
    """The brain forgets what is not repeated; a node that rebooted reports no recovery."""
    hung = [replace(mount("hung"), mono_s=60.0 * minute) for minute in range(121)]
    assert [d.data["before"] for d in events_of(MountCollector(MountOptions()), *hung)] == [
        "ok",
        "hung",
        "hung",
    ]
    full = [replace(mount(used=99), mono_s=60.0 * minute) for minute in range(121)]
    assert [d.data["full"] for d in events_of(MountCollector(MountOptions()), *full)] == [True] * 3


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([mount(used=94.9)], []),
        ([mount(used=95), mount(used=93), mount(used=96), mount(used=91)], ["+bytes", "-bytes"]),
        ([mount(inodes=99), mount(inodes=50)], ["+inodes", "-inodes"]),
        ([mount(used=96, total=10**13)], []),  # 400 GB are left on a local disk
        ([mount(used=96, total=10**16, remote=True)], ["+bytes"]),
        ([mount(total=0)], []),
    ],
)
def test_full_file_systems(samples: list[Mount], says: list[str]) -> None:
    """With a hysteresis; on a large local disk a percentage alone is no need."""
    unsent_events = events_of(MountCollector(MountOptions(disk_full_percent=95.0)), *samples)
    assert [f"{'+' if d.data['full'] else '-'}{d.data['what']}" for d in unsent_events] == says


def test_a_large_disk_at_the_border_is_full_once() -> None:
    """A day of a scratch disk of 2 TB with 64 GiB left, more or less: jobs write and delete. It is over with a quarter more."""
    collector, gib = MountCollector(MountOptions()), 1 << 30

    def told(at_s: float, free: float) -> list[bool]:
        scratch = Mount(
            path="/scratch",
            fstype="xfs",
            remote=False,
            state="ok",
            total_bytes=2000 * gib,
            free_bytes=int(free * gib),
            mono_s=at_s,
        )
        return [bool(one.data["full"]) for one in events_of(collector, scratch)]

    day = [told(30.0 * turn, 64 + (turn * 7 % 29 - 14) / 2) for turn in range(2880)]
    assert sum(day, []) == [True] * 24, "when it begins, and each hour"  # noqa: RUF017  24 short lists
    assert told(90_000, 81) == [False]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """statvfs of /lustre does not return until the event is set; of /soft ware it fails."""
    go = threading.Event()
    real = os.statvfs

    def statvfs(path: Path) -> os.statvfs_result:
        if str(path) == "/lustre":
            go.wait()
        if str(path) == "/soft ware":
            raise OSError(116, "Stale file handle")
        return real("/")

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(Host, "read", lambda *_: MOUNTS)
    yield go
    go.set()


async def test_a_hung_mount_costs_one_thread(hanging: threading.Event) -> None:
    """The others answer; the hung one is reported with its wait, is not queried again, and comes back."""
    source = MountSource(Host(), MountSourceOptions(mount_deadline_s=0.1), expected=("/weka",))
    states = {r.path: r.state for r in await once(source) if isinstance(r, Mount)}
    assert states == {"/weka": "gone", "/": "ok", "/soft ware": "error", "/lustre": "hung"}
    again = {r.path: r for r in await once(source) if isinstance(r, Mount)}
    assert again["/lustre"].state == "hung"
    assert again["/lustre"].waited_s >= 0.1
    assert [thread.name for thread in threading.enumerate() if "/lustre" in thread.name] == [
        "statvfs /lustre"
    ]
    hanging.set()
    for _ in range(6000):
        states = {r.path: r.state for r in await once(source) if isinstance(r, Mount)}
        if states.get("/lustre") == "ok":
            break
        await asyncio.sleep(0.01)
    assert states["/lustre"] == "ok"


async def test_the_root_of_this_machine_is_measured() -> None:
    """As df does."""
    emitted = [
        r
        for r in await once(MountSource(Host(), MountSourceOptions(), expected=("/",)))
        if isinstance(r, Mount)
    ]
    (root,) = [sample for sample in emitted if sample.path == "/"]
    assert root.state == "ok"
    assert 0 <= root.free_bytes <= root.total_bytes
