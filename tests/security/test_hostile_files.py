"""What a user of the node can lay in the agent's way: links, pipes, devices, holes, names, processes that stop their readers."""

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from agent.actions.bundle_folder import BundleFolder
from agent.actions.device_holders import holders
from agent.actions.evidence_collect import EvidenceCollect
from agent.collectors.joblog import JobLogCollector, JobLogOptions
from agent.collectors.samples import Checkpoint, JobLine
from agent.contract import kinds
from agent.contract.errors import ActionError
from agent.host import MAX_READ_BYTES, Host
from agent.process_owner import owner_of
from agent.shared import guarded, patience
from agent.sources.joblog import JobLogSource, JobLogSourceOptions
from agent.sources.tail import Tail
from tests.agent.following import following, once
from tests.agent.test_evidence import machine, members
from tests.agent.test_fs_usage import at

USER, OTHER = 64_123, 64_124
TERABYTE = 1 << 40
root = pytest.mark.root


class Node:
    """A folder of logs that belongs to USER, and files of root's that he cannot read."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.logs, self.secrets = folder / "logs", folder / "secrets"
        self.logs.mkdir()
        os.chown(self.logs, USER, USER)
        self.secrets.mkdir(mode=0o700)
        self.secret = self.secrets / "1.log"
        self.secret.write_text("NCCL WARN root's own\n")

    def write(self, name: str, text: str, user: int = USER) -> Path:
        path = self.logs / name
        path.write_text(text)
        os.chown(path, user, user)
        return path

    def link(self, name: str, target: Path, user: int = USER) -> Path:
        path = self.logs / name
        path.symlink_to(target)
        os.chown(path, user, user, follow_symlinks=False)
        return path


def fifo(node: Node) -> str:
    os.mkfifo(node.logs / "1.log")
    return "1.log"


def device(node: Node) -> str:
    os.mknod(node.logs / "1.log", stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    return "1.log"


def folder(node: Node) -> str:
    (node.logs / "1.log").mkdir()
    return "1.log"


def link(node: Node) -> str:
    return node.link("1.log", node.secret).name


def link_to_a_link(node: Node) -> str:
    node.link("mine", node.secret)
    return node.link("1.log", node.logs / "mine").name


def link_through_proc(node: Node) -> str:
    return node.link("1.log", Path(f"/proc/self/root{node.secret}")).name


def linked_folder(node: Node) -> str:
    node.link("run", node.secrets)
    return "run/1.log"


def linked_folder_and_back(node: Node) -> str:
    node.link("run", node.logs)
    node.link("1.log", node.logs / "run/../../secrets/1.log")
    return "1.log"


def link_to_another_user(node: Node) -> str:
    node.write("theirs", "NCCL WARN another user's\n", OTHER)
    return node.link("1.log", node.logs / "theirs").name


def hard_link(node: Node) -> str:
    os.link(node.secret, node.logs / "1.log")
    return "1.log"


def hard_link_in_a_folder_for_all(node: Node) -> str:
    os.chown(node.logs, 0, 0)
    node.logs.chmod(0o1777)
    os.link(node.secret, node.logs / "1.log")
    return "1.log"


def loop(node: Node) -> str:
    return node.link("1.log", node.logs / "1.log").name


TRAPS: list[Callable[[Node], str]] = [
    *(fifo, device, folder, link, link_to_a_link, link_through_proc, linked_folder),
    *(linked_folder_and_back, link_to_another_user, hard_link, hard_link_in_a_folder_for_all, loop),
]


@root
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
async def test_no_name_leads_to_what_its_owner_cannot_read(
    trap: Callable[[Node], str], tmp_path: Path
) -> None:
    """It is refused when it is opened, and its lines are in no sample; what lies beside it is read."""
    node = Node(tmp_path)
    name = trap(node)
    with pytest.raises(OSError):
        os.close(guarded.open_log(str(node.logs / name)))
    node.write("2.log", "NCCL WARN my own\n")
    globs = (f"{node.logs}/*.log", f"{node.logs}/run/*.log")
    found = await once(JobLogSource(Host(), JobLogSourceOptions(job_logs=globs)))
    assert {line.text for line in found if isinstance(line, JobLine)} == {"NCCL WARN my own"}


@root
async def test_ordinary_links_are_followed(tmp_path: Path) -> None:
    """A user's link to his own file, root's link to a folder elsewhere, a second name in a folder of one's own."""
    node = Node(tmp_path)
    node.link("1.log", node.write("real-1", "NCCL WARN one\n"))
    scratch = tmp_path / "scratch"
    scratch.symlink_to(node.logs)
    os.link(node.write("real-3", "NCCL WARN three\n"), node.logs / "3.log")
    found = await once(JobLogSource(Host(), JobLogSourceOptions(job_logs=(f"{scratch}/*.log",))))
    assert sorted(line.text for line in found if isinstance(line, JobLine)) == [
        "NCCL WARN one",
        "NCCL WARN three",
    ]


@root
def test_a_link_that_changes_while_it_is_opened_gains_nothing(tmp_path: Path) -> None:
    """Against a user who swaps his file and a link to root's as fast as he can: what is opened is always his own."""
    node = Node(tmp_path)
    mine = node.write("mine", "NCCL WARN my own\n")
    node.link("bait", node.secret)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for source in (mine, node.logs / "bait"):
                os.link(source, node.logs / "next", follow_symlinks=False)
                (node.logs / "next").rename(node.logs / "1.log")
                (node.logs / "next").unlink(missing_ok=True)  # two names of one file: rename did nothing

    node.write("1.log", "NCCL WARN my own\n")
    attacker = threading.Thread(target=swap)
    attacker.start()
    opened = refused = 0
    try:
        deadline = time.monotonic() + 120
        while (opened < 300 or refused < 300) and time.monotonic() < deadline:
            try:
                fd = guarded.open_log(str(node.logs / "1.log"))
            except OSError:
                refused += 1
                continue
            assert os.fstat(fd).st_uid == USER
            os.close(fd)
            opened += 1
    finally:
        done.set()
        attacker.join(60)
    assert opened >= 300, "its own file was never met"
    assert refused >= 300, "the bait was never met"


async def test_a_hole_of_a_terabyte_costs_nothing(tmp_path: Path) -> None:
    """What stands behind it is read at once, also behind a second one; nothing is read of a file that is only a hole."""
    (tmp_path / "only-3.log").touch()
    os.truncate(tmp_path / "only-3.log", TERABYTE)
    source = JobLogSource(Host(), JobLogSourceOptions(job_logs=(f"{tmp_path}/*.log",)), poll_s=0.01)
    async with following(source) as emitted:
        await emitted.until(bool)
        with (tmp_path / "4711.log").open("wb") as sink:
            for number in (1, 2):
                sink.seek(number * TERABYTE)
                sink.write(b"NCCL WARN %d\n" % number)
        await emitted.until(lambda h: sum(isinstance(one, JobLine) for one in h) == 2, timeout_s=30)
    texts = [line.text.strip("\0") for line in emitted if isinstance(line, JobLine)]
    assert texts == ["NCCL WARN 1", "NCCL WARN 2"]


def test_short_lines_without_end_are_read_in_parts(tmp_path: Path) -> None:
    """Eight megabytes of the shortest line that is wanted: few at a time are in memory, and none is lost."""
    path = tmp_path / "1.log"
    line, count = b"NCCL\n", 1_600_000
    path.write_bytes(line * count)
    tail = Tail(path=str(path), shown=str(path), job="1")
    parts = []
    while part := sum(1 for _ in tail.changed((b"NCCL",), 0.0)):
        parts.append(part)
    tail.close()
    assert sum(parts) == count
    assert max(parts) < 20_000


NAMES = [b"1\n<3>NVRM: Xid.log", b"1\xff\xfe.log", b"1\x1b]0;title\x07.log", "1\u202e\u2028.log".encode()]


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_data(name: bytes, tmp_path: Path) -> None:
    """An event about a file with such a name can be sent, and is one line of JSON."""
    with open(os.fsencode(tmp_path) + b"/" + name, "wb") as sink:
        sink.write(b"NCCL WARN failed\n")
    found = await once(JobLogSource(Host(), JobLogSourceOptions(job_logs=(f"{tmp_path}/*.log",))))
    (line,) = (one for one in found if isinstance(one, JobLine))
    (event,) = JobLogCollector(JobLogOptions()).feed(line, 0.0)
    sent = orjson.dumps(dict(kinds.check(event).data))
    assert b"\n" not in sent
    assert b"\x1b" not in sent
    source = JobLogSource(Host(), JobLogSourceOptions(job_logs=(f"{tmp_path}/*.log",)), poll_s=0.01)
    async with following(source) as emitted:
        await emitted.until(bool)
    with contextlib.closing(sqlite3.connect(":memory:")) as database:  # as the spool keeps it
        for one in emitted:
            assert isinstance(one, Checkpoint)
            database.execute("SELECT ?, ?", (one.key, one.value))


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """A recorded machine with ten processes on a GPU, each of which stops whoever reads its memory."""
    recorded = machine(tmp_path / "root")
    for pid in range(4701, 4711):
        process = recorded / f"proc/{pid}"
        (process / "fd").mkdir(parents=True)
        (process / "fd/3").symlink_to("/dev/nvidia0")
        (process / "cgroup").write_text("0::/user.slice\n")
        for name in ("environ", "cmdline"):
            os.mkfifo(process / name)
    return recorded


async def test_a_process_that_stops_its_readers_is_left_alone(stuck: Path, tmp_path: Path) -> None:
    """Whose it is stays unknown, soon; a bundle is made all the same, with its pid. Few threads are left behind."""
    host = Host(root=stuck)
    started_s = time.monotonic()
    try:
        assert owner_of(host, 4701).job == ""
        bundles = BundleFolder(host, tmp_path / "evidence")
        done = await EvidenceCollect(host, bundles).run({"component": "node"})
        assert time.monotonic() - started_s < 30
        processes = orjson.loads(members(tmp_path / "evidence", done.evidence)["gpu_processes.json"])
        assert [one["pid"] for one in processes] == [str(pid) for pid in range(4701, 4711)]
        assert {one["command"] for one in processes} == {"(cannot be read at once)"}
        left = [thread for thread in threading.enumerate() if thread.name == "may be stuck"]
        assert len(left) <= patience.MOST_STUCK
    finally:  # lets them go
        for pipe in stuck.glob("proc/*/*"):
            if stat.S_ISFIFO(pipe.lstat().st_mode):
                os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def test_a_command_line_of_a_terabyte_is_cut(tmp_path: Path) -> None:
    """A process may say where its command line begins and ends."""
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/cmdline").touch()
    os.truncate(tmp_path / "proc/1/cmdline", TERABYTE)
    assert len(Host(root=tmp_path).read("/proc/1/cmdline")) == MAX_READ_BYTES


@pytest.mark.parametrize("kind", ["link", "fifo"])
async def test_a_bundle_takes_no_link_and_no_pipe(kind: str, tmp_path: Path) -> None:
    """Where a tool was to leave its report, only a regular file is taken."""
    folder = BundleFolder(Host(), tmp_path / "evidence")

    async def take() -> None:
        async with folder.reserved() as scratch:
            report = scratch / "report.log"
            report.symlink_to("/etc/shadow") if kind == "link" else os.mkfifo(report)
            await folder.write("node", [("report.log", report)], 1024)

    with pytest.raises(ActionError):
        await take()
    assert list((tmp_path / "evidence").iterdir()) == []


async def test_a_device_s_name_is_data(tmp_path: Path) -> None:
    """A container's process has a file open that it named like a GPU, with bytes that are no UTF-8: the bundle is made."""
    process = machine(tmp_path / "root") / "proc/4711"
    (process / "fd").mkdir(parents=True)
    (process / "cgroup").write_text("0::/user.slice\n")
    (process / "cmdline").write_bytes(b"train\0\xff\n")
    (process / "fd/3").symlink_to(os.fsdecode(b"/dev/nvidia\xff\n\x1b"))
    bundles = BundleFolder(Host(), tmp_path / "evidence")
    done = await EvidenceCollect(Host(root=tmp_path / "root"), bundles).run({"component": "node"})
    (found,) = orjson.loads(members(tmp_path / "evidence", done.evidence)["gpu_processes.json"])
    assert found["devices"] == "/dev/nvidia\\xff\n\x1b"
    (holder,) = holders(Host(root=tmp_path / "root"))
    assert orjson.dumps(str(holder))


async def test_a_directory_s_name_is_data(tmp_path: Path) -> None:
    """fs.usage of a mount where a user made one with bytes that are no UTF-8: its answer can be sent."""
    hog = tmp_path / os.fsdecode(b"\xff\nhog")
    hog.mkdir()
    (hog / "data").write_bytes(b"x" * 1_000_000)
    done = await at(tmp_path, tmp_path / "host").run({"mount": str(tmp_path)})
    assert "hog" in done.text
    assert orjson.dumps(done.text)
