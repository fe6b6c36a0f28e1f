"""Leaves out the lines of a long log that say nothing, before they are read one by one. Pure.

A line is left out when all of this holds: it stands in a form that is known, with a time that is no earlier than that of the
line before; it holds nothing that marks a line with a meaning; and so do the lines around it, so that a message of several
lines stays whole. Whether a line's words mean something does not depend on its digits: what was found of one is known of all
that differ in digits only, which most lines of a kernel log do. What is kept reads the same as the whole log would.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from agent.contract.coverage import BEGUN, MARKERS
from agent.contract.errors import ConfigError
from agent.shared.words import t

_BLOCK = 64  # lines that are kept or left out together
_SHAPES = 50_000  # texts without their digits that are remembered
_FOLD_S = 5.0  # the same line again within this time is one fact with a count, as the agent reports it
MOST_KEPT = 2_000_000  # lines
MOST_CHARACTERS = 256_000_000  # of the lines that are kept

_NO_DIGITS = str.maketrans("", "", "0123456789")
# `Linux version` begins a boot; a device's driver is named once, and counts for other lines.
_SAYS = (*MARKERS, "Linux version ", "nvidia ", "mlx5_core ")
_NEEDLES = tuple(dict.fromkeys(mark.translate(_NO_DIGITS) for mark in _SAYS))
# A line that was cut within a mark ends so.
_TAILS = tuple(dict.fromkeys(mark.translate(_NO_DIGITS) for mark in sorted(BEGUN)))
# A time that grows as a text, or a number, and the host where there is one.
_WHO = r"(?:kernel|[\w/-]{1,40}(?:\[[0-9]{1,10}\])): "  # who speaks
_HEAD = re.compile(
    "|".join(
        (
            r"(?:<[0-9]{1,3}>|[a-z]{3,8}[0-7]? {0,6}:[a-z]{4,6} {0,3}: )?\[ {0,12}(?P<up>[0-9]{1,12}\.[0-9]{1,9})\] ",
            rf"(?P<day>[A-Z][a-z]{{2}} [ 0-9][0-9] [0-9:]{{8}})(?:\.[0-9]{{1,9}})? (?P<host>[\w.-]{{1,64}}) {_WHO}",
            r"(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8})(?:[.,][0-9]{1,9})?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})? "
            rf"(?P<ihost>[\w.-]{{1,64}}) {_WHO}",
            r"[0-9]{1,3},[0-9]{1,20},(?P<us>[0-9]{1,20}),[^;\n]{0,40};",
            r"\[[A-Z][a-z]{2} (?P<ctime>[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4})\] ",
        )
    )
)


@dataclass(slots=True, kw_only=True)
class Sieved:
    """What is left of a log."""

    lines: list[str] = field(default_factory=list)
    # Of each line that is left, its 0-based position in the file.
    positions: "array[int]" = field(default_factory=lambda: array("q"))
    # Position of a line -> how many times the same line followed it at once, which are not kept.
    repeated: dict[int, int] = field(default_factory=dict)
    # Lines of the file that are not empty, and those that are not kept.
    read: int = 0
    left_out: int = 0


class Sieve:
    """Takes the lines of one file."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}  # text without its digits -> whether it may mean something
        self._hosts: set[str] = set()
        self._form: tuple[str, str] | None = None
        self._key: str | float = ""
        self._found = Sieved()
        self._characters = 0
        self._kept_text = ""  # of the newest line that is kept, behind its time
        self._kept_at: str | float = ""
        self._kept_position = -1

    @property
    def found(self) -> Sieved:
        """What is left so far."""
        return self._found

    def take(self, lines: Iterable[str]) -> None:
        """All lines of the file. ConfigError: too much is left of it to be held in memory."""
        source = iter(lines)
        held: list[str] = []
        first = position = 0  # of what is held, and of what comes
        held_plain = before_plain = False  # the first lines are always kept
        while block := list(islice(source, _BLOCK)):
            plain = self._is_plain(block)
            if held:
                self._settle(held, first, keep=not (before_plain and held_plain and plain))
                before_plain = held_plain
            held, first, held_plain = block, position, plain
            position += len(block)
        if held:
            self._settle(held, first, keep=True)

    def _is_plain(self, block: Sequence[str]) -> bool:
        """Whether nothing in these lines needs to be read one by one."""
        plain, known, match_head = True, self._known, _HEAD.match
        for line in block:
            head = match_head(line)
            if head is None:
                if line.strip():
                    plain = False
                    self._form = None
                continue
            kind = head.lastgroup or ""
            key: str | float
            if kind == "up":
                form, key = ("up", ""), float(head["up"])
            elif kind == "us":
                form, key = ("us", ""), float(head["us"])
            elif kind == "host":
                form, key = ("day", head["day"][:3]), head["day"]
            elif kind == "ihost":
                form, key = ("iso", head["zone"] or ""), head["iso"]
            else:
                form, key = ("ctime", head["ctime"][:3] + head["ctime"][-4:]), head["ctime"]
            if form != self._form:
                plain = plain and self._form is None
                self._form = form
            elif key < self._key:  # type: ignore[operator]  # of one form, so of one type
                plain = False
            self._key = key
            if kind in ("host", "ihost") and (host := head[kind]) not in self._hosts:
                self._hosts.add(host)
                plain = False
            shape = line[head.end() :].translate(_NO_DIGITS)
            means = known.get(shape)
            if means is None:
                if len(known) >= _SHAPES:
                    known.clear()
                means = known[shape] = self._may_mean(shape)
            if means:
                plain = False
        return plain

    @staticmethod
    def _may_mean(shape: str) -> bool:
        return not shape.strip() or shape.endswith(_TAILS) or any(mark in shape for mark in _NEEDLES)

    def _settle(self, block: Sequence[str], first: int, *, keep: bool) -> None:
        found = self._found
        found.read += sum(1 for line in block if line and not line.isspace())
        if not keep:
            found.left_out += len(block)
            return
        for number, line in enumerate(block):
            if self._repeats(line):
                found.repeated[self._kept_position] = found.repeated.get(self._kept_position, 0) + 1
                found.left_out += 1
                continue
            self._characters += len(line)
            found.lines.append(line)
            found.positions.append(first + number)
            self._kept_position = first + number
        if len(found.lines) > MOST_KEPT or self._characters > MOST_CHARACTERS:
            raise ConfigError(
                t(
                    "more than {lines} lines or {characters} characters of it may mean something: give the part that you want "
                    "to know about, e.g. with `tail -n 1000000`",
                    lines=f"{MOST_KEPT:,}",
                    characters=f"{MOST_CHARACTERS:,}",
                )
            )

    def _repeats(self, line: str) -> bool:
        """Whether the line before says the same, within seconds."""
        head = _HEAD.match(line)
        text = line[head.end() :] if head is not None else line
        at: str | float = ""
        if head is not None and head["up"]:
            at = float(head["up"])
        elif head is not None and head["us"]:
            at = float(head["us"]) / 1e6
        elif head is not None:
            at = head[0]
        same = bool(text.strip()) and text == self._kept_text and type(at) is type(self._kept_at)
        if same and isinstance(at, float) and isinstance(self._kept_at, float):
            same = 0 <= at - self._kept_at < _FOLD_S
        elif same:
            same = at == self._kept_at
        if not same:
            self._kept_text, self._kept_at = text, at
        return same
