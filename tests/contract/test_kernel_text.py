"""The same kernel record means the same in every encoding in which it reaches a reader."""

import pytest

from agent.contract.kernel_text import (
    KERNEL,
    USER,
    Clock,
    Line,
    parse,
    unescape,
)

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
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
        # journalctl --no-hostname, -o short-delta, -o short-full in a zone without a name
        (f"Nov 20 13:17:35 kernel: {XID}", 974726255.0, Clock.WALL, 6, KERNEL),
        (f"Nov 20 13:17:35 logger[71]: {XID}", 974726255.0, Clock.WALL, 6, USER),
        (f"2026-11-20T13:17:35+0000 kernel: {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"[ 1512.651653] kernel: {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"[ 1512.651653                ] gpu-17 kernel: {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"[ 1512.651653 <    0.000123*>] gpu-17 kernel: {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"Fri 2026-11-20 10:17:35 -03 gpu-17 kernel: {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"Fri 2026-11-20 19:02:35 +0545 gpu-17 kernel: {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        # RFC 5424, BusyBox, syslog-ng
        (f"<3>1 2026-11-20T13:17:35.250000Z gpu-17 kernel - - - {XID}", WALL_S + 0.25, Clock.WALL, 3, KERNEL),
        (f"1 2026-11-20T13:17:35Z gpu-17 kernel - - - {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f'<3>1 2026-11-20T13:17:35Z h kernel - - [a@1 b="c"] {XID}', WALL_S, Clock.WALL, 3, KERNEL),
        (f"<11>1 2026-11-20T13:17:35Z gpu-17 kernel - - - {XID}", WALL_S, Clock.WALL, 3, USER),
        (f"<3>1 2026-11-20T13:17:35Z gpu-17 kernel 77 - - {XID}", WALL_S, Clock.WALL, 3, USER),
        (f"<3>1 2026-11-20T13:17:35Z gpu-17 train - - - {XID}", WALL_S, Clock.WALL, 3, USER),
        (f"<13>Nov 20 13:17:35 gpu-17 kernel: {XID}", 974726255.0, Clock.WALL, 5, USER),
        (f"Nov 20 13:17:35 gpu-17 kern.err kernel: [ 1512.651653] {XID}", 974726255.0, Clock.WALL, 3, KERNEL),
        (f"Nov 20 13:17:35 gpu-17 user.err kernel: {XID}", 974726255.0, Clock.WALL, 3, USER),
        (f"2026-11-20T13:17:35+00:00 gpu-17 [kern.warning] kernel: {XID}", WALL_S, Clock.WALL, 4, KERNEL),
        (f"kern.err: [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 3, KERNEL),
        (f"user.err: [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 3, USER),
        # dmesg -t -d and --time-format delta, netconsole with the kernel's release
        (f"[<    1.500000>] {XID}", 1.5, Clock.DELTA, 6, KERNEL),
        (f"[<    1.500000>] [  T812] {XID}", 1.5, Clock.DELTA, 6, KERNEL),
        (f"6.12.3,4,345,1512651653,-;{XID}", 1512.651653, Clock.MONOTONIC, 4, KERNEL),
        # dmesg -J
        (f'{{"pri": 3, "time": 1512.651653, "msg": "{XID}"}}', 1512.651653, Clock.MONOTONIC, 3, KERNEL),
        (
            f'{{"pri": 11, "time": 1512.651653, "caller": "T7", "msg": "{XID}"}}',
            1512.651653,
            Clock.MONOTONIC,
            3,
            USER,
        ),
        (
            f'{{"fac": "kern", "pri": "err", "time": "Fri Nov 20 13:17:35 2026", "msg": "{XID}"}}',
            WALL_S,
            Clock.WALL,
            3,
            KERNEL,
        ),
        (
            f'{{"pri": 3, "time": "2026-11-20T13:17:35,250000+00:00", "msg": "[  T812] {XID}"}}',
            WALL_S + 0.25,
            Clock.WALL,
            3,
            KERNEL,
        ),
        # As people pass it on.
        (f"    [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"\t[    2.651653] {XID}", 2.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"> > [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"```[ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"\ufeff[ 1512.651653] {XID}\x1b[K", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"1234:[ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"  1234\t[ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"  1234 [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"/var/log/kern.log:12:Nov 20 13:17:35 gpu-17 kernel: {XID}", 974726255.0, Clock.WALL, 6, KERNEL),
        (f"kern.log-Nov 20 13:17:35 gpu-17 train[7]: {XID}", 974726255.0, Clock.WALL, 6, USER),
        (f"gpu-17: [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (f"gpu-17: [Fri Nov 20 13:17:35 2026] [  T812] {XID}", WALL_S, Clock.WALL, 6, KERNEL),
        (f"gpu-17: 4,345,1512651653,-;{XID}", 1512.651653, Clock.MONOTONIC, 4, KERNEL),
        (f"gpu-17: Nov 20 13:17:35 gpu-17 train: {XID}", 974726255.0, Clock.WALL, 6, USER),
        (f"[pod/agent-x/agent] [ 1512.651653] {XID}", 1512.651653, Clock.MONOTONIC, 6, KERNEL),
        (
            f'data: {{"_TRANSPORT":"kernel","PRIORITY":"4","MESSAGE":"{XID}","__REALTIME_TIMESTAMP":"1795180655250000"}}',
            *(WALL_S + 0.25, Clock.WALL, 4, KERNEL),
        ),
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
