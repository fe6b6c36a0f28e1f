"""One line of the table of metrics (brain/console/metrics.py)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from brain.console.brain_view import BrainView

Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One line of the table. `samples` gives the values of the labels, and a number, for each sample."""

    name: str
    help: str
    kind: Literal["gauge", "counter"] = "gauge"
    labels: tuple[str, ...] = ()
    samples: Callable[[BrainView], Samples]
