"""Which colours can be read on this terminal: it is asked for its background. On one that does not say, nothing is coloured.

ANSI's own yellow, cyan and green can hardly be read on white, nor its red on black; those here have the contrast that WCAG 2 asks
for text (AA, 4.5 to 1) on the backgrounds that terminals come with: tests/brain/top/test_ground.py reckons it.
"""

import os
import re
import select
import termios
import time
import tty
from collections.abc import Mapping
from enum import Enum

from rich.style import Style
from rich.text import Span, Text

WITHIN_S = 1.0  # of a terminal far away
# The background (OSC 11), and behind it what every terminal answers (DA1): who does not know the first is not waited for.
ASKED = b"\x1b]11;?\x1b\\\x1b[c"
_SAID = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_LAST = re.compile(rb"\x1b\[\?[0-9;]*c")


class Ground(Enum):
    """What stands behind the text."""

    DARK = "dark"
    LIGHT = "light"
    UNKNOWN = "unknown"  # bold is all that it gets


INKS: Mapping[Ground, Mapping[str, str]] = {
    Ground.DARK: {"red": "color(210)", "yellow": "color(221)", "cyan": "color(80)", "green": "color(114)"},
    Ground.LIGHT: {"red": "color(124)", "yellow": "color(94)", "cyan": "color(24)", "green": "color(22)"},
    Ground.UNKNOWN: {"red": "bold", "yellow": "bold", "cyan": "", "green": ""},
}

_ANSI = {1: "red", 2: "green", 3: "yellow", 6: "cyan"}  # what the command line colours with


def style(ground: Ground, wanted: str) -> str:
    """The style of rows by its name (`bold red`), as it can be read there."""
    inks = INKS[ground]
    return " ".join(filter(None, (inks.get(word, word) for word in wanted.split())))


def readable(ground: Ground, text: Text) -> Text:
    """The text, with its colours as they can be read there."""
    text.spans = [Span(one.start, one.end, _readable(ground, one.style)) for one in text.spans]
    return text


def _readable(ground: Ground, given: str | Style) -> Style:
    found = Style.parse(given) if isinstance(given, str) else given
    ink = _ANSI.get(found.color.number or 0) if found.color is not None else None
    if ink is None:
        return found
    plain = Style(bold=found.bold, italic=found.italic, underline=found.underline)
    return plain + Style.parse(INKS[ground][ink])


def of_terminal(environment: Mapping[str, str]) -> Ground:
    """What this process's terminal has. It is asked, unless the environment says it."""
    if environment.get("TERM") == "linux":
        return Ground.DARK
    last = environment.get("COLORFGBG", "").rpartition(";")[2]
    if last.isdecimal():
        return Ground.LIGHT if int(last) in (7, 15) else Ground.DARK
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return Ground.UNKNOWN
    try:
        return read(_answer(terminal))
    except (OSError, termios.error):
        return Ground.UNKNOWN
    finally:
        os.close(terminal)


def read(answer: bytes) -> Ground:
    """What an answer says."""
    said = _SAID.search(answer)
    if said is None:
        return Ground.UNKNOWN
    shares = (int(part, 16) / (16 ** len(part) - 1) for part in said.groups())
    brightness = sum(
        weight * share**2.2 for weight, share in zip((0.2126, 0.7152, 0.0722), shares, strict=True)
    )
    return Ground.LIGHT if brightness > 0.4 else Ground.DARK if brightness < 0.1 else Ground.UNKNOWN


def _answer(terminal: int) -> bytes:
    before = termios.tcgetattr(terminal)
    found = b""
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        os.write(terminal, ASKED)
        deadline = time.monotonic() + WITHIN_S
        while not _LAST.search(found) and (left := deadline - time.monotonic()) > 0:
            if not select.select([terminal], [], [], left)[0]:
                break
            piece = os.read(terminal, 1024)
            if not piece:
                break
            found += piece
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
    return found
