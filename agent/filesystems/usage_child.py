"""How much is in the directories of one file system: a program of its own, since it may hang with the file system.

    usage_child.py FOLDER DEPTH SECONDS  →  one JSON object: {"bytes", "files", "denied", "whole", "largest": [[bytes, path]]}

Imports nothing of the agent. Stays on the file system, follows no link, counts a file with several names once for each.
After SECONDS it prints what it has counted so far (`whole` is false); directories that were open then count too little.
"""

import contextlib
import heapq
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

LARGEST = 10
_LOOK_EVERY = 256  # entries between looks at the clock


class _Open:
    """A directory that is being read."""

    __slots__ = ("entries", "path", "size")

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        self.entries: Iterator[os.DirEntry[str]] = os.scandir(path)


def usage(folder: str, depth: int, seconds: float) -> dict[str, Any]:
    """See the module's docstring. Memory: one open directory for each level, and the largest ten."""
    end_s = time.monotonic() + seconds
    device = os.lstat(folder).st_dev
    largest: list[tuple[int, str]] = []
    files = denied = seen = 0
    total = 0
    whole = True
    stack = [_Open(folder, 0)]
    while stack:
        here = stack[-1]
        entry = None
        if whole:
            seen += 1
            if seen % _LOOK_EVERY == 0 and time.monotonic() > end_s:
                whole = False
            try:
                entry = next(here.entries, None)
            except OSError:
                denied += 1
        if entry is None:  # read to its end, or the time is up: its size goes to its parent
            stack.pop()
            with contextlib.suppress(AttributeError):
                here.entries.close()  # type: ignore[attr-defined]  # scandir's iterator has it
            if not stack:
                total = here.size
                break
            stack[-1].size += here.size
            if len(stack) <= depth:
                if len(largest) < LARGEST:
                    heapq.heappush(largest, (here.size, here.path))
                else:
                    heapq.heappushpop(largest, (here.size, here.path))  # the smallest goes
            continue
        try:
            found = entry.stat(follow_symlinks=False)
            if found.st_dev != device:
                continue
            size = found.st_blocks * 512
            if entry.is_dir(follow_symlinks=False):
                stack.append(_Open(entry.path, size))
            else:
                here.size += size
                files += 1
        except OSError:  # gone meanwhile, or no permission
            denied += 1
    return {
        "bytes": total,
        "files": files,
        "denied": denied,
        "whole": whole,
        # Whoever makes a directory chooses the bytes of its name: JSON takes only text.
        "largest": [
            (size, os.fsencode(path).decode(errors="backslashreplace"))
            for size, path in sorted(largest, reverse=True)
        ],
    }


if __name__ == "__main__":
    with contextlib.suppress(OSError):  # runs only when no other process needs the processor
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    json.dump(usage(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])), sys.stdout)
