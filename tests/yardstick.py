"""How fast this machine is just now, for tests that bound the processor time of a piece of our code.

began = time.process_time()
...
assert (time.process_time() - began) / slowness() < 0.5     # seconds of the machine that the bound was written on
"""

import re
import time

_REFERENCE_S = 0.0085  # what `_work` takes on that machine when it is idle
_LINE = re.compile(r"NVRM: Xid \(PCI:([0-9a-f:.]+)\): (\d+), (?:pid=(\d+), )?(.*)")


def slowness() -> float:
    """How many times longer the same work takes here and now; never less than 1, so that no bound grows tighter."""
    return max(1.0, min(_work() for _ in range(3)) / _REFERENCE_S)


def _work() -> float:
    """Processor time of a fixed piece of work of the kind that our code does: texts, patterns, dictionaries."""
    began = time.process_time()
    counts: dict[tuple[str, str], int] = {}
    for number in range(8_000):
        found = _LINE.search(
            f"kernel: NVRM: Xid (PCI:0000:{number % 7:02x}:00): {number % 90}, pid={number}, text"
        )
        assert found is not None
        key = found[1], found[2]
        counts[key] = counts.get(key, 0) + len(found[4].split())
    assert sum(counts.values()) == 8_000
    return time.process_time() - began
