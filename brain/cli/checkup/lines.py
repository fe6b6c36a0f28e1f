"""What the doctor says: one line for each thing that was looked at."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agent.shared.words import language, t
from brain import sentences

_SHOWN = 8  # names in one line


class Health(StrEnum):
    """How one thing is."""

    OK = "ok"  # as it should be
    WARN = "warn"  # it works, and will not always, or not for everything
    FAIL = "fail"  # it does not work
    UNCHECKED = "unchecked"  # it could not be looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLine:
    """One line; its fields are the keys of the JSON output."""

    # What was looked at
    check: str
    health: Health
    # What was found
    text: str
    # Who must do what; empty: nothing need be done
    action: str = ""


def ok(check: str, text: str) -> HealthLine:
    """It is as it should be."""
    return HealthLine(check=check, health=Health.OK, text=_told(text))


def warn(check: str, text: str, action: str) -> HealthLine:
    """It works, and will not always."""
    return HealthLine(check=check, health=Health.WARN, text=_told(text), action=action)


def fail(check: str, text: str, action: str) -> HealthLine:
    """It does not work."""
    return HealthLine(check=check, health=Health.FAIL, text=_told(text), action=action)


def unchecked(check: str, why: str, action: str = "") -> HealthLine:
    """It could not be looked at."""
    return HealthLine(check=check, health=Health.UNCHECKED, text=_told(why), action=action)


def _told(text: str) -> str:
    """What stands in it of the brain's own sentences, such as why a server is not reached, in the language that is spoken."""
    return sentences.told(text, language())


def some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    found = list(names)
    more = len(found) - _SHOWN
    return ", ".join(found[:_SHOWN]) + (t(" and {more} more", more=more) if more > 0 else "")
