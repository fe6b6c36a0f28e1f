"""Facts about mounted file systems: hung, failing, missing, full."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Reading
from agent.collectors.readings_node import Mount
from agent.contract.components import NODE, check
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Scalar, Severity, clip

_BACK_PERCENT = 3.0  # a full file system is no longer full so far below the threshold
_REPEAT_S = 3600.0  # what is still wrong is said again: the brain lets go of what nobody repeats
_FEW_BYTES = 64 * 1024 * 1024 * 1024  # local only: where more is left, a percentage alone is no need


class MountCollector:
    """Each state and each fullness is said when it begins and when it ends, and each hour while it lasts.

    `full_percent` 0: fullness is not said. A remote file system counts by its percentage alone.
    """

    name: ClassVar[str] = "mount"
    wants: ClassVar[tuple[type, ...]] = (Mount,)
    kinds: ClassVar[tuple[str, ...]] = ("mount.state", "mount.space")

    def __init__(self, *, full_percent: float = 95.0) -> None:
        self._full_percent = full_percent
        self._states: dict[str, str] = {}
        self._said_s: dict[str, float] = {}
        self._full: dict[tuple[str, str], float] = {}  # when it was said last

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, Mount):
            return
        before = self._states.get(reading.path, "ok")
        self._states[reading.path] = reading.state
        again = reading.state != "ok" and reading.mono_s - self._said_s.get(reading.path, 0.0) >= _REPEAT_S
        if reading.state != before or again:
            self._said_s[reading.path] = reading.mono_s
            yield _state(reading, before)
        if reading.state == "ok" and self._full_percent:
            free_mb = reading.free_bytes >> 20
            plenty = not reading.remote and reading.free_bytes > _FEW_BYTES
            yield from self._space(
                reading, "bytes", reading.total_bytes, reading.free_bytes, free_mb, plenty=plenty
            )
            yield from self._space(reading, "inodes", reading.files, reading.files_free, reading.files_free)

    def _space(
        self, mount: Mount, what: str, total: int, free: int, left: int, *, plenty: bool = False
    ) -> Iterator[Draft]:
        if total <= 0:
            return
        used = round(100.0 * (1 - min(1.0, free / total)), 2)
        key = (mount.path, what)
        was = key in self._full
        full = used >= self._full_percent - (_BACK_PERCENT if was else 0.0) and not plenty
        if full == was and (not full or mount.mono_s - self._full[key] < _REPEAT_S):
            return
        if full:
            self._full[key] = mount.mono_s
        else:
            del self._full[key]
        yield Draft(
            kind="mount.space",
            component=_component(mount.path),
            severity=Severity.WARNING if full else Severity.INFO,
            data={
                "what": what,
                "full": full,
                "used_percent": used,
                "free": left,
                "fstype": clip(mount.fstype),
                "remote": mount.remote,
            },
            evidence=clip(f"{mount.path} ({mount.fstype}): {used} % of the {what} in use"),
        )


def _state(mount: Mount, before: str) -> Draft:
    data: dict[str, Scalar] = {"state": mount.state, "before": before, "fstype": clip(mount.fstype)}
    if mount.reason:
        data["reason"] = clip(mount.reason)
    if mount.state == "hung":
        data["waited_s"] = round(mount.waited_s, 1)
    shown = f", for {mount.waited_s:.0f} s" if mount.state == "hung" else ""
    return Draft(
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
