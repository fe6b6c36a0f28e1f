"""XIDs and GPUs off the bus, from the kernel log; from NVML's events what the kernel log did not show."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.bursts import Bursts, Group
from agent.collectors.samples import Gpu, GpuEvent, Line, Sample, Tick
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, UnsentEvent, clip
from agent.contract.xid import Xid
from agent.contract.xid_facts import XidReader, xid_event
from agent.contract.xid_repeats import XidRepeats, with_repeats

NVML_XID = 8  # nvmlEventTypeXidCriticalError
_JOB_S = 600.0  # a process that no longer holds a GPU is known so long
_PAIR_S = 2.0  # an NVML event and a kernel line of one (GPU, code) within this time are one fact


@dataclass(slots=True, kw_only=True)
class _Pending:
    """An NVML event that waits for its kernel line."""

    unsent: UnsentEvent
    since_s: float
    at_s: float


class XidCollector(Collector):
    """gpu.xid and gpu.off_bus; equal ones are one event."""

    name: ClassVar[str] = "xid"
    wants: ClassVar[tuple[type, ...]] = (Line, Gpu, GpuEvent, Tick)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.xid", "gpu.off_bus")
    one_off: ClassVar[str] = "XIDs in the kernel log and from NVML"

    def __init__(self, *, driver: str = "", burst_s: float = 5.0) -> None:
        """`driver`: version of the NVIDIA driver, empty when not known; `burst_s`: see Bursts."""
        self._reader = XidReader(driver=driver)
        self._bursts = Bursts(window_s=burst_s)
        # (GPU, code) → when a kernel line last showed it.
        self._seen_s: dict[tuple[str, int], float] = {}
        self._pending: dict[tuple[str, int], _Pending] = {}
        self._repeats = XidRepeats()
        # pid → its job, and when it last held a GPU.
        self._jobs: dict[int, tuple[str, float]] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(driver=setup.driver, burst_s=setup.burst_s)

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, Line):
            return self._line(sample, now_s)
        if isinstance(sample, Gpu):
            self._jobs |= {one.pid: (one.job, now_s) for one in sample.processes if one.job}
            return ()
        if isinstance(sample, GpuEvent):
            return self._event(sample, now_s)
        if isinstance(sample, Tick):
            return self._tick(now_s)
        return ()

    def _line(self, line: Line, now_s: float) -> list[UnsentEvent]:
        out: list[UnsentEvent] = []
        for unsent in self._reader.read(line.text):
            data = unsent.data
            if unsent.kind == "gpu.xid":
                # NVML names the GPU, never the MIG instance.
                pair = ("/".join(unsent.component.split("/")[:2]), int(data["code"]))
                self._seen_s[pair] = now_s
                self._pending.pop(pair, None)
                data = self._known(unsent, now_s)
            unsent = replace(unsent, data=data, age_s=max(0.0, now_s - line.mono_s))
            key = _key(unsent)
            out += self._bursts.offer(key, unsent, now_s, group=key[:3])
        return out

    def _known(self, unsent: UnsentEvent, now_s: float) -> Mapping[str, Scalar]:
        """The event's data with what the line does not say: the process's job, and how often it has come back."""
        pid = unsent.data.get("pid")
        job, _ = self._jobs.get(pid, ("", 0.0)) if isinstance(pid, int) else ("", 0.0)
        data = {**unsent.data, "job": clip(job)} if job else unsent.data
        return with_repeats(data, self._repeats.of(unsent.component, data, now_s))

    def _event(self, event: GpuEvent, now_s: float) -> list[UnsentEvent]:
        if event.type != NVML_XID:
            return []
        try:
            component = components.gpu(event.bdf)
        except ContractError:
            return []
        pair = (component, event.data)
        if now_s - self._seen_s.get(pair, now_s - 2 * _PAIR_S) <= _PAIR_S or pair in self._pending:
            return []
        unsent = xid_event(
            Xid(component=component, code=event.data, message=""),
            evidence=f"NVML event: XID {event.data} on {component}; the kernel log did not show it",
        )
        self._pending[pair] = _Pending(unsent=unsent, since_s=now_s, at_s=event.mono_s)
        return []

    def _tick(self, now_s: float) -> list[UnsentEvent]:
        out = self._bursts.flush(now_s)
        self._seen_s = {pair: at_s for pair, at_s in self._seen_s.items() if now_s - at_s <= _PAIR_S}
        self._jobs = {pid: one for pid, one in self._jobs.items() if now_s - one[1] <= _JOB_S}
        for pair in [pair for pair, one in self._pending.items() if now_s - one.since_s > _PAIR_S]:
            pending = self._pending.pop(pair)
            unsent = replace(pending.unsent, age_s=max(0.0, now_s - pending.at_s))
            out += self._bursts.offer(_key(unsent), unsent, now_s, group=_key(unsent)[:3])
        return out


def _key(unsent: UnsentEvent) -> Group:
    detail = tuple(unsent.data.get(name) for name in ("pid", "link", "repeats"))
    return unsent.kind, unsent.component, unsent.data.get("code"), detail
