"""When a log is well, and everything that must not pass for it: what cannot be read, is cut off, or is no kernel's."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.contract.counted import counted
from brain.cli.diagnose import diagnose
from tests.brain.diagnose_kit import BOOT, LINK, ask, ask_json

XID_31 = "NVRM: Xid (PCI:0000:19:00): 31, pid=1, name=python3, MMU Fault: FAULT_PDE ACCESS_TYPE_VIRT_READ"


QUIET = "usb 1-1: new high-speed USB device number 2 using xhci_hcd"


SILENT = {
    "after a month of uptime": f"[172800.1] {LINK} down\n[2592000.0] {QUIET}\n",
    "without a year": f"Oct 27 03:11:09 n kernel: {LINK} down\nNov 24 03:11:09 n kernel: {QUIET}\n",
    "with a fault of today": f"[172800.1] {LINK} down\n[2592000.0] {QUIET}\n[2592001.0] {XID_31}\n",
    "a clock that was wrong at the boot": f"Jan  1 00:00:12 n kernel: {LINK} down\nNov 24 03:11:09 n kernel: {QUIET}\n",
}


@pytest.mark.parametrize("log", SILENT.values(), ids=SILENT)
def test_what_nothing_has_ended_is_not_over(log: str) -> None:
    """However long its last sign is past; it stands with what is open, and says so."""
    incident = next(one for one in ask_json(log)["incidents"] if one["cause"] == "link-down")
    assert incident["lasted_s"] == 0
    assert incident["silent_s"] > 27 * 86_400
    output = " ".join(ask(log).split())
    assert "open: its last sign is" in output
    assert "days before the end of the log; no line says that it has ended" in output
    assert "over:" not in output


@pytest.mark.parametrize("time", ["[    {}.0] ", "Nov 2{} 03:11:09 n kernel: "], ids=["uptime", "wall clock"])
def test_what_was_before_a_boot_may_be_over(time: str) -> None:
    """A log of several boots: no line of the new one can end it, and what the new one says itself comes first."""
    lost = XID_31.replace("31,", "79,").replace("0000:19", "0000:5d")
    log = f"{time.format(1)}{lost}\n{time.format(0)}Linux version 6.1.0\n{time.format(2)}{LINK} down\n"
    link, gpu = ask_json(log)["incidents"]
    assert (link["cause"], link["booted"], gpu["cause"]) == ("link-down", "", "gpu-lost")
    assert gpu["booted"].endswith(":2")
    output = " ".join(ask(log).split())
    assert (
        f"open: its last sign is from before the machine started again ({gpu['booted']}); no line says whether it is so since"
        in output
    )
    assert output.count("open:") == 1


@pytest.mark.parametrize("text", ["[    1.0] hello\n", "[    1.0] hello\n\n[    1.1] world\n", BOOT])
def test_nothing_wrong(text: str) -> None:
    """A healthy log, in which no line has a known meaning."""
    lines = text.count("\n")
    assert ask(text).startswith(f"Nothing wrong found in {counted(lines, 'line')}.")
    assert ask_json("[    1.0] x\n" * 3) == {
        "ok": True, "incidents": [], "lines": 3, "meaningful": 0, "unread": 0, "blind": {}, "other": [],
        "foreign": 0, "aside": {},
    }  # fmt: skip


def test_no_lines_are_no_all_clear() -> None:
    """`dmesg` without the rights to read it prints nothing; a file of blank lines says as little."""
    for text in ("", "\n", " \n\n"):
        assert ask(text, status=1).startswith("NO ALL-CLEAR for this-node: it holds no lines. Did dmesg need")
        assert json.loads(ask(text, "--json", status=1))["ok"] is False


@pytest.mark.parametrize(
    "line",
    [
        "20/11/2026 13:17:35 {}",
        "2026/11/20 13:17:35 gpu-17 {}",
        '{{"text": "{}", "stream": "stdout"}}',
        "gpu-17 kernel: {}",
        "\x00{}\ufffd",
    ],
)
def test_what_it_cannot_read_is_no_all_clear(line: str) -> None:
    """A dead GPU in a form that is not known: it says so, with an example, and what it can read."""
    text = line.format("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.") + "\n"
    output = ask(text * 3 + BOOT, status=1)
    assert output.startswith("NO ALL-CLEAR for this-node: 3 of 5 lines could not be read")
    assert "(line 1: " in " ".join(output.split())
    assert "Nothing wrong" not in output
    assert output.endswith("3 lines could not be read.\n")
    data = json.loads(ask(text * 3, "--json", status=1))
    assert (data["ok"], data["unread"], list(data["blind"])) == (False, 3, ["this-node"])


@pytest.mark.parametrize(
    "code", ["48, pid=1, name=python, DBE (double bit error)", "119, pid=877, name=x, Timeout"]
)
def test_a_relay_that_drops_the_kernels_name_gives_no_all_clear(code: str) -> None:
    """`NVRM:` stands where a program's name does, so anybody may have said it."""
    output = ask(BOOT + f"Nov 20 13:15:47 gpu-17 NVRM: Xid (PCI:0000:5e:00): {code}\n", status=1)
    assert output.startswith("NO ALL-CLEAR for gpu-17: 1 of 3 lines could not be read")


@pytest.mark.parametrize("line", ["13:17:35 | hello", "13:17:35 | NVRM: Xid (PCI:0000:3b:00): 79, x"])
def test_one_line_that_it_cannot_read_is_no_all_clear(line: str) -> None:
    """However many others it has read."""
    output = " ".join(ask(BOOT * 30 + line + "\n", status=1).split())
    assert output.startswith(
        "NO ALL-CLEAR for this-node: 1 of 61 lines could not be read (line 61: its form is not known: "
    )
    assert "Nothing wrong" not in output
    assert output.endswith("60 without. 1 line could not be read.")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "this is my shopping list\nmilk and bread\n",
            "NO ALL-CLEAR for this-node: none of 2 lines looks like a kernel line.",
        ),
        ("hello\n", "NO ALL-CLEAR for this-node: its line looks like no kernel line."),
        (
            'Traceback (most recent call last):\n  File "train.py", line 10\nRuntimeError: CUDA error: launch failure\n',
            "NO ALL-CLEAR for this-node: none of 3 lines looks like a kernel line.",
        ),
        (
            "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n",
            "NO ALL-CLEAR for this-node: its line looks like no kernel line.",
        ),
        (
            "step 10 loss: nan\nERROR: NCCL WARN Timeout\n",
            "NO ALL-CLEAR for this-node: none of 2 lines looks like a kernel line.",
        ),
        ("未知: 训练失败\n", "NO ALL-CLEAR for this-node: its line looks like no kernel line."),
        (
            f"[    1.0] {QUIET}\nthis is prose\nand more of it\n",
            "NO ALL-CLEAR for this-node: only 1 of 3 lines look like kernel lines.",
        ),
        (
            f"{QUIET}\nthis is prose\nand more of it\n",
            "NO ALL-CLEAR for this-node: only 1 of 3 lines look like kernel lines.",
        ),
    ],
)
def test_what_is_no_kernel_log_is_no_all_clear(text: str, says: str) -> None:
    """Nobody learns from a shopping list that nothing is wrong."""
    output = ask(text, status=1)
    assert says in output
    assert "Nothing wrong" not in output


@pytest.mark.parametrize(
    "text",
    [
        "[    1.000000] this is a line\n",
        "usb 1-1: new high-speed USB device\n",
        "Linux version 6.1.0\n",
        "kernel: hello\nNVRM: hello\n",
    ],
)
def test_an_ordinary_log_is_well_without_a_line_of_meaning(text: str) -> None:
    """A time, or who says it, makes a kernel line: `dmesg -t` prints no times."""
    assert "Nothing wrong found" in ask(text)


def test_prose_beside_kernel_lines_is_no_part_of_the_all_clear() -> None:
    """It is said which lines are meant, in JSON too."""
    log = f"[ 1.0] {QUIET}\n" * 3 + "hello\nroot@gpu-17:~#\n"
    output = ask(log)
    assert "Nothing wrong found in 3 lines." in output
    assert "this-node: 2 lines look like no kernel lines (line 4: 'hello')." in output
    data = ask_json(log)
    assert (data["ok"], data["foreign"], list(data["aside"])) == (True, 2, ["this-node"])


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_log_that_ends_within_a_message_is_no_all_clear(end: str) -> None:
    """Whichever tool has cut it: within a word, and between the lines of a message; it says which line."""
    for text in ("NVRM: RmInitAdapter fai", "NVRM: The NVIDIA GPU 0000:3b:00.0"):
        output = " ".join(ask(f"[ 1.0] {QUIET}\n[ 2.0] {text}{end}", status=1).split())
        assert "NO ALL-CLEAR for this-node: 1 of 2 lines could not be read (line 2: " in output
        assert "missing" in output
        assert "Nothing wrong" not in output


def test_the_last_line_has_no_end(tmp_path: Path) -> None:
    """An all-clear does not speak of it; where it begins as a message does, there is none."""
    output = ask(f"[ 1.0] {QUIET}\n[ 2.0] usb 1-1: n")
    assert "this-node: The log ends within line 2, which may go on: '[ 2.0] usb 1-1: n'." in output
    assert "the log ends within this line" in " ".join(
        ask(f"[ 1.0] {QUIET}\n[ 2.0] NVRM: GP", status=1).split()
    )
    # Of several machines it is the last one's, by its line in the file.
    log = tmp_path / "central.log"
    log.write_text(
        "\n".join(f"Nov 24 03:11:0{at} n{at} kernel: {QUIET if at < 2 else 'NVRM: G'}" for at in range(3))
    )
    result = CliRunner().invoke(diagnose, [str(log)])
    assert "NO ALL-CLEAR for n2: 1 of 1 lines could not be read (line 3: the log ends" in " ".join(
        result.output.split()
    )


def test_what_was_seen_and_no_rule_acts_on_is_no_nothing() -> None:
    """Four hundred times a program's fault: no incident, and it says so."""
    xid = "[ {}.0] NVRM: Xid (PCI:0000:19:00): 13, pid=1, name=python3, Graphics Exception: ESR 0x1=0x2\n"
    output = " ".join(ask("".join(xid.format(at) for at in range(400))).split())
    assert "Nothing wrong" not in output
    assert "[400 lines like this, to line 400]" in output
    assert "No incident: no rule acts on what is above" in output


OOM = (
    "Out of memory: Kill process 4711 (python3) score 917 or sacrifice child",
    "Memory cgroup out of memory: Kill process 4711 (python3) score 917 or sacrifice child",
    "Task in /slurm/uid_1000/job_4711 killed as a result of limit of /slurm/uid_1000/job_4711",
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,task_memcg=/a,task=python3,pid=4711,uid=0",
)


@pytest.mark.parametrize("text", OOM)
def test_an_announced_kill_without_the_killed_is_no_all_clear(text: str) -> None:
    """As a search leaves it: that a process was to be killed is said, which one was not."""
    for times in (1, 2):
        output = " ".join(ask(f"[ 1.0] {text}\n" * times + f"[ 2.0] {QUIET}\n", status=1).split())
        assert (
            f"NO ALL-CLEAR for this-node: {times} of {times + 1} lines could not be read (line 1: " in output
        )
        assert "which process was killed is not said" in output
    killed = "[ 1.1] Killed process 4711 (python3) total-vm:7kB, anon-rss:6kB, file-rss:0kB\n"
    assert ask_json(f"[ 1.0] {text}\n{killed}")["unread"] == 0
