"""`gpuward diagnose`: a kernel log is pasted, and a person is told what it means."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from brain.cli import diagnosis
from brain.cli.diagnose import diagnose

BOOT = "[    0.000000] Linux version 6.1.0\n[    1.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07\n"
OFF_BUS = (
    "[  692.641414] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.\n"
)
OFF_BUS_TOO = "[  692.641500] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
MMU = "[  100.5] NVRM: Xid (PCI:0000:5d:00): 31, pid=77, name=train, Ch 00000008, intr 00000000. MMU Fault\n"


def ask(text: str, *options: str, status: int = 0, columns: int = 100) -> str:
    """What the command prints of a log on standard input."""
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(diagnose, list(options), input=text)
    assert result.exit_code == status, result.output
    return result.output


def ask_json(text: str, *options: str) -> dict[str, Any]:
    """As above, parsed."""
    return dict(json.loads(ask(text, "--json", *options)))


def test_a_lost_gpu(tmp_path: Path) -> None:
    """What is wrong, by which lines, what to do, and what gpuward would run, with the file's name as node."""
    log = tmp_path / "gpu-017.log"
    log.write_text(BOOT + MMU + OFF_BUS + OFF_BUS_TOO, encoding="utf-8")
    output = CliRunner().invoke(diagnose, [str(log)]).output
    assert "P1  gpu-lost  at gpu/gpu-017/0000:3b:00" in output
    assert "how sure: very: 2 different signs agree, in 2 lines" in output
    assert "gpu-017:4: NVRM: Xid (PCI:0000:3b:00): 79" in output
    assert "gpu-017:5: NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus." in output
    assert "to do:    Drain the node." in output
    assert "gpuward would run gpu-lost:" in output
    assert "1. evidence: evidence.collect(component=gpu/0000:3b:00" in output
    assert "gpu-017:3: NVRM: Xid (PCI:0000:5d:00): 31" in output.partition("on which no rule acts")[2]
    assert output.endswith("5 lines read: 3 with a known meaning, 2 without.\n")


XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
LINK = "mlx5_core 0000:5e:00.0 ib3: Link"
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


def test_logs_with_and_without_a_year(tmp_path: Path) -> None:
    """They are of the same minute: the link is as open as the GPU is lost."""
    (tmp_path / "n1.log").write_text(f"[Tue Nov 24 03:11:02 2026] {XID_79}\n")
    (tmp_path / "ld.log").write_text(f"Nov 24 03:11:09 gpu-07 kernel: {LINK} down\n")
    output = (
        CliRunner().invoke(diagnose, [str(tmp_path / "ld.log"), str(tmp_path / "n1.log"), "--json"]).output
    )
    found = {one["cause"]: one for one in json.loads(output)["incidents"]}
    assert set(found) == {"gpu-lost", "link-down"}
    assert found["link-down"]["silent_s"] == 0
    assert found["link-down"]["opened_at"] - found["gpu-lost"]["opened_at"] == pytest.approx(7)


@pytest.mark.parametrize("year", ["", "2026 "])
def test_a_year_ends(year: str) -> None:
    """In the middle of a log, also of one without years: the link was down for half an hour."""
    down = "2026-12-31T23:59:50Z" if year else "Dec 31 23:59:50"
    up = "2027-01-01T00:30:05Z" if year else "Jan  1 00:30:05"
    (incident,) = ask_json(f"{down} n kernel: {LINK} down\n{up} n kernel: {LINK} up\n")["incidents"]
    assert (incident["cause"], incident["lasted_s"]) == ("link-down", 1815)


LOG_SERVER = (
    "{time} gpu-07 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus.",
    "{time} gpu-08 kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=python3, DBE (double bit error) on FBPA",
    "{time} gpu-08 kernel: mlx5_core 0000:5e:00.0 ib3: Link down",
    "{time} gpu-09 kernel: mlx5_core 0000:5e:00.0 ib3: Link up",
)
JOURNAL = '{{"_HOSTNAME":"{host}","_TRANSPORT":"kernel","__REALTIME_TIMESTAMP":"1795180547123456","MESSAGE":"{text}"}}'


@pytest.mark.parametrize("form", ["syslog", "iso", "journal", "pdsh", "monotonic", "unix", "full"])
def test_a_log_of_several_machines(form: str, tmp_path: Path) -> None:
    """Each is judged by its own lines, by its own name; the lines are those of the file."""
    rows = []
    for row in LOG_SERVER:
        _, host, _, text = row.split(" ", 3)
        rows.append(
            {
                "syslog": row.format(time="Nov 24 03:11:05"),
                "iso": row.format(time="2026-11-24T03:11:05.1+00:00"),
                "journal": JOURNAL.format(host=host, text=text),
                "pdsh": f"{host}: [  12.345678] {text}",
                "monotonic": row.format(
                    time="[  123.456789]"
                ),  # journalctl -o short-monotonic, short-unix, short-full
                "unix": row.format(time="1795180547.123456"),
                "full": row.format(time="Tue 2026-11-24 03:11:05 UTC"),
            }[form]
        )
    (tmp_path / "central.log").write_text("\n".join(rows) + "\n")
    output = CliRunner().invoke(diagnose, [str(tmp_path / "central.log"), "--json"]).output
    found = {(one["cause"], one["scope"].split("/")[1]): one for one in json.loads(output)["incidents"]}
    assert {("gpu-lost", "gpu-07"), ("link-down", "gpu-08")} <= set(found)
    assert "gpu-09" not in {node for _, node in found}
    assert "gpu-08" in {node for cause, node in found if cause.startswith("gpu-")}
    assert found["link-down", "gpu-08"]["shown"][0].startswith("gpu-08:3: ")


def test_json_has_stable_keys() -> None:
    """What scripts read."""
    data = ask_json(BOOT + OFF_BUS)
    assert data["ok"] is False
    assert (data["lines"], data["meaningful"], data["other"]) == (3, 1, [])
    (incident,) = data["incidents"]
    assert incident["cause"] == "gpu-lost"
    assert incident["severity"] == "P1"
    assert incident["scope"] == "gpu/this-node/0000:3b:00"
    assert incident["symptoms"] == ["gpu_off_bus@gpu/this-node/0000:3b:00"]
    assert incident["sure"] == "one line says so, nothing else confirms it"
    assert incident["runbook"] == "gpu-lost"
    plan = [line for line in incident["plan"] if ": left out, " not in line]
    assert len(plan) == 11, "every rung but the rescan (nothing was removed), and the way back"
    assert plan[-4:-1] == [
        "back 2. ports: port.check() (after reboot or power cycle) — disrupts nothing",
        "back 3. diagnosis: gpu.diagnose(level=2) — disrupts nothing",
        "back 4. acceptance: node.accept(suite=quick) — disrupts nothing",
    ]
    assert incident["advice"]["todo"]["zh"]
    assert {"id", "state", "runs", "opened_at"} <= incident.keys()


@pytest.mark.parametrize("text", ["[    1.0] hello\n", "[    1.0] hello\n\n[    1.1] world\n", BOOT])
def test_nothing_wrong(text: str) -> None:
    """A healthy log, in which no line has a known meaning."""
    lines = text.count("\n")
    assert ask(text).startswith(f"Nothing wrong found in {counted(lines, 'line')}.")
    assert ask_json("[    1.0] x\n" * 3) == {
        "ok": True, "incidents": [], "lines": 3, "meaningful": 0, "unread": 0, "blind": {}, "other": [],
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
    assert output.startswith("NO ALL-CLEAR for this-node: 1 of 3 lines could not be read")


@pytest.mark.parametrize("line", ["13:17:35 | hello", "13:17:35 | NVRM: Xid (PCI:0000:3b:00): 79, x"])
def test_one_line_that_it_cannot_read_is_no_all_clear(line: str) -> None:
    """However many others it has read."""
    output = " ".join(ask(BOOT * 30 + line + "\n", status=1).split())
    assert output.startswith(
        "NO ALL-CLEAR for this-node: 1 of 61 lines could not be read (line 61: its form is not known: "
    )
    assert "Nothing wrong" not in output
    assert output.endswith("60 without. 1 line could not be read.")


ENTRY = {
    "_TRANSPORT": "kernel",
    "MESSAGE": "TEXT",
    "__REALTIME_TIMESTAMP": "1795180547123456",
    "PRIORITY": "3",
}
FORMS = {
    "no host": "Nov 20 13:15:47 kernel: TEXT",
    "iso, no host": "2026-11-20T13:15:47+0000 kernel: TEXT",
    "monotonic, no host": "[TIME] kernel: TEXT",
    "sse": f"data: {json.dumps(ENTRY)}\n",
    "pretty": json.dumps(ENTRY, indent="\t", separators=(",", " : ")),
    "delta": "[<    1.500000>] TEXT",
    "rfc5424": "<3>1 2026-11-20T13:15:47Z gpu-17 kernel - - - TEXT",
    "busybox": "Nov 20 13:15:47 gpu-17 kern.err kernel: [TIME] TEXT",
    "syslog-ng": "2026-11-20T13:15:47+00:00 gpu-17 [kern.err] kernel: TEXT",
    "level": "kern.err: [TIME] TEXT",
    "pdsh": "gpu-17: [TIME] [  T812] TEXT",
    "quote": "> [TIME] TEXT",
    "grep": "17:[TIME] TEXT",
    "cat": "     17\t[TIME] TEXT",
    "kubectl": "[pod/agent-x/agent] [TIME] TEXT",
    "indented": "    [TIME] TEXT",
    "tab": "\t[TIME] TEXT",
}


@pytest.mark.parametrize("begin", [2.0, 120.0])
@pytest.mark.parametrize("form", FORMS)
def test_a_dead_gpu_in_each_form_that_people_paste(form: str, begin: float) -> None:
    """In a log of one form, at any time since the boot: found, and nothing is left unread."""
    texts = [
        *["usb 1-1: new device"] * 20,
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "x",
    ]
    lines = (FORMS[form].replace("TIME]", f"{begin + at:12.6f}]") for at in range(len(texts)))
    log = "".join(f"{line.replace('TEXT', text)}\n" for line, text in zip(lines, texts, strict=True))
    data = ask_json(log)
    assert ([incident["cause"] for incident in data["incidents"]], data["unread"]) == (["gpu-lost"], 0)


@pytest.mark.parametrize("caller", ["[ T1234] ", "[    C12] "])
@pytest.mark.parametrize(
    "time",
    [
        "[  692.641414] ",
        "[Fri Nov 20 13:17:35 2026] ",
        "kern  :err   : [  692.641414] ",
        "2026-11-20T13:17:35,6+00:00 ",
    ],
)
def test_a_dead_gpu_in_a_log_with_callers(time: str, caller: str) -> None:
    """Kernels with CONFIG_PRINTK_CALLER name the thread or the processor of each record."""
    line = (
        f"{time}{caller}NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.\n"
    )
    assert [incident["cause"] for incident in ask_json(line)["incidents"]] == ["gpu-lost"]


def test_a_compressed_log(tmp_path: Path) -> None:
    """Read as what it holds, and named as the node, without what compression added."""
    log = tmp_path / "gpu-017.log.gz"
    log.write_bytes(gzip.compress(OFF_BUS.encode()))
    assert "gpu-lost  at gpu/gpu-017/0000:3b:00" in CliRunner().invoke(diagnose, [str(log)]).output


def test_what_has_passed_comes_last_and_says_so() -> None:
    """A port that was down for three seconds is not what to look at first; one line is one sign, though it is two facts."""
    down = "[  10.0] mlx5_core 0000:41:00.0 eth2: Link down\n[  13.5] mlx5_core 0000:41:00.0 eth2: Link up\n"
    unknown = "[ 20.0] NVRM: Xid (PCI:0000:5d:00): 900, never seen\n"
    data = ask_json(down + unknown)
    assert [(one["cause"], one["lasted_s"]) for one in data["incidents"]] == [
        ("gpu-unknown-xid", 0.0),
        ("link-down", 3.5),
    ]
    assert "  over:     it lasted 3.5 s; a line says that it has ended" in ask(down + unknown)
    (asks,) = ask_json(
        "[ 5.0] NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"
    )["incidents"]
    assert (len(asks["shown"]), asks["sure"]) == (1, "one line says so, nothing else confirms it")


@pytest.mark.parametrize("columns", [60, 80])
def test_it_fits_the_terminal(columns: int) -> None:
    """No row is wider, but for what cannot be broken (a link)."""
    rows = ask(BOOT + MMU + OFF_BUS + OFF_BUS_TOO, columns=columns).splitlines()
    assert [row for row in rows if len(row) > columns and "https://" not in row] == []


def test_harmless_lines_are_shown_apart() -> None:
    """An XID that only says what a program did opens nothing, and is not hidden either."""
    data = ask_json(MMU)
    assert data["incidents"] == []
    assert data["other"] == [
        "this-node:1: NVRM: Xid (PCI:0000:5d:00): 31, pid=77, name=train, Ch 00000008, intr 00000000. MMU Fault"
        "  (ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT: RESTART_APP)"
    ]


def test_repeated_lines_are_one_finding() -> None:
    """Fifty times the same: one incident, and nothing left over."""
    data = ask_json("".join(OFF_BUS.replace("692.", f"{692 + n}.") for n in range(50)))
    assert [incident["cause"] for incident in data["incidents"]] == ["gpu-lost"]
    assert data["incidents"][0]["sure"] == "fairly: 6 lines of one kind say so"
    assert data["other"] == []


def test_the_worst_comes_first() -> None:
    """And what follows from it is explained by it."""
    unknown = "[ 10.0] NVRM: Xid (PCI:0000:5d:00): 900, never seen\n"
    data = ask_json(unknown + OFF_BUS + OFF_BUS.replace("79, pid=1234, name=python3, GPU", "119, Timeout"))
    assert [(one["severity"], one["cause"]) for one in data["incidents"]] == [
        ("P1", "gpu-lost"),
        ("P3", "gpu-unknown-xid"),
    ]


def test_what_is_explained_is_shown_below_what_explains_it() -> None:
    """Whichever came first: which GPU is hit is not lost."""
    xid = "NVRM: Xid (PCI:{}): 74, pid=1, NVLink: fatal error detected on link 5(0x10000, 0x0)\n"
    switch = "[ 10.5] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
    before, after = f"[ 10.1] {xid.format('0000:3b:00')}", f"[ 15.0] {xid.format('0000:5e:00')}"
    data = ask_json(before + switch + after + after)
    (incident,) = data["incidents"]
    assert incident["cause"] == "nvswitch-fatal"
    assert [(one["cause"], one["scope"]) for one in incident["explained"]] == [
        ("gpu-nvlink-errors", "gpu/this-node/0000:3b:00"), ("gpu-nvlink-errors", "gpu/this-node/0000:5e:00")
    ]  # fmt: skip
    assert incident["explained"][0]["shown"] == [f"this-node:1: {xid.format('0000:3b:00').strip()}"]
    assert incident["explained"][1]["shown"][0].endswith("[2 lines like this, to line 4]")
    assert data["other"] == []
    assert "  explains: gpu-nvlink-errors at gpu/this-node/0000:5e:00" in ask(before + switch + after)


@pytest.mark.parametrize(
    ("line", "times", "cause"),
    [
        ("nvidia 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", 45, "gpu-pcie"),
        ("nvme 0000:02:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", 45, "pcie-corrected"),
        ("EDAC MC0: 1 CE memory read error on P1-DIMMH1 (channel:0 page:0x{} offset:0x0 grain:32)", 30, "memory-corrected"),
    ],
)  # fmt: skip
def test_a_flood_of_corrected_errors_is_an_incident(line: str, times: int, cause: str) -> None:
    """Whose lines are shown once, with their number; a few of them are no incident, and are shown once, too."""
    flood = [f"[{1000 + at}.5] {line.format(at)}\n" for at in range(times)]
    (incident,) = ask_json("".join(flood))["incidents"]
    assert (incident["cause"], incident["severity"], incident["runbook"]) == (cause, "P3", "")
    assert len(incident["shown"]) == 1
    assert incident["shown"][0].endswith(f"[{times} lines like this, to line {times}]")
    data = ask_json("".join(flood[:5]))
    assert (data["incidents"], len(data["other"])) == ([], 1)
    assert data["other"][0].endswith("[5 lines like this, to line 5]")


def test_what_the_end_of_a_log_leaves_open_lasts() -> None:
    """A log ends when it was copied: what must last for minutes to be a fault is none only if the log says that it is over."""
    mismatch = (
        "[ 1000.5] NVRM: API mismatch: the client has the version 570.86.10, but\n"
        "          NVRM: this kernel module has the version 550.54.15.  Please\n"
        "          NVRM: make sure that this kernel module and all NVIDIA driver\n"
        "          NVRM: components have the same version.\n"
    )
    gone, back = (
        "[ 1000.5] nfs: server 10.0.0.5 not responding, still trying\n",
        "[ 1010.5] nfs: server 10.0.0.5 OK\n",
    )
    for log, causes in ((mismatch, ["driver-mismatch"]), (gone, ["file-server-gone"]), (gone + back, [])):
        assert [one["cause"] for one in ask_json(log)["incidents"]] == causes


def test_chinese() -> None:
    """The advice in the other language."""
    assert "先排空节点" in ask(OFF_BUS, "--lang", "zh")


def test_the_driver_message_of_three_lines() -> None:
    """As dmesg shows it: one fact, quoted by its first line."""
    data = ask_json(
        "[    5.1] NVRM: The NVIDIA GPU 0000:5d:00.0\n"
        "[    5.1] NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "[    5.1] NVRM: fallen off the bus and is not responding to commands.\n"
    )
    (incident,) = data["incidents"]
    assert incident["scope"] == "gpu/this-node/0000:5d:00"
    assert incident["shown"][0].startswith("this-node:1: NVRM: The NVIDIA GPU 0000:5d:00.0 NVRM: (PCI ID")


NO_PROBE = (
    "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
    "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:3b:00.0)",
    "nvidia: probe of 0000:3b:00.0 failed with error -1",
    "NVRM: The NVIDIA probe routine failed for 1 device(s).",
    "NVRM: None of the NVIDIA devices were initialized.",
)
PULLED = (
    "pcieport 0000:3a:00.0: pciehp: Slot(12): Link Down",
    "pcieport 0000:3a:00.0: pciehp: Slot(12): Card not present",
    "NVRM: Attempting to remove device 0000:3b:00.0 with non-zero usage count!",
    "nvidia 0000:3b:00.0: Unable to change power state from D3cold to D0, device inaccessible",
)
LOST_AT_PROBE = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330)",
    "NVRM: installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
    *NO_PROBE[2:],
)


@pytest.mark.parametrize(
    ("texts", "cause"),
    [(NO_PROBE, "gpu-init-failed"), (PULLED, "gpu-lost"), (LOST_AT_PROBE, "gpu-lost")],
    ids=["probe", "pulled", "off the bus at probe"],
)
def test_a_gpu_that_does_not_start_or_is_pulled_is_one_incident(texts: tuple[str, ...], cause: str) -> None:
    """However many lines the kernel, its PCI core and the driver write about it."""
    (incident,) = ask_json("".join(f"[  905.1000{at:02}] {text}\n" for at, text in enumerate(texts)))[
        "incidents"
    ]
    assert (incident["cause"], incident["scope"], incident["severity"]) == (
        cause,
        "gpu/this-node/0000:3b:00",
        "P1",
    )


def test_a_slave_that_was_taken_out_of_its_bond_is_no_fault() -> None:
    """Down, then released: the bond is whole. Down and not released: it is degraded."""
    down = "[ 10.0] bond0: (slave eth2): link status definitely down, disabling slave\n"
    assert [one["cause"] for one in ask_json(down)["incidents"]] == ["bond-degraded"]
    assert ask_json(down + "[ 11.0] bond0: (slave eth2): Releasing backup interface\n" + BOOT)["ok"] is True


def test_many_nodes_show_a_shared_cause(tmp_path: Path) -> None:
    """Logs on the wall clock are laid side by side: twelve of twelve nodes are one cause, two of them hours apart are not."""
    line = "2026-11-20T{}:00:00.5+00:00 host kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    for apart, causes in ((False, ["shared-gpu-off-bus-cell"]), (True, ["gpu-lost"] * 2)):
        files = []
        for number in range(12):
            file = tmp_path / f"n{number}.log"
            xid = line.format(f"{number if apart else 7:02d}")
            file.write_text(
                xid if number < 2 or not apart else xid.replace("Xid", "nothing"), encoding="utf-8"
            )
            files.append(str(file))
        data = json.loads(CliRunner().invoke(diagnose, ["--json", *files]).output)
        assert [incident["cause"] for incident in data["incidents"]] == causes


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """An error of the operator, named."""
    result = CliRunner().invoke(diagnose, [str(tmp_path / "none.log")])
    assert isinstance(result.exception, ConfigError)
    assert "none.log: cannot be read: No such file" in str(result.exception)


def test_node_names() -> None:
    """Any file name gives a node name that scopes can hold; two files are two nodes."""
    assert diagnosis.node_name("gpu-017", ()) == "gpu-017"
    assert diagnosis.node_name("-", ()) == "this-node"
    assert diagnosis.node_name("dmesg (1) ä", ()) == "dmesg-1"
    assert diagnosis.node_name("a/b", ("a-b", "a-b-2")) == "a-b-3"


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


def test_a_driver_that_is_no_version_is_refused() -> None:
    """It would be taken for a driver that no table knows, silently."""
    assert "a version has numbers and dots, as 580.82: not 'abc'" in ask(OFF_BUS, "--driver", "abc", status=2)
    assert "gpu-lost" in ask(OFF_BUS, "--driver", "580.82.07")
