"""Facts about mounted file systems: hung, failing, missing, full."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Sample
from agent.collectors.samples_node import Mount
from agent.contract.components import NODE, check
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.options import at_most, option

_BACK_PERCENT = 3.0  # a full file system is no longer full so far below the threshold
_REPEAT_S = 3600.0  # what is still wrong is reported again: the brain forgets what is not repeated
_FEW_BYTES = 64 * 1024 * 1024 * 1024  # local only: where more is left, a high percentage is no problem
_FEW_BACK_BYTES = _FEW_BYTES * 5 // 4  # a full one is no longer full with so much


@dataclass(frozen=True, slots=True, kw_only=True)
class MountOptions:
    """What an operator can set."""

    disk_full_percent: float = option(
        95.0,
        "reported when so much of a file system's space or inodes is used; 0: never",
        unit="%",
        least=0,
        check=at_most(100),
    )


class MountCollector(Collector):
    """Reports each state and each full file system when it begins and when it ends, and each hour while it lasts.

    A remote file system is judged by its percentage alone.
    """

    name: ClassVar[str] = "mount"
    wants: ClassVar[tuple[type, ...]] = (Mount,)
    kinds: ClassVar[tuple[str, ...]] = ("mount.state", "mount.space")
    options: ClassVar[tuple[type[Any], ...]] = (MountOptions,)

    def __init__(self, options: MountOptions) -> None:
        self._full_percent = options.disk_full_percent
        self._states: dict[str, str] = {}
        # Path → when its state was reported last.
        self._reported_s: dict[str, float] = {}
        # (path, what is full) → when it was reported last.
        self._full: dict[tuple[str, str], float] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(MountOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Mount):
            return
        before = self._states.get(sample.path, "ok")
        self._states[sample.path] = sample.state
        again = sample.state != "ok" and sample.mono_s - self._reported_s.get(sample.path, 0.0) >= _REPEAT_S
        if sample.state != before or again:
            self._reported_s[sample.path] = sample.mono_s
            yield _state(sample, before)
        if sample.state == "ok" and self._full_percent:
            few = _FEW_BACK_BYTES if (sample.path, "bytes") in self._full else _FEW_BYTES
            yield from self._space(sample, "bytes", plenty=not sample.remote and sample.free_bytes > few)
            yield from self._space(sample, "inodes")

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Mount):
            return
        yield _state(sample, sample.state)
        if sample.state == "ok" and self._full_percent:
            for what in ("bytes", "inodes"):
                if _amounts(sample, what)[0] > 0:
                    yield _space(sample, what, full=(sample.path, what) in self._full)

    def _space(self, mount: Mount, what: str, *, plenty: bool = False) -> Iterator[UnsentEvent]:
        if _amounts(mount, what)[0] <= 0:
            return
        used = _used_percent(mount, what)
        key = (mount.path, what)
        was = key in self._full
        full = used >= self._full_percent - (_BACK_PERCENT if was else 0.0) and not plenty
        if full == was and (not full or mount.mono_s - self._full[key] < _REPEAT_S):
            return
        if full:
            self._full[key] = mount.mono_s
        else:
            del self._full[key]
        yield _space(mount, what, full=full)


def _amounts(mount: Mount, what: str) -> tuple[int, int]:
    """How much there is, and how much of it is free."""
    return (mount.total_bytes, mount.free_bytes) if what == "bytes" else (mount.files, mount.files_free)


def _used_percent(mount: Mount, what: str) -> float:
    total, free = _amounts(mount, what)
    return round(100.0 * (1 - min(1.0, free / total)), 2)


def _space(mount: Mount, what: str, *, full: bool) -> UnsentEvent:
    used = _used_percent(mount, what)
    return UnsentEvent(
        kind="mount.space",
        component=_component(mount.path),
        severity=Severity.WARNING if full else Severity.INFO,
        data={
            "what": what,
            "full": full,
            "used_percent": used,
            "free": mount.free_bytes >> 20 if what == "bytes" else mount.files_free,
            "fstype": clip(mount.fstype),
            "remote": mount.remote,
        },
        evidence=clip(f"{mount.path} ({mount.fstype}): {used} % of the {what} in use"),
    )


def _state(mount: Mount, before: str) -> UnsentEvent:
    data: dict[str, Scalar] = {"state": mount.state, "before": before, "fstype": clip(mount.fstype)}
    if mount.reason:
        data["reason"] = clip(mount.reason)
    if mount.state == "hung":
        data["waited_s"] = round(mount.waited_s, 1)
    shown = f", for {mount.waited_s:.0f} s" if mount.state == "hung" else ""
    return UnsentEvent(
        kind="mount.state",
        component=_component(mount.path),
        severity=Severity.INFO if mount.state == "ok" else Severity.ERROR,
        data=data,
        evidence=clip(
            f"{mount.path} ({mount.fstype}): {before} -> {mount.state}{shown} {mount.reason}".strip()
        ),
    )


def _component(path: str) -> str:
    try:
        return check(f"mount/{path}")
    except ContractError:  # a path with blanks; the evidence names it
        return NODE
