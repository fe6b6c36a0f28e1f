"""The machine as a parameter: the only door to its paths and clocks, so that the whole agent runs on a recorded one.

`Host()` is this machine; `Host(root=DIR)` a recorded one, whose /proc, /sys, /dev and /etc are below DIR. Nothing is
written to a recorded machine, and no command is run on it.
"""

import os
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MAX_READ_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Paths and clocks of one machine."""

    root: Path = Path("/")

    @property
    def live(self) -> bool:
        """Is it the machine that we run on? Only then are sockets, D-Bus and NVML opened and actions performed."""
        return self.root == Path("/")

    def path(self, absolute: str) -> Path:
        """Where the machine's `absolute` path is for us: `host.path("/sys/class/net")`."""
        return self.root / absolute.lstrip("/")

    def read(self, absolute: str, default: str = "") -> str:
        """A small text file, stripped, of a long one the first MAX_READ_BYTES; `default` when it cannot be read (sysfs files
        may vanish or return EIO).
        """
        try:
            # Not through pathlib and a text stream, which take four times as long: pollers read hundreds of files.
            with open(f"{self.root}/{absolute}", "rb", buffering=0) as file:
                data = file.read(_CHUNK_BYTES)
                # A process decides what its own command line and environment are: they may be terabytes of zeros.
                while data and len(data) < MAX_READ_BYTES and (more := file.read(_CHUNK_BYTES)):
                    data += more
                return data[:MAX_READ_BYTES].decode(errors="replace").strip()
        except OSError:
            return default

    def read_bytes(self, absolute: str, most: int) -> bytes:
        """The first `most` bytes of a file, as they are; none when it cannot be read."""
        try:
            with open(f"{self.root}/{absolute}", "rb", buffering=0) as file:
                return file.read(most) or b""
        except OSError:
            return b""

    def listdir(self, absolute: str) -> list[str]:
        """Names in a folder, sorted; empty when there is none."""
        try:
            return sorted(os.listdir(f"{self.root}/{absolute}"))  # noqa: PTH208  as in `read`
        except OSError:
            return []

    def mono_s(self) -> float:
        """The monotonic clock that the kernel log uses too (CLOCK_MONOTONIC), seconds."""
        return time.monotonic()

    def wall(self) -> datetime:
        """The wall clock, aware UTC. It explains; it never decides."""
        return datetime.now(UTC)

    def boot_id(self) -> str:
        """Changes with every boot; 'unknown' on a recording without it."""
        return self.read("/proc/sys/kernel/random/boot_id", "unknown")

    def hostname(self) -> str:
        """The host's name; of a recording, the one in its /proc/sys/kernel/hostname."""
        return self.read("/proc/sys/kernel/hostname") or (platform.node() if self.live else "recorded")

    def kernel(self) -> str:
        """Kernel release; of a recording, the one in its /proc/sys/kernel/osrelease, and empty without it."""
        return self.read("/proc/sys/kernel/osrelease") or (platform.release() if self.live else "")

    def nvidia_driver(self) -> str:
        """Version of the loaded NVIDIA driver, e.g. `580.82.07`; empty where there is none."""
        for word in self.read("/proc/driver/nvidia/version").partition("\n")[0].split():
            if word[:1].isdigit() and "." in word:
                return word
        return ""
