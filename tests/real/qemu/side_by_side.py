"""Runs in the guest: the modules that it is given, each in a process of its own, at the same time.

    python -m tests.real.qemu.side_by_side MODULE MODULE

What they print comes when they have ended: JSON lines after `GUEST MODULE`, then `QEMU-FAILED MODULE` for one that failed.
The agent, which they all import, is imported here once: an emulated processor takes ten seconds for it.
"""

import importlib
import multiprocessing
import os
import sys
from pathlib import Path

# nats-py takes aiohttp for web sockets where it is installed. Nodes do not have it, and here it takes four seconds.
sys.modules["aiohttp"] = None  # type: ignore[assignment]  # this is how an import is made to fail

import agent.app  # noqa: E402, F401  after the line above


def output(module: str) -> Path:
    return Path("/run") / module


def run(module: str) -> None:
    """In a process of its own: the module, which does its work when it is imported, prints into a file."""
    with output(module).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    importlib.import_module(module)


fork = multiprocessing.get_context("fork")
processes = {module: fork.Process(target=run, args=(module,)) for module in sys.argv[1:]}
for process in processes.values():
    process.start()
for module, process in processes.items():
    process.join()
    for line in output(module).read_text(errors="replace").splitlines():
        print(f"GUEST {module} {line}" if line.startswith("{") else line)
    if process.exitcode != 0:
        print(f"QEMU-FAILED {module}")
    uptime_s = Path("/proc/uptime").read_text().split()[0]
    print(f"QEMU-ENDED {module} {uptime_s}", flush=True)
