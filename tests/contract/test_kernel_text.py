"""The same kernel record means the same in every encoding in which it reaches a reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.kernel_text import (
    KERNEL,
    MAX_TEXT,
    USER,
    Clock,
    Line,
    has_unknown_form,
    parse,
    records,
    unescape,
)

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
OFF_BUS = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0\n"
    "NVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)
WALL_S = 1795180655.0  # 2026-11-20 13:17:35 UTC


@pytest.mark.parametrize(
    ("written", "mono_s", "clock", "priority", "facility"),
    [
        (f"4,345,1512651653,-;{XID}", 1512.651653, Clock.MONOTONIC, 4, KERNEL),
        (f"12,345,1512651653,c,caller=T7;{XID}", 1512.651653, Clock.MONOTONIC, 4, USER),
        (f"[ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"[ 1512.651653][  T812] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"<4>[ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 4, KERNEL),
        (f"kern  :warn  : [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 4, KERNEL),
        (f"user  :warn  : [ 1512.651653 <  108.887985>] {XID}", 1512.651653, Clock.MONOTONIC, 4, USER),
        (f"[ 1512.651653] gpu-17 kernel: {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"kern  :err   : 2026-11-20T13:17:35,500000+00:00 {XID}", WALL_S + 0.5, Clock.WALL, 3, KERNEL),
        (f"kern  :err   : 2026-11-20T14:17:35,500000+01:00 {XID}", WALL_S + 0.5, Clock.WALL, 3, KERNEL),
        (f"2026-11-20T13:17:35,500000+00:00 {XID}", WALL_S + 0.5, Clock.WALL, 6, KERNEL),
        (f"kern  :err   : [Fri Nov 20 13:17:35 2026] {XID}", WALL_S, Clock.WALL, 3, KERNEL),
        (f"2026-11-20T13:17:35.250000+00:00 gpu-17 kernel: {XID}", WALL_S + 0.25, Clock.WALL, 6, KERNEL),
        (f"2026-11-20T13:17:35+0000 gpu-17 kernel: {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"2026-11-20T13:17:35Z gpu-17 kernel: [ 1512.651653] {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"Nov 20 13:17:35 gpu-17 kernel: {XID}", 974726255.0, Clock.WALL, 6, KERNEL),
        (f"Nov  2 13:17:35.5 gpu-17 kernel: {XID}", 973171055.5, Clock.WALL, 6, KERNEL),
        (f"Nov 20 13:17:35 gpu-17 logger[71]: {XID}", 974726255.0, Clock.WALL, 6, USER),
        # The thread or processor that printed it (CONFIG_PRINTK_CALLER), as consoles, dmesg and syslog show it.
        (f"[ 1512.651653] [  T812] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"[ 1512.651653] [     C3] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"[ 1512.651653 <    0.000012>] [  T812] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"[  T812] {XID}", 0.0, Clock.NONE, 6, KERNEL),
        (f"[Fri Nov 20 13:17:35 2026] [  T812] {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"[Fri Nov 20 13:17:35 2026 <    0.000012>] {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"kern  :warn  : [ 1512.651653] [  T812] {XID}", 1512.651653, Clock.MONOTONIC, 4, KERNEL),
        (f"kern  :err   : [Fri Nov 20 13:17:35 2026] [ T1812345] {XID}", WALL_S, Clock.WALL, 3, KERNEL),
        (
            f"kern  :err   : 2026-11-20T13:17:35,500000+00:00 [  T812] {XID}",
            *(WALL_S + 0.5, Clock.WALL, 3, KERNEL),
        ),
        (f"2026-11-20T13:17:35,500000+00:00 [  T812] {XID}", WALL_S + 0.5, Clock.WALL, 6, KERNEL),
        (f"Nov 20 13:17:35 gpu-17 kernel: [ 1512.651653][  T812] {XID}", 974726255.0, Clock.WALL, 6, KERNEL),
        (f"Nov 20 13:17:35 gpu-17 kernel: [  T812] {XID}", 974726255.0, Clock.WALL, 6, KERNEL),
        # dmesg -e, journalctl -o short-full, short-unix and json
        (f"[  +0.000012] {XID}", 0.000012, Clock.DELTA, 6, KERNEL),
        (f"[Nov20 13:17] {XID}", 974726220.0, Clock.WALL, 6, KERNEL),
        (f"kern  :warn  : [Nov 2 13:17] [  T812] {XID}", 973171020.0, Clock.WALL, 4, KERNEL),
        (f"Fri 2026-11-20 13:17:35 UTC gpu-17 kernel: {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"1795180655.250000 gpu-17 kernel: {XID}", WALL_S + 0.25, Clock.WALL, 6, KERNEL),
        (
            f'{{"_TRANSPORT":"kernel","PRIORITY":"4","MESSAGE":"{XID}","__REALTIME_TIMESTAMP":"1795180655250000"}}',
            *(WALL_S + 0.25, Clock.WALL, 4, KERNEL),
        ),
        (
            f'{{"SYSLOG_IDENTIFIER":"a","MESSAGE":"{XID}","__REALTIME_TIMESTAMP":"1795180655250000"}}',
            *(WALL_S + 0.25, Clock.WALL, 6, USER),
        ),
        # What containers printed, as their logs keep it: the time in front is the log's.
        (f"2026-11-20T13:17:35.250Z [ 1512.651653] {XID}", WALL_S + 0.25, Clock.WALL, 6, KERNEL),
        (
            f"2026-11-20T13:17:35.250000000Z Nov 20 13:17:30 gpu-17 kernel: {XID}",
            WALL_S + 0.25,
            Clock.WALL,
            6,
            KERNEL,
        ),
        (
            f"2026-11-20T13:17:35.250000000Z Nov 20 13:17:30 gpu-17 sshd[7]: {XID}",
            WALL_S + 0.25,
            Clock.WALL,
            6,
            USER,
        ),
        (
            f"2026-11-20T13:17:35.250000000Z stdout F [ 1512.651653] {XID}",
            WALL_S + 0.25,
            Clock.WALL,
            6,
            KERNEL,
        ),
        (f"2026-11-20T13:17:35.250000000+00:00 stderr P {XID}", WALL_S + 0.25, Clock.WALL, 6, KERNEL),
        (f"dmesg-1  | [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"dmesg-1 | 2026-11-20T13:17:35.250Z [ 1512.651653] {XID}", WALL_S + 0.25, Clock.WALL, 6, KERNEL),
        (f'{{"log":"[ 1512.651653] {XID}\\n","stream":"stdout"}}', 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"MESSAGE={XID}", 0.0, Clock.NONE, 6, KERNEL),
        (f"kernel: {XID}", 0.0, Clock.NONE, 6, KERNEL),
        (XID, 0.0, Clock.NONE, 6, KERNEL),
        (f"\x1b[32m[ 1512.651653] \x1b[0m{XID}\r\n", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
    ],
)
def test_one_record_has_one_text(
    written: str, mono_s: float, clock: Clock, priority: int, facility: int
) -> None:
    """However it was written, the text is the driver's own; time, level and facility where they are said."""
    line = parse(written)
    assert line is not None
    assert (line.text, line.clock, line.priority, line.facility) == (XID, clock, priority, facility)
    assert line.mono_s == pytest.approx(mono_s)


def test_a_raw_record_brings_its_sequence_number_and_loses_its_properties() -> None:
    """Of a raw /dev/kmsg record with device properties only the text is kept."""
    line = parse(
        "6,7,8000000,-;mlx5_core 0000:3b:00.0: Port: 1 Link DOWN\n SUBSYSTEM=pci\n DEVICE=+pci:0000\n"
    )
    assert line == Line(text="mlx5_core 0000:3b:00.0: Port: 1 Link DOWN", mono_s=8.0, seq=7)


def test_escapes_are_undone_only_where_the_kernel_made_them() -> None:
    """/dev/kmsg escapes line breaks, backslashes and bytes above 127; broken UTF-8 becomes U+FFFD."""
    line = parse(r"6,7,8,-;one\x0atwo\x5cback \xc3\xa9\xff tab\x09end")
    assert line is not None
    assert line.text == "one\ntwo\\back é\ufffd tab\tend"
    assert unescape(r"a\x5cx0a") == r"a\x0a"
    plain = parse(r"[    1.0] one\x0atwo")
    assert plain is not None
    assert plain.text == r"one\x0atwo"


@pytest.mark.parametrize(
    "written", ["", "\n", "   ", " SUBSYSTEM=pci", " DEVICE=+pci:0000:3b:00.0\n", "6,7,8,-;", "[ 1.0]"]
)
def test_what_is_no_record(written: str) -> None:
    """Empty lines and the property lines of a raw record are nothing."""
    assert parse(written) is None


@pytest.mark.parametrize(
    "written",
    [
        "Feb 31 13:15:47 host kernel: x",
        "2026-13-41T99:99:99+00:00 host kernel: x",
        "Nov 20 99:99:99 h kernel: x",
    ],
)
def test_a_time_that_cannot_be_is_text(written: str) -> None:
    """An impossible date is no time; the line is kept as it is."""
    line = parse(written)
    assert line is not None
    assert (line.text, line.clock) == (written, Clock.NONE)


@pytest.mark.parametrize(
    "text",
    [
        "6,344,10000000,-;" + OFF_BUS.replace("\n", "\\x0a") + "\n",
        "[   10.000000] NVRM: The NVIDIA GPU 0000:3b:00.0\n"
        "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n",
        "".join(f"[   10.000000] {part}\n" for part in OFF_BUS.split("\n")),
        "".join(f"kern  :err   : 1970-01-01T00:00:10,000000+00:00 {part}\n" for part in OFF_BUS.split("\n")),
        "".join(f"Nov 20 13:17:35 gpu-17 kernel: {part}\n" for part in OFF_BUS.split("\n")),
        OFF_BUS,
    ],
    ids=["kmsg", "dmesg", "dmesg-force-prefix", "iso", "journald", "bare"],
)
def test_the_three_line_off_bus_message_is_one_record(text: str) -> None:
    """One printk of three lines stays one record, numbered by its first line."""
    others = [(99, "usb 1-1: new device")]
    found = list(records([*text.splitlines(keepends=True), "[   11.000000] usb 1-1: new device\n"]))
    assert [(number, line.text) for number, line in found[:1]] == [(1, OFF_BUS)]
    assert [line.text for _, line in found[1:]] == [text for _, text in others]


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
    assert has_unknown_form(text)


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
    assert not has_unknown_form(text)


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
