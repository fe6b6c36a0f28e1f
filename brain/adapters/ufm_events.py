"""UFM's events as inputs: each known one once, about the node whose cable it is.

The leading brain asks every few seconds for all that UFM remembers and takes what is newer than the last event that
it took. That is kept on disk, and learned from the log (`heard`) by the brains that do not lead. The input's id is
made of UFM's own, so that what is brought twice counts once.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agent.contract.errors import ActionError, ConfigError
from brain.adapters.ufm_meanings import Event, Meaning, fact, meaning, read
from brain.core.inputs import Reported
from brain.ufm import Ufm, ufms

SOURCE = "ufm"
MOST = 500  # events of one look that are brought; of a storm the newest
MOST_TYPES = 500  # unknown types that are counted
PORTS_S = 600.0  # the fabric's ports are read anew so often,
PORTS_SOON_S = 30.0  # and when an event names a port that is not known, but no sooner than this
MAX_PAUSE_S = 300.0  # between looks while UFM does not answer
_NO_PORT = (Meaning.SM_CHANGED, Meaning.SWITCH_DOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """Where an event's port belongs."""

    node: str
    component: str
    side: str  # node | switch


class UfmEvents:
    """The events of one UFM. `run` for as long as the brain lives; it asks only while `leads()`."""

    def __init__(
        self,
        ufm: Ufm,
        *,
        put: Callable[[Reported], None],
        tell: Callable[[str, str], None],
        leads: Callable[[], bool],
        store: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`put` brings an input onto the log, `tell` writes a note; `store`: file of the last event that was taken.

        ConfigError: a meaning in `types` that there is not.
        """
        for number, what in ufm.options.types.items():
            if what not in list(Meaning):
                have = ", ".join(Meaning)
                raise ConfigError(f"ufm.{ufm.name}.types.{number}: no meaning {what!r} (have: {have})")
        self._ufm = ufm
        self._put = put
        self._tell = tell
        self._leads = leads
        self._store = store
        self._clock = clock
        self._last: int | None = _stored(store)
        self._ends: dict[str, _End] = {}  # UFM's port name -> whose cable it is
        self._ends_s: float | None = None  # when they were read
        self._trouble = False
        self.unknown: Counter[str] = Counter()  # event type -> seen; never acted on
        self.unplaced = 0  # events of ports that belong to no node: links between switches

    async def close(self) -> None:
        """Closes the connection to UFM."""
        await self._ufm.close()

    async def run(self) -> None:
        """Looks until cancelled; what UFM does wrong is told once and tried again with growing pauses."""
        every_s = pause_s = self._ufm.options.every_s
        while every_s:
            await asyncio.sleep(pause_s)
            if not self._leads():
                pause_s = every_s
                continue
            try:
                await self.look()
            except ActionError as error:
                if not self._trouble:
                    self._tell("ufm.unreachable", f"{error}: its events are not heard")
                self._trouble = True
                pause_s = min(MAX_PAUSE_S, pause_s * 2)
            else:
                if self._trouble:
                    self._tell("ufm.reachable", f"UFM {self._ufm.name} answers again")
                self._trouble = False
                pause_s = every_s

    async def look(self) -> int:
        """One look; how many events were brought. ActionError's kin when UFM does not answer."""
        raw = await self._ufm.events()
        events = sorted((event for one in raw if (event := read(one)) is not None), key=lambda one: one.id)
        if not events:
            return 0
        newest = events[-1].id
        if self._last is None:  # what UFM remembers from before we listened is no news
            self._remember(newest)
            return 0
        if newest < self._last:
            self._tell(
                "ufm.reset", f"UFM {self._ufm.name} counts its events anew: {newest} after {self._last}"
            )
            self._remember(newest)
            return 0
        fresh = [event for event in events if event.id > self._last]
        if len(fresh) > MOST:
            self._tell(
                "ufm.storm",
                f"{len(fresh)} events of UFM {self._ufm.name} at once: the newest {MOST} are taken",
            )
            fresh = fresh[-MOST:]
        brought = 0
        for event in fresh:
            brought += await self._bring(event)
        self._remember(newest)
        return brought

    def heard(self, given: Reported) -> None:
        """A report came on the log, from whichever brain leads: it need not be brought again."""
        source, _, rest = given.id.partition(":")
        name, _, number = rest.rpartition(":")
        if source == SOURCE and name.partition(":")[0] == self._ufm.name and number.isdigit():
            self._last = max(self._last or 0, int(number))

    async def _bring(self, event: Event) -> int:
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
                    self._tell(
                        "ufm.unplaced", f"UFM {self._ufm.name}: {says}: such events are counted, no more"
                    )
                self.unplaced += 1
                return 0
        found = fact(event, what, counter, side=end.side if end else "")
        self._put(
            Reported(
                # The time stands in it: a UFM that was installed anew counts from the beginning.
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

    def _unknown(self, event: Event) -> None:
        if event.type not in self.unknown and len(self.unknown) < MOST_TYPES:
            self._tell(
                "ufm.unknown_event",
                f"UFM {self._ufm.name}: event type {event.type} ({event.name}) is not known: it is counted, no more",
            )
        if event.type in self.unknown or len(self.unknown) < MOST_TYPES:
            self.unknown[event.type] += 1

    async def _end(self, port: str) -> _End | None:
        """Whose cable the port is at; None for a link between switches and for what UFM itself does not know."""
        age_s = None if self._ends_s is None else self._clock() - self._ends_s
        if age_s is None or age_s > PORTS_S or (port not in self._ends and age_s > PORTS_SOON_S):
            self._ends = _ends(self._ufm, await self._ufm.ports())
            self._ends_s = self._clock()
        return self._ends.get(port)

    def _remember(self, last: int) -> None:
        if last == self._last:
            return
        self._last = last
        draft = self._store.with_suffix(".part")
        with contextlib.suppress(OSError):  # a full disk: after a restart the log tells where we were
            draft.write_bytes(orjson.dumps({"last": last}))
            draft.replace(self._store)


def listeners(
    tables: Mapping[str, Any],
    *,
    put: Callable[[Reported], None],
    tell: Callable[[str, str], None],
    leads: Callable[[], bool],
    data_dir: Path,
) -> list[UfmEvents]:
    """One for each table of `[ufm]` whose events are wanted; ConfigError names the key."""
    return [
        UfmEvents(ufm, put=put, tell=tell, leads=leads, store=data_dir / f"ufm-{name}.json")
        for name, ufm in ufms(tables).items()
        if ufm.options.every_s
    ]


def _stored(path: Path) -> int | None:
    try:
        found = orjson.loads(path.read_bytes())
        return int(found["last"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _ends(ufm: Ufm, ports: list[dict[str, Any]]) -> dict[str, _End]:
    """Port name → end, for the ports of nodes and for the switch ports at their other ends."""
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
    """`port/mlx5_0.1` of a node description `gpu-0001 mlx5_0` and the port's number."""
    words = str(port.get("node_description") or "").replace(":", " ").split()
    return f"port/{words[1]}.{port.get('number')}" if len(words) > 1 else ""


def _plain(stamp: str) -> str:
    return "".join(char for char in stamp if char.isdigit()) or "0"
