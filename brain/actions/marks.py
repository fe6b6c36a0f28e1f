"""Our marks in the reason or annotation of a drain: one for each incident that wants the drain. Pure.

    gpuward: gpu_off_bus on gpu/0000:3b:00 (rule gpu-off-bus) [inc-17]; link-down on link/eth0 [inc-18] #5c0e

The four digits at the end are a checksum of the text before them. A reason that someone else has changed or added to is
no longer ours: we do not undo it. A drain that a node's prolog has set (agent/contract/drain_reason.py) is taken over: the
mark of the incident that does so keeps its words, and the drain ends with the marks.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from agent.contract.drain_reason import checksum, plain, words_of

MARK = "gpuward"  # part of every reason, label and annotation that we write; we undo only what carries it
REASON = "gpuward/reason"  # the annotation of a Kubernetes node in which the marks stand
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
    parts = (f"{plain(mark.why)[:each].rstrip()} [{plain(mark.incident)}]" for mark in marks)
    text = "; ".join(parts)
    return f"{MARK}: {text} #{checksum(MARK, text)}"


def read(reason: str) -> tuple[Mark, ...]:
    """Returns the marks of a reason; none when we did not write it, or someone has changed it."""
    found = _OURS.fullmatch(reason)
    if found is None or found[2] != checksum(MARK, found[1]):
        return ()
    parts = list(_ONE.finditer(found[1]))
    if "".join(part[0] for part in parts) != found[1]:
        return (Mark(incident="", why=found[1]),)
    return tuple(Mark(incident=part[2], why=part[1]) for part in parts)


def ours(reason: str) -> bool:
    """Did we write this reason, and is it unchanged?"""
    return bool(read(reason))


def taken_over(mark: Mark, reason: str) -> Mark:
    """Returns the mark as it takes over what stands there; unchanged unless a prolog has drained the node."""
    words = words_of(reason)
    return replace(mark, why=f"{mark.why}; its prolog: {words}") if words else mark


def of_a_person(reason: str) -> bool:
    """Did neither we nor a prolog of ours write this reason, or has somebody changed it?"""
    return not ours(reason) and not words_of(reason)


def added(marks: Sequence[Mark], mark: Mark) -> tuple[Mark, ...]:
    """Returns the marks with one more; the same when its incident has one already."""
    if plain(mark.incident) in (one.incident for one in marks):
        return tuple(marks)
    return (*marks, mark)


def without(marks: Sequence[Mark], owners: Collection[str] | None) -> tuple[Mark, ...]:
    """Returns the marks that stay when `owners` let go; None: all of them do."""
    if owners is None:
        return ()
    gone = {plain(owner) for owner in owners}
    left = tuple(mark for mark in marks if mark.incident not in gone)
    return () if all(not mark.incident for mark in left) else left


def owns(marks: Sequence[Mark], incident: str) -> bool:
    """Has the incident a mark among these?"""
    return plain(incident) in (mark.incident for mark in marks)
