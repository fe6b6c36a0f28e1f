"""How fast file servers answer and how full their targets are: what is read, and from when on it is told."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import config_file
from agent.collectors.samples_node import ServerTime, StorageTarget
from agent.collectors.storage import FEW, StorageCollector, StorageOptions
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.base import SourceSetup
from agent.sources.storage import StorageSource, StorageSourceOptions, mountstats
from tests.agent.following import once

# As Linux 5.15 and 6.1 print them (an NFS 4.2 mount beside an NFS 3 one).
MOUNTSTATS = """device sysfs mounted on /sys with fstype sysfs
device 10.0.0.5:/export/home mounted on /home with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t86400
\tcaps:\tcaps=0x3ffbffff,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tbytes:\t4096 8192 0 0 4096 8192 1 2
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 943 1 2 0 7 1024 1024 0 1024 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 9000 0 9000
\t        READ: 10 10 0 1920 41200 3 120 130 0
\t       WRITE: 20 21 0 88000 3840 5 400 420 0
\t        LOCK: 2 2 0 400 300 0 60000 60000 0
\t     GETATTR: 70 70 0 14000 16800 2 30 50 0

device 10.0.0.6:/soft mounted on /soft\\040ware with fstype nfs statvers=1.1
\tper-op statistics
\t        READ: 4 4 0 768 496 0 1 1
device tmpfs mounted on /run with fstype tmpfs
"""
OSC = "work-OST0003-osc-ffff9a1234567800"
FILES = {
    "proc/1/mountstats": MOUNTSTATS,
    "proc/1/mounts": "10.0.0.9@o2ib:10.0.0.10@o2ib:/work /lustre lustre rw,flock 0 0\n",
    f"sys/fs/lustre/osc/{OSC}/kbytestotal": "1000000\n",
    f"sys/fs/lustre/osc/{OSC}/kbytesavail": "150000\n",
    "sys/fs/lustre/osc/other-OST0000-osc-ffff9a12/kbytestotal": "1000000\n",
    "sys/fs/lustre/osc/num_refs": "2\n",
    f"sys/kernel/debug/lustre/osc/{OSC}/stats": (
        "snapshot_time             1764601234.123456789 secs.nsecs\n"
        "req_waittime              5712 samples [usecs] 50 2016000 571200000 123456789012\n"
        "req_active                5712 samples [reqs] 1 10 6000 8000\n"
    ),
}


def machine(root: Path, files: dict[str, str]) -> Host:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(root=root)


async def test_what_is_read(tmp_path: Path) -> None:
    """Each NFS mount with what programs wait for, and the targets of what is mounted here."""
    host = machine(tmp_path, FILES)
    found = await once(StorageSource(host, StorageSourceOptions(storage_interval_s=60.0)))
    assert [replace(one, mono_s=0.0) for one in found if isinstance(one, ServerTime | StorageTarget)] == [
        ServerTime(path="/home", fstype="nfs4", requests=100, waited_ms=600.0),
        ServerTime(path="/soft ware", fstype="nfs", requests=4, waited_ms=1.0),
        StorageTarget(path="/lustre", target="OST0003", total_kb=1_000_000, free_kb=150_000),
        ServerTime(path="/lustre", fstype="lustre", target="OST0003", requests=5712, waited_ms=571_200.0),
    ]


async def test_older_lustre_has_all_below_proc(tmp_path: Path) -> None:
    """As 2.10 and before."""
    files = {
        name.replace("sys/fs", "proc/fs").replace("sys/kernel/debug/lustre", "proc/fs/lustre"): text
        for name, text in FILES.items()
    }
    found = await once(StorageSource(machine(tmp_path, files), StorageSourceOptions(storage_interval_s=60.0)))
    assert [type(one).__name__ for one in found] == [
        "ServerTime",
        "ServerTime",
        "StorageTarget",
        "ServerTime",
    ]


async def test_this_machine_is_read() -> None:
    """It may have neither; its file has the form that is read."""
    assert (Path("/proc/self/mountstats").read_text()).startswith("device ")
    await once(StorageSource(Host(), StorageSourceOptions(storage_interval_s=60.0)))


@pytest.mark.parametrize(("text", "wanted"), [("", False), ("60", True)])
def test_it_is_off_until_it_is_asked_for(tmp_path: Path, text: str, wanted: bool) -> None:
    """No source, no reading."""
    config = config_file.load(None, {"node": "n1"} | ({"storage_interval_s": text} if text else {}))
    assert (StorageSource.of(SourceSetup(host=Host(root=tmp_path), config=config)) is not None) is wanted


@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever a kernel prints."""
    assert len(list(mountstats(MOUNTSTATS + "\n" + text))) >= 2


def times(rows: Iterable[tuple[int, float]]) -> list[ServerTime]:
    """Readings a minute apart; of each: requests since the last one, milliseconds that each took."""
    now = ServerTime(path="/home", fstype="nfs4", requests=0, waited_ms=0.0)
    found = [now]
    for requests, each_ms in rows:
        now = replace(
            now,
            requests=now.requests + requests,
            waited_ms=now.waited_ms + requests * each_ms,
            mono_s=now.mono_s + 60.0,
        )
        found.append(now)
    return found


def told(samples: Iterable[ServerTime | StorageTarget], **options: float) -> list[UnsentEvent]:
    collector = StorageCollector(StorageOptions(**options))
    return [kinds.check(event) for sample in samples for event in collector.feed(sample, sample.mono_s)]


def test_slow_in_three_readings() -> None:
    """Two are a burst; a reading with few requests neither counts nor breaks the row."""
    assert told(times([(100, 150.0)] * 2 + [(100, 3.0)] * 5 + [(100, 150.0)] * 2)) == []
    (event,) = told(times([(100, 150.0), (FEW - 1, 9000.0), (100, 150.0), (0, 0.0), (100, 160.0)]))
    assert (event.kind, event.component, event.severity.value) == ("mount.slow", "mount//home", "warning")
    assert event.data == {"slow": True, "mean_ms": 160.0, "requests": 100, "target": "", "fstype": "nfs4"}


def test_fast_again_at_half_of_the_limit() -> None:
    """At the limit it would come and go; what lasts is told again after an hour."""
    slow = [(100, 150.0)] * 3
    assert [e.data["slow"] for e in told(times([*slow, *[(100, 80.0)] * 10, *[(100, 20.0)] * 3]))] == [
        True,
        False,
    ]
    assert [e.data["slow"] for e in told(times([(100, 150.0)] * 70))] == [True, True]
    assert told(times(slow), storage_slow_ms=0.0) == []
    assert told(times(slow), storage_slow_ms=200.0) == []


def test_mounted_anew_is_no_time() -> None:
    """The counters begin anew: less than before is not compared."""
    before, after = times([(1000, 1.0)] * 2), times([(100, 150.0)] * 2)
    assert told([*before, *(replace(one, mono_s=one.mono_s + 300) for one in after)]) == []


def test_a_target_of_four_fifths() -> None:
    """Each by itself; no longer at three per cent below; each hour."""

    def at(used: int, second: float, target: str = "OST0003") -> StorageTarget:
        return StorageTarget(path="/lustre", target=target, total_kb=100, free_kb=100 - used, mono_s=second)

    found = told([at(79, 0), at(80, 60), at(81, 90, "OST0004"), at(78, 120), at(77, 180), at(76, 240)])
    assert [(e.data["target"], e.data["full"]) for e in found] == [
        ("OST0003", True),
        ("OST0004", True),
        ("OST0003", False),
    ]
    assert len(told([at(90, minute * 60.0) for minute in range(61)])) == 2
    assert told([at(99, 0)], storage_target_percent=0.0) == []
