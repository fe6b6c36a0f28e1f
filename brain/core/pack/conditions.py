"""The language of `when` and `where`, evaluated in plain Python. It defines what a condition means.

`when` of a rule or rung, on a situation (a flat dict):

    {symptom: gpu_off_bus}            the situation has the symptom (faults/situations.py)
    {field: {gte: 3, lt: 10}}         tests; also {field: value} (equal) and {field: [a, b]} (one of)
    {field: {exists: true}}           the situation has the field
    {all: [...]}  {any: [...]}  {not: {...}}   several keys in one mapping: all of them

Every test on a missing field is false, except `exists: false`; so `not` of it is true. Numbers compare with numbers,
texts with texts and booleans with booleans (for equality only); any other comparison is false.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from typing import Any

from agent.contract.errors import ConfigError
from brain.core.pack.spec import Scalar

TESTS = ("eq", "ne", "lt", "lte", "gt", "gte", "in", "exists")
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
SYMPTOM_PREFIX = "s_"  # the situation's field of a symptom: 1 while it is active


def holds(condition: Mapping[str, Any], situation: Mapping[str, Scalar]) -> bool:
    """Whether the condition is true of the situation. An empty condition is."""
    for key, want in condition.items():
        if key == "all":
            true = all(holds(part, situation) for part in want)
        elif key == "any":
            true = any(holds(part, situation) for part in want)
        elif key == "not":
            true = not holds(want, situation)
        elif key == "symptom":
            true = situation.get(SYMPTOM_PREFIX + want) == 1
        else:
            true = test(want, situation.get(key))
        if not true:
            return False
    return True


def test(want: Any, value: Scalar | None) -> bool:
    """Whether a field's value passes its test. `value` None: the field is missing."""
    if isinstance(want, str):
        return want == value  # most tests: a text equals texts only
    if isinstance(want, (list, tuple)):
        return any(_compare("eq", value, item) for item in want)
    plain = isinstance(want, (int, float))  # to ask an ABC such as Mapping costs more
    if plain or not isinstance(want, Mapping):
        return _compare("eq", value, want)
    return all(_compare(name, value, operand) for name, operand in want.items())


def ready(want: Any) -> Callable[[Scalar | None], bool]:
    """`test` of one `want`, to be asked of many values: what sort of test it is is found out once, not for each value."""
    if isinstance(want, bool):
        return lambda value: value is want
    if isinstance(want, str):
        return lambda value: value == want
    if isinstance(want, (int, float)):
        return lambda value: value == want and not isinstance(value, bool)
    if isinstance(want, Mapping):
        return reduce(_both, [_ready_test(name, operand) for name, operand in want.items()])
    if not any(isinstance(item, bool) for item in want):
        values = frozenset(want)
        return lambda value: value in values and not isinstance(value, bool)
    return partial(test, want)


def _ready_test(name: str, operand: Any) -> Callable[[Scalar | None], bool]:
    if name in ("eq", "in"):
        return ready(operand)
    order = _ORDERS.get(name)
    if order is None or isinstance(operand, (str, bool)):
        return partial(_compare, name, operand=operand)
    return lambda value: (
        isinstance(value, (int, float)) and not isinstance(value, bool) and order(value, operand)
    )


def _both(
    one: Callable[[Scalar | None], bool], other: Callable[[Scalar | None], bool]
) -> Callable[[Scalar | None], bool]:
    return lambda value: one(value) and other(value)


def _compare(name: str, value: Scalar | None, operand: Any) -> bool:
    if name == "exists":
        return (value is not None) is bool(operand)
    if value is None:
        return False
    if name == "in":
        return any(_compare("eq", value, item) for item in operand)
    if isinstance(value, bool) or isinstance(operand, bool):
        if not isinstance(value, bool) or not isinstance(operand, bool):
            return False
        return (name == "eq" and value is operand) or (name == "ne" and value is not operand)
    if isinstance(value, str) != isinstance(operand, str):
        return False
    match name:
        case "eq":
            return bool(value == operand)
        case "ne":
            return bool(value != operand)
        case "lt":
            return bool(value < operand)
        case "lte":
            return bool(value <= operand)
        case "gt":
            return bool(value > operand)
        case _:
            return bool(value >= operand)


def symptoms_in(condition: Mapping[str, Any]) -> Iterator[str]:
    """The symptoms that a condition names, in order, repeats included."""
    for key, want in condition.items():
        if key == "symptom":
            yield want
        elif key in ("all", "any"):
            for part in want:
                yield from symptoms_in(part)
        elif key == "not":
            yield from symptoms_in(want)


def check(condition: Any, where: str) -> None:
    """Raises ConfigError, naming `where`, unless the condition is well formed."""
    if not isinstance(condition, Mapping):
        raise ConfigError(f"{where}: a condition must be a mapping, not {type(condition).__name__}")
    for key, want in condition.items():
        if key in ("all", "any"):
            if not isinstance(want, (list, tuple)) or not want:
                raise ConfigError(f"{where}: `{key}` wants a list of conditions")
            for index, part in enumerate(want):
                check(part, f"{where}.{key}[{index}]")
        elif key == "not":
            check(want, f"{where}.not")
        elif key == "symptom":
            if not isinstance(want, str):
                raise ConfigError(f"{where}: `symptom` wants a symptom's name")
        else:
            check_test(want, f"{where}.{key}")


def check_test(want: Any, where: str) -> None:
    """Raises ConfigError, naming `where`, unless `want` is a test: a value, a list of values, or a mapping of tests."""
    if isinstance(want, Mapping):
        for name, operand in want.items():
            if name not in TESTS:
                raise ConfigError(f"{where}: no test {name!r} (have: {', '.join(TESTS)})")
            if name == "in":
                if not isinstance(operand, (list, tuple)):
                    raise ConfigError(f"{where}: `in` wants a list")
            elif name == "exists":
                if not isinstance(operand, bool):
                    raise ConfigError(f"{where}: `exists` wants true or false")
            elif not isinstance(operand, (str, int, float, bool)):
                raise ConfigError(f"{where}: `{name}` wants one value")
    elif isinstance(want, (list, tuple)):
        if not want or not all(isinstance(item, (str, int, float, bool)) for item in want):
            raise ConfigError(f"{where}: a list of values must not be empty and holds plain values only")
    elif not isinstance(want, (str, int, float, bool)):
        raise ConfigError(f"{where}: wants a value, a list of values or tests")
