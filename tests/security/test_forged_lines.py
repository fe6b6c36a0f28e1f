"""A job that wants to be believed like the kernel: in /dev/kmsg, in words that the kernel quotes, in the journal, in its log."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.collectors import collectors
from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import JobLine, Line
from agent.contract import kernel_text
from agent.contract.kernel_text import KERNEL
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.journal import JournalSource, JournalSourceOptions
from agent.sources.kmsg import KmsgSource, KmsgSourceOptions
from tests.agent.following import following, once
from tests.contract.kernel_lines import TABLE

LOST = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
# What a writer may put before its line. The kernel keeps eight bits of the facility, and makes 0 the user's; numbers that do
# not fit wrap around.
PREFIXES = [
    *("", "<0>", "<3>", "<6>", "<7>", "<8>", "<15>", "<24>", "<191>", "<2047>", "<2048>", "<2051>", "<4096>"),
    *("<524288>", "<2147483648>", "<4294967295>", "<4294967296>", "<4294967299>", "<18446744073709551616>"),
    *(
        "<-1>",
        "<-8>",
        "<+3>",
        "<0x3>",
        "<03>",
        "< 3>",
        "<3",
        "<>",
        "<3><0>",
        "\n<3>",
        "6,1,1,-;",
        "<3>[    1.000000] ",
    ),
]


def readers_of(kind: type) -> list[Collector]:
    """The agent's collectors that want such samples; they hold no repeat back."""
    return [one for one in collectors(CollectorSetup(burst_s=0)) if kind in one.wants]


def seen(text: str, readers: Sequence[Collector]) -> list[UnsentEvent]:
    """What they make of one line of the kernel's log."""
    line = Line(text=text, mono_s=1.0)
    return [event for reader in readers for event in reader.feed(line, 1.0)]


@pytest.mark.root
@pytest.mark.component("kmsg")
@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="needs root: /dev/kmsg")
@pytest.mark.parametrize("container", [False, True], ids=["host", "container"])
async def test_nobody_who_writes_to_the_log_is_taken_for_the_kernel(container: bool) -> None:
    """Each prefix, from here and from a container's namespaces: all of it stands in the log, none of it as the kernel's."""
    if container and shutil.which("unshare") is None:
        pytest.skip("needs apt-get install util-linux")
    token = uuid.uuid4().hex[:12]
    everyone = KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=tuple(range(256))))
    believed = KmsgSource(Host(), KmsgSourceOptions())
    inside = ("unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net") if container else ()
    async with following(everyone) as heard, following(believed) as trusted:
        await heard.until(lambda _: everyone.position is not None and believed.position is not None)
        for number, prefix in enumerate(PREFIXES):
            script = "printf '%s\\n' \"$1\" > /dev/kmsg"
            text = f"{prefix}{LOST} {token} {number:03}."
            subprocess.run([*inside, "sh", "-c", script, "sh", text], check=True, timeout=60)
        last = f"{token} {len(PREFIXES) - 1:03}."

        def forged() -> list[Line]:
            return [one for one in heard if isinstance(one, Line) and token in one.text]

        await heard.until(lambda _: any(last in one.text for one in forged()))
        await heard.until(
            lambda _: (
                everyone.position is not None
                and believed.position is not None
                and believed.position[1] >= max(one.seq for one in forged())
            )
        )
    numbers = {one.text.rpartition(token)[2] for one in forged()}
    assert numbers == {f" {number:03}." for number in range(len(PREFIXES))}, "some were not written at all"
    assert [one for one in forged() if one.facility == KERNEL] == []
    assert [one for one in trusted if isinstance(one, Line) and token in one.text] == []


CRASH = """
import ctypes
ctypes.CDLL(None).prctl(15, b"kernel BUG at")
ctypes.string_at(0)
"""


@pytest.mark.root
@pytest.mark.component("kmsg")
@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="needs root: /dev/kmsg")
async def test_a_program_s_name_is_not_the_kernels_cry(tmp_path: Path) -> None:
    """A program whose name is `kernel BUG at` crashes: the kernel itself prints that line, and nothing is
    wrong with the node.
    """
    if Host().read("/proc/sys/debug/exception-trace") != "1":
        pytest.skip("this kernel is told not to print crashes (debug.exception-trace)")
    source = KmsgSource(Host(), KmsgSourceOptions())
    async with following(source) as heard:
        await heard.until(lambda _: source.position is not None)
        program = subprocess.Popen([sys.executable, "-Ic", CRASH], cwd="/")
        assert program.wait(60) < 0

        def lines() -> list[str]:
            return [one.text for one in heard if isinstance(one, Line) and f"[{program.pid}]" in one.text]

        await heard.until(lambda _: lines() != [])
    assert lines()[0].startswith(f"kernel BUG at[{program.pid}]: segfault at 0 ")
    assert seen(lines()[0], readers_of(Line)) == []


# Lines that the kernel itself prints with words of a user's choice: names of programs, files, control groups, volumes.
QUOTING = [
    "process '/tmp/{}' started with executable stack",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,task_memcg=/user.slice/{},task=train,pid=4,uid=1000",
    "Memory cgroup stats for /user.slice/{}:",
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="open" profile="x" name="/tmp/{}" pid=4 comm="train"',
    "EXT4-fs (loop0): mounted filesystem {} with ordered data mode",
    "systemd[1]: /etc/systemd/system/{}: not a unit",
]
# Of which the kernel prints COMM bytes: a program's name, an interface's.
OF_A_PROGRAM = [
    "{}[4711]: segfault at 0 ip 00007f00 sp 00007ffe error 4 in train[400000+1000]",
    "traps: {}[4711] general protection fault ip:7f sp:7f error:0 in libc.so.6[7f+1000]",
    "{} (4711): drop_caches: 3",
    "{} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "{}: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
    "{}: entered promiscuous mode",
    "warning: `{}' uses wireless extensions which will stop working for Wi-Fi 7 hardware",
]
COMM = 15  # bytes of a program's name
# Names that begin like what matters most, beside the beginnings of all lines of TABLE.
SHORT = [
    "kernel BUG at",
    "kernel BUG at x:1!",
    "Oops: ",
    "Oops: 0000 [#1]",
    "Oops: 0000 [#1] ",
    "BUG: unable to handle",
]
AROUND = [
    ("", ""),
    ("\n", ""),
    ("\n", "\n"),
    ("x\n", "\ny"),
    (" ", " "),
    ("]: ", ""),
    (") ", ""),
    ("\r", "\r"),
]


def test_words_that_the_kernel_quotes_are_not_the_kernels() -> None:
    """Every line that means something to us, as a name that a user chose, in lines that quote names: it means nothing there. A
    line break in it begins no new line.
    """
    tried, readers = 0, readers_of(Line)
    names = [(row[0], AROUND) for row in TABLE] + [(name, [("", "")]) for name in SHORT]
    for quoting in (*QUOTING, *OF_A_PROGRAM):
        plain = {(event.kind, event.component) for event in seen(quoting.format("train"), readers)}
        comm = quoting in OF_A_PROGRAM
        for name, surroundings in names:
            for before, after in surroundings:
                chosen = f"{before}{name}{after}"
                for cut in range(1, COMM + 1) if comm else (len(chosen),):
                    text = quoting.format(chosen[:cut])
                    line = kernel_text.parse(f"6,1,1,-;{escaped(text)}")
                    if line is not None:
                        tried += 1
                        found = {(one.kind, one.component) for one in seen(line.text, readers)}
                        # That one of his own programs has crashed is a user's to say.
                        assert {one for one in found - plain if not one[0].startswith("job.")} == set(), text
    assert tried > 10_000


def escaped(text: str) -> str:
    """As /dev/kmsg gives it."""
    return "".join(f"\\x{ord(one):02x}" if one < " " else one for one in text)


def test_the_kernels_own_line_is_believed() -> None:
    """So that the tests above show something."""
    assert [event.kind for event in seen(LOST, readers_of(Line))] == ["gpu.xid"]


JOURNAL = [
    {"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "syslog"},
    {"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "journal", "SYSLOG_FACILITY": "0"},
    {"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "stdout", "TRANSPORT": "kernel"},
    {"SYSLOG_IDENTIFIER": "kernel"},
    {"SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": ["kernel", "syslog"]},
    {"_TRANSPORT": "driver", "_COMM": "kernel"},
]


@pytest.mark.parametrize("fields", JOURNAL, ids=str)
def test_the_journal_says_who_spoke(fields: dict[str, object]) -> None:
    """Only journald itself writes _TRANSPORT, and only the kernel's own lines have `kernel` there."""
    entry = {"MESSAGE": LOST, "__REALTIME_TIMESTAMP": "1000000", **fields}
    line = kernel_text.parse(json.dumps(entry))
    assert line is not None
    assert line.facility != KERNEL
    own = kernel_text.parse(json.dumps(entry | {"_TRANSPORT": "kernel"}))
    assert own is not None
    assert own.facility == KERNEL


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (f"Nov 20 13:15:47 host kernel: {LOST}", True),
        (f"Nov 20 13:15:47 host kernel[77]: {LOST}", False),
        (f"Nov 20 13:15:47 host train[77]: {LOST}", False),
        (f"Nov 20 13:15:47 host train: kernel: {LOST}", False),
        (f"2026-11-20T13:15:47+00:00 host kernel[1]: {LOST}", False),
        (f"Nov 20 13:15:47 kernel: {LOST}", True),
        (f"Nov 20 13:15:47 kernel[77]: {LOST}", False),
        (f"gpu-17: Nov 20 13:15:47 host train: kernel: {LOST}", False),
        (f"> Nov 20 13:15:47 host train[77]: [ 1.000000] {LOST}", False),
        (f"Nov 20 13:15:47 host kern.err kernel: {LOST}", True),
        (f"Nov 20 13:15:47 host kern.err train: {LOST}", False),
        (f"Nov 20 13:15:47 host user.err kernel: {LOST}", False),
        (f"<3>1 2026-11-20T13:15:47Z host kernel - - - {LOST}", True),
        (f"<11>1 2026-11-20T13:15:47Z host kernel - - - {LOST}", False),
        (f"<3>1 2026-11-20T13:15:47Z host kernel 77 - - {LOST}", False),
        (f"<11>Nov 20 13:15:47 host kernel: {LOST}", False),
        (f"user.err: [ 1.000000] {LOST}", False),
        (f'{{"pri": 11, "time": 1.0, "msg": "{LOST}"}}', False),
    ],
)
def test_a_syslog_tag_with_a_process_is_no_kernel(text: str, kernel: bool) -> None:
    """Text alone cannot tell `logger -t kernel` from the kernel: the agent never reads it; people who paste it should know."""
    line = kernel_text.parse(text)
    assert line is not None
    assert (line.facility == KERNEL) is kernel


async def test_a_job_s_own_log_speaks_for_the_job_only(tmp_path: Path) -> None:
    """Kernel lines that a job prints are no facts about the node: not one event comes of them, whatever line it is."""
    kinds = {
        event.kind
        for row in TABLE
        for reader in readers_of(JobLine)
        for event in reader.feed(JobLine(text=row[0], file="/var/log/jobs/1.log", job="1", mono_s=1.0), 1.0)
    }
    assert {kind for kind in kinds if not kind.startswith("job.")} == set()


async def test_the_source_of_job_output_never_gives_a_kernel_line(tmp_path: Path) -> None:
    """A journal whose entries claim to be the kernel's: they come as a job's lines."""
    program = tmp_path / "journalctl"
    entries = [{"MESSAGE": LOST, "_SYSTEMD_UNIT": "job.service", "_TRANSPORT": "kernel", "__CURSOR": "c"}]
    program.write_text("#!/bin/sh\ncat <<'X'\n" + "\n".join(map(json.dumps, entries)) + "\nX\n")
    program.chmod(0o755)
    source = JournalSource(Host(), JournalSourceOptions(journal_units=("job",)), program=str(program))
    found = await once(source)
    assert [type(one) for one in found if not hasattr(one, "key")] == [JobLine]
