"""Reads lines of the kernel log in any of the encodings in which they come. Pure.

`/dev/kmsg` (`6,344,692641414,-;text`) · journald and syslog (`Nov 20 13:15:47 host kernel: text`, ISO, full and Unix times,
JSON, or the bare message) · `dmesg` (`[  692.641414] text`, also with -r, -x, -T, -d, -e) · `dmesg --decode --time-format
iso` (`kern  :err   : 2026-11-20T13:17:35,651653+00:00 text`), each also with the caller that kernels with
CONFIG_PRINTK_CALLER name (`[   12.345678] [  T812] text`), and each also as a container's log keeps it (CRI, Docker's JSON,
`docker compose logs`, one more time in front). The same record gives the same text in all of them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

MAX_TEXT = 8192  # characters of one record; the kernel itself keeps about 1000
KERNEL, USER = 0, 1  # syslog facilities


class Clock(StrEnum):
    """The clock of a line's time."""

    MONOTONIC = "monotonic"  # seconds since the machine booted
    WALL = "wall"  # Unix seconds; a time without a zone counts as UTC, without a year as one of the year 2000
    DELTA = "delta"  # seconds since the record before (`dmesg -e`); `records` makes it one of the others
    NONE = "none"  # the encoding has no time


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One record of the kernel log, decoded from any of its encodings."""

    # May hold line breaks: one printk of several lines is one record.
    text: str
    # Seconds by `clock`; 0.0 where the encoding has no time.
    mono_s: float
    # /dev/kmsg sequence number; -1 where there is none.
    seq: int = -1
    # 0 emerg .. 7 debug; 6 where the encoding does not have it.
    priority: int = 6
    # Programs can write lines of other facilities only.
    facility: int = KERNEL
    clock: Clock = Clock.MONOTONIC


_FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("res0", "res1", "res2", "res3"),
    *("local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"),
)
_LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY, _MONTH = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", f"({'|'.join(_MONTHS)})"

# [0-9], not \d, which would also accept digits that int() reads and the kernel never writes.
_KMSG = re.compile(r"([0-9]{1,5}),([0-9]{1,20}),([0-9]{1,20}),[^;\n]{0,200};")
_RAW_LEVEL = re.compile(r"<([0-9]{1,5})>")
_DECODED = re.compile(rf"({'|'.join(_FACILITIES)}) *:({'|'.join(_LEVELS)}) *: ")
_STEP = r"(?: {0,3}<[0-9. ]{1,30}>)?"  # what -d adds
_SECONDS = re.compile(rf"\[ {{0,12}}([0-9]{{1,12}}\.[0-9]{{1,9}}){_STEP}\] ?")
_DELTA = re.compile(r"\[ {0,12}\+([0-9]{1,12}\.[0-9]{1,9})\] ?")
_CALLER = re.compile(r"\[ {0,12}[TC][0-9]{1,10}\] ?")  # thread or processor
_CTIME = re.compile(rf"\[{_DAY} {_MONTH} {{1,2}}([0-9]{{1,2}}) ([0-9:]{{8}}) ([0-9]{{4}}){_STEP}\] ?")
_MINUTE = re.compile(rf"\[{_MONTH} {{0,1}}([0-9]{{1,2}}) ([0-9]{{2}}:[0-9]{{2}})\] ?")
_FULL = re.compile(rf"{_DAY} ([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} [0-9:]{{8}})(\.[0-9]{{1,9}})? ([A-Z]{{2,5}}) ")
_UNIX = re.compile(r"([0-9]{9,11}\.[0-9]{6}) ")
_ISO = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8})([.,][0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})? ")
_SYSLOG = re.compile(rf"{_MONTH} {{1,2}}([0-9]{{1,2}}) ([0-9:]{{8}})(\.[0-9]{{1,9}})? ")
_TAG = re.compile(r"[\w.-]{1,255} ([\w./@-]{1,100})(\[[0-9]{1,10}\])?: ?")
_KERNEL_TAG = re.compile(r"[\w.-]{1,255} kernel: ?")
# How the logs of containers frame what was printed.
_CRI = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\S{0,40} )std(?:out|err) [FP] ")
_COMPOSE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,100} +\| ")
_ESCAPES = re.compile(r"(?:\\x[0-9a-f]{2})+")
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_KEY = re.compile(r" [A-Z][A-Z0-9_]{0,60}=")  # device properties that follow a /dev/kmsg record
# How lines begin in forms that are not known: a time, a caller, JSON or XML, a host before its `kernel:`; control characters.
_UNKNOWN_FORM = re.compile(
    r"\W{0,3}(?:[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}\b|[0-9]{9,11}\b|\+?[0-9]{1,12}\.[0-9]{2,9}\W"
    rf"|{_DAY}[a-z]{{0,6}},? (?:[0-9]|{_MONTH})|{_MONTH}[a-z]{{0,6}} {{0,2}}[0-9]|[TC][0-9]{{1,10}}\])"
    r'|\s*[{<]\s{0,3}[?!/"a-z]|.{1,200}? kernel(?:\[[0-9]{1,10}\])?: |.{1,200}?\sNVRM: |.{0,200}?[\x00-\x08]'
)
# That a GPU is off the bus is one printk of three lines; text encodings spread it over three records.
_OPENS = re.compile(r"NVRM: The NVIDIA GPU [0-9a-fA-F:.]{7,20}")
_CONTINUES = ("NVRM: (PCI ID", "NVRM: installed in this system", "NVRM: fallen off the bus")


def parse(text: str) -> Line | None:
    """The record in `text` (a line, or a raw /dev/kmsg record); None for an empty or continuation line."""
    first, _, _ = text.partition("\n")
    first = first[: MAX_TEXT + 400].rstrip()
    if not first.strip() or _KEY.match(first):
        return None
    if "\x1b" in first:
        first = _COLOUR.sub("", first)
    kmsg = _KMSG.match(first)
    if kmsg is None:
        line = _text_line(first)
    else:
        number = int(kmsg[1])
        body = unescape(first[kmsg.end() :])
        line = Line(
            text=body, mono_s=int(kmsg[3]) / 1e6, seq=int(kmsg[2]), priority=number & 7, facility=number >> 3
        )
    if not line.text.strip():
        return None
    return line if len(line.text) <= MAX_TEXT else replace(line, text=line.text[:MAX_TEXT])


def records(lines: Iterable[str]) -> Iterator[tuple[int, Line]]:
    """(1-based number of its first text line, record) for each record in the text lines of a file.

    A line without a time gets that of the line before. Only an unfinished off-bus message is held back.
    """
    before: Line | None = None
    held: tuple[int, Line] | None = None
    for number, text in enumerate(lines, 1):
        line = parse(text)
        if line is None:
            continue
        if line.clock is Clock.DELTA:
            since_s, clock = (before.mono_s, before.clock) if before is not None else (0.0, Clock.MONOTONIC)
            line = replace(line, mono_s=since_s + line.mono_s, clock=clock)
        elif line.clock is Clock.NONE and before is not None:
            line = replace(line, mono_s=before.mono_s, clock=before.clock, priority=before.priority)
        before = line
        if held is not None:
            start, opened = held
            if line.text.lstrip().startswith(_CONTINUES):
                joined = replace(opened, text=f"{opened.text}\n{line.text.lstrip()}")
                if joined.text.count("\n") < 2:
                    held = (start, joined)
                    continue
                yield start, joined
                held = None
                continue
            yield held
            held = None
        if _OPENS.fullmatch(line.text):
            held = (number, line)
        else:
            yield number, line
    if held is not None:
        yield held


def has_unknown_form(text: str) -> bool:
    """Does a line of text stand in a form that `parse` does not know, so that its message cannot be found?

    >>> has_unknown_form("20/11/2026 13:17:35 gpu-17: NVRM: Xid (PCI:0000:3b:00): 79")
    True
    """
    line = parse(text)
    return line is not None and line.clock is Clock.NONE and _UNKNOWN_FORM.match(line.text) is not None


@dataclass(slots=True, kw_only=True)
class Coverage:
    """How much of a log could be read: silence about lines in an unknown form is no all-clear."""

    # Lines that are not empty.
    lines: int = 0
    # Those in a form that is not known.
    unread: int = 0
    # The first of them: its 1-based number and its text, shortened.
    first: int = 0
    example: str = ""

    def see(self, number: int, text: str) -> None:
        """Counts one line."""
        self.lines += bool(text.strip())
        if has_unknown_form(text):
            self.unread += 1
            if not self.first:
                self.first, self.example = number, " ".join(text.split())[:100]

    @property
    def blind(self) -> str:
        """Why silence about this log is no all-clear; empty: it could be read."""
        if not self.lines:
            return "it holds no lines. Did dmesg need more rights (sudo)?"
        return str(self) if self.unread * 2 > self.lines else ""

    def __str__(self) -> str:
        return (
            f"{self.unread} of {self.lines} lines could not be read: gpuward does not know their form "
            f"(line {self.first}: {self.example!r}). It reads what dmesg, journalctl -k and /dev/kmsg print, one record a line."
        )


def unescape(text: str) -> str:
    r"""Text of a /dev/kmsg record with its `\x0a` escapes decoded; bytes that are not UTF-8 become U+FFFD."""
    if "\\x" not in text:
        return text
    return _ESCAPES.sub(
        lambda match: bytes.fromhex(match[0].replace("\\x", "")).decode(errors="replace"), text
    )


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
        facility, priority = _FACILITIES.index(decoded[1]), _LEVELS.index(decoded[2])
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
    if text.startswith('{"') and (line := _journal_json(text)) is not None:
        return line
    when, end, journald = _wall_time(text)
    if when is None:
        text = _without_caller(text.strip().removeprefix("MESSAGE=").removeprefix("kernel: "))
        return Line(text=text, mono_s=0.0, priority=priority, facility=facility, clock=Clock.NONE)
    text = text[end:]
    if journald and (tag := _TAG.match(text)) is not None:
        # The kernel has no process id: `kernel[77]` is a program that chose this name (`logger -i -t kernel`).
        facility = KERNEL if tag[1] == "kernel" and not tag[2] else USER
        text = text[tag.end() :]
        if facility == KERNEL and (seconds := _SECONDS.match(text)) is not None:  # rsyslog keeps both times
            text = text[seconds.end() :]
    elif (
        journald
    ):  # a container's log, or a program that collects logs, has put its own time before the line's
        inner = _text_line(text)
        if inner.clock is not Clock.NONE:
            return replace(inner, mono_s=when, clock=Clock.WALL)
    if facility == KERNEL:
        text = _without_caller(text)
    return Line(text=text, mono_s=when, priority=priority, facility=facility, clock=Clock.WALL)


def _without_caller(text: str) -> str:
    caller = _CALLER.match(text)
    return text[caller.end() :] if caller else text


def _journal_json(text: str) -> Line | None:
    """A record of `journalctl -o json`; None for any other text."""
    try:
        record = json.loads(text)
        if isinstance(printed := record.get("log"), str):  # Docker's, of what a container printed
            return _text_line(printed.partition("\n")[0])
        message = record["MESSAGE"]
        if isinstance(message, list):  # journald writes bytes that are not UTF-8 as numbers
            message = bytes(message).decode(errors="replace")
        return Line(
            text=str(message).partition("\n")[0],
            mono_s=int(record["__REALTIME_TIMESTAMP"]) / 1e6,
            priority=int(record.get("PRIORITY", 6)) & 7,
            facility=KERNEL if record.get("_TRANSPORT") == "kernel" else USER,
            clock=Clock.WALL,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


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
            return (
                datetime.fromisoformat(f"{full[1]}+00:00").timestamp() + _fraction(full[2]),
                full.end(),
                True,
            )
        if (unix := _UNIX.match(text)) is not None:
            return float(unix[1]), unix.end(), True
    except (ValueError, OverflowError):  # e.g. the 31st of February: not a time
        pass
    return None, 0, False


def _fraction(digits: str | None) -> float:
    return float("0." + digits[1:]) if digits else 0.0


def _date(month: str, day: str, clock: str, year: str) -> float:
    hour, minute, second = (int(part) for part in clock.split(":"))
    return datetime(
        int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC
    ).timestamp()
