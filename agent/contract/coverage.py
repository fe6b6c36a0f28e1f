"""How much of a log could be read: silence about what could not is no all-clear. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent.contract import kernel_text
from agent.contract.counted import counted
from agent.contract.kernel_spread import holds_rest, lacks_rest
from agent.contract.kernel_text import KERNEL, MAX_TEXT, Clock, Line, has_unknown_form
from agent.contract.lines import KernelReader, areas, oom
from agent.contract.messages import Severity
from agent.contract.xid import is_cut

MARKERS = ("NVRM: ", *dict.fromkeys(marker for area in areas(kept=True) for marker in area.markers))
_BEFORE_MARKER = 200  # characters, at the most, from the beginning of a kernel line to what marks it


# What marks a line that means something, cut within a word and long enough to end no ordinary line; and cut anywhere.
BEGUN = tuple(
    {mark[:end] for mark in MARKERS for end in range(8, len(mark)) if mark[end - 1 : end + 1].isalpha()}
)
_BEGUN_LAST = tuple({mark[:end] for mark in MARKERS for end in range(3, len(mark))})
# Where a word begins, also one that is glued to another: in other letters, or with a capital.
_WORD = re.compile(r"(?<!\w)[\w\[{]|(?<=[^\x00-\x7f])[ -~]|(?<=[a-z0-9_])[A-Z]")
# `pci 0000:3b:00.0: ...`, of a log without times: a part of the kernel and a device, and no program's level or exception.
_SAYS = re.compile(
    r"(?!(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|\w*(?:Error|Exception|Warning)): )"
    r"[\w.()/-]+(?: [\w.:()/-]+)?: ?\S|Linux version ",
    re.ASCII,
)


class _Why(StrEnum):
    """Why a line could not be read, and what can be."""

    FORM = "its form is not known"
    INSIDE = "the words of a kernel line stand behind others, and whose they are is not known"
    REST = "the lines of this message before it are missing"
    NO_REST = "the lines of this message behind it are missing"
    CUT = "a part of this message is missing"
    ENDS = "the log ends within this line"
    WHOM = "which process was killed is not said"
    PROGRAM = "a program says what the kernel may have said"
    READS = "gpuward reads what dmesg, journalctl -k and /dev/kmsg print."


_READS = _Why.READS


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
    # Lines of which the log says when or by whom they were said, and those of them that have a time.
    told: int = 0
    timed: int = 0
    # All others: prose, a traceback, a prompt. The first of them, as above.
    foreign: int = 0
    first_foreign: int = 0
    foreign_example: str = ""
    # The last line has no end: it may go on, and nobody knows how.
    unended: bool = False
    # Of each line that is read, its 0-based position in the file; None: all lines of it are read.
    positions: Sequence[int] | None = None
    _last: tuple[int, str, Line | None] = (0, "", None)
    _doubted: int = 0
    # How a kill was announced that nobody has told yet -> number and text of the line.
    _announced: dict[str, tuple[int, str]] = field(default_factory=dict)

    def records(
        self, lines: Iterable[str], seen: kernel_text.Seen | None = None
    ) -> Iterator[tuple[int, Line]]:
        """As kernel_text.records; all lines, and all that they lack, are counted."""

        def told(number: int, text: str, line: Line | None) -> None:
            self.see(self._in_file(number), text, line)
            if seen is not None:
                seen(number, text, line)

        for number, line in kernel_text.records(lines, told):
            if lacks_rest(line.text) and not _means(KernelReader(kept=True), line.text):
                self._doubt(self._in_file(number), _Why.NO_REST, line.text)
            self._kill(self._in_file(number), line)
            yield number, line
        self._nobody_killed()
        number, text, last = self._last
        if self.unended and last is not None and _may_begin(last):
            self._doubt(number, _Why.ENDS, text)

    def see(self, number: int, text: str, line: Line | None) -> None:
        """Counts one line, and what it was read as."""
        self.lines += bool(text.strip())
        if text.strip():
            self._last = number, text, line
        if line is None:
            return
        if line.clock is not Clock.NONE or line.facility != KERNEL or _SAYS.match(line.text):
            self.told += 1
            self.timed += line.clock is not Clock.NONE
        else:
            self.foreign += 1
            if not self.first_foreign:
                self.first_foreign, self.foreign_example = number, _shortened(text)
        if why := _unread(line):
            self._doubt(number, why, text)

    def _kill(self, number: int, line: Line) -> None:
        """The kernel announces a kill in one to three lines, and tells it in another."""
        if line.facility != KERNEL:
            return
        if oom.tells(line.text):
            self._announced.clear()
        elif how := oom.announces(line.text):
            if how in self._announced:
                self._nobody_killed()
            self._announced[how] = number, line.text

    def _nobody_killed(self) -> None:
        for number, text in self._announced.values():
            self._doubt(number, _Why.WHOM, text)
        self._announced.clear()

    def ends_within_a_line(self) -> None:
        """For whoever reads the log (shared.log_text): its last line has no end."""
        self.unended = True

    def _in_file(self, number: int) -> int:
        return number if self.positions is None else self.positions[number - 1] + 1

    def _doubt(self, number: int, why: str, text: str) -> None:
        if number == self._doubted:
            return
        self._doubted = number
        self.unread += 1
        if not self.first:
            self.first, self.why, self.example = number, why, _shortened(text)

    @property
    def blind(self) -> str:
        """Why silence about this log is no all-clear; empty: all of it could be read."""
        if not self.lines:
            return "it holds no lines. Did dmesg need more rights (sudo)?"
        if self.unread:
            return (
                f"{self.unread} of {self.lines} lines could not be read "
                f"(line {self.first}: {self.why}: {self.example!r}). {_READS}"
            )
        return ""

    @property
    def no_log(self) -> str:
        """Why this is hardly a kernel log, so that its silence is no all-clear either; empty: it is one."""
        if self.told >= self.foreign:
            return ""
        many = counted(self.told + self.foreign, "line")
        if self.told:
            return f"only {self.told} of {many} look like kernel lines. {_READS}"
        looks = (
            f"none of {many} looks like a kernel line"
            if self.foreign > 1
            else "its line looks like no kernel line"
        )
        return f"{looks}. {_READS}"

    @property
    def aside(self) -> str:
        """What an all-clear for this log does not speak of; empty: nothing. Without times any line may be the kernel's."""
        said = []
        if self.foreign and self.timed:
            look = "lines look like no kernel lines" if self.foreign > 1 else "line looks like no kernel line"
            where = f"line {self.first_foreign}: {self.foreign_example!r}"
            said.append(f"{self.foreign} {look} ({where}).")
        number, text, last = self._last
        if self.unended and last is not None and not _means(KernelReader(kept=True), last.text):
            said.append(f"The log ends within line {number}, which may go on: {_shortened(text)!r}.")
        return " ".join(said)


def _shortened(text: str) -> str:
    return " ".join(text.split())[:100]


def _unread(line: Line) -> str:
    """Why a line may say more than what is read of it from its beginning; empty: it does not."""
    text = line.text[:MAX_TEXT]
    why = _Why.FORM if has_unknown_form(line) else _suspicion(line, text) if _marked(text) else ""
    # What begins as a kernel line is read as one: its own end may look like another.
    if why and line.facility == KERNEL and _means(KernelReader(kept=True), text):
        return ""
    return why


def _marked(text: str) -> bool:
    return text.endswith(BEGUN) or is_cut(text) or any(marker in text for marker in MARKERS)


def _suspicion(line: Line, text: str) -> str:
    if line.facility != KERNEL:
        return _Why.PROGRAM if holds_rest(text) or is_cut(text) or _cries(text, 0) else ""
    if holds_rest(text):
        return _Why.REST
    if _cries(text, 1):
        return _Why.INSIDE
    return _Why.CUT if is_cut(text) or text.endswith(BEGUN) else ""


def _may_begin(line: Line) -> bool:
    """Of a line that may go on: does it hold what marks a line that means something, or the beginning of that?"""
    text = line.text[:MAX_TEXT]
    marked = text.endswith(_BEGUN_LAST) or any(marker.rstrip() in text for marker in MARKERS)
    return marked and not _unread(line) and not _means(KernelReader(kept=True), text)


def _cries(text: str, start: int) -> bool:
    """Does a line that means something begin anywhere in a text, from `start` on, perhaps in the middle of a word?"""
    last = max((text.rfind(marker) for marker in MARKERS if marker in text), default=-1)
    if last < start:
        return False
    first = max(start, last - _BEFORE_MARKER)
    begins = {word.start() for word in _WORD.finditer(text, first, last + 1)}
    begins |= {at for marker in MARKERS if (at := text.find(marker, first)) >= 0}
    reader = KernelReader(kept=True)
    return any(_means(reader, text[at:]) for at in sorted(begins))


def _means(reader: KernelReader, text: str) -> bool:
    return any(one.severity is not Severity.INFO for one in reader.read(text))
