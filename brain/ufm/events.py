"""UFM's events as inputs: each known event once, about the node whose cable it is.

Every few seconds the leading brain reads all events that UFM remembers, and publishes those that are newer than the last
one it published. That position is kept on disk; brains that do not lead learn it from the log (`mark_published`). The
input's id is made from UFM's own, so an event that is published twice counts once.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from agent.contract.errors import ConfigError
from agent.shared import files
from agent.shared.latest_write import LatestWrite
from brain.core.inputs import Reported
from brain.polling import ask_on
from brain.ufm.client import Ufm, ufms
from brain.ufm.meanings import Meaning, UfmEvent, fact, meaning, read

SOURCE = "ufm"
MOST = 500  # events of one poll that are published; of a storm the newest
MOST_TYPES = 500  # unknown types that are counted
PORTS_S = 600.0  # the ports of the fabric are read again at this interval,
PORTS_SOON_S = 30.0  # and for an event of an unknown port, but not before this time
MAX_PAUSE_S = 300.0  # between polls while UFM does not answer
_NO_PORT = (Meaning.SM_CHANGED, Meaning.SWITCH_DOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a cable to which an event's port belongs."""

    node: str
    component: str
    # Node | switch
    side: str


class UfmListener:
    """Publishes the events of one UFM. `run` it as long as the brain runs; it polls only while `leads()`."""

    def __init__(
        self,
        ufm: Ufm,
        *,
        put: Callable[[Reported], None],
        note: Callable[[str, str], None],
        leads: Callable[[], bool],
        store: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`put` publishes an input to the log, `note` writes a note; `store`: file with the last published event.

        ConfigError: an unknown meaning in `types`.
        """
        for number, what in ufm.options.types.items():
            if what not in list(Meaning):
                have = ", ".join(Meaning)
                raise ConfigError(f"ufm.{ufm.name}.types.{number}: no meaning {what!r} (have: {have})")
        self._ufm = ufm
        self._put = put
        self._note = note
        self._leads = leads
        self._kept = LatestWrite(partial(files.write, store))
        self._clock = clock
        self._last: int | None = _stored(store)
        self._ends: dict[str, _End] = {}  # UFM's port name -> end of a node's cable
        self._ends_s: float | None = None  # when they were read
        self.unknown: Counter[str] = Counter()  # event type -> count; never acted on
        self.unplaced = 0  # events of ports that belong to no node, e.g. of links between switches

    async def close(self) -> None:
        """Closes the connection to UFM."""
        await self._ufm.close()

    async def run(self) -> None:
        """Polls until cancelled. A failure of UFM is noted once, and retried with growing pauses."""
        if not self._ufm.options.every_s:
            return
        await ask_on(
            self.poll,
            whom=f"UFM {self._ufm.name}",
            every_s=self._ufm.options.every_s,
            slowest_s=MAX_PAUSE_S,
            leads=self._leads,
            fails=lambda error: self._note("ufm.unreachable", f"{error}: its events are not received"),
            answers=lambda: self._note("ufm.reachable", f"UFM {self._ufm.name} answers again"),
        )

    async def poll(self) -> int:
        """Polls once and returns how many events were published. ActionError when UFM does not answer."""
        raw = await self._ufm.events()
        events = sorted((event for one in raw if (event := read(one)) is not None), key=lambda one: one.id)
        if not events:
            return 0
        newest = events[-1].id
        if self._last is None:  # events from before the first poll are not new
            self._remember(newest)
            return 0
        if newest < self._last:
            self._note(
                "ufm.reset",
                f"UFM {self._ufm.name} has begun to number its events again: {newest} after {self._last}",
            )
            self._remember(newest)
            return 0
        fresh = [event for event in events if event.id > self._last]
        if len(fresh) > MOST:
            self._note(
                "ufm.storm",
                f"{len(fresh)} events of UFM {self._ufm.name} at once: the newest {MOST} are taken",
            )
            fresh = fresh[-MOST:]
        published = 0
        for event in fresh:
            published += await self._publish(event)
        self._remember(newest)
        return published

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads: its event need not be published again."""
        source, _, rest = given.id.partition(":")
        name, _, number = rest.rpartition(":")
        if source == SOURCE and name.partition(":")[0] == self._ufm.name and number.isdigit():
            self._last = max(self._last or 0, int(number))

    async def _publish(self, event: UfmEvent) -> int:
        known = meaning(event, self._ufm.options.types)
        if known is None:
            self._unknown(event)
            return 0
        what, counter = known
        end = None
        if what not in _NO_PORT:
            end = await self._end(event.object)
            if end is None:
                if not self.unplaced:
                    says = f"{event.name} of {event.object or 'no port'} belongs to no node"
                    self._note("ufm.unplaced", f"UFM {self._ufm.name}: {says}: such events are only counted")
                self.unplaced += 1
                return 0
        found = fact(event, what, counter, side=end.side if end else "")
        self._put(
            Reported(
                # It includes the time, since a UFM that was reinstalled numbers its events from the beginning.
                id=f"{SOURCE}:{self._ufm.name}:{_plain(event.stamp)}:{event.id}",
                source=SOURCE,
                node=end.node if end else "",
                kind=found.kind,
                component=end.component if end else "node",
                severity=found.severity,
                data=found.data,
            )
        )
        return 1

    def _unknown(self, event: UfmEvent) -> None:
        if event.type not in self.unknown and len(self.unknown) < MOST_TYPES:
            self._note(
                "ufm.unknown_event",
                f"UFM {self._ufm.name}: event type {event.type} ({event.name}) is unknown: it is only counted",
            )
        if event.type in self.unknown or len(self.unknown) < MOST_TYPES:
            self.unknown[event.type] += 1

    async def _end(self, port: str) -> _End | None:
        """Returns the end of the cable at this port; None for a link between switches, or a port unknown to UFM."""
        age_s = None if self._ends_s is None else self._clock() - self._ends_s
        if age_s is None or age_s > PORTS_S or (port not in self._ends and age_s > PORTS_SOON_S):
            self._ends = _ends(self._ufm, await self._ufm.ports())
            self._ends_s = self._clock()
        return self._ends.get(port)

    def _remember(self, last: int) -> None:
        if last == self._last:
            return
        self._last = last
        # If the disk is full, the log shows after a restart which event was the last.
        self._kept.put(orjson.dumps({"last": last}))


def listeners(
    tables: Mapping[str, Any],
    *,
    put: Callable[[Reported], None],
    note: Callable[[str, str], None],
    leads: Callable[[], bool],
    data_dir: Path,
) -> list[UfmListener]:
    """Builds a listener for each table of `[ufm]` whose events are wanted; ConfigError names the key."""
    return [
        UfmListener(ufm, put=put, note=note, leads=leads, store=data_dir / f"ufm-{name}.json")
        for name, ufm in ufms(tables).items()
        if ufm.options.every_s
    ]


def _stored(path: Path) -> int | None:
    try:
        return int(files.read_json(path)["last"])
    except (ValueError, TypeError, KeyError):
        return None


def _ends(ufm: Ufm, ports: list[dict[str, Any]]) -> dict[str, _End]:
    """Returns the ends by port name, for the ports of nodes and for the switch ports at their other ends."""
    ends: dict[str, _End] = {}
    for port in ports:
        name, component = str(port.get("name") or ""), _component(port)
        if not name or not component or "switch" in str(port.get("description") or "").lower():
            continue
        node = ufm.node(str(port.get("system_name") or ""))
        ends[name] = _End(node=node, component=component, side="node")
        if peer := str(port.get("peer") or ""):
            ends.setdefault(peer, _End(node=node, component=component, side="switch"))
    return ends


def _component(port: Mapping[str, Any]) -> str:
    """Returns e.g. `port/mlx5_0.1` for the node description `gpu-0001 mlx5_0` and port number 1."""
    words = str(port.get("node_description") or "").replace(":", " ").split()
    return f"port/{words[1]}.{port.get('number')}" if len(words) > 1 else ""


def _plain(stamp: str) -> str:
    return "".join(char for char in stamp if char.isdigit()) or "0"
