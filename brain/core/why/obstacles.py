"""Which tests of a condition stand in its way: the fewest whose change makes it true, or false. Pure.

A condition is a tree (brain/core/pack/conditions.py): mappings and `all` need each part, `any` needs one, `not` turns what is
wanted round. So the obstacles of `all` are those of each part, and those of `any` are those of the part that has the fewest.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from brain.core.pack.conditions import SYMPTOM_PREFIX, test
from brain.core.pack.spec import Scalar

Path = tuple[str | int, ...]  # where a test stands in its condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One test of a condition, with what it finds now."""

    path: Path
    # the symptom that must be active; empty: the test is of a field
    symptom: str = ""
    # the field of the situation; empty: the test is of a symptom
    field: str = ""
    # the test of the field, as in the rule
    want: Any = None
    # the field's value; None: it is missing
    value: Scalar | None = None
    # what the condition needs it to be: False below a `not`
    wanted: bool
    # what it is
    true: bool


def parts(
    condition: Mapping[str, Any], situation: Mapping[str, Scalar], *, wanted: bool = True, path: Path = ()
) -> Iterator[Part]:
    """Every test of the condition, in the rule's order."""
    for key, want in condition.items():
        here = (*path, key)
        if key in ("all", "any"):
            for index, part in enumerate(want):
                yield from parts(part, situation, wanted=wanted, path=(*here, index))
        elif key == "not":
            yield from parts(want, situation, wanted=not wanted, path=here)
        else:
            yield _part(key, want, situation, wanted=wanted, path=here)


def obstacles(
    condition: Mapping[str, Any], situation: Mapping[str, Scalar], *, wanted: bool = True
) -> tuple[Part, ...] | None:
    """The fewest tests that must change for the condition to be as `wanted`; none: it is. None: it can never be."""
    found = _mapping(condition, situation, wanted, ())
    return None if found is None else tuple(found)


def holds_with(
    condition: Mapping[str, Any], situation: Mapping[str, Scalar], changed: Collection[Path], path: Path = ()
) -> bool:
    """Whether the condition holds if the tests at these paths had found the opposite."""
    for key, want in condition.items():
        here = (*path, key)
        if key in ("all", "any"):
            each = (holds_with(part, situation, changed, (*here, index)) for index, part in enumerate(want))
            true = all(each) if key == "all" else any(each)
        elif key == "not":
            true = not holds_with(want, situation, changed, here)
        else:
            true = _part(key, want, situation, wanted=True, path=here).true != (here in changed)
        if not true:
            return False
    return True


_Found = list[Part] | None


def _mapping(
    condition: Mapping[str, Any], situation: Mapping[str, Scalar], wanted: bool, path: Path
) -> _Found:
    each = [_key(key, want, situation, wanted, (*path, key)) for key, want in condition.items()]
    return _every(each) if wanted else _fewest(each)


def _key(key: str, want: Any, situation: Mapping[str, Scalar], wanted: bool, path: Path) -> _Found:
    if key == "not":
        return _mapping(want, situation, not wanted, path)
    if key in ("all", "any"):
        each = [_mapping(part, situation, wanted, (*path, index)) for index, part in enumerate(want)]
        return _every(each) if (key == "all") == wanted else _fewest(each)
    part = _part(key, want, situation, wanted=wanted, path=path)
    return [] if part.true == wanted else [part]


def _every(each: list[_Found]) -> _Found:
    found: list[Part] = []
    for one in each:
        if one is None:
            return None
        found += one
    return found


def _fewest(each: list[_Found]) -> _Found:
    return min((one for one in each if one is not None), key=len, default=None)


def _part(key: str, want: Any, situation: Mapping[str, Scalar], *, wanted: bool, path: Path) -> Part:
    if key == "symptom":
        true = situation.get(SYMPTOM_PREFIX + want) == 1
        return Part(path=path, symptom=want, wanted=wanted, true=true)
    value = situation.get(key)
    if value is not None and value != value:  # NaN counts as missing
        value = None
    return Part(path=path, field=key, want=want, value=value, wanted=wanted, true=test(want, value))
