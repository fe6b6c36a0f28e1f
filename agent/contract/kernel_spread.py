"""Messages that one printk spreads over several lines: what reads a log makes one record of them again. Pure."""

import re
from dataclasses import dataclass, replace

from agent.contract.kernel_line import KERNEL, MAX_TEXT, Line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """One printk of several lines, which text encodings spread over several records."""

    begins: re.Pattern[str]
    goes_on: tuple[str, ...]
    # What its last line holds.
    ends: str
    # The whole record as long as it may still become this message: other messages begin with the same line.
    begun: re.Pattern[str]


_SPREADS = (
    _Spread(
        begins=re.compile(
            r"NVRM: The NVIDIA GPU [0-9a-fA-F:.]{7,20}"
            r"(?: \(PCI ID: [0-9a-fA-F:]{9}\)(?: installed in this system has)?)?"
        ),
        goes_on=("NVRM: (PCI ID", "NVRM: installed in this system", "NVRM: fallen off the bus"),
        ends="fallen off the bus",
        begun=re.compile(
            r"NVRM: The NVIDIA GPU [0-9a-fA-F:.]{7,20}(?:\s{1,9}(?:NVRM: )?\(PCI ID: [0-9a-fA-F:]{9}\))?"
            r"(?:\s{1,9}(?:NVRM: )?installed in this system has)?\s*"
        ),
    ),
    _Spread(  # of old drivers, and of those that name the client's process
        begins=re.compile(r"NVRM: API mismatch: the client .{0,200}"),
        goes_on=(
            *("NVRM: this kernel module", "NVRM: make sure that", "NVRM: components have"),
            *(
                "NVRM: has the version",
                "NVRM: the version",
                "NVRM: kernel module and all",
                "NVRM: have the same",
            ),
        ),
        ends="the same version",
        begun=re.compile(r"NVRM: API mismatch: the client .{0,200}"),
    ),
)
_MOST_LINES = 6
_MOST_BETWEEN = 4


class Joiner:
    """Makes one record of the lines of one printk. On a console those of another processor may stand between them."""

    def __init__(self) -> None:
        # The message that is not complete, and records that came since.
        self._spread: _Spread | None = None
        self._held: list[tuple[int, Line]] = []

    def joins(self, line: Line) -> bool:
        """Does the line belong to the message that is held? Then it is taken."""
        text = line.text.lstrip()
        if self._spread is None or not text.startswith(self._spread.goes_on):
            return False
        number, opened = self._held[0]
        if line.facility != opened.facility:
            return False
        opened = replace(opened, text=f"{opened.text}\n{text}"[:MAX_TEXT])
        self._held[0] = (number, opened)
        if self._spread.ends in text or opened.text.count("\n") >= _MOST_LINES:
            self._spread = None
        return True

    def take(self, number: int, line: Line) -> None:
        """A record that belongs to no other."""
        begun = next((spread for spread in _SPREADS if spread.begins.fullmatch(line.text)), None)
        # A program's lines are not read at all: each stays one, so that what it repeats is noticed.
        if begun is not None and begun.ends not in line.text and line.facility == KERNEL:
            self._spread = None if self._held else begun
        self._held.append((number, line))
        if len(self._held) > _MOST_BETWEEN:
            self._spread = None

    def ready(self, *, ended: bool = False) -> list[tuple[int, Line]]:
        """The records that wait for nothing, in order."""
        if self._spread is not None and not ended:
            return []
        found, self._held = self._held, []
        return found


def holds_rest(text: str) -> bool:
    """Does a text hold the end of a message of several lines, wherever it stands? Alone it lacks the others."""
    return any(spread.ends in text and any(part in text for part in spread.goes_on) for spread in _SPREADS)


def lacks_rest(text: str) -> bool:
    """Is a record the beginning of a message of several lines, as far as it goes, and not its end?"""
    return any(spread.begun.fullmatch(text) for spread in _SPREADS)
