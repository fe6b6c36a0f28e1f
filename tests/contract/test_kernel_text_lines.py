"""Kernel messages of several lines, and lines of no known form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.kernel_documents import unwrapped
from agent.contract.kernel_text import (
    KERNEL,
    MAX_TEXT,
    USER,
    Clock,
    has_unknown_form,
    parse,
    records,
)
from agent.contract.xid import parse_off_bus
from tests.contract.kernel_lines import TABLE
from tests.contract.test_kernel_text import XID

OFF_BUS = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0\n"
    "NVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)


MISMATCH = (
    "NVRM: API mismatch: the client has the version 470.129.06, but\n"
    "NVRM: this kernel module has the version 535.104.05.  Please\n"
    "NVRM: make sure that this kernel module and all NVIDIA driver\n"
    "NVRM: components have the same version."
)


MISMATCH_OF_A_PROCESS = (
    "NVRM: API mismatch: the client 'nvidia-smi' (pid 4711)\n"
    "NVRM: has the version 570.86.15, but this kernel module has\n"
    "NVRM: the version 550.54.15.  Please make sure that this\n"
    "NVRM: kernel module and all NVIDIA driver components\n"
    "NVRM: have the same version."
)


# How its first line and the further ones begin.
SPREADS = {
    "dmesg": ("[   10.000000] ", " " * 15),
    "caller": ("[   10.000000] [  T1234] ", " " * 25),
    "force-prefix": ("[   10.000000] ",) * 2,
    "raw": ("<3>[   10.000000] ",) * 2,
    "ctime": ("[Fri Nov 20 13:17:35 2026] ", " " * 27),
    "decoded": ("kern  :err   : [   10.000000] ", " " * 30),
    "iso": ("kern  :err   : 1970-01-01T00:00:10,000000+00:00 ",) * 2,
    "journald": ("Nov 20 13:17:35 gpu-17 kernel: ",) * 2,
    "journald-indented": ("Nov 20 13:17:35 gpu-17 kernel: ", " " * 31),
    "quoted": ("> [   10.000000] ", "> [   10.000000] "),
    "bare": ("", ""),
}


@pytest.mark.parametrize(
    "message", [OFF_BUS, MISMATCH, MISMATCH_OF_A_PROCESS], ids=["off-bus", "mismatch", "process"]
)
@pytest.mark.parametrize("form", [*SPREADS, "kmsg", "json", "json-pretty", "dmesg-J"])
def test_a_message_of_several_lines_is_one_record(form: str, message: str) -> None:
    """One printk stays one record, numbered by its first line, and what follows is another."""
    entry = {"_TRANSPORT": "kernel", "MESSAGE": message, "__REALTIME_TIMESTAMP": "1795180655250000"}
    text = {
        "kmsg": "6,344,10000000,-;" + message.replace("\n", "\\x0a"),
        "json": json.dumps(entry),
        "json-pretty": json.dumps(entry, indent="\t", separators=(",", " : ")),
        "dmesg-J": json.dumps({"dmesg": [{"pri": 3, "time": 10.0, "msg": message}]}, indent=3),
    }.get(form)
    if text is None:
        first, *further = message.split("\n")
        text = "\n".join([SPREADS[form][0] + first, *(SPREADS[form][1] + part for part in further)])
    found = list(records([*text.splitlines(keepends=True), "[   11.000000] usb 1-1: new device\n"]))
    assert [line.text for _, line in found] == [message, "usb 1-1: new device"]
    assert found[0][0] == (3 if form == "dmesg-J" else 1)


def test_a_program_does_not_go_on_for_the_kernel() -> None:
    """What a program writes after the kernel's first line is no part of it; what is indented below a program's line is its."""
    first, second, third = OFF_BUS.split("\n")
    lines = [
        f"kern  :err   : [ 1.0] {first}",
        f"user  :err   : [ 1.1] {second}",
        f"kern  :err   : [ 1.2] {third}",
    ]
    assert [(line.text, line.facility) for _, line in records(lines)] == [
        (f"{first}\n{third}", KERNEL),
        (second, USER),
    ]
    lines = [
        "Nov 20 13:17:35 gpu-17 train[7]: hello",
        f"                                 {XID}",
        f"                                 [ 1512.651653] {XID}",
        f"Nov 20 13:17:35 gpu-17 kernel: {XID}",
    ]
    assert [line.facility for _, line in records(lines)] == [USER, USER, USER, KERNEL]


PRETTY = [
    {"_TRANSPORT": "kernel", "MESSAGE": XID, "__REALTIME_TIMESTAMP": "1795180655250000", "PRIORITY": "3"},
    {"_TRANSPORT": "syslog", "MESSAGE": [120, 7], "__REALTIME_TIMESTAMP": "1795180655250000"},
]


def test_objects_over_several_lines_are_records() -> None:
    """journalctl -o json-pretty, also with bytes one a line; an object that does not end, and one that is none, are lines."""
    for indent in ("\t", "    "):
        text = "\n".join(json.dumps(one, indent=indent, separators=(",", " : ")) for one in PRETTY)
        found = list(records(text.splitlines(keepends=True)))
        assert [(number, line.text, line.facility) for number, line in found] == [
            (1, XID, KERNEL),
            (7, "x\x07", USER),
        ]
        cut = text.splitlines()[:4]
        assert [number for number, _ in unwrapped([*cut, "[ 1.0] x"])] == [1, 2, 3, 4, 5]
    assert [line.text for _, line in records(["[ 1.0] a", "{", f"[ 2.0] {XID}", "}"])] == ["a", "{", XID, "}"]


@pytest.mark.parametrize("breaks", [("installed", "fallen"), ("fallen",), ()])
def test_drivers_break_the_off_bus_message_differently(breaks: tuple[str, ...]) -> None:
    """After the address, after the PCI ID, in two lines."""
    text = OFF_BUS.replace("\nNVRM: ", " ")
    for word in breaks:
        text = text.replace(f" {word}", f"\nNVRM: {word}")
    lines = text.split("\n")
    assert [line.text for _, line in records([f"[ 1.5] {line}" for line in lines])] == ["\n".join(lines)]


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-20T13:15:47.123456Z ",
        "2026-11-20T13:15:47.123456789+00:00 stdout F ",
        "Nov 20 13:15:47 ",
        "1795180655.250000 ",
        "Fri 2026-11-20 13:17:35 UTC ",
    ],
)
def test_the_words_of_a_driver_are_no_host_and_program(time: str) -> None:
    """A time and the bare message (`dmesg -t | ts`, a container's log): its first words may look like `host program:`."""
    for text, *_ in TABLE:
        # Of a process nobody can tell: `journalctl --no-hostname` writes a program's lines so.
        if "\n" in text or "segfault" in text or text.startswith("["):
            continue
        line = parse(time + text)
        assert line is not None
        assert (line.text, line.facility) == (text.rstrip(), KERNEL), text


@pytest.mark.parametrize("host", ["nvme", "EDAC", "Memory", "NETDEV", "sd", "block"])
def test_a_host_may_be_called_as_a_driver(host: str) -> None:
    """Its programs are still programs."""
    for tag in ("sshd[7]", "train", "nvme-cli"):
        line = parse(f"Nov 20 13:15:47 {host} {tag}: {XID}")
        assert line is not None
        assert (line.text, line.facility) == (XID, USER)


@pytest.mark.parametrize("between", ["#012", "#015#012", "#012#011", r"\n", r"\r\n", " "])
@pytest.mark.parametrize("breaks", [("installed", "fallen"), ("(PCI", "fallen"), ("fallen",)])
def test_a_message_of_several_lines_may_be_written_in_one(breaks: tuple[str, ...], between: str) -> None:
    """rsyslog writes a line break as #012, exports as a backslash and an n, and some as a blank: the same GPU is dead."""
    text = OFF_BUS.replace("\nNVRM: ", " ")
    for word in breaks:
        text = text.replace(f" {word}", f"{between}NVRM: {word}")
    for head in ("Nov 20 13:17:35 gpu-17 kernel: ", "2026-11-20T13:17:35.5Z ", "[ 1.5] ", ""):
        (found,) = [line.text for _, line in records([head + text, "[ 2.5] usb 1-1: new device"])][:1]
        off_bus = parse_off_bus(found)
        assert off_bus is not None, head
        assert off_bus.component == "gpu/0000:3b:00"
        assert "#0" not in off_bus.message


def test_the_escapes_of_rsyslog_are_undone_where_syslog_wrote_them() -> None:
    """Also in a message of another driver; what /dev/kmsg itself holds is left as it is."""
    beyond = (
        "python3: attempt to access beyond end of device#012sda1: rw=2049, sector=9, nr_sectors = 8 limit=7"
    )
    for written, broken in ((f"Nov 20 13:17:35 gpu-17 kernel: {beyond}", True), (f"4,5,6,-;{beyond}", False)):
        line = parse(written)
        assert line is not None
        assert ("\nsda1" in line.text) is broken


def test_what_another_processor_prints_stands_between() -> None:
    """On a serial console: the records keep their order; after a few of them the message is taken for unfinished."""
    first, second, third = (f"[ 1.5] {line}" for line in OFF_BUS.split("\n"))
    between = "[ 1.5] mlx5_core 0000:18:00.0: firmware version: 28"
    found = list(records([first, between, second, between, third, between]))
    assert [(number, line.text.count("\n")) for number, line in found] == [(1, 2), (2, 0), (4, 0), (6, 0)]
    assert [number for number, _ in records([first, *[between] * 5, second, third])] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
    ]


def test_an_unfinished_off_bus_message_is_not_lost() -> None:
    """When the file ends, or something else follows, what was there is still said, in order."""
    opened = "[   10.0] NVRM: The NVIDIA GPU 0000:3b:00.0"
    assert [number for number, _ in records([opened, "[   10.1] eth0: x", opened])] == [1, 2, 3]


def test_lines_without_a_time_take_that_of_the_line_before() -> None:
    """The rest of a record of several lines is as old as its beginning; numbering counts every text line."""
    lines = ["[  5.5] first\n", "   second\n", "\n", "[  6.5] third\n"]
    assert [(number, line.text, line.mono_s) for number, line in records(lines)] == [
        (1, "first", 5.5),
        (2, "second", 5.5),
        (4, "third", 6.5),
    ]


def test_times_since_the_line_before_are_added_up() -> None:
    """`dmesg -e` writes the minute once, then how much later each record is."""
    lines = ["[Nov20 13:17] a", "[  +0.500000] b", "[ +10.000000] c", "[Nov20 13:18] d"]
    began = 974726220.0
    assert [(line.text, line.mono_s, line.clock) for _, line in records(lines)] == [
        ("a", began, Clock.WALL),
        ("b", began + 0.5, Clock.WALL),
        ("c", began + 10.5, Clock.WALL),
        ("d", began + 60.0, Clock.WALL),
    ]
    assert [(line.mono_s, line.clock) for _, line in records(["[  +0.500000] b"])] == [(0.5, Clock.MONOTONIC)]


@pytest.mark.parametrize(
    "text",
    [
        f"20/11/2026 13:17:35 {XID}",
        f"2026/11/20 13:17:35 gpu-17 {XID}",
        f"[2026-11-20 13:17:35] {XID}",
        f"13:17:35 {XID}",
        f"Friday, November 20 2026 {XID}",
        f"Nov 20 2026 13:17:35 gpu-17 {XID}",
        f"1795180655 {XID}",
        f"gpu-17 kernel: {XID}",
        f"gpu-17 > {XID}",
        f'{{"text": "{XID}"}}',
        "\x00[\x00 \x001\x00.",
    ],
)
def test_a_form_that_is_not_known_is_noticed(text: str) -> None:
    """So that nobody takes silence for health."""
    assert has_unknown_form(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        XID,
        "[drm] Initialized nvidia-drm 0.0.0 for 0000:3b:00.0 on minor 1",
        "{1}[Hardware Error]: event severity: recoverable",
        "[Hardware Error]: Corrected error, no action required.",
        "8021q: 802.1Q VLAN Support v1.8",
        "00:05: ttyS0 at I/O 0x3f8 (irq = 4, base_baud = 115200) is a 16550A",
        "3w-9xxx: scsi0: AEN",
        " 0000000000000000 ffff888100000000",
        "Monitor-Mwait will be used to enter C-1 state",
        "Marking TSC unstable",
        "Sunrpc: registered",
        "<IRQ>",
        " <TASK>",
        f"[ 1512.651653] {XID}",
    ],
)
def test_a_bare_kernel_message_is_a_known_form(text: str) -> None:
    """As `dmesg -t` prints it."""
    assert not has_unknown_form(parse(text))


def test_a_megabyte_is_cut() -> None:
    """A line of any length is bounded."""
    line = parse("[    1.000000] " + "x" * 1_000_000)
    assert line is not None
    assert len(line.text) == MAX_TEXT


_PIECES = st.sampled_from(
    [
        "6,1,2,-;",
        "<4>",
        "[ 1.5] ",
        "kern  :err   : ",
        "Nov 20 13:17:35 h kernel: ",
        "2026-11-20T13:17:35,5+00:00 ",
        "\\x0a",
        "\\xff",
        "\n",
        "NVRM: The NVIDIA GPU 0000:3b:00.0",
        "[Fri Nov 20 13:17:35 2026] ",
        "[Nov20 13:17] ",
        "[  +0.000012] ",
        "[  T812] ",
        "1795180655.250000 h kernel: ",
        '{"MESSAGE": "a", "__REALTIME_TIMESTAMP": "7"}',
        " A=",
        "> ",
        "gpu-17: ",
        "1 2026-11-20T13:17:35Z h kernel - - - ",
        "\n{\n",
        '\n\t"MESSAGE" : "a",\n',
        "\n}",
        "99" * 12,
    ]
)


@given(st.lists(st.one_of(_PIECES, st.text(max_size=30)), max_size=12).map("".join))
def test_no_text_can_break_it(text: str) -> None:
    """Whatever a log holds: no exception, bounded text, a finite time, one record a line at the most."""
    line = parse(text)
    assert line is None or (0 < len(line.text) <= MAX_TEXT and line.mono_s < 1e15 and line.facility < 12500)
    lines = text.split("\n")
    numbers = [number for number, _ in records(lines)]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= len(lines) for number in numbers)
