"""In which order the files of tests are run: processors that wait for nothing, and no worker alone in the end.

About twenty files take half of the time and wait for most of it: for processes, for clocks. One beside the other they leave
the processors idle, and those that compute are slow afterwards. So they are mixed.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

# Parts of the paths of files that wait, the longest first. What is in neither list is short.
WAITING = (
    *("e2e/healing/test_guest", "e2e/healing/test_gpu_nodes", "e2e/test_up", "e2e/healing/test_fabric"),
    *("e2e/test_crash_points", "e2e/test_spine", "e2e/healing/test_off_node", "real/test_kube_drains"),
    *("real/test_kube_outages", "agent/test_nvml_trouble", "real/test_slurm", "e2e/healing/test_links"),
    *("real/test_ipmi", "e2e/test_bad_input", "brain/actions/test_patience", "real/test_lease"),
)
# And of those that compute for long.
COMPUTING = (
    *("agent/test_line_storms", "situations/test_situations", "real/test_brain", "replay/"),
    *("real/test_long_outage", "brain/test_rulebook", "laws/test_planted", "real/test_guest", "test_imports"),
)
FIRST = 3  # files that wait, at once in the beginning: one worker of four computes
LATEST = 0.7  # the last file that waits begins when this share of the others is under way


def in_order(paths: Iterable[str]) -> list[str]:
    """The files: some that wait, then those that compute, the longest first, with the others that wait spread among them."""
    known = list(paths)
    waiting = sorted((path for path in known if _rank(path, WAITING) < len(WAITING)), key=_waits)
    others = sorted((path for path in known if path not in set(waiting)), key=_computes)
    order, spread = waiting[:FIRST], waiting[FIRST:]
    apart = int(len(others) * LATEST / len(spread)) if spread else 0
    for number, path in enumerate(spread):
        order += [*others[number * apart : (number + 1) * apart], path]
    return order + others[len(spread) * apart :]


def _rank(path: str, parts: tuple[str, ...]) -> int:
    return next((n for n, part in enumerate(parts) if part in path), len(parts))


def _waits(path: str) -> int:
    return _rank(path, WAITING)


def _computes(path: str) -> tuple[int, str]:
    """The short ones shuffled, always alike: those of one folder wait for the same."""
    return _rank(path, COMPUTING), hashlib.sha256(Path(path).name.encode()).hexdigest()
