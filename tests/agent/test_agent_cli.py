"""`gpuward-agent decode`, `once` and `list`, as people call them: a process, files, JSON lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.collectors import every_collector
from agent.contract.actions import ACTIONS
from agent.contract.kinds import KINDS
from agent.sources import every_source

KMSG = """\
4,341,692000000,-;unrelated: device says hello
3,342,692641414,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=123, name=python3, GPU has fallen off the bus.
 SUBSYSTEM=pci
3,343,692641500,-;NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
3,344,692700000,-;NVRM: Xid (PCI:0000:5e:00 GPU-I:05 GPU-CI:00): 9999, new
"""


def call(*arguments: str | Path, text: str | bytes = b"", status: int = 0) -> list[dict[str, Any]]:
    """The JSON lines that the command prints."""
    done = run(*arguments, text=text)
    assert done.returncode == status, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(*arguments: str | Path, text: str | bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "agent", *map(str, arguments)]
    data = text.encode() if isinstance(text, str) else text
    return subprocess.run(command, input=data, capture_output=True, timeout=60)


def test_decode_reports_what_lines_mean_and_nothing_for_others() -> None:
    """The keys in the order of the design, from standard input."""
    found = call("decode", text=KMSG)
    assert list(found[0].items()) == [
        ("line", 2),
        ("kind", "gpu.xid"),
        ("component", "gpu/0000:3b:00"),
        ("code", 79),
        ("name", "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS"),
        ("severity", "fatal"),
        ("action", "RESTART_BM"),
        ("message", "GPU has fallen off the bus."),
        ("pid", 123),
        ("process", "python3"),
    ]
    assert [(one["line"], one["kind"], one["component"]) for one in found[1:]] == [
        (4, "gpu.off_bus", "gpu/0000:3b:00"),
        (5, "gpu.xid", "gpu/0000:5e:00/gi5/ci0"),
    ]
    assert (found[2]["name"], found[2]["severity"], found[2]["action"]) == ("unknown", "unknown", "")


def test_decode_reads_files_and_names_them_when_there_are_several(tmp_path: Path) -> None:
    """Line numbers begin again in each file; repeats are all printed."""
    one, two = tmp_path / "a.log", tmp_path / "b.log"
    one.write_text(KMSG)
    two.write_text("[  692.6] NVRM: Xid (PCI:0000:3b:00): 43, x\n" * 3)
    assert [found["line"] for found in call("decode", two)] == [1, 2, 3]
    both = call("decode", one, two)
    assert [(found["file"], found["line"]) for found in both[2:4]] == [(str(one), 5), (str(two), 1)]


def test_decode_takes_a_drivers_version() -> None:
    """The layout of NVLink5 reports changed with driver 575."""
    line = "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x00000086 0x4 0x0 0x0)\n"
    assert call("decode", "--driver", "570.86", text=line)[0]["action"] == "WORKFLOW_NVLINK5_ERR"
    (newer,) = call("decode", "--driver", "580.82", text=line)
    assert (newer["action"], newer["unproven"], newer["link"], newer["unit"]) == (
        "RESET_GPU",
        True,
        13,
        "RLW_RXPIPE",
    )


def test_decode_survives_bad_input() -> None:
    """Invalid UTF-8, NULs, a line of a megabyte, a truncated record."""
    rubbish = (
        b"\xff\xfe\x00NVRM: Xid (\n"
        + b"x" * 1_000_000
        + b"\n3,342,69;\n\n3,342,692641414,-;NVRM: Xid (PCI:0000"
    )
    good = b"\n[  1.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=p\xff, Ch 1\n"
    (found,) = call("decode", text=rubbish + good, status=1)
    assert (found["line"], found["code"], found["process"]) == (6, 31, "p\ufffd")


def test_decode_says_what_it_could_not_read(tmp_path: Path) -> None:
    """On standard error, with status 1, whatever it could read."""
    log = tmp_path / "a.log"
    log.write_text("20/11/2026 13:17:35 gpu-17: NVRM: Xid (PCI:0000:3b:00): 79, x\n" * 3 + KMSG)
    done = run("decode", log)
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 3)
    assert b"3 of 8 lines could not be read (line 1: its form is not known: " in done.stderr


XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
ENTRY = {
    "_HOSTNAME": "gpu-09",
    "_TRANSPORT": "kernel",
    "MESSAGE": XID_79,
    "__REALTIME_TIMESTAMP": "1795180547123456",
}


def test_decode_names_the_machine_that_a_line_names() -> None:
    """A log server's file has those of many; a line that names none has no such key."""
    probe = (
        "NVRM: The NVIDIA GPU 0000:3b:00.0",
        "NVRM: (PCI ID: 10de:2330) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    )
    lines = (
        f"Nov 24 03:11:05 gpu-07 kernel: {XID_79}",
        f"2026-11-24T03:11:05.1+00:00 gpu-08 kernel: {XID_79}",
        *json.dumps(ENTRY, indent="\t", separators=(",", " : ")).split("\n"),
        *(f"Nov 24 03:11:06 gpu-10 kernel: {line}" for line in probe),
        f"[  12.0] {XID_79}",
    )
    found = call("decode", text="\n".join(lines) + "\n")
    assert [(one["line"], one.get("host")) for one in found if one["kind"] in ("gpu.xid", "gpu.off_bus")] == [
        (1, "gpu-07"), (2, "gpu-08"), (3, "gpu-09"), (9, "gpu-10"), (12, None),
    ]  # fmt: skip
    assert list(found[0])[:3] == ["line", "host", "kind"]


def test_decode_gives_no_all_clear_for_what_is_no_log() -> None:
    """Nor for a log that ends within a message; prose beside a log is told."""
    done = run("decode", text="milk\nbread\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"none of 2 lines looks like a kernel line" in done.stderr
    done = run("decode", text="[ 1.0] usb 1-1: x\n[ 2.0] NVRM: RmIn")
    assert done.returncode == 1
    assert b"the log ends within this line" in done.stderr
    done = run("decode", text=f"[ 1.0] {XID_79}\nthanks\n")
    assert done.returncode == 0
    assert b"1 line looks like no kernel line (line 2: 'thanks')." in done.stderr


def test_decode_names_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    """Exit status 2, the path, no traceback."""
    done = run("decode", tmp_path / "none.log")
    assert done.returncode == 2
    assert b"none.log" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_decode_says_that_there_was_nothing_to_read(text: str) -> None:
    """As of `dmesg` without the rights to read: silence about no lines is no all-clear."""
    done = run("decode", text=text)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"-: it holds no lines. Did dmesg need more rights (sudo)?\n"


def test_a_full_disk_is_told() -> None:
    """What could not be written is neither silence nor a traceback."""
    with Path("/dev/full").open("w") as full:
        for command in (["-m", "agent", "list"], ["-m", "brain", "--help"], ["-m", "brain", "check"]):
            done = subprocess.run([sys.executable, *command], stdout=full, stderr=subprocess.PIPE, timeout=60)
            assert done.returncode == 1
            assert done.stderr.endswith(b": the output cannot be written: No space left on device\n"), (
                done.stderr
            )
            assert done.stderr.count(b"\n") == 1


def test_decode_ends_quietly_with_its_reader(tmp_path: Path) -> None:
    """`decode FILE | head -1` is no error."""
    log = tmp_path / "many.log"
    log.write_text("[  1.0] NVRM: Xid (PCI:0000:3b:00): 43, x\n" * 20_000)
    command = f"{sys.executable} -m agent decode {log} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A machine with a GPU off the bus and nothing else."""
    root = tmp_path / "machine"
    for path, text in {
        "dev/kmsg": KMSG,
        "proc/sys/kernel/hostname": "node7.example\n",
        "proc/sys/kernel/random/boot_id": "b-1\n",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Thu\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_once_runs_on_a_recorded_machine(recorded: Path) -> None:
    """Its kernel log becomes events; this machine's GPUs, links and services do not show."""
    events = call("once", "--root", recorded)
    assert events.pop()["kind"] == "node.inventory"
    assert [(event["kind"], event["component"]) for event in events] == [
        ("gpu.xid", "gpu/0000:3b:00"),
        ("gpu.off_bus", "gpu/0000:3b:00"),
        ("gpu.xid", "gpu/0000:5e:00/gi5/ci0"),
    ]
    assert events[0]["evidence"].startswith("NVRM: Xid (PCI:0000:3b:00): 79")
    assert all(event["age_s"] == 0 and event["count"] == 1 for event in events)


def test_once_reads_another_kernel_log(recorded: Path, tmp_path: Path) -> None:
    """--kmsg replaces the machine's own, in any encoding; a burst is one event and its count."""
    log = tmp_path / "dmesg.txt"
    log.write_text("".join(f"[  {n / 10:.6f}] NVRM: Xid (PCI:0000:3b:00): 43, x\n" for n in range(30)))
    events = call("once", "--root", recorded, "--kmsg", log)
    xids = [event for event in events if event["kind"] == "gpu.xid"]
    assert [(event["data"]["code"], event["count"]) for event in xids] == [(43, 1), (43, 29)]


def test_once_writes_nothing_into_the_recorded_machine(recorded: Path) -> None:
    """A recording is evidence."""
    before = sorted((str(path), path.stat().st_mtime_ns) for path in recorded.rglob("*"))
    call("once", "--root", recorded)
    assert sorted((str(path), path.stat().st_mtime_ns) for path in recorded.rglob("*")) == before


def test_once_says_nothing_of_this_machine_about_another(tmp_path: Path) -> None:
    """An empty recording has no kernel release: this machine's would be a lie."""
    (inventory,) = call("once", "--root", tmp_path)
    assert (inventory["kind"], inventory["data"]["kernel"]) == ("node.inventory", "")


@pytest.mark.parametrize("wrong", [("--root", "/nonexistent"), ("--set", "nonsense=1"), ("--set", "x")])
def test_wrong_options_are_named(wrong: tuple[str, str]) -> None:
    """Exit status 2 and what is wrong, without a traceback."""
    done = run("once", *wrong)
    assert done.returncode == 2
    assert wrong[1].partition("=")[0] in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_list_shows_all_that_there_is() -> None:
    """Collectors, sources, actions and kinds, as JSON and for people."""
    lists = json.loads(run("list", "--json").stdout)
    assert [one["name"] for one in lists["collectors"]] == [one.name for one in every_collector()]
    assert [one["name"] for one in lists["sources"]] == [one.name for one in every_source()]
    assert [one["name"] for one in lists["actions"]] == [
        name for name, s in ACTIONS.items() if s.where == "node"
    ]
    assert [one["name"] for one in lists["kinds"]] == list(KINDS)
    text = run("list").stdout.decode()
    assert all(one["name"] in text for rows in lists.values() for one in rows)


@pytest.mark.parametrize("command", ["run", "once", "decode", "list"])
def test_every_command_has_help(command: str) -> None:
    """--help exits with 0 and prints what the command does."""
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"usage: gpuward-agent {command}" in done.stdout.decode()


@pytest.mark.parametrize("arguments", [["list", "--json"], ["decode", os.devnull], ["once", "--root", "."]])
def test_no_command_imports_what_only_the_brain_needs(arguments: list[str], tmp_path: Path) -> None:
    """Memory is a promise: no pydantic, aiohttp, yaml, click or rich in the agent."""
    code = (
        "import sys; from agent.__main__ import main\n"
        f"sys.argv = ['gpuward-agent', *{arguments!r}]\n"
        "try: main()\n"
        "except SystemExit: print(*(name for name, module in sys.modules.items() if module), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    modules = set(done.stderr.split())
    assert "agent.cli.main" in modules
    assert not modules & {"pydantic", "aiohttp", "yaml", "click", "rich", "pynvml", "durable", "brain"}


def test_the_running_agent_loads_jetstream_when_it_is_wanted() -> None:
    """And no email, shutil, tempfile, bz2 or lzma before: nats-py and pyudev would import them for nothing."""
    code = (
        "import sys; from agent.lean import lean_imports\n"
        "lean_imports()\n"
        "import agent.app, nats, pyudev\n"
        "print(*(name for name, module in sys.modules.items() if module))\n"
        "pyudev.Context()\n"
        "print(nats.js.api.Header.STATUS.value, nats.js.JetStreamContext.__name__)\n"
        "from nats.js.errors import NotFoundError\n"
        "print(issubclass(NotFoundError, nats.errors.Error), sys.modules['nats.js'] is nats.js)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    modules, status, errors = done.stdout.splitlines()
    assert "nats.aio.client" in modules.split()
    assert not set(modules.split()) & {"email", "shutil", "tempfile", "bz2", "lzma", "nats.js.client"}
    assert status == "Status JetStreamContext"
    assert errors.startswith("True")
