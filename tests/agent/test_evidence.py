"""Evidence bundles: what a person needs, bounded in every direction."""

import json
import random
import tarfile
from pathlib import Path

import pytest

from agent.actions import evidence
from agent.actions.evidence import EvidenceCollect
from agent.contract.errors import ActionError, Refused
from tests.agent.uplink_kit import Clock, FakeHost


def machine(root: Path) -> Path:
    """A recorded machine with one InfiniBand port, one link, and a kernel log of four records."""
    port = root / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "counters/symbol_error").write_text("17\n")
    (root / "sys/class/net/eth0").mkdir(parents=True)
    (root / "sys/class/net/eth0/operstate").write_text("up\n")
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    (root / "dev").mkdir()
    return root


class Kmsg:
    """/dev/kmsg: one record a read, then EAGAIN; overrun once."""

    def __init__(self, records: list[bytes]) -> None:
        self.records: list[bytes | OSError] = [BrokenPipeError(), *records, BlockingIOError()]

    def read(self, fd: int, size: int) -> bytes:
        """os.read of it."""
        item = self.records.pop(0)
        if isinstance(item, OSError):
            raise item
        return item


def members(folder: Path, name: str) -> dict[str, bytes]:
    """Path → content of a bundle."""
    with tarfile.open(folder / name) as bundle:
        found = {}
        for info in bundle.getmembers():
            content = bundle.extractfile(info)
            assert content is not None
            found[info.name] = content.read()
        return found


async def test_a_bundle_tells_the_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel log of the window, links, InfiniBand state and counters, and what it is about."""
    root = machine(tmp_path / "root")
    (root / "dev/kmsg").write_bytes(b"")
    kmsg = Kmsg(
        [
            b"6,1,100000000,-;long ago\n",
            b"4,2,950000000,-;NVRM: Xid (PCI:0000:3b:00): 79\n SUBSYSTEM=pci\n",
            b"3,3,999000000,-;mlx5_core 0000:17:00.0: link down\n",
            b"rubbish",
        ]
    )
    monkeypatch.setattr("agent.actions.evidence_files.os.read", kmsg.read)
    folder = tmp_path / "evidence"
    action = EvidenceCollect(FakeHost(Clock(mono_s=1000.0), root), folder)
    done = await action.run({"component": "gpu/0000:3b:00", "window_s": 100})
    assert done.evidence == "20260101T000000.000-gpu-0000-3b-00.tar.gz"
    files = members(folder, done.evidence)
    assert json.loads(files["about.json"])["component"] == "gpu/0000:3b:00"
    assert files["kernel.log"].decode().splitlines() == [
        "<4>[   950.000000] NVRM: Xid (PCI:0000:3b:00): 79",
        "<3>[   999.000000] mlx5_core 0000:17:00.0: link down",
    ]
    port = json.loads(files["sys/class/infiniband/mlx5_0/ports/1.json"])
    assert port["state"] == "4: ACTIVE"
    assert port["counters/symbol_error"] == "17"
    assert json.loads(files["sys/class/net/eth0.json"])["operstate"] == "up"
    assert files["proc/meminfo"] == b"MemTotal: 1 kB\n"
    assert (folder / done.evidence).stat().st_mode & 0o077 == 0, "for root only"


async def test_a_bundle_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much the machine has to say, a bundle stays below 8 MiB; the newest kernel lines are kept."""
    root = machine(tmp_path / "root")
    (root / "dev/kmsg").write_bytes(b"")
    noise = random.Random(1)
    for number in range(40):
        (root / f"proc/driver/nvidia/gpus/{number}").mkdir(parents=True)
        (root / f"proc/driver/nvidia/gpus/{number}/information").write_bytes(noise.randbytes(900_000))
    records = [b"6,%d,%d,-;%s\n" % (n, n, noise.randbytes(3500).hex().encode()) for n in range(1500)]
    monkeypatch.setattr("agent.actions.evidence_files.os.read", Kmsg(records).read)
    folder = tmp_path / "evidence"
    action = EvidenceCollect(FakeHost(Clock(mono_s=10.0), root), folder)
    done = await action.run({"component": "node"})
    assert (folder / done.evidence).stat().st_size <= evidence.MAX_BYTES
    files = members(folder, done.evidence)
    assert sum(len(content) for content in files.values()) <= evidence.MAX_BYTES
    assert files["kernel.log"].endswith(records[-1].partition(b";")[2])
    assert files["kernel.log"].startswith(b"<6>[")


async def test_old_bundles_go(tmp_path: Path) -> None:
    """Twenty are kept, the newest; what a killed agent left half done goes too."""
    clock = Clock()
    folder = tmp_path / "evidence"
    action = EvidenceCollect(FakeHost(clock, machine(tmp_path / "root")), folder)
    folder.mkdir()
    (folder / "20200101T000000.000-node.tar.gz.part").write_bytes(b"half")
    made = []
    for day in range(1, 24):
        clock.wall = clock.wall.replace(day=day)
        made.append((await action.run({"component": "node"})).evidence)
    assert sorted(path.name for path in folder.iterdir()) == made[3:]


async def test_what_is_refused(tmp_path: Path) -> None:
    """Odd parameters are refused; a folder that cannot be written is a failure that says so."""
    action = EvidenceCollect(FakeHost(Clock()), tmp_path / "evidence")
    bad: list[dict[str, str | float]] = [
        {"component": "x/../../etc"},
        {"component": "node", "window_s": 0},
        {"component": "node", "window_s": float("nan")},
    ]
    for params in bad:
        with pytest.raises(Refused):
            await action.run(params)
        with pytest.raises(Refused):
            await action.plan(params)
    (tmp_path / "file").write_text("")
    with pytest.raises(ActionError, match="cannot be written"):
        await EvidenceCollect(FakeHost(Clock(), tmp_path), tmp_path / "file" / "x").run({"component": "node"})
