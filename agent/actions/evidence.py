"""evidence.collect: one bounded bundle about what this machine says now, for the person who reads the
page.
"""

import asyncio
import contextlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, ClassVar

import orjson

from agent.actions.base import Done, Params, number
from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused
from agent.host import Host

MAX_BYTES = 8 * 1024 * 1024  # of one bundle, before it is compressed
MAX_FILE_BYTES = 512 * 1024
MAX_KERNEL_BYTES = 4 * 1024 * 1024  # the newest part of the window
MAX_BUNDLES = 20  # the oldest go first
MAX_WINDOW_S = 86_400.0
MAX_PROCESSES = 20_000  # looked at
_RECORD_BYTES = 8192

_PROC = (
    *("/proc/version", "/proc/cmdline", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/vmstat"),
    *("/proc/mounts", "/proc/modules", "/proc/interrupts", "/proc/net/dev", "/proc/net/snmp"),
    *("/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io", "/proc/driver/nvidia/version"),
)
_LINK_FILES = ("operstate", "carrier", "carrier_changes", "speed", "mtu", "flags", "address")
_PORT_FILES = ("state", "phys_state", "rate", "lid", "sm_lid", "link_layer")


class EvidenceCollect:
    """See the module's docstring. Bundles are `<folder>/<time>-<component>.tar.gz`, readable by root only."""

    name: ClassVar[str] = "evidence.collect"

    def __init__(self, host: Host, folder: Path) -> None:
        self._host = host
        self._folder = folder
        self._one_at_a_time = asyncio.Lock()

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        component, window_s = _checked(params)
        return [
            f"collect evidence about {component}: "
            f"{window_s:g} s of kernel log, links, InfiniBand, GPU processes"
        ]

    async def run(self, params: Params) -> Done:
        """Collects and writes the bundle."""
        component, window_s = _checked(params)
        try:
            async with self._one_at_a_time:
                name, count = await asyncio.to_thread(self._collect, component, window_s)
        except OSError as error:
            raise ActionError(f"the bundle cannot be written to {self._folder}: {error}") from error
        return Done(
            text=f"{name} with {count} files in {self._folder} on {self._host.hostname()}", evidence=name
        )

    async def recover(self, params: Params) -> None:
        """Nothing: half a bundle has another name and is removed by the next one."""

    def _collect(self, component: str, window_s: float) -> tuple[str, int]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = self._host.wall().strftime("%Y%m%dT%H%M%S.%f")[:-3]
        name = f"{stamp}-{re.sub(r'[^A-Za-z0-9.-]+', '-', component)[:80]}.tar.gz"
        draft = self._folder / f"{name}.part"
        room, count = MAX_BYTES, 0
        try:
            with _private(draft) as sink, tarfile.open(fileobj=sink, mode="w:gz", compresslevel=6) as bundle:
                for path, content in self._files(component, window_s):
                    content = content[:room]
                    info = tarfile.TarInfo(path.lstrip("/"))
                    info.size, info.mtime, info.mode = len(content), int(self._host.wall().timestamp()), 0o600
                    bundle.addfile(info, io.BytesIO(content))
                    room, count = room - len(content), count + 1
                    if room <= 0:
                        break
            draft.rename(self._folder / name)
        finally:
            draft.unlink(missing_ok=True)
        self._forget()
        return name, count

    def _files(self, component: str, window_s: float) -> Iterator[tuple[str, bytes]]:
        """(path in the bundle, content), what matters most first."""
        about = {
            "component": component,
            "node": self._host.hostname(),
            "kernel": self._host.kernel(),
            "boot": self._host.boot_id(),
            "wall": self._host.wall().isoformat(),
            "mono_s": self._host.mono_s(),
            "window_s": window_s,
        }
        yield "about.json", orjson.dumps(about, option=orjson.OPT_INDENT_2)
        yield "kernel.log", _kernel_log(self._host.path("/dev/kmsg"), self._host.mono_s() - window_s)
        yield "gpu_processes.json", orjson.dumps(_gpu_processes(self._host), option=orjson.OPT_INDENT_2)
        for gpu in self._host.listdir("/proc/driver/nvidia/gpus"):
            yield from self._copies(f"/proc/driver/nvidia/gpus/{gpu}", ("information", "power", "registry"))
        for device in self._host.listdir("/sys/class/infiniband"):
            base = f"/sys/class/infiniband/{device}"
            yield from self._copies(base, ("fw_ver", "hca_type", "board_id", "node_guid"))
            for port in self._host.listdir(f"{base}/ports"):
                yield (
                    f"{base}/ports/{port}.json",
                    orjson.dumps(self._port(f"{base}/ports/{port}"), option=orjson.OPT_INDENT_2),
                )
        for link in self._host.listdir("/sys/class/net"):
            state = {name: self._host.read(f"/sys/class/net/{link}/{name}") for name in _LINK_FILES}
            yield f"/sys/class/net/{link}.json", orjson.dumps(state, option=orjson.OPT_INDENT_2)
        for bond in self._host.listdir("/proc/net/bonding"):
            yield from self._copies("/proc/net/bonding", (bond,))
        for path in _PROC:
            folder, _, name = path.rpartition("/")
            yield from self._copies(folder, (name,))

    def _copies(self, folder: str, names: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            with contextlib.suppress(OSError), self._host.path(f"{folder}/{name}").open("rb") as source:
                yield f"{folder}/{name}", source.read(MAX_FILE_BYTES)

    def _port(self, base: str) -> dict[str, str]:
        values = {name: self._host.read(f"{base}/{name}") for name in _PORT_FILES}
        for group in ("counters", "hw_counters"):
            for name in self._host.listdir(f"{base}/{group}"):
                values[f"{group}/{name}"] = self._host.read(f"{base}/{group}/{name}", "unreadable")
        return values

    def _forget(self) -> None:
        """Keeps the newest MAX_BUNDLES bundles, and no half ones of a former run."""
        names = sorted(path.name for path in self._folder.iterdir())
        bundles = [name for name in names if name.endswith(".tar.gz")]
        for name in [*bundles[:-MAX_BUNDLES], *(name for name in names if name.endswith(".part"))]:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()


def _private(path: Path) -> IO[bytes]:
    """A new file that only root can read: command lines may hold secrets."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _checked(params: Params) -> tuple[str, float]:
    try:
        component = components.check(str(params["component"]))
    except ContractError as error:
        raise Refused(str(error)) from error
    return component, number(params, "window_s", 600.0, 1.0, MAX_WINDOW_S)


def _kernel_log(path: Path, since_s: float) -> bytes:
    """The records of the kernel's ring since this time of the monotonic clock, as `dmesg -r` would print
    them.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"{path}: {error}\n".encode()
    lines: list[bytes] = []
    size = 0
    try:
        while True:
            try:
                record = os.read(fd, _RECORD_BYTES)
            except BrokenPipeError:
                continue  # overwritten under our hands: the next read goes on with the oldest that is left
            if not record:
                break
            head, _, text = record.partition(b";")
            fields = head.split(b",")
            with contextlib.suppress(IndexError, ValueError):
                at_s = int(fields[2]) / 1e6
                if at_s >= since_s:
                    line = b"<%d>[%13.6f] %s\n" % (int(fields[0]), at_s, text.split(b"\n", 1)[0])
                    lines.append(line)
                    size += len(line)
    except BlockingIOError:
        pass
    except OSError as error:
        lines.append(f"{path}: {error}\n".encode())
    finally:
        os.close(fd)
    content = b"".join(lines)
    return content if size <= MAX_KERNEL_BYTES else content[-MAX_KERNEL_BYTES:].partition(b"\n")[2]


def _gpu_processes(host: Host) -> list[dict[str, str]]:
    """Processes that hold a /dev/nvidia* device: pid, command line, cgroup, devices."""
    found = []
    for pid in [name for name in host.listdir("/proc") if name.isdigit()][:MAX_PROCESSES]:
        devices = set()
        for fd in host.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = str(host.path(f"/proc/{pid}/fd/{fd}").readlink())
                if target.startswith("/dev/nvidia"):
                    devices.add(target)
        if devices:
            command = host.read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()[:2000]
            cgroup = host.read(f"/proc/{pid}/cgroup")[:2000]
            found.append(
                {"pid": pid, "command": command, "cgroup": cgroup, "devices": " ".join(sorted(devices))}
            )
    return found
