"""Reads lines of the kernel log in any of the encodings in which they come. Pure.

`/dev/kmsg` (`6,344,692641414,-;text`) · journald and syslog (`Nov 20 13:15:47 host kernel: text`, ISO, full and Unix times,
all forms of JSON, or the bare message; RFC 5424, BusyBox, syslog-ng) · `dmesg` (`[  692.641414] text`, also with -r, -x, -T,
-d, -e, -J) · `dmesg --decode --time-format iso` (`kern  :err   : 2026-11-20T13:17:35,651653+00:00 text`); days and months in
several languages (log_calendar.py). Each also with the caller that kernels with CONFIG_PRINTK_CALLER name
(`[   12.345678] [  T812] text`), as a container's log keeps it (CRI, Docker's JSON, `docker compose logs`, one more time in
front), and as people pass it on (indented, quoted, numbered, behind the name of a host). The same record gives the same text
in all of them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from agent.contract.kernel_documents import unwrapped
from agent.contract.kernel_line import KERNEL as KERNEL
from agent.contract.kernel_line import MAX_TEXT as MAX_TEXT
from agent.contract.kernel_line import USER as USER
from agent.contract.kernel_line import Clock as Clock
from agent.contract.kernel_line import Line as Line
from agent.contract.kernel_spread import Joiner
from agent.contract.log_calendar import DAY, KNOWN_DAY, KNOWN_MONTH, MONTH, number_of

_FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("res0", "res1", "res2", "res3"),
    *("local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"),
)
_LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_OTHER_LEVELS = {"panic": "emerg", "error": "err", "warning": "warn"}
_MONTH = f"({MONTH})"

# [0-9], not \d, which would also accept digits that int() reads and the kernel never writes.
_RELEASE = r"(?:[0-9]{1,2}\.[0-9]{1,3}[\w.+-]{0,60},)?"  # netconsole may put it first
_KMSG = re.compile(rf"{_RELEASE}([0-9]{{1,5}}),([0-9]{{1,20}}),([0-9]{{1,20}}),[^;\n]{{0,200}};")
_RAW_LEVEL = re.compile(r"<([0-9]{1,5})>")
_FACILITY, _LEVEL = "|".join(_FACILITIES), "|".join((*_LEVELS, *_OTHER_LEVELS))
_DECODED = re.compile(rf"({_FACILITY})(?: *:({_LEVEL}) *: |\.({_LEVEL}): )")
_STEP = r"(?: {0,3}<[0-9. ]{1,30}\*?>| {1,30})?"  # what -d and short-delta add
_SECONDS = re.compile(rf"\[ {{0,12}}([0-9]{{1,12}}\.[0-9]{{1,9}}){_STEP}\] ?")
_DELTA = re.compile(r"\[(?: {0,12}\+|< {0,12})([0-9]{1,12}\.[0-9]{1,9})>?\] ?")
_CALLER = re.compile(r"\[ {0,12}[TC][0-9]{1,10}\] ?")  # thread or processor
_CTIME = re.compile(rf"\[{DAY} {_MONTH} {{1,2}}([0-9]{{1,2}}) ([0-9:]{{8}}) ([0-9]{{4}}){_STEP}\] ?")
_PADDED = re.compile(" [1-9][月월] ")  # a month of one digit that begins a line
_MINUTE = re.compile(rf"\[{_MONTH} {{0,1}}([0-9]{{1,2}}) ([0-9]{{2}}:[0-9]{{2}})\] ?")
_FULL = re.compile(
    rf"{DAY} ([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} [0-9:]{{8}})(\.[0-9]{{1,9}})? (?:[A-Z]{{2,5}}|([+-][0-9]{{2}}(?:[0-9]{{2}})?)) "
)
_UNIX = re.compile(r"([0-9]{9,11}\.[0-9]{6}) ")
_ISO = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8})([.,][0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})? ")
_SYSLOG = re.compile(rf"{_MONTH} {{1,2}}([0-9]{{1,2}}) ([0-9:]{{8}})(\.[0-9]{{1,9}})? ")
# The host, what BusyBox and syslog-ng add, and who spoke. Relays may write the kernel's host as an address, or as the way here.
_HOST = r"(?:\(none\)|[\w.-]{1,255}|[\w.:/@%-]{1,254}[\w.-](?= (?:\[?kern\.[a-z]{1,9}\]? )?kernel:))"
# What the kernel itself says in two words and a colon. A tag ends with a blank, so no PCI or SCSI address is one.
_NO_TAG = (
    r"(?!(?:(?:nvme|block) nvme[0-9]\w{0,20}|EDAC MC[0-9]{1,4}|mlx5_core\.sf\.[0-9]{1,5} [\w.@-]{1,31}|Memory failure"
    r"|NETDEV WATCHDOG|NMI watchdog|Internal error|divide error|invalid opcode|stack segment|double fault|machine check"
    r"|alignment check|invalid TSS|SIMD exception|fpu exception): )"
)
_TAG = re.compile(
    rf"{_NO_TAG}{_HOST} (?:\[?({_FACILITY})\.({_LEVEL})\]? )?([\w./@-]{{1,100}})(\[[0-9]{{1,10}}\])?:(?: |$|(?<= kernel:))"
)
_TAG_ALONE = re.compile(r"(kernel|[\w./@-]{1,100}\[[0-9]{1,10}\]): ?")  # --no-hostname
_KERNEL_TAG = re.compile(rf"(?:{_HOST} )?kernel: ?")
_RFC5424 = re.compile(
    r"1 ([0-9][0-9T:.,Z+-]{18,40} )\S{1,255} (\S{1,48}) (\S{1,128}) \S{1,32} (?:-|(?:\[[^\]\n]{0,500}\]){1,9})(?: \ufeff?|$)"
)
# How the logs of containers frame what was printed.
_CRI = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\S{0,40} )std(?:out|err) [FP] ")
_COMPOSE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,100} +\| ")
_ESCAPES = re.compile(r"(?:\\x[0-9a-f]{2})+")
_CONTROL = re.compile(r"#0(1[0-5])")  # rsyslog's: three octal digits
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[mK]")
# What stands before a line that was passed on: indentation, the quotes of a mail or a chat, numbers of `cat -n` and `grep -n`,
# the host of pdsh and clush, the file of `grep -H`, the container of `kubectl logs --prefix`, what begins a streamed record.
_FRAME = re.compile(
    r"\s{1,60}|\ufeff|\x1e|`{1,3}|(?:> ?){1,20}|[0-9]{1,9}[:\t-]|[0-9]{1,9} (?=\[)|[\w./@-]{1,200}?(?:: ?|-(?=[A-Z<\[{]))"
    r"|[\w.-]{1,63}\[[0-9,-]{1,200}\][\w.-]{0,63}: ?"
    r"|\[[\w./-]{1,200}\] "
)
_MOST_FRAMES = 4
_KEY = re.compile(r" [A-Z][A-Z0-9_]{0,60}=")  # device properties that follow a /dev/kmsg record
# How lines begin in forms that are not known: a time, a caller, JSON or XML, a host before its `kernel:`; control characters.
_UNKNOWN_FORM = re.compile(
    r"\W{0,3}(?:[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}\b|[0-9]{9,11}\b|\+?[0-9]{1,12}\.[0-9]{2,9}\W"
    rf"|{KNOWN_DAY}[a-z]{{0,6}},? (?:[0-9]|{KNOWN_MONTH})|{KNOWN_MONTH}[a-z]{{0,6}} {{0,2}}[0-9]|[TC][0-9]{{1,10}}\])"
    r'|\s*[{<]\s{0,3}[?!/"a-z]|.{1,200}? kernel(?:\[[0-9]{1,10}\])?: |.{1,200}?\sNVRM: |.{0,200}?[\x00-\x08]'
)


def parse(text: str) -> Line | None:
    """The record in `text` (a line, or a raw /dev/kmsg record); None for an empty or continuation line."""
    first, _, _ = text.partition("\n")
    first = first[: MAX_TEXT + 400].rstrip()
    if not first.strip() or _KEY.match(first):
        return None
    if "\x1b" in first:
        first = _COLOUR.sub("", first)
    line = _recorded(first)
    if line.clock is Clock.NONE:
        line = _framed(first) or line
    if not line.text.strip():
        return None
    return line if len(line.text) <= MAX_TEXT else replace(line, text=line.text[:MAX_TEXT])


Seen = Callable[[int, str, Line | None], None]


def records(lines: Iterable[str], seen: Seen | None = None) -> Iterator[tuple[int, Line]]:
    """(1-based number of its first text line, record) for each record in the text lines of a file.

    A line without a time gets that of the line before; indented below a program's line it is that program's. Only an
    unfinished message of several lines is held back. `seen` is told of each line as it was read.
    """
    before: Line | None = None
    indent = 0  # of the newest line that is not indented below another
    joiner = Joiner()
    for number, text in unwrapped(lines):
        line = parse(text)
        deep = 0 if _PADDED.match(text) else len(text) - len(text.lstrip())
        if line is not None and before is not None and before.facility != KERNEL and deep > indent:
            line = Line(text=text.strip()[:MAX_TEXT], mono_s=0.0, facility=before.facility, clock=Clock.NONE)
        elif line is not None:
            indent = deep
        joined = line is not None and joiner.joins(line)
        if seen is not None:
            seen(number, text, None if joined else line)
        if line is None or joined:
            yield from joiner.ready()
            continue
        if line.clock is Clock.DELTA:
            since_s, clock = (before.mono_s, before.clock) if before is not None else (0.0, Clock.MONOTONIC)
            line = replace(line, mono_s=since_s + line.mono_s, clock=clock)
        elif line.clock is Clock.NONE and before is not None:
            line = replace(line, mono_s=before.mono_s, clock=before.clock, priority=before.priority)
        before = line
        joiner.take(number, line)
        yield from joiner.ready()
    yield from joiner.ready(ended=True)


def has_unknown_form(line: Line | None) -> bool:
    """Does a line of text stand in a form that `parse` does not know, so that its message cannot be found?

    >>> has_unknown_form(parse("20/11/2026 13:17:35 gpu-17: NVRM: Xid (PCI:0000:3b:00): 79"))
    True
    """
    return line is not None and line.clock is Clock.NONE and _UNKNOWN_FORM.match(line.text) is not None


def unescape(text: str) -> str:
    r"""Text of a /dev/kmsg record with its `\x0a` escapes decoded; bytes that are not UTF-8 become U+FFFD."""
    if "\\x" not in text:
        return text
    return _ESCAPES.sub(
        lambda match: bytes.fromhex(match[0].replace("\\x", "")).decode(errors="replace"), text
    )


def _framed(text: str) -> Line | None:
    """The record behind what whoever passed the line on has put before it; None if there is none with a time."""
    at = 0
    for _ in range(_MOST_FRAMES):
        frame = _FRAME.match(text, at)
        if frame is None:
            return None
        at = frame.end()
        line = _recorded(text[at:])
        if line.clock is not Clock.NONE:
            return line
    return None


def _recorded(text: str) -> Line:
    kmsg = _KMSG.match(text)
    if kmsg is None:
        line = _text_line(text)
        return replace(line, text=_CONTROL.sub(_decoded, line.text).rstrip()) if "#01" in line.text else line
    number = int(kmsg[1])
    return Line(
        text=unescape(text[kmsg.end() :]),
        mono_s=int(kmsg[3]) / 1e6,
        seq=int(kmsg[2]),
        priority=number & 7,
        facility=number >> 3,
    )


def _decoded(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 8))


def _text_line(text: str) -> Line:
    """A line of any encoding but /dev/kmsg's: optional prefixes are removed from the left."""
    if (compose := _COMPOSE.match(text)) is not None:
        text = text[compose.end() :]
    if (cri := _CRI.match(text)) is not None:
        text = cri[1] + text[cri.end() :]
    priority, facility = 6, KERNEL
    if (level := _RAW_LEVEL.match(text)) is not None:
        priority, facility = int(level[1]) & 7, int(level[1]) >> 3
        text = text[level.end() :]
    elif (decoded := _DECODED.match(text)) is not None:
        facility, priority = _FACILITIES.index(decoded[1]), _level(decoded[2] or decoded[3])
        text = text[decoded.end() :]
    if (seconds := _SECONDS.match(text)) is not None:
        rest = _without_caller(text[seconds.end() :])
        tag = _KERNEL_TAG.match(rest)  # journalctl -o short-monotonic
        return Line(
            text=rest[tag.end() :] if tag else rest,
            mono_s=float(seconds[1]),
            priority=priority,
            facility=facility,
        )
    if (delta := _DELTA.match(text)) is not None:
        return Line(
            text=_without_caller(text[delta.end() :]),
            mono_s=float(delta[1]),
            priority=priority,
            facility=facility,
            clock=Clock.DELTA,
        )
    if text.startswith('{"') and (line := _json_line(text)) is not None:
        return line
    if (standard := _RFC5424.match(text)) is not None and (when := _wall_time(standard[1])[0]) is not None:
        own = facility == KERNEL and standard[2] == "kernel" and standard[3] == "-"
        return _said(text[standard.end() :], when, priority, own=own)
    when, end, journald = _wall_time(text)
    if when is None:
        text = _without_caller(text.strip().removeprefix("MESSAGE=").removeprefix("kernel: "))
        return Line(text=text, mono_s=0.0, priority=priority, facility=facility, clock=Clock.NONE)
    text = text[end:]
    if journald and (tag := _TAG.match(text)) is not None:
        # The kernel has no process id: `kernel[77]` is a program that chose this name (`logger -i -t kernel`).
        own = facility == KERNEL and tag[1] in (None, "kern") and tag[3] == "kernel" and not tag[4]
        # NVIDIA's driver where a relay has dropped the kernel's name: it is no program's, and anybody may have said it.
        start = tag.start(3) if tag[3] == "NVRM" else tag.end()
        return _said(text[start:], when, _level(tag[2]) if tag[2] else priority, own=own)
    if journald and (alone := _TAG_ALONE.match(text)) is not None:
        own = facility == KERNEL and alone[1] == "kernel"
        return _said(text[alone.end() :], when, priority, own=own)
    if journald:  # a container's log, or a program that collects logs, has put its own time before the line's
        inner = _text_line(text)
        if inner.clock is not Clock.NONE:
            return replace(inner, mono_s=when, clock=Clock.WALL)
    text = _without_caller(text) if facility == KERNEL else text
    return Line(text=text, mono_s=when, priority=priority, facility=facility, clock=Clock.WALL)


def _said(text: str, when_s: float, priority: int, *, own: bool) -> Line:
    """What stands behind a tag; `own`: the kernel's. rsyslog keeps both times."""
    if own and (seconds := _SECONDS.match(text)) is not None:
        text = text[seconds.end() :]
    return Line(
        text=_without_caller(text) if own else text,
        mono_s=when_s,
        priority=priority,
        facility=KERNEL if own else USER,
        clock=Clock.WALL,
    )


def _level(name: str) -> int:
    return _LEVELS.index(_OTHER_LEVELS.get(name, name))


def _without_caller(text: str) -> str:
    caller = _CALLER.match(text)
    return text[caller.end() :] if caller else text


def _json_line(text: str) -> Line | None:
    """A record of `journalctl -o json`, of `dmesg -J` or of a container's log; None for any other text."""
    try:
        record = json.loads(text)
        if isinstance(printed := record.get("log"), str):  # Docker's, of what a container printed
            return _text_line(printed.partition("\n")[0])
        if isinstance(record.get("msg"), str):
            return _dmesg_json(record)
        message = record["MESSAGE"]
        if isinstance(message, list):  # journald writes bytes that are not UTF-8 as numbers
            message = bytes(message).decode(errors="replace")
        return Line(
            text=str(message)[:MAX_TEXT].rstrip("\n"),
            mono_s=int(record["__REALTIME_TIMESTAMP"]) / 1e6,
            priority=int(record.get("PRIORITY", 6)) & 7,
            facility=KERNEL if record.get("_TRANSPORT") == "kernel" else USER,
            clock=Clock.WALL,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _dmesg_json(record: dict[str, object]) -> Line | None:
    """Of `dmesg -J`, also with -x and --time-format; None where it says neither facility nor level."""
    level, when = record["pri"], record.get("time")
    if isinstance(level, int):
        facility, priority = level >> 3, level & 7
    else:
        facility, priority = _FACILITIES.index(str(record["fac"])), _level(str(level))
    text = str(record["msg"])[:MAX_TEXT].rstrip("\n")
    line = Line(text=_without_caller(text), mono_s=0.0, priority=priority, facility=facility)
    if isinstance(when, int | float):
        return replace(line, mono_s=float(when))
    wall_s, _, _ = _wall_time(f"[{when}] " if str(when)[:1].isalpha() else f"{when} ")
    return replace(line, mono_s=wall_s, clock=Clock.WALL) if wall_s is not None else None


def _wall_time(text: str) -> tuple[float | None, int, bool]:
    """Unix seconds or None, where the time ends, and whether a host name and a tag may follow."""
    try:
        if (iso := _ISO.match(text)) is not None:
            whole = datetime.fromisoformat(iso[1] + (iso[3] or "+00:00")).timestamp()
            comma = (iso[2] or ".").startswith(",")  # only dmesg writes one
            return whole + _fraction(iso[2]), iso.end(), not comma
        if (syslog := _SYSLOG.match(text)) is not None:
            return _date(syslog[1], syslog[2], syslog[3], "2000") + _fraction(syslog[4]), syslog.end(), True
        if (ctime := _CTIME.match(text)) is not None:
            return _date(ctime[1], ctime[2], ctime[3], ctime[4]), ctime.end(), False
        if (minute := _MINUTE.match(text)) is not None:
            return _date(minute[1], minute[2], f"{minute[3]}:00", "2000"), minute.end(), False
        if (full := _FULL.match(text)) is not None:  # a zone's name is no offset: taken for UTC
            whole = datetime.fromisoformat(f"{full[1]}{full[3] or '+00:00'}").timestamp()
            return whole + _fraction(full[2]), full.end(), True
        if (unix := _UNIX.match(text)) is not None:
            return float(unix[1]), unix.end(), True
    except (ValueError, OverflowError):  # e.g. the 31st of February: not a time
        pass
    return None, 0, False


def _fraction(digits: str | None) -> float:
    return float("0." + digits[1:]) if digits else 0.0


def _date(month: str, day: str, clock: str, year: str) -> float:
    hour, minute, second = (int(part) for part in clock.split(":"))
    return datetime(int(year), number_of(month), int(day), hour, minute, second, tzinfo=UTC).timestamp()
