"""How fast file servers answer this node, and how full each storage target is: counters that NFS and Lustre clients keep anyway.

Formats: NFS, /proc/self/mountstats (Linux, net/sunrpc/stats.c: operations, transmissions, time-outs, bytes sent, bytes received,
then milliseconds in the queue, until the reply, and in all); Lustre, osc.*.stats, osc.*.kbytestotal and kbytesavail (lprocfs:
`name count samples [unit] min max sum`), below /proc or /sys by the version. Nothing is sent to a server but what a client
asks by itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.samples import Sample
from agent.collectors.samples_node import ServerTime, StorageTarget
from agent.filesystems.mount_table import table, unescaped
from agent.host import Host
from agent.options import at_most, option
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

# What a program waits for; locks and sessions wait by design.
_OPERATIONS = frozenset(
    (
        *(
            "READ",
            "WRITE",
            "COMMIT",
            "GETATTR",
            "SETATTR",
            "LOOKUP",
            "ACCESS",
            "OPEN",
            "OPEN_NOATTR",
            "CLOSE",
        ),
        *("READDIR", "READDIRPLUS", "CREATE", "REMOVE", "RENAME", "MKDIR", "RMDIR", "FSSTAT", "STATFS"),
    )
)
_DEVICE = re.compile(r"device (\S{1,500}) mounted on (\S{1,500}) with fstype (nfs4?)\b")
_OPERATION = re.compile(r"\s*([A-Z_]{2,30}): ([0-9]{1,20})(?: [0-9]{1,20}){6} ([0-9]{1,20})\b")
_WAITED = re.compile(
    r"req_waittime\s+([0-9]{1,20}) samples \[usecs?\] [0-9]{1,20} [0-9]{1,20} ([0-9]{1,20})\b"
)
_TARGET = re.compile(r"([\w.-]{1,60}?)-(OST[0-9a-fA-F]{4})-osc-[\w-]{1,60}")
_LUSTRE = ("/sys/fs/lustre/osc", "/proc/fs/lustre/osc")
_LUSTRE_STATS = ("/sys/kernel/debug/lustre/osc", "/proc/fs/lustre/osc")
_MOST_TARGETS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSourceOptions:
    """What an operator can set."""

    storage_interval_s: float = option(
        0.0,
        "pause between readings of how fast NFS and Lustre servers answer and how full Lustre's targets (OST) are, e.g. 60; "
        "0: not read",
        unit="s",
        least=0,
        check=at_most(600),
        example=60.0,
    )


class StorageSource(Source):
    """Emits ServerTime of each NFS mount and each Lustre target, and StorageTarget, after each pause."""

    name: ClassVar[str] = "storage"
    needs: ClassVar[str] = "/proc/1/mountstats, /sys/fs/lustre; only with `storage_interval_s`"
    options: ClassVar[tuple[type[Any], ...]] = (StorageSourceOptions,)

    def __init__(self, host: Host, options: StorageSourceOptions, *, hang_s: float = 60.0) -> None:
        self._host = host
        self._poller = Poller(self._poll, what=self.name, period_s=options.storage_interval_s, hang_s=hang_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no interval is set."""
        options = setup.options(StorageSourceOptions)
        return cls(setup.host, options) if options.storage_interval_s else None

    async def run(self, emit: Emit) -> None:
        """Follow the counters until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The counters now."""
        for sample in self._poll():
            emit(sample)

    def _poll(self) -> list[Sample]:
        return [*self._nfs(), *self._lustre()]

    def _nfs(self) -> Iterator[ServerTime]:
        host = self._host
        text = host.read("/proc/1/mountstats") or host.read("/proc/self/mountstats")
        for path, fstype, requests, waited_ms in mountstats(text):
            yield ServerTime(
                path=path, fstype=fstype, requests=requests, waited_ms=waited_ms, mono_s=host.mono_s()
            )

    def _lustre(self) -> Iterator[Sample]:
        host = self._host
        base = next((folder for folder in _LUSTRE if host.listdir(folder)), "")
        if not base:
            return
        mounts = dict(_lustre_mounts(table(host)))
        for device in host.listdir(base)[:_MOST_TARGETS]:
            match = _TARGET.fullmatch(device)
            if match is None or (path := mounts.get(match[1])) is None:
                continue
            total = _kilobytes(host.read(f"{base}/{device}/kbytestotal"))
            free = _kilobytes(host.read(f"{base}/{device}/kbytesavail"))
            if total:
                yield StorageTarget(
                    path=path, target=match[2], total_kb=total, free_kb=free, mono_s=host.mono_s()
                )
            stats = next((said for one in _LUSTRE_STATS if (said := host.read(f"{one}/{device}/stats"))), "")
            if (waited := _WAITED.search(stats)) is not None:
                yield ServerTime(
                    path=path,
                    fstype="lustre",
                    target=match[2],
                    requests=int(waited[1]),
                    waited_ms=int(waited[2]) / 1000,
                    mono_s=host.mono_s(),
                )


def mountstats(text: str) -> Iterator[tuple[str, str, int, float]]:
    """Mount point, type, requests that were answered and milliseconds that they took together, of each NFS mount; each once."""
    seen: set[str] = set()
    where, requests, waited = ("", ""), 0, 0
    for line in [*text.splitlines(), "device end mounted on / with fstype nfs"]:
        if line.startswith("device "):
            if where[0] and where[0] not in seen:
                seen.add(where[0])
                yield *where, requests, float(waited)
            match = _DEVICE.match(line)
            where = (unescaped(match[2]), match[3]) if match else ("", "")
            requests = waited = 0
        elif where[0] and (match := _OPERATION.match(line)) is not None and match[1] in _OPERATIONS:
            requests += int(match[2])
            waited += int(match[3])


def _lustre_mounts(text: str) -> Iterator[tuple[str, str]]:
    """Name of the file system → where it is mounted: `10.0.0.9@o2ib:/scratch /mnt/scratch lustre`."""
    for row in (line.split(" ") for line in text.splitlines()):
        if len(row) > 2 and row[2] == "lustre" and ":/" in row[0]:
            yield row[0].rpartition(":/")[2].partition("/")[0], unescaped(row[1])


def _kilobytes(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 20 else 0
