"""What a site puts before node_exporter, as no exporter reads XIDs of the kernel log: each GPU that fails into a file of metrics.

`python -m tests.compare.textfile FACILITY FILE`. The metric is that of dcgm-exporter, the last XID of each GPU, so that the first
sample is an alert already; a counter needs two.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.compare.sources.kernel_log import event_of


def text(gpus: Iterable[str]) -> str:
    """The metrics of GPUs that printed XID 64."""
    samples = "".join(f'gpu_last_xid{{gpu="{gpu}"}} 64\n' for gpu in gpus)
    return f"# HELP gpu_last_xid The last XID of a GPU.\n# TYPE gpu_last_xid gauge\n{samples}"


def write(file: Path, gpus: Iterable[str]) -> None:
    """The whole file at once, as node_exporter wants it."""
    new = file.with_suffix(".new")
    new.write_text(text(gpus))
    new.rename(file)


def _read(facility: int, file: Path) -> None:
    gpus: dict[str, None] = {}
    fd = os.open("/dev/kmsg", os.O_RDONLY)
    os.lseek(fd, 0, os.SEEK_END)
    print("ready", flush=True)
    while True:
        try:
            record = os.read(fd, 8192)
        except BrokenPipeError:
            continue
        event = event_of(record, facility)
        if event and event["xid"] == 64:
            gpus[event["gpu"]] = None
            write(file, gpus)


if __name__ == "__main__":
    _read(int(sys.argv[1]), Path(sys.argv[2]))
