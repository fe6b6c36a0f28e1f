"""How often the NVML child reads what changes slowly, and writes; it imports nothing.

While all GPUs are well and nothing has happened for `calm_s`, it is calm: every second it still asks each GPU what shows a
fault at once, and takes the events as they come; the counters, and a line to the agent, come half as often. The first
sign of trouble ends that within one sample.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself would cost the child 0.6 MB
if TYPE_CHECKING:
    from typing import Any

CALM_TIMES = 2  # so many times longer are the pauses between slow and rare readings while all is calm
# nvmlClocksEventReasons that slow a GPU down by fault: hardware slowdown, software and hardware thermal, power brake.
_SLOWED = 0x8 | 0x20 | 0x40 | 0x80
# What changes on a healthy GPU too, with its load; all other values of `health` stand still.
_RESTLESS = {"margin", "memory_temp", "pcie.generation", "pcie.width"}


class Pace:
    """Which tiers the next sample has, and whether it is sent."""

    def __init__(self, slow_every: int, rare_every: int, calm_s: float) -> None:
        """Samples between slow and rare readings while something happens; how long nothing has happened until it is calm."""
        self._slow_every, self._rare_every, self._calm_s = slow_every, rare_every, calm_s
        self._number = 0
        self._sign_s: float | None = None
        # What the GPUs looked like at the last line.
        self._shown: list[Any] = []

    def restart(self) -> None:
        """NVML was opened again: everything is read, and what was before says nothing."""
        self._number, self._sign_s, self._shown = 0, None, []

    def tiers(self, at_s: float) -> tuple[bool, bool]:
        """Whether the next sample has the counters, and what hardly ever changes."""
        times = CALM_TIMES if self.calm(at_s) else 1
        number, self._number = self._number, self._number + 1
        return number % (self._slow_every * times) == 0, number % (self._rare_every * times) == 0

    def calm(self, at_s: float) -> bool:
        """Has nothing happened for long enough?"""
        return self._sign_s is not None and at_s - self._sign_s >= self._calm_s

    def send(self, at_s: float, samples: list[dict[str, Any]], *, asked: bool, full: bool) -> bool:
        """Whether these samples are worth a line. `asked`: the agent waits for one, or a call hung or an event came; `full`:
        they have the counters.
        """
        if self._sign_s is None or asked or any(_troubled(sample) for sample in samples):
            self._sign_s = at_s
        # Not how much a GPU is used, but whether: a job has begun or ended.
        shown = [(sample["bdf"], sample["lost"], bool(sample["now"]), sample["procs"]) for sample in samples]
        if shown == self._shown and not full and self.calm(at_s):
            return False
        self._shown = shown
        return True


def _troubled(sample: dict[str, Any]) -> bool:
    return bool(
        sample["answers"] is False
        or (sample["reasons"] or 0) & _SLOWED
        or sample["health"].keys() - _RESTLESS
    )
