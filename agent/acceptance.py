"""The acceptance programs of a site: what they are, and what the figures that they print must be.

    [acceptance.all_reduce]
    argv = ["/opt/nccl-tests/all_reduce_perf", "-b", "1G", "-e", "8G", "-f", "2", "-g", "8"]
    limit_s = 300
    quick = true
    figures = 'Avg bus bandwidth\\s*:\\s*(?P<bus_gb_per_s>[0-9.]+)'
    floors = { bus_gb_per_s = 150 }

A program passes when it ends with status 0 within its time, prints every figure that has a limit, and each is within it.
Standard library only: the agent reads this with its configuration.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.contract.errors import ConfigError
from agent.contract.figures import NAME, Figure

JSON = "json"
QUICK_S = 1500.0  # for all quick programs together: they run before a node returns to service
FULL_S = 3300.0  # for all programs together: no command may take more than an hour
MAX_LINE = 500  # characters of a line that a regular expression sees: a slow one must not hold the agent up
_KEYS = ("argv", "limit_s", "quick", "figures", "floors", "ceilings", "gpus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One acceptance program."""

    name: str
    # An argument list; the first is an absolute path. Never a shell string.
    argv: tuple[str, ...]
    # It is ended after this long, and has failed.
    limit_s: float
    # It runs before every return to service too; otherwise only for a new or repaired node.
    quick: bool = False
    # `json`: lines that are JSON objects, by their keys; else a regular expression within a line, by its named groups;
    # empty: none.
    figures: str = ""
    # Figure -> the least that it must be.
    floors: Mapping[str, float] = field(default_factory=dict)
    # Figure -> the most that it may be: the lower the better.
    ceilings: Mapping[str, float] = field(default_factory=dict)
    # False: it uses no GPU, and may run while something else does.
    gpus: bool = True

    def read(self, text: str) -> list[Figure]:
        """The figures in what it printed; of a figure that is printed several times the worst."""
        worst: dict[str, float] = {}
        for name, value in self._values(text):
            pick = max if name in self.ceilings else min
            worst[name] = pick(worst.get(name, value), value)
        return [
            Figure(name=f"{self.name}.{name}", value=value, lower_is_better=name in self.ceilings)
            for name, value in worst.items()
        ]

    def shortfalls(self, figures: list[Figure]) -> Iterator[str]:
        """Why the figures do not pass, for people; nothing when they do."""
        found = {figure.name.removeprefix(f"{self.name}."): figure.value for figure in figures}
        for limits, word in ((self.floors, "below its floor"), (self.ceilings, "above its ceiling")):
            for name, limit in limits.items():
                if name not in found:
                    yield f"{name} is not in what it printed"
                elif (found[name] < limit) if limits is self.floors else (found[name] > limit):
                    yield f"{name} is {found[name]:g}, {word} of {limit:g}"

    def _values(self, text: str) -> Iterator[tuple[str, float]]:
        if self.figures == JSON:
            for line in text.splitlines():
                for name in (*self.floors, *self.ceilings):
                    if (value := _number(_object(line).get(name))) is not None:
                        yield name, value
        elif self.figures:
            wanted = re.compile(self.figures)
            for line in text.splitlines():
                for match in wanted.finditer(line[:MAX_LINE]):
                    for name, group in match.groupdict().items():
                        if (value := _number(group)) is not None:
                            yield name, value


def programs(raw: Mapping[str, Mapping[str, Any]]) -> list[Program]:
    """The programs of the option `acceptance`, in its order; ConfigError says what is wrong, and where."""
    found = [_program(name, given) for name, given in raw.items()]
    for least, chosen, what in (
        (QUICK_S, [one for one in found if one.quick], "quick programs"),
        (FULL_S, found, "programs"),
    ):
        if (together := sum(one.limit_s for one in chosen)) > least:
            raise ConfigError(f"all {what} together may take {least:g} s, not {together:g}")
    return found


def check(key: str, value: Mapping[str, Mapping[str, Any]]) -> str:
    """For `check` of the option."""
    try:
        programs(value)
    except ConfigError as error:
        return f"{key}.{error}"
    return ""


def _program(name: str, raw: Mapping[str, Any]) -> Program:
    if NAME.fullmatch(name) is None or len(name) > 40:
        raise ConfigError(f"{name[:60]}: a program's name has a-z, 0-9 and _, at most 40 characters")
    if unknown := [key for key in raw if key not in _KEYS]:
        raise ConfigError(f"{name}: unknown key {unknown[0]!r} (known: {', '.join(_KEYS)})")
    argv, limit_s, figures = raw.get("argv"), raw.get("limit_s"), raw.get("figures", "")
    if not isinstance(argv, list | tuple) or not argv or not all(isinstance(one, str) for one in argv):
        raise ConfigError(f"{name}.argv must be a list of texts: the program and its arguments")
    if not argv[0].startswith("/") or any("\0" in one for one in argv):
        raise ConfigError(f"{name}.argv must begin with an absolute path, not {argv[0]!r}")
    if not isinstance(limit_s, int | float) or isinstance(limit_s, bool) or not 1 <= limit_s <= FULL_S:
        raise ConfigError(f"{name}.limit_s must be 1 to {FULL_S:g} (s), not {limit_s!r}")
    for key in ("quick", "gpus"):
        if not isinstance(raw.get(key, False), bool):
            raise ConfigError(f"{name}.{key} must be true or false, not {raw[key]!r}")
    floors, ceilings = (_limits(f"{name}.{key}", raw.get(key, {})) for key in ("floors", "ceilings"))
    _check_figures(name, figures, [*floors, *ceilings])
    return Program(
        name=name, argv=tuple(argv), limit_s=float(limit_s), quick=raw.get("quick", False), figures=figures,
        floors=floors, ceilings=ceilings, gpus=raw.get("gpus", True),
    )  # fmt: skip


def _limits(where: str, raw: Any) -> dict[str, float]:
    if not isinstance(raw, dict):
        raise ConfigError(f"{where} must be a table: figure = number")
    for name, value in raw.items():
        if NAME.fullmatch(name) is None or len(name) > 40 or _number(value) is None or isinstance(value, str):
            raise ConfigError(f"{where}.{name[:60]} must be a number, its name a-z, 0-9 and _")
    return {name: float(value) for name, value in raw.items()}


def _check_figures(name: str, figures: Any, limited: list[str]) -> None:
    if not isinstance(figures, str):
        raise ConfigError(f'{name}.figures must be "json" or a regular expression, not {figures!r}')
    if figures == JSON:
        return
    try:
        groups = list(re.compile(figures).groupindex)
    except re.error as error:
        raise ConfigError(f"{name}.figures is not a regular expression: {error}") from error
    if figures and not groups:
        raise ConfigError(f"{name}.figures has no named group: write the value as (?P<name>...)")
    if strange := [group for group in groups if NAME.fullmatch(group) is None or len(group) > 40]:
        raise ConfigError(f"{name}.figures: the group {strange[0]!r} must be a-z, 0-9 and _")
    if absent := [one for one in limited if one not in groups]:
        raise ConfigError(f"{name}: {absent[0]} has a limit, and `figures` has no group of that name")


def _object(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line) if line.lstrip().startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> float | None:
    """A finite number, or one that is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
