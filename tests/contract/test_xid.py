# ruff: noqa: E501  # kernel lines stand as they are printed
"""XID lines of every driver generation, and off-bus messages, say the same whoever reads them."""

import importlib.util
import time
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract import kernel_text, kinds
from agent.contract.components import check
from agent.contract.messages import Severity
from agent.contract.xid import parse, parse_off_bus
from agent.contract.xid_facts import XidReader
from agent.contract.xid_table import XIDS
from tests.yardstick import slowness

ROOT = Path(__file__).resolve().parents[2]
CATALOG = yaml.load((ROOT / "rules/catalog/xid.yaml").read_text(), Loader=yaml.CSafeLoader)

FORMS: list[tuple[str, dict[str, Any]]] = [
    (  # 570 and newer, process unknown
        "NVRM: Xid (PCI:0000:38:00): 79, GPU has fallen off the bus.",
        {"component": "gpu/0000:38:00", "code": 79, "message": "GPU has fallen off the bus.", "pid": None},
    ),
    (  # up to 565, process unknown
        "NVRM: Xid (PCI:0000:b5:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 1, "
        "TPC 3, SM 0): Out Of Range Address",
        {
            "component": "gpu/0000:b5:00",
            "code": 13,
            "pid": None,
            "process": "",
            "message": "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address",
        },
    ),
    (
        "NVRM: Xid (PCI:0002:00:00): 119, pid=1582259, name=nvc:[driver], Timeout after 6s of waiting for RPC",
        {"pid": 1582259, "process": "nvc:[driver]", "message": "Timeout after 6s of waiting for RPC"},
    ),
    (  # before 515: no name
        "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping",
        {"pid": 1896, "process": "", "message": "Row Remapper: New row marked for remapping"},
    ),
    (
        "NVRM: Xid (PCI:0000:10:1c): 31, pid=7, name=tmux: server, Ch 00000008, intr 00000000",
        {"pid": 7, "process": "tmux: server", "message": "Ch 00000008, intr 00000000"},
    ),
    ("NVRM: Xid (PCI:0000:10:1c): 31, pid=7, name=a,b, Ch 8", {"pid": 7, "process": "a,b", "message": "Ch 8"}),
    ("NVRM: Xid (PCI:0000:10:1c): 31, pid=7, name=last", {"pid": 7, "process": "last", "message": ""}),
    ("NVRM: Xid (PCI:0000:10:1c): 31, pid=7", {"pid": 7, "process": "", "message": ""}),
    (  # very old: no PCI:
        "NVRM: Xid (0000:03:00): 14, Channel 00000001",
        {"component": "gpu/0000:03:00", "code": 14, "message": "Channel 00000001"},
    ),
    (  # before 256: a bus of four digits and a slot, no domain
        "NVRM: Xid (0003:00): 13, 0001 00000000 00005097 00001b0c 1000f010 00000040",
        {"component": "gpu/0000:03:00", "code": 13},
    ),
    ("NVRM: Xid (PCI:0000:3B:00.0): 48, DBE", {"component": "gpu/0000:3b:00", "code": 48}),
    ("NVRM: Xid (PCI:00000000:3B:00.0): 48, DBE", {"component": "gpu/0000:3b:00", "code": 48}),
    ("NVRM: Xid (PCI:0000:38:00): 79 GPU has fallen off the bus.", {"code": 79, "message": "GPU has fallen off the bus."}),
    ("NVRM: Xid (PCI:0000:38:00): 79", {"code": 79, "message": ""}),
    (
        "NVRM: Xid (PCI:0000:38:00 GPU-I:05 GPU-CI:00): 31, pid=12, name=python, Ch 1",
        {"component": "gpu/0000:38:00/gi5/ci0", "code": 31, "pid": 12},
    ),
    ("NVRM: Xid (PCI:0000:38:00 GPU-I:11): 94, Contained", {"component": "gpu/0000:38:00/gi11", "code": 94}),
    (  # 575 and newer
        "NVRM: Xid (PCI:0000:38:00): 45, pid=9, name=python, Ch 00000010 caused by previous Xid 31",
        {"code": 45, "caused_by": 31, "pid": 9},
    ),
    (
        "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        {"code": 154, "recovery_action": 1, "link": None},
    ),
    (
        "NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on "
        "link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
        {"code": 74, "link": 14},
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 0x0 0x0 0x0)",
        {"code": 149, "link": 9},
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 155, NVLINK_SW_DEFINED_ERROR  Fatal   XC0 i0 Link 03 : Link Down While Active.",
        {"code": 155, "link": 3},
    ),
    ("NVRM: Xid (PCI:0018:01:00): 150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x0 0x0 0x0 0x0)", {"code": 150, "link": None}),
]  # fmt: skip

NOT_XIDS = [
    "",
    "NVRM: GPU at PCI:0000:9b:00: GPU-11111111-2222-3333-4444-555555555555",
    "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
    "NVRM: Xid (PCI:zzzz:38:00): 79, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:38:00): , GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:38:00): 99999999999, what",
    "job output says: NVRM: Xid (PCI:0000:38:00): 79, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:38:00",
]

PROBE = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0\n"
    "NVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)


@pytest.mark.parametrize(("text", "want"), FORMS, ids=[text[11:60] for text, _ in FORMS])
def test_every_form_of_the_line_is_read(text: str, want: dict[str, Any]) -> None:
    """Each generation's form gives component, code, process and message."""
    found = parse(text)
    assert found is not None
    assert {key: getattr(found, key) for key in want} == want
    assert check(found.component)


@pytest.mark.parametrize("text", NOT_XIDS)
def test_other_lines_are_no_xid(text: str) -> None:
    """Nothing is read into lines that only look alike."""
    assert parse(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: GPU 0000:3B:00.0: GPU has fallen off the bus.",
        "NVRM: GPU at 0000:3b:00.0 has fallen off the bus.",
        "NVRM: GPU at 0000:3b:00.0: has fallen off the bus.",
        "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.",
        "NVRM: GPU 3b:00.0 has fallen off the bus.",
        PROBE,
    ],
)
def test_a_gpu_off_the_bus_is_seen_without_an_xid(text: str) -> None:
    """The run-time message and the three lines at probe both name the GPU."""
    (unsent,) = XidReader().read(text)
    assert (unsent.kind, unsent.component, unsent.severity) == (
        "gpu.off_bus",
        "gpu/0000:3b:00",
        Severity.FATAL,
    )
    assert "fallen off the bus" in unsent.data["message"]  # type: ignore[operator]
    kinds.check(unsent)


def test_a_gpu_that_the_driver_does_not_support_is_not_off_the_bus() -> None:
    """The driver's other message about 'The NVIDIA GPU' is not taken for it."""
    text = "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1b06)\nNVRM: installed in this system is not supported"
    assert parse_off_bus(text) is None


@pytest.mark.parametrize("text", [*[text for text, _ in FORMS], "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", PROBE])  # fmt: skip
def test_all_four_encodings_say_the_same(text: str) -> None:
    """/dev/kmsg, journald, dmesg and dmesg --decode of one record lead to equal facts."""
    escaped = text.replace("\n", "\\x0a")
    encoded = [
        [f"3,344,692641414,-;{escaped}"],
        text.split("\n"),
        [f"[  692.641414] {part}" for part in text.split("\n")],
        [f"kern  :err   : 2026-11-20T13:17:35,651653+00:00 {part}" for part in text.split("\n")],
    ]
    facts = [
        [(unsent.kind, unsent.component, unsent.severity, unsent.data) for _, line in kernel_text.records(lines) for unsent in XidReader().read(line.text)]
        for lines in encoded
    ]  # fmt: skip
    assert len(facts[0]) == 1
    assert all(one == facts[0] for one in facts)


@pytest.mark.parametrize("row", CATALOG["xids"], ids=lambda row: str(row["code"]))
def test_every_code_of_the_catalogue_becomes_a_declared_event(row: dict[str, Any]) -> None:
    """Name and action are the catalogue's; the samples from real machines are read."""
    for text in filter(None, (row.get("sample"), f"NVRM: Xid (PCI:0000:38:00): {row['code']}, text")):
        (unsent,) = XidReader().read(text)
        kinds.check(unsent)
        assert unsent.data["code"] == row["code"]
        assert unsent.data["name"] == row["name"]
        assert unsent.severity is not Severity.UNKNOWN
        if row["action"] != "WORKFLOW_NVLINK5_ERR":
            assert unsent.data["action"] == (row["action"] or "")


def test_an_unknown_code_is_observed_without_an_action() -> None:
    """Safety law 5 begins here."""
    (unsent,) = XidReader().read("NVRM: Xid (PCI:0000:38:00): 9999, something new")
    assert unsent.severity is Severity.UNKNOWN
    assert (unsent.data["name"], unsent.data["action"]) == ("unknown", "")


@pytest.mark.parametrize(
    ("value", "severity"),
    [("0x0 (None)", "info"), ("0x1 (GPU Reset Required)", "fatal"), ("0x3 (Drain P2P)", "warning"), ("0x9 (?)", "unknown")],
)  # fmt: skip
def test_a_recovery_action_says_how_bad_it_is(value: str, severity: str) -> None:
    """XID 154 is judged by the new value; one of a newer driver is unknown."""
    line = f"NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x2 (Node Reboot Required) to {value}"
    (unsent,) = XidReader().read(line)
    assert unsent.severity.value == severity


RLW = (
    "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 ({bits} 0x00000004 0x1 0x0 0x0 0x0)"
)


@pytest.mark.parametrize(
    ("driver", "bits", "action", "unproven"),
    [
        ("570.86", "0x0409a0c2", "IGNORE", False),  # a line of a real machine
        ("570.86", "0x0409a4c2", "RESET_GPU", False),  # the same with the bit of the narrower mask
        ("580.82", "0x00000006", "IGNORE", True),
        ("580.82", "0x00000086", "RESET_GPU", True),
        ("580.82", "0x0409a0c2", "WORKFLOW_NVLINK5_ERR", False),  # does not fit the newer layout: not decided
        ("", "0x0409a0c2", "IGNORE", False),
        ("", "0x00000086", "RESET_GPU", True),
    ],
)
def test_nvlink5_errors_are_decoded_by_the_drivers_layout(
    driver: str, bits: str, action: str, unproven: bool
) -> None:
    """Old and new layout lead to the catalogue's action; what no real line has confirmed says so."""
    (unsent,) = XidReader(driver=driver).read(RLW.format(bits=bits))
    kinds.check(unsent)
    assert unsent.data["action"] == action
    assert unsent.data.get("unproven", False) is unproven
    assert (unsent.data["unit"], unsent.data["link"], unsent.severity) == ("RLW_RXPIPE", 13, Severity.WARNING)


def test_the_log_itself_tells_the_driver() -> None:
    """The line that the driver prints when it loads decides the layout; an explicit version overrides it."""
    loads = (
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs-builder@U22)"
    )
    line = RLW.format(bits="0x0409a0c2")
    for driver, action in (("", "WORKFLOW_NVLINK5_ERR"), ("570.1", "IGNORE")):
        reader = XidReader(driver=driver)
        assert reader.read(loads) == []
        assert reader.read(line)[0].data["action"] == action


def test_the_real_nvlink5_line_resets_the_gpu() -> None:
    """A link-down report of a real machine decodes to its catalogue action."""
    (row,) = (row for row in CATALOG["xids"] if row["code"] == 149)
    (unsent,) = XidReader(driver="570.124").read(row["sample"])
    assert (unsent.data["action"], unsent.data["link"], unsent.severity) == ("RESET_GPU", 9, Severity.FATAL)


def test_the_generated_tables_are_fresh() -> None:
    """Law freshness: xid_table.py and nvlink5_table.py are what the catalogue says."""
    for path, text in _generator().tables().items():
        assert path.read_text() == text, f"{path.name} is stale: run python deploy/dev/xid_table.py"


def test_the_catalogue_lost_nothing() -> None:
    """176 codes with the actions counted in the vendor's workbook."""
    assert len(XIDS) == 176
    actions = Counter(action for _, action, _ in XIDS.values())
    assert (actions["CONTACT_SUPPORT"], actions["RESTART_APP"], actions["RESET_GPU"]) == (62, 48, 14)
    assert len(CATALOG["nvlink5_decode"]["rows"]) == 95
    assert {row["source"] for row in CATALOG["xids"]} <= set(CATALOG["sources"])


@given(st.text(max_size=300), st.sampled_from(["", "NVRM: ", "NVRM: Xid (PCI:0000:38:00): 31, pid="]))
def test_no_text_breaks_the_parser(text: str, prefix: str) -> None:
    """Whatever stands in the log, reading it returns; and what it returns is declared."""
    for unsent in XidReader().read(prefix + text):
        kinds.check(unsent)
        check(unsent.component)


@given(
    st.from_regex(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]", fullmatch=True),
    st.integers(0, 99999),
    st.one_of(st.none(), st.integers(0, 2**31)),
    st.from_regex(r"[A-Za-z0-9_./:\[\]-]{1,16}", fullmatch=True),
    st.from_regex(r"[A-Z][A-Za-z0-9 ():]{0,40}[a-z.]", fullmatch=True),
)
@settings(max_examples=300)
def test_what_the_driver_prints_is_read_back(
    address: str, code: int, pid: int | None, name: str, message: str
) -> None:
    """For any values in the driver's print format, the parser returns those values."""
    who = "" if pid is None else f"pid={pid}, name={name}, "
    found = parse(f"NVRM: Xid (PCI:{address}): {code}, {who}{message}")
    assert found is not None
    assert (found.component, found.code, found.pid, found.message) == (f"gpu/{address}", code, pid, message)
    assert found.process == ("" if pid is None else name)


@pytest.mark.parametrize(
    "filler", ["pid=", "name=,", "NVRM: ", " link ", "(", "\n", "caused by previous Xid ", "a, "]
)
def test_a_long_line_costs_no_time(filler: str) -> None:
    """A megabyte of the worst repeats is read in well under a second."""
    began = time.thread_time()
    for head in ("NVRM: Xid (PCI:0000:38:00): 74, ", "NVRM: Xid (PCI:0000:38:00): 31, pid=1, name=", "NVRM: The NVIDIA GPU 0000:3b:00.0 "):  # fmt: skip
        XidReader().read(head + filler * (1_000_000 // len(filler)))
    assert (time.thread_time() - began) / slowness() < 0.5


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("xid_table_generator", ROOT / "deploy/dev/xid_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
