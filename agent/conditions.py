"""What lasts on this node now and may make it unfit for jobs, by what the collectors have told. In memory only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.contract.inert import inert
from agent.contract.messages import Severity, UnsentEvent, clip
from agent.contract.unfit import TABLE, Unfit, text_of
from agent.host import Host

MOST = 64  # conditions; a node that has more is unfit anyway
_MAX_TEXT = 120

_ROWS: dict[str, list[Unfit]] = {}
_ENDED_BY: dict[str, list[Unfit]] = {}
for _row in TABLE:
    _ROWS.setdefault(_row.kind, []).append(_row)
    for _kind in _row.ends:
        _ENDED_BY.setdefault(_kind, []).append(_row)

_Key = tuple[str, str, str, str]  # group, kind, component, what `by` says


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One that lasts."""

    group: str
    kind: str
    component: str
    # In words
    text: str
    # By the node's monotonic clock
    since_s: float
    # How long it must have lasted to count
    for_s: float


class Conditions:
    """Learns from events; a condition is remembered from the event that tells it to the one that ends it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._present: dict[_Key, Condition] = {}

    def note(self, unsent_events: Sequence[UnsentEvent]) -> None:
        """These are in the spool now."""
        for unsent in unsent_events:
            for row in _ENDED_BY.get(unsent.kind, ()):
                self._end(row, unsent.component)
            for row in _ROWS.get(unsent.kind, ()):
                self._learn(row, unsent)

    def lasting(self) -> Iterator[Condition]:
        """Those that count now."""
        now_s = self._host.mono_s()
        return (one for one in self._present.values() if now_s - one.since_s >= one.for_s)

    def _learn(self, row: Unfit, unsent: UnsentEvent) -> None:
        by = str(unsent.data[row.by]) if row.by else ""
        key = (row.group, row.kind, unsent.component, by)
        if unsent.severity is Severity.INFO or not row.when(unsent.data):
            self._present.pop(key, None)
            return
        before = self._present.get(key)
        if before is None and len(self._present) >= MOST:
            return
        self._present[key] = Condition(
            group=row.group,
            kind=row.kind,
            component=unsent.component,
            text=clip(inert(text_of(row, unsent.component, unsent.data)), _MAX_TEXT),
            since_s=before.since_s if before else self._host.mono_s() - unsent.age_s,
            for_s=row.for_s,
        )

    def _end(self, row: Unfit, component: str) -> None:
        for key in [key for key in self._present if key[:3] == (row.group, row.kind, component)]:
            del self._present[key]
