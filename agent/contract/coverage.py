"""How much of a log could be read: silence about what could not is no all-clear. Pure."""

import re
from dataclasses import dataclass

from agent.contract.kernel_spread import holds_rest
from agent.contract.kernel_text import KERNEL, MAX_TEXT, Line, has_unknown_form
from agent.contract.lines import KernelReader, areas
from agent.contract.messages import Severity
from agent.contract.xid import is_cut

_MARKERS = ("NVRM: ", *dict.fromkeys(marker for area in areas(kept=True) for marker in area.markers))
_BEFORE_MARKER = 200  # characters, at the most, from the beginning of a kernel line to what marks it
_WORD = re.compile(r"(?<!\w)[\w\[{]")
_FORM = "its form is not known"
_INSIDE = "the words of a kernel line stand behind others, and whose they are is not known"
_REST = "the lines of this message before it are missing"
_CUT = "a part of this message is missing"
_PROGRAM = "a program says what the kernel may have said"


@dataclass(slots=True, kw_only=True)
class Coverage:
    """Counts the lines of one log, and those that could not be read."""

    # Lines that are not empty.
    lines: int = 0
    # Those in a form that is not known, and those with the words of a kernel line that was not read as one.
    unread: int = 0
    # The first of them: its 1-based number, why it could not be read, and its text, shortened.
    first: int = 0
    why: str = ""
    example: str = ""

    def see(self, number: int, text: str, line: Line | None) -> None:
        """Counts one line, and what it was read as."""
        self.lines += bool(text.strip())
        if line is None or not (why := _unread(line)):
            return
        self.unread += 1
        if not self.first:
            self.first, self.why, self.example = number, why, " ".join(text.split())[:100]

    @property
    def blind(self) -> str:
        """Why silence about this log is no all-clear; empty: all of it could be read."""
        if not self.lines:
            return "it holds no lines. Did dmesg need more rights (sudo)?"
        if not self.unread:
            return ""
        return (
            f"{self.unread} of {self.lines} lines could not be read (line {self.first}: {self.why}: {self.example!r}). "
            "gpuward reads what dmesg, journalctl -k and /dev/kmsg print."
        )


def _unread(line: Line) -> str:
    why = _suspicion(line, line.text[:MAX_TEXT])
    # What begins as a kernel line is read as one: its own end may look like another.
    understood = (
        bool(why) and line.facility == KERNEL and _means(KernelReader(kept=True), line.text[:MAX_TEXT])
    )
    return "" if understood else why


def _suspicion(line: Line, text: str) -> str:
    """Why a line may say more than what is read of it from its beginning."""
    if has_unknown_form(line):
        return _FORM
    if line.facility != KERNEL:
        return _PROGRAM if holds_rest(text) or is_cut(text) or _cries(text, 0) else ""
    if holds_rest(text):
        return _REST
    if _cries(text, 1):
        return _INSIDE
    return _CUT if is_cut(text) else ""


def _cries(text: str, start: int) -> bool:
    """Does a line that means something begin anywhere in a text, from `start` on?"""
    last = max((text.rfind(marker) for marker in _MARKERS if marker in text), default=-1)
    if last < start:
        return False
    reader = KernelReader(kept=True)
    begins = (word.start() for word in _WORD.finditer(text, max(start, last - _BEFORE_MARKER), last + 1))
    return any(_means(reader, text[at:]) for at in begins)


def _means(reader: KernelReader, text: str) -> bool:
    return any(one.severity is not Severity.INFO for one in reader.read(text))
