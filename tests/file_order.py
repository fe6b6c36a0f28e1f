"""In which order the files of tests are run: processors that wait for nothing, and no worker alone in the end.

About thirty files take half of the time and wait for most of it: for processes, for clocks. One beside the other they leave
the processors idle, and those that compute are slow afterwards. So they are mixed.
"""

import hashlib
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

# Parts of the paths of files that wait, the longest first. What is in neither list is short.
WAITING = (
    *("real/test_ansible", "e2e/healing/test_guest", "e2e/healing/test_gpu_nodes", "e2e/test_up"),
    *(
        "real/test_packages",
        "e2e/healing/test_fabric",
        "real/test_nats_cluster_faults",
        "real/test_kustomize_ha",
    ),
    *("e2e/test_crash_points", "e2e/test_manual", "e2e/test_spine", "e2e/healing/test_off_node"),
    *("real/test_kube_drains", "real/test_kube_outages", "e2e/test_takeover", "agent/test_nvml_trouble"),
    *("real/test_slurm", "e2e/healing/test_links", "real/test_ipmi", "e2e/test_bad_input"),
    *("brain/actions/test_patience", "real/test_lease"),
)
# And of those that compute for long.
COMPUTING = (
    *(
        "agent/test_line_storms",
        "real/test_images",
        "security/test_rotation",
        "security/test_cell.py",
        "real/test_brain",
    ),
    *("security/test_stolen_node", "real/test_long_outage", "real/test_guest"),
    *("replay/", "brain/test_rulebook", "laws/test_planted", "situations/test_situations", "test_imports"),
    "stories/test_stories",
)
FIRST = 3  # files that wait, at once in the beginning: one worker of four computes
LATEST = 0.7  # the last long file begins when this share of the short ones is under way


def in_order(paths: Iterable[str]) -> list[str]:
    """The files: some that wait, then one that computes and one that waits in turn, with the short ones between them."""
    waiting, computing, short = _sorted(paths)
    order, waiting = waiting[:FIRST], waiting[FIRST:]
    long = [path for pair in zip_longest(computing, waiting) for path in pair if path]
    apart = int(len(short) * LATEST / len(long)) if long else 0
    for number, path in enumerate(long):
        order += [path, *short[number * apart : (number + 1) * apart]]
    return order + short[len(long) * apart :]


def _sorted(paths: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Those that wait and those that compute, each the longest first; the short ones shuffled, always alike: those of one
    folder wait for the same.
    """
    known = sorted(paths, key=lambda path: hashlib.sha256(Path(path).name.encode()).hexdigest())
    waiting = sorted((path for path in known if _rank(path, WAITING) < len(WAITING)), key=_waits)
    computing = sorted((path for path in known if _rank(path, COMPUTING) < len(COMPUTING)), key=_computes)
    long = {*waiting, *computing}
    return waiting, computing, [path for path in known if path not in long]


def _rank(path: str, parts: tuple[str, ...]) -> int:
    below = path.rpartition("/tests/")[2]  # wherever the checkout lies
    return next((n for n, part in enumerate(parts) if part in below), len(parts))


def _waits(path: str) -> int:
    return _rank(path, WAITING)


def _computes(path: str) -> int:
    return _rank(path, COMPUTING)
