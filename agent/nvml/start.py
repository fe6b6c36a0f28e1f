"""Starts agent/nvml/child.py in as little memory as it can (`python -I agent/nvml/start.py BOARD_FD INTERVAL_S
SLOW_EVERY RARE_EVERY CALM_S CLOCKS ANSWERED [NVML_INDEX:CALL:SECONDS ...]`).

A file of its own, so that the child itself is a module: a file that is run as a script is compiled each time, which costs
half a megabyte that is never given back.
"""

import os
import sys

_Module = type(sys)


def main() -> None:
    """Replaces what pynvml imports and hardly uses, then samples NVML until it is killed."""
    # Needed on Windows only; it would import subprocess, tempfile and lzma: 2.4 MB.
    of_ctypes = _Module("ctypes.util")
    of_ctypes.__dict__["find_library"] = None
    # Needed for capwords, to name error classes; it would import re and enum: 1 MB.
    of_string = _Module("string")
    of_string.__dict__["capwords"] = _capwords
    sys.modules |= {"ctypes.util": of_ctypes, "string": of_string}
    root = os.path.abspath(__file__)  # noqa: PTH100  pathlib: 0.7 MB
    for _ in ("start.py", "nvml", "agent"):
        root = os.path.dirname(root)
    sys.path.insert(0, root)  # first: beside this file, whichever gpuward is installed
    from agent.nvml import child, pace

    board_fd, interval_s, slow_every, rare_every, calm_s, clocks, answered, *skips = sys.argv[1:]
    chosen = pace.Pace(int(slow_every), int(rare_every), float(calm_s))
    child.main(int(board_fd), float(interval_s), chosen, answered, skips, clocks=clocks == "1")


def _capwords(text: str, separator: str) -> str:
    return separator.join([word.capitalize() for word in text.split(separator)])


if __name__ == "__main__":  # in the child only: others, like pyudev, need the real modules
    main()
