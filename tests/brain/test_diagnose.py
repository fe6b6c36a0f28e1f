"""`gpuward diagnose`: a kernel log is pasted, and a person is told what it means."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from agent.shared.words import speaking
from brain.cli.diagnose import diagnose
from brain.cli.log_nodes import node_name
from brain.cli.main import FOLDERS
from tests.brain.diagnose_kit import BOOT, LINK, ask, ask_json

OFF_BUS = (
    "[  692.641414] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.\n"
)
OFF_BUS_TOO = "[  692.641500] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
MMU = "[  100.5] NVRM: Xid (PCI:0000:5d:00): 31, pid=77, name=train, Ch 00000008, intr 00000000. MMU Fault\n"


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
    "no name yet": "Nov 20 13:15:47 (none) kernel: [TIME] TEXT",
    "Chinese": "11月 20 13:15:47 gpu-17 kernel: TEXT",
    "Chinese, March": " 3月 02 13:15:47 gpu-17 kernel: TEXT",
    "Chinese dmesg -T": "[五 11月 20 13:15:47 2026] TEXT",
    "Chinese dmesg -T, March": "[一  3月  2 13:15:47 2026] TEXT",
    "Chinese dmesg -H": "[11月20 13:15] TEXT",
    "Chinese short-full": "五 2026-11-20 13:15:47 CST gpu-17 kernel: TEXT",
    "Japanese dmesg -T": "[金 11月 20 13:15:47 2026] TEXT",
    "Korean": "11월 20 13:15:47 gpu-17 kernel: TEXT",
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
    assert data["incidents"][0]["sure"] == "fairly: 50 lines of one kind say so"
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
    assert incident["sure"] == "very: 2 different signs agree, in 4 lines"


def test_what_is_explained_counts_as_a_sign() -> None:
    """A double bit error, and the row that it made the driver remap: the second confirms the first."""
    xid = "[ 10.{}] NVRM: Xid (PCI:0000:86:00): {}\n"
    error = xid.format(
        1, "48, pid=7, name=python3, An uncorrectable double bit error (DBE) has been detected on GPU"
    )
    row = xid.format(
        2,
        "63, pid=7, name=python3, Row Remapper: New row (0x4bd1a0) marked for remapping, reset gpu to activate.",
    )
    (incident,) = ask_json(error + row)["incidents"]
    assert incident["cause"] == "gpu-fatal-xid"
    assert incident["sure"] == "fairly: 2 lines of one kind say so"


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
    with speaking("zh", FOLDERS):
        assert "先排空节点" in ask(OFF_BUS)


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
ITS_PORT_SAYS_SO_FIRST = (
    "pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0",
    "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "pcieport 0000:3a:00.0: AER: device recovery failed",
)
LOST_AT_PROBE = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330)",
    "NVRM: installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
    *NO_PROBE[2:],
)


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        (NO_PROBE, "gpu-init-failed"),
        (PULLED, "gpu-lost"),
        (LOST_AT_PROBE, "gpu-lost"),
        (ITS_PORT_SAYS_SO_FIRST, "gpu-lost"),
    ],
    ids=["probe", "pulled", "off the bus at probe", "its port says so first"],
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
    assert node_name("gpu-017", ()) == "gpu-017"
    assert node_name("-", ()) == "this-node"
    assert node_name("dmesg (1) ä", ()) == "dmesg-1"
    assert node_name("a/b", ("a-b", "a-b-2")) == "a-b-3"


def test_a_driver_that_is_no_version_is_refused() -> None:
    """It would be taken for a driver that no table knows, silently."""
    assert "a version has numbers and dots, as 580.82: not 'abc'" in ask(OFF_BUS, "--driver", "abc", status=2)
    assert "gpu-lost" in ask(OFF_BUS, "--driver", "580.82.07")


def test_what_the_gates_say_to_every_step_is_said_once() -> None:
    """Five times the same hides the steps."""
    output = " ".join(ask(OFF_BUS).split())
    assert output.count("it is not known yet whether other nodes show it too") == 1
    assert "4. reboot: node.reboot() — disrupts node; gates: the same; verified by symptoms gone" in output
