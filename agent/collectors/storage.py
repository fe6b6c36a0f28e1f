"""File servers that answer slowly, and storage targets that are nearly full."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Sample
from agent.collectors.samples_node import ServerTime, StorageTarget
from agent.contract.components import NODE, check
from agent.contract.errors import ContractError
from agent.contract.messages import Severity, UnsentEvent, clip
from agent.options import at_most, option

IN_A_ROW = 3  # readings above, or below, the limit
FEW = 20  # fewer requests between two readings say nothing
_BACK_PERCENT = 3.0
_REPEAT_S = 3600.0  # what is still so is told again: the brain forgets what is not repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """What an operator can set."""

    storage_slow_ms: float = option(
        100.0,
        "mean time of a request to a file server, from which on it is slow; 0: never",
        unit="ms",
        least=0,
    )
    storage_target_percent: float = option(
        80.0,
        "a storage target (OST) with so much of it used is nearly full; 0: never",
        unit="%",
        least=0,
        check=at_most(100),
    )


@dataclass(slots=True)
class _Server:
    """One mount, or one target of it."""

    before: ServerTime | None = None
    # Readings in a row that say the opposite of what was told.
    turned: int = 0
    slow: bool = False
    told_s: float = 0.0
    mean_ms: float = 0.0
    requests: int = 0


class StorageCollector(Collector):
    """mount.slow and mount.target when they begin and end, and each hour while they last."""

    name: ClassVar[str] = "storage"
    wants: ClassVar[tuple[type, ...]] = (ServerTime, StorageTarget)
    kinds: ClassVar[tuple[str, ...]] = ("mount.slow", "mount.target")
    options: ClassVar[tuple[type[Any], ...]] = (StorageOptions,)

    def __init__(self, options: StorageOptions) -> None:
        self._slow_ms = options.storage_slow_ms
        self._full_percent = options.storage_target_percent
        self._servers: dict[tuple[str, str], _Server] = {}
        # (path, target) → when it was told to be nearly full.
        self._full: dict[tuple[str, str], float] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(StorageOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, ServerTime) and self._slow_ms:
            yield from self._time(sample)
        elif isinstance(sample, StorageTarget) and self._full_percent:
            yield from self._target(sample)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector. How fast a server is, only where enough was asked of it."""
        if isinstance(sample, ServerTime) and self._slow_ms:
            server = self._servers.get((sample.path, sample.target))
            if server is not None and not server.turned and server.requests >= FEW:
                yield _slow(sample, server)
        elif isinstance(sample, StorageTarget) and self._full_percent:
            yield _full(sample, full=(sample.path, sample.target) in self._full)

    def _time(self, now: ServerTime) -> Iterator[UnsentEvent]:
        server = self._servers.setdefault((now.path, now.target), _Server())
        before, server.before = server.before, now
        if before is None:
            return
        server.requests = now.requests - before.requests
        waited_ms = now.waited_ms - before.waited_ms
        if server.requests < FEW or waited_ms < 0:  # also after it was mounted anew
            return
        server.mean_ms = waited_ms / server.requests
        # It is fast again at half of the limit: at the limit it would come and go.
        slow = server.mean_ms >= self._slow_ms * (0.5 if server.slow else 1.0)
        server.turned = 0 if slow == server.slow else server.turned + 1
        if server.turned >= IN_A_ROW:
            server.slow, server.turned = slow, 0
        elif not server.slow or now.mono_s - server.told_s < _REPEAT_S:
            return
        server.told_s = now.mono_s
        yield _slow(now, server)

    def _target(self, now: StorageTarget) -> Iterator[UnsentEvent]:
        key = (now.path, now.target)
        was = key in self._full
        full = _used(now) >= self._full_percent - (_BACK_PERCENT if was else 0.0)
        if full == was and (not full or now.mono_s - self._full[key] < _REPEAT_S):
            return
        if full:
            self._full[key] = now.mono_s
        else:
            del self._full[key]
        yield _full(now, full=full)


def _used(target: StorageTarget) -> float:
    return round(100.0 * (1 - min(1.0, target.free_kb / target.total_kb)), 2)


def _full(target: StorageTarget, *, full: bool) -> UnsentEvent:
    used = _used(target)
    return UnsentEvent(
        kind="mount.target",
        component=_component(target.path),
        severity=Severity.WARNING if full else Severity.INFO,
        data={
            "target": clip(target.target),
            "full": full,
            "used_percent": used,
            "free": target.free_kb >> 10,
        },
        evidence=clip(f"{target.path} {target.target}: {used} % in use"),
    )


def _slow(now: ServerTime, server: _Server) -> UnsentEvent:
    of = f" {now.target}" if now.target else ""
    return UnsentEvent(
        kind="mount.slow",
        component=_component(now.path),
        severity=Severity.WARNING if server.slow else Severity.INFO,
        data={
            "slow": server.slow,
            "mean_ms": round(server.mean_ms, 1),
            "requests": server.requests,
            "target": clip(now.target),
            "fstype": clip(now.fstype),
        },
        evidence=clip(
            f"{now.path}{of} ({now.fstype}): {server.mean_ms:.0f} ms a request, mean of the last {server.requests}"
        ),
    )


def _component(path: str) -> str:
    try:
        return check(f"mount/{path}")
    except ContractError:  # a path with blanks; the evidence names it
        return NODE
