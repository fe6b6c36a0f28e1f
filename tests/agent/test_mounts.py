"""File systems: which are asked, one that hangs, one that fails, one that is missing, one that is full."""

import asyncio
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import mount_table
from agent.collectors.mount import MountCollector
from agent.collectors.readings_node import Mount
from agent.contract import kinds
from agent.contract.messages import Draft, Severity
from agent.host import Host
from agent.sources.mounts import MountSource
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


def told(collector: MountCollector, *readings: Mount) -> list[Draft]:
    drafts = [draft for reading in readings for draft in collector.feed(reading, 0.0)]
    for draft in drafts:
        kinds.check(draft)
    return drafts


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
    drafts = told(MountCollector(), mount(), mount("hung"), mount("hung"), mount("error"), mount(), mount())
    assert [(d.component, d.data["state"], d.data["before"], d.severity) for d in drafts] == [
        ("mount//data", "hung", "ok", Severity.ERROR),
        ("mount//data", "error", "hung", Severity.ERROR),
        ("mount//data", "ok", "error", Severity.INFO),
    ]


def test_what_lasts_is_said_each_hour() -> None:
    """The brain lets go of what nobody repeats; a node that rebooted has nothing to take back."""
    hung = [replace(mount("hung"), mono_s=60.0 * minute) for minute in range(121)]
    assert [d.data["before"] for d in told(MountCollector(), *hung)] == ["ok", "hung", "hung"]
    full = [replace(mount(used=99), mono_s=60.0 * minute) for minute in range(121)]
    assert [d.data["full"] for d in told(MountCollector(), *full)] == [True] * 3


@pytest.mark.parametrize(
    ("readings", "says"),
    [
        ([mount(used=94.9)], []),
        ([mount(used=95), mount(used=93), mount(used=96), mount(used=91)], ["+bytes", "-bytes"]),
        ([mount(inodes=99), mount(inodes=50)], ["+inodes", "-inodes"]),
        ([mount(used=96, total=10**13)], []),  # 400 GB are left on a local disk
        ([mount(used=96, total=10**16, remote=True)], ["+bytes"]),
        ([mount(total=0)], []),
    ],
)
def test_full_file_systems(readings: list[Mount], says: list[str]) -> None:
    """With a hysteresis; on a large local disk a percentage alone is no need."""
    drafts = told(MountCollector(full_percent=95.0), *readings)
    assert [f"{'+' if d.data['full'] else '-'}{d.data['what']}" for d in drafts] == says


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """statvfs of /lustre does not return until the event is set; of /soft ware it fails."""
    go = threading.Event()
    real = os.statvfs

    def statvfs(path: Path) -> os.statvfs_result:
        if str(path) == "/lustre":
            go.wait(20)
        if str(path) == "/soft ware":
            raise OSError(116, "Stale file handle")
        return real("/")

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(Host, "read", lambda *_: MOUNTS)
    yield go
    go.set()


async def test_a_hung_mount_costs_one_thread(hanging: threading.Event) -> None:
    """The others answer; the hung one is said with its wait, is not asked again, and comes back."""
    source = MountSource(Host(), expected=("/weka",), deadline_s=0.1)
    states = {r.path: r.state for r in await once(source) if isinstance(r, Mount)}
    assert states == {"/weka": "gone", "/": "ok", "/soft ware": "error", "/lustre": "hung"}
    again = {r.path: r for r in await once(source) if isinstance(r, Mount)}
    assert again["/lustre"].state == "hung"
    assert again["/lustre"].waited_s >= 0.1
    assert [thread.name for thread in threading.enumerate() if "/lustre" in thread.name] == [
        "statvfs /lustre"
    ]
    hanging.set()
    for _ in range(200):
        states = {r.path: r.state for r in await once(source) if isinstance(r, Mount)}
        if states.get("/lustre") == "ok":
            break
        await asyncio.sleep(0.01)
    assert states["/lustre"] == "ok"


async def test_the_root_of_this_machine_is_measured() -> None:
    """As df does."""
    heard = [r for r in await once(MountSource(Host(), expected=("/",))) if isinstance(r, Mount)]
    (root,) = [reading for reading in heard if reading.path == "/"]
    assert root.state == "ok"
    assert 0 <= root.free_bytes <= root.total_bytes
