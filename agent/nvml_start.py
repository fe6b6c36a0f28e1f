"""Starts agent/nvml_child.py in as little memory as it can (`python -I agent/nvml_start.py BOARD_FD INTERVAL_S
SLOW_EVERY RARE_EVERY [NVML_INDEX:CALL:SECONDS ...]`).

A file of its own, so that the child itself is a module: a file that is run is compiled anew each time, which costs half
a megabyte that is never given back.
"""

import os
import sys

_Module = type(sys)


def main() -> None:
    """Stands in for what pynvml imports and hardly uses, then asks NVML until it is killed."""
    # For Windows; it would bring subprocess, tempfile and lzma: 2.4 MB.
    of_ctypes = _Module("ctypes.util")
    of_ctypes.__dict__["find_library"] = None
    # For capwords, to name error classes; it would bring re and enum: 1 MB.
    of_string = _Module("string")
    of_string.__dict__["capwords"] = _capwords
    sys.modules |= {"ctypes.util": of_ctypes, "string": of_string}
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100  pathlib: 0.7 MB
    from agent import nvml_child

    board_fd, interval_s, slow_every, rare_every, *skips = sys.argv[1:]
    nvml_child.main(int(board_fd), float(interval_s), int(slow_every), int(rare_every), skips)


def _capwords(text: str, separator: str) -> str:
    return separator.join([word.capitalize() for word in text.split(separator)])


if __name__ == "__main__":  # in the child alone: others, as pyudev, need the real modules
    main()
