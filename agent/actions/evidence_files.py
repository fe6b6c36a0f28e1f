"""The part of an evidence bundle that comes from /proc, /sys and the kernel log: read only, each file bounded."""

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from agent.contract.owner import owner
from agent.host import Host
from agent.process_owner import owner_of
from agent.shared.patience import within
from agent.shared.printable import printable

MAX_FILE_BYTES = 512 * 1024
MAX_KERNEL_BYTES = 4 * 1024 * 1024  # of the window its newest part
MAX_PROCESSES = 20_000  # that are looked at
_RECORD_BYTES = 8192
_MOST_DEVICES, _MOST_NAME = 64, 100  # of one process

_PROC = (
    *("/proc/version", "/proc/cmdline", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/vmstat"),
    *("/proc/mounts", "/proc/modules", "/proc/interrupts", "/proc/net/dev", "/proc/net/snmp"),
    *("/proc/net/netstat", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io"),
    *("/proc/driver/nvidia/version", "/proc/driver/nvidia/params"),
)
_LINK_FILES = ("operstate", "carrier", "carrier_changes", "speed", "mtu", "flags", "address")
_PORT_FILES = ("state", "phys_state", "rate", "lid", "sm_lid", "sm_sl", "link_layer")


def files(host: Host, window_s: float) -> Iterator[tuple[str, bytes]]:
    """(path in the bundle, content), the most important first."""
    yield "kernel.log", _kernel_log(host, host.mono_s() - window_s)
    holders, jobs = _processes(host)
    yield "gpu_processes.json", _json(holders)
    yield "jobs.json", _json(jobs)
    for gpu in host.listdir("/proc/driver/nvidia/gpus"):
        yield from _copies(host, f"/proc/driver/nvidia/gpus/{gpu}", ("information", "power", "registry"))
    for device in host.listdir("/sys/class/infiniband"):
        base = f"/sys/class/infiniband/{device}"
        yield from _copies(host, base, ("fw_ver", "hca_type", "board_id", "node_guid"))
        for port in host.listdir(f"{base}/ports"):
            yield f"{base}/ports/{port}.json", _json(_port(host, f"{base}/ports/{port}"))
    for link in host.listdir("/sys/class/net"):
        state = {name: host.read(f"/sys/class/net/{link}/{name}") for name in _LINK_FILES}
        yield f"/sys/class/net/{link}.json", _json(state)
    for bond in host.listdir("/proc/net/bonding"):
        yield from _copies(host, "/proc/net/bonding", (bond,))
    for path in _PROC:
        folder, _, name = path.rpartition("/")
        yield from _copies(host, folder, (name,))


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)


def _copies(host: Host, folder: str, names: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    for name in names:
        with contextlib.suppress(OSError), host.path(f"{folder}/{name}").open("rb") as source:
            yield f"{folder}/{name}", source.read(MAX_FILE_BYTES)


def _port(host: Host, base: str) -> dict[str, str]:
    values = {name: host.read(f"{base}/{name}") for name in _PORT_FILES}
    for group in ("counters", "hw_counters"):
        for name in host.listdir(f"{base}/{group}"):
            values[f"{group}/{name}"] = host.read(f"{base}/{group}/{name}", "unreadable")
    return values


def _kernel_log(host: Host, since_s: float) -> bytes:
    """The records of the kernel's ring buffer since this time of the monotonic clock, as `dmesg -r` prints them."""
    path = host.path("/dev/kmsg")
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
                continue  # records were overwritten meanwhile: the next read continues with the oldest that is left
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


def _processes(host: Host) -> tuple[list[dict[str, str]], dict[str, list[int]]]:
    """Processes that hold a /dev/nvidia* device (pid, command line, cgroup, job, devices); and the jobs of this node with
    the pids of all their processes, by the scheduler's cgroups.
    """
    holders: list[dict[str, str]] = []
    jobs: dict[str, list[int]] = {}
    for pid in [name for name in host.listdir("/proc") if name.isdigit()][:MAX_PROCESSES]:
        cgroup = host.read(f"/proc/{pid}/cgroup")[:2000]
        devices = _devices(host, pid)
        # The environment is only for finding out the job: it may hold secrets and is put into no bundle.
        job = owner_of(host, int(pid)).job if devices else owner(cgroup).job
        if job:
            jobs.setdefault(job, []).append(int(pid))
        if devices:
            command = within(partial(host.read, f"/proc/{pid}/cmdline"), "(cannot be read at once)")
            command = command.replace("\0", " ").strip()[:2000]
            holders.append(
                {"pid": pid, "command": command, "cgroup": cgroup, "job": job, "devices": " ".join(devices)}
            )
    return holders, jobs


def _devices(host: Host, pid: str) -> list[str]:
    found = set()
    for fd in host.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            target = str(host.path(f"/proc/{pid}/fd/{fd}").readlink())
            if target.startswith("/dev/nvidia"):
                found.add(printable(target)[:_MOST_NAME])
        if len(found) >= _MOST_DEVICES:  # names of a container's making
            break
    return sorted(found)
