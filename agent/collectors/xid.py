"""XIDs and GPUs off the bus, by the kernel log; by NVML's events what the kernel log did not show."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from agent.collectors.bursts import Bursts, Group
from agent.collectors.readings import GpuEvent, Line, Reading, Tick
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft
from agent.contract.xid import Xid
from agent.contract.xid_facts import XidReader, draft_xid

NVML_XID = 8  # nvmlEventTypeXidCriticalError
_PAIR_S = 2.0  # an NVML event and a kernel line of one (GPU, code) within this time are one fact


@dataclass(slots=True, kw_only=True)
class _Pending:
    """An NVML event that waits for its kernel line."""

    draft: Draft
    since_s: float
    at_s: float


class XidCollector:
    """gpu.xid and gpu.off_bus, equal ones held together."""

    name: ClassVar[str] = "xid"
    wants: ClassVar[tuple[type, ...]] = (Line, GpuEvent, Tick)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.xid", "gpu.off_bus")

    def __init__(self, *, driver: str = "", burst_s: float = 5.0) -> None:
        """`driver`: version of the NVIDIA driver, empty when not known; `burst_s`: see Bursts."""
        self._reader = XidReader(driver=driver)
        self._bursts = Bursts(window_s=burst_s)
        self._seen_s: dict[tuple[str, int], float] = {}  # (GPU, code) -> when a kernel line last showed it
        self._pending: dict[tuple[str, int], _Pending] = {}

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if isinstance(reading, Line):
            return self._line(reading, now_s)
        if isinstance(reading, GpuEvent):
            return self._event(reading, now_s)
        if isinstance(reading, Tick):
            return self._tick(now_s)
        return ()

    def _line(self, line: Line, now_s: float) -> list[Draft]:
        out: list[Draft] = []
        for draft in self._reader.read(line.text):
            if draft.kind == "gpu.xid":
                # NVML names the GPU, never the MIG instance.
                pair = ("/".join(draft.component.split("/")[:2]), int(draft.data["code"]))
                self._seen_s[pair] = now_s
                self._pending.pop(pair, None)
            draft = replace(draft, age_s=max(0.0, now_s - line.mono_s))
            out += self._bursts.offer(_key(draft), draft, now_s, group=_key(draft)[:3])
        return out

    def _event(self, event: GpuEvent, now_s: float) -> list[Draft]:
        if event.type != NVML_XID:
            return []
        try:
            component = components.gpu(event.bdf)
        except ContractError:
            return []
        pair = (component, event.data)
        if now_s - self._seen_s.get(pair, now_s - 2 * _PAIR_S) <= _PAIR_S or pair in self._pending:
            return []
        draft = draft_xid(
            Xid(component=component, code=event.data, message=""),
            evidence=f"NVML event: XID {event.data} on {component}; the kernel log did not show it",
        )
        self._pending[pair] = _Pending(draft=draft, since_s=now_s, at_s=event.mono_s)
        return []

    def _tick(self, now_s: float) -> list[Draft]:
        out = self._bursts.flush(now_s)
        self._seen_s = {pair: at_s for pair, at_s in self._seen_s.items() if now_s - at_s <= _PAIR_S}
        for pair in [pair for pair, waits in self._pending.items() if now_s - waits.since_s > _PAIR_S]:
            waits = self._pending.pop(pair)
            draft = replace(waits.draft, age_s=max(0.0, now_s - waits.at_s))
            out += self._bursts.offer(_key(draft), draft, now_s, group=_key(draft)[:3])
        return out


def _key(draft: Draft) -> Group:
    return draft.kind, draft.component, draft.data.get("code"), draft.data.get("pid")
