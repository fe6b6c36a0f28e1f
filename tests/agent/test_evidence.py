"""Evidence bundles: what a person needs, bounded in every direction."""

import asyncio
import gzip
import json
import os
import random
import tarfile
import time
from pathlib import Path

import pytest

from agent.actions import evidence_collect
from agent.actions.bundle_folder import BundleFolder
from agent.actions.evidence_collect import EvidenceCollect
from agent.actions.evidence_tools import NAMES, EvidenceTools
from agent.config import EVIDENCE_TOOLS
from agent.contract.errors import ActionError, Refused
from agent.host import Host
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
    action = collect(FakeHost(Clock(mono_s=1000.0), root), folder)
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
    action = collect(FakeHost(Clock(mono_s=10.0), root), folder)
    done = await action.run({"component": "node"})
    assert (folder / done.evidence).stat().st_size <= evidence_collect.MAX_BYTES
    files = members(folder, done.evidence)
    assert sum(len(content) for content in files.values()) <= evidence_collect.MAX_BYTES
    assert files["kernel.log"].endswith(records[-1].partition(b";")[2])
    assert files["kernel.log"].startswith(b"<6>[")


async def test_old_bundles_go(tmp_path: Path) -> None:
    """Twenty are kept, the newest; what a killed agent left half done goes too."""
    clock = Clock()
    folder = tmp_path / "evidence"
    action = collect(FakeHost(clock, machine(tmp_path / "root")), folder)
    folder.mkdir()
    (folder / "20200101T000000.000-node.tar.gz.part").write_bytes(b"half")
    made = []
    for day in range(1, 24):
        clock.wall = clock.wall.replace(day=day)
        made.append((await action.run({"component": "node"})).evidence)
    assert sorted(path.name for path in folder.iterdir()) == made[3:]


async def test_what_is_refused(tmp_path: Path) -> None:
    """Odd parameters are refused; a folder that cannot be written is a failure that says so."""
    action = collect(FakeHost(Clock()), tmp_path / "evidence")
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
        await collect(FakeHost(Clock(), tmp_path), tmp_path / "file" / "x").run({"component": "node"})


def collect(host: Host, folder: Path, tools: EvidenceTools | None = None) -> EvidenceCollect:
    """The action with a folder of its own."""
    return EvidenceCollect(host, BundleFolder(host, folder), tools)


def script(path: Path, text: str) -> str:
    """A stand-in for a tool that is not here: a program at an absolute path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_every_tool_has_a_place_in_the_configuration() -> None:
    """And only those."""
    assert set(EVIDENCE_TOOLS) == NAMES


async def test_about_a_gpu_its_tools_are_asked_and_a_report_is_made(tmp_path: Path) -> None:
    """What nvidia-smi says, also when it fails; NVIDIA's report is packed along; a tool that hangs costs its time only."""
    smi = script(
        tmp_path / "nvidia-smi", 'echo "asked $@"; [ "$1" != nvlink ] || { echo "no link" >&2; exit 6; }'
    )
    report = script(
        tmp_path / "nvidia-bug-report.sh",
        '[ "$1 $2" = "--safe-mode --output-file" ] && echo all | gzip > "$3.gz"',
    )
    tools = EvidenceTools(paths={"nvidia-smi": smi, "nvidia-bug-report": report, "nft": ""})
    folder = tmp_path / "evidence"
    action = collect(FakeHost(Clock()), folder, tools)
    assert (await action.plan({"component": "gpu/0000:3b:00"}))[
        -1
    ] == "nvidia-bug-report --safe-mode, for at most 60 s"
    files = members(folder, (await action.run({"component": "gpu/0000:3b:00"})).evidence)
    assert files["tools/nvidia-smi-q.txt"] == b"asked -q\n"
    assert gzip.decompress(files["nvidia-bug-report.log.gz"]) == b"all\n"
    how = json.loads(files["about.json"])["tools"]
    assert how["nvidia-smi -q"] == "ok"
    assert how["nvidia-smi nvlink -s"] == "status 6: no link"
    assert how["nvidia-bug-report"] == "ok"
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".tar.gz")] == []
    assert "tools/nvidia-smi-q.txt" not in members(
        folder, (await action.run({"component": "link/eth0"})).evidence
    )


@pytest.mark.parametrize(
    ("text", "report_s", "says"),
    [
        ('head -c 70000 /dev/zero > "$3.gz"', 60, "70000 bytes, more than 65536"),
        ("sleep 60", 0.2, "within 0.2 s"),
        ("exit 3", 60, "status 3"),
    ],
)
async def test_a_report_that_does_not_come(tmp_path: Path, text: str, report_s: float, says: str) -> None:
    """Too large, too slow, failed: the bundle says so, and is made without it."""
    report = script(tmp_path / "report.sh", text)
    tools = EvidenceTools(paths={"nvidia-bug-report": report}, report_s=report_s, report_bytes=65536)
    folder = tmp_path / "evidence"
    done = await collect(FakeHost(Clock()), folder, tools).run({"component": "node"})
    files = members(folder, done.evidence)
    assert says in json.loads(files["about.json"])["tools"]["nvidia-bug-report"]
    assert not [name for name in files if "bug-report" in name]


async def test_cancelled_it_leaves_nothing(tmp_path: Path) -> None:
    """No half bundle, no tool that still runs."""
    pid = tmp_path / "pid"
    tools = EvidenceTools(
        paths={"nvidia-bug-report": script(tmp_path / "report.sh", f"echo $$ > {pid}; exec sleep 60")}
    )
    folder = tmp_path / "evidence"
    task = asyncio.create_task(collect(FakeHost(Clock()), folder, tools).run({"component": "node"}))
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(folder.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_the_jobs_of_the_node_are_named(tmp_path: Path) -> None:
    """By the cgroups of their processes; a process that holds a GPU with its job; nothing else of its environment."""
    root = machine(tmp_path / "root")
    for pid, cgroup in (
        (7, "/system.slice/slurmstepd.scope/job_4711/step_0"),
        (8, "/user.slice"),
        (9, "/system.slice/slurmd.service"),
    ):
        (root / f"proc/{pid}/fd").mkdir(parents=True)
        (root / f"proc/{pid}/cgroup").write_text(f"0::{cgroup}\n")
        (root / f"proc/{pid}/environ").write_text("TOKEN=secret\0SLURM_JOB_ID=12\0")
        (root / f"proc/{pid}/cmdline").write_text("python\0train.py\0")
    (root / "proc/9/fd/3").symlink_to("/dev/nvidia0")
    folder = tmp_path / "evidence"
    files = members(
        folder, (await collect(FakeHost(Clock(), root), folder).run({"component": "job/12"})).evidence
    )
    assert json.loads(files["jobs.json"]) == {"4711": [7], "12": [9]}
    (holder,) = json.loads(files["gpu_processes.json"])
    assert (holder["job"], holder["command"], holder["devices"]) == ("12", "python train.py", "/dev/nvidia0")
    assert not any(b"secret" in content for content in files.values())
