"""Runs in the guest: the agent beside an NVMe controller whose health page changes. Who may read that page, what a reading costs,
and one JSON line for each event about the disk.

The guest's second serial port is wired to QEMU's own monitor: the script sets what its disk says of itself.
"""

import asyncio
import ctypes
import json
import os
import resource
import struct
import subprocess
import time
import tty
from pathlib import Path

from agent.sources.nvme import health_page
from tests.real.qemu.spooled import agent_beside, show

DISK = "/machine/peripheral/disk0"
PERIOD_S = 0.1
NOBODY = 65534
# Linux, include/uapi/linux/capability.h and prctl.h.
DAC_READ_SEARCH, SYS_ADMIN = 1 << 2, 1 << 21
_CAPABILITY_VERSION_3, _PR_SET_KEEPCAPS = 0x20080522, 8
READINGS = 200


class Monitor:
    """QEMU's monitor (QMP) at a serial port."""

    def __init__(self, path: str) -> None:
        self._line = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._line)
        self._told = b""
        self._number = 0
        # Until now the port has sent back whatever came: a byte that is in no JSON makes the monitor forget that.
        os.write(self._line, b"\xff\n")
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> None:
        """Returns when it is done. What else is said is passed over."""
        self._number += 1
        asked = {"execute": command, "arguments": arguments, "id": self._number}
        os.write(self._line, json.dumps(asked).encode() + b"\n")
        mark = b'"id": %d' % self._number
        answer = b""
        while mark not in answer:
            while b"\n" not in self._told:
                self._told += os.read(self._line, 4096)
            answer, _, self._told = self._told.partition(b"\n")
        if b'"error"' in answer:
            raise RuntimeError(answer.decode(errors="replace"))

    def warn(self, bits: int) -> None:
        """What the disk's Critical Warning is from now on."""
        self.execute("qom-set", path=DISK, property="smart_critical_warning", value=bits)


def as_agent(capabilities: int) -> str:
    """What a process of no user's gets with just these capabilities, as the agent's unit has it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        kept = struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0)
        said = "capset failed"
        if libc.capset(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), kept) == 0:
            try:
                said = f"{len(health_page('/dev/nvme0'))} bytes"
            except OSError as error:
                said = type(error).__name__
        os.write(writing, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reading, 100).decode()


def cost() -> dict[str, float]:
    """Of one reading: time in all and of the processor, s; and by how much READINGS of them made the process grow, KiB."""
    health_page("/dev/nvme0")
    before = resource.getrusage(resource.RUSAGE_SELF)
    began_s, cpu_s = time.monotonic(), time.process_time()
    for _ in range(READINGS):
        health_page("/dev/nvme0")
    took_s, worked_s = time.monotonic() - began_s, time.process_time() - cpu_s
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
    return {"took_s": took_s / READINGS, "worked_s": worked_s / READINGS, "grown_kib": grown}


async def main() -> None:
    subprocess.run(["modprobe", "nvme"], check=True, timeout=20)
    state = Path("/sys/class/nvme/nvme0/state")
    while not (state.exists() and state.read_text().strip() == "live" and Path("/dev/nvme0").exists()):
        await asyncio.sleep(0.02)
    rights = {"observer": as_agent(DAC_READ_SEARCH), "with nvme.conf": as_agent(DAC_READ_SEARCH | SYS_ADMIN)}
    print(json.dumps({"rights": rights, "cost": cost()}), flush=True)
    monitor = Monitor("/dev/ttyS1")
    async with agent_beside(check_socket="", plugins={"nvme_interval_s": PERIOD_S}) as spooled:
        await asyncio.sleep(5 * PERIOD_S)  # time to say something of a disk that is well
        monitor.warn(0x0C)
        await spooled.until("disk.health", 1)
        monitor.warn(0)
        await spooled.until("disk.health", 2)
    for event in spooled.events():
        if str(event["component"]).startswith("disk/") or event["kind"] == "agent.source_failed":
            show(event)


asyncio.run(main())
