"""Our marks in the reason or annotation of a drain: one for each incident that wants the drain. Pure.

    gpuward: gpu_off_bus on gpu/0000:3b:00 (rule gpu-off-bus) [inc-17]; link-down on link/eth0 [inc-18] #5c0e

The four digits at the end are a checksum of the text before them. A reason that someone else has changed or added to is
no longer ours: we do not undo it.
"""

import re
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MARK = "gpuward"  # part of every reason, label and annotation that we write; we undo only what carries it
MAX_WHY = 200  # characters, of all marks together; `sinfo -R` and `kubectl describe` show all of them
LEAST_WHY = 24  # characters that each mark keeps, however many there are
_OURS = re.compile(rf"{MARK}: (.*) #([0-9a-f]{{4}})", re.DOTALL)
_ONE = re.compile(r"([^\[\]]*) \[([^\[\]]+)\](?:; |$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One incident's part of a drain."""

    # Empty: a mark of an unknown owner, which goes with any other
    incident: str
    # Cause, scope and rule
    why: str


def written(marks: Sequence[Mark]) -> str:
    """Returns the reason to write: one line of printable ASCII without quotes, backslashes and other brackets."""
    each = max(LEAST_WHY, MAX_WHY // max(1, len(marks)))
    parts = (f"{_plain(mark.why)[:each].rstrip()} [{_plain(mark.incident)}]" for mark in marks)
    text = "; ".join(parts)
    return f"{MARK}: {text} #{_sum(text)}"


def read(reason: str) -> tuple[Mark, ...]:
    """Returns the marks of a reason; none when we did not write it, or someone has changed it."""
    found = _OURS.fullmatch(reason)
    if found is None or found[2] != _sum(found[1]):
        return ()
    parts = list(_ONE.finditer(found[1]))
    if "".join(part[0] for part in parts) != found[1]:
        return (Mark(incident="", why=found[1]),)
    return tuple(Mark(incident=part[2], why=part[1]) for part in parts)


def ours(reason: str) -> bool:
    """Did we write this reason, and is it unchanged?"""
    return bool(read(reason))


def added(marks: Sequence[Mark], mark: Mark) -> tuple[Mark, ...]:
    """Returns the marks with one more; the same when its incident has one already."""
    if _plain(mark.incident) in (one.incident for one in marks):
        return tuple(marks)
    return (*marks, mark)


def without(marks: Sequence[Mark], owners: Collection[str] | None) -> tuple[Mark, ...]:
    """Returns the marks that stay when `owners` let go; None: all of them do."""
    if owners is None:
        return ()
    gone = {_plain(owner) for owner in owners}
    left = tuple(mark for mark in marks if mark.incident not in gone)
    return () if all(not mark.incident for mark in left) else left


def owns(marks: Sequence[Mark], incident: str) -> bool:
    """Has the incident a mark among these?"""
    return _plain(incident) in (mark.incident for mark in marks)


def _plain(text: str) -> str:
    plain = "".join(char if char.isascii() and char.isprintable() else " " for char in text)
    return " ".join(re.sub(r"[\"'\\`]", "", plain).translate({91: "(", 93: ")"}).split())


def _sum(text: str) -> str:
    return f"{zlib.crc32(f'{MARK}: {text}'.encode()) & 0xFFFF:04x}"
