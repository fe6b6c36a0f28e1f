"""What the benchmarks share: percentiles and the table of results."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number beside its target."""

    what: str
    value: str
    beside: str = ""  # what ran beside it, or the spread of the runs
    target: str = ""
    met: bool | None = None  # None: no target


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(figures: Sequence[Figure]) -> str:
    """Markdown."""
    verdict = {True: "yes", False: "**no**", None: ""}
    lines = ["| what | measured | beside it, or spread | target | met |", "|---|---|---|---|---|"]
    lines += [f"| {f.what} | {f.value} | {f.beside} | {f.target} | {verdict[f.met]} |" for f in figures]
    return "\n".join(lines)


def machine() -> str:
    """One line about where it ran."""
    return f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
