"""What the benchmarks share: percentiles and the table of results."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number and its target."""

    what: str
    value: str
    # What it is compared with, or the spread of the runs.
    beside: str = ""
    target: str = ""
    # Whether the target is met; None: there is no target.
    met: bool | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(figures: Sequence[Figure]) -> str:
    """The results as a Markdown table."""
    verdict = {True: "yes", False: "**no**", None: ""}
    lines = ["| what | measured | beside it, or spread | target | met |", "|---|---|---|---|---|"]
    lines += [f"| {f.what} | {f.value} | {f.beside} | {f.target} | {verdict[f.met]} |" for f in figures]
    return "\n".join(lines)


def machine() -> str:
    """One line about the machine of the run."""
    return f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
