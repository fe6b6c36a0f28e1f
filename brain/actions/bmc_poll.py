"""Asks the BMCs of the site how their nodes are, and publishes what is unwell as facts of the node that each belongs to.

The leading brain looks at each BMC once per interval, at a moment of its own in it, so that the load is spread; at most
`at_once` at a time. A look has its own time-out and holds up no other. A BMC that does not answer is looked at four times as
rarely, up to an hour, and told once. What one BMC says is published as of its own node only, by our name of it, whatever names
stand in its answers; per look it is at most a fact of each kind, and five entries of its event log (law 15).

A BMC that says something on its stream of events (bmc_streams.py) is looked at at once, besides its turn. Such looks take half of
`at_once` at most; one that fails says nothing, for a BMC in trouble gets its turn anyway.

With the credentials and paths of the actions (`[bmc.*]`), reading only; one login per look, closed at its end.
"""

import asyncio
import hashlib
import heapq
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.errors import ActionError, Refused
from agent.shared.tasks import end
from brain.actions import bmc_facts, bmc_tables
from brain.actions.bmc_base import Announcing, Bmc
from brain.actions.bmc_facts import BmcFact, NodeMemory, PollLimits, ToldState
from brain.actions.bmc_streams import BmcStreams
from brain.actions.bmc_tables import Bmcs
from brain.bmc_poll_config import BmcPollConfig
from brain.core.inputs import Reported
from brain.core.pack import bmc_kinds
from brain.unreadable import answered_by

SOURCE = "bmc"
KNOWN_S = 10.0  # how often it is looked which nodes there are
SLOWER, SLOWEST_S = (
    4.0,
    3600.0,
)  # a BMC that does not answer is asked so many times as rarely, and at least so often
AFTER_S = 5.0  # a turn that comes during an early look waits so long
SPARE_S = 60.0  # beyond `within_s`: connecting, login, and the end of what was begun
_STATES = tuple(kind.name for kind in bmc_kinds.KINDS if kind.name != bmc_kinds.BMC_ENTRY)


class BmcPoll:
    """`run` it as long as the brain runs; it asks only while `leads()`."""

    def __init__(
        self,
        bmcs: Bmcs,
        want: BmcPollConfig,
        *,
        put: Callable[[Reported], None],
        note: Callable[[str, str], None],
        leads: Callable[[], bool],
        known: Callable[[], Collection[str]],
        standing: Callable[[str], Iterable[str]] = lambda _: (),
        clock: Callable[[], float] = time.time,
        tick_s: float = 1.0,
    ) -> None:
        """`put` publishes to the log, `note` writes a note. `known`: the nodes of the cell; `standing`: those of which a report
        of this kind stands, so that it ends even if this brain has not read it.
        """
        self._bmcs = bmcs
        self._want = want
        self._limits = PollLimits(inlet_celsius=want.inlet_celsius, every_s=want.every_s)
        self._put = put
        self._note = note
        self._leads = leads
        self._known = known
        self._standing = standing
        self._clock = clock
        self._tick_s = tick_s
        self._memory: dict[str, NodeMemory] = {}
        self._due: list[tuple[float, str]] = []  # a heap
        self._listed: set[str] = set()  # nodes with a place in it, or a look under way
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._listed_s = float("-inf")
        self._led = False
        self._behind = False
        self._early: dict[str, None] = {}  # nodes whose BMC has said something, the first one first
        self._early_looks: set[str] = set()
        self._streams = BmcStreams(
            want.event_streams, want.every_s, look=self._look_now, unwell=self._unwell, note=note
        )

    async def close(self) -> None:
        """Ends what is under way."""
        await self._streams.close()
        await end(*self._looks.values())

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._tick_s)
                await self.tick()
        finally:
            await self.close()

    async def tick(self) -> None:
        """Begins the looks that are due; what fails in one that ended is raised here."""
        for node, task in list(self._looks.items()):
            if task.done():
                del self._looks[node]
                self._early_looks.discard(node)
                task.result()
        if not self._leads():
            if self._led:
                await self._rest()
            return
        now_s = self._clock()
        if not self._led:
            self._begin()
        if now_s - self._listed_s >= KNOWN_S:
            await self._list(now_s)
        for node in [one for one in self._early if one not in self._looks]:
            if len(self._early_looks) >= max(1, self._want.at_once // 2):
                break
            del self._early[node]
            if node in self._listed:
                self._early_looks.add(node)
                self._looks[node] = asyncio.create_task(self._look_early(node), name=f"bmc {node}")
        while self._due and self._due[0][0] <= now_s and len(self._looks) < self._want.at_once:
            due_s, node = heapq.heappop(self._due)
            if node in self._looks:
                heapq.heappush(self._due, (now_s + AFTER_S, node))
                continue
            self._late(now_s - due_s)
            self._looks[node] = asyncio.create_task(self._look(node, due_s), name=f"bmc {node}")

    async def look(self, node: str, *, early: bool = False) -> int:
        """Looks once at the BMC of a node, and returns how many facts were published. It fails never: that is a fact, too.
        `early`: it is not its turn.
        """
        memory = self._memory.setdefault(node, NodeMemory())
        try:
            with answered_by():
                async with asyncio.timeout(self._want.within_s + SPARE_S), self._bmcs.open(node) as bmc:
                    if not early:
                        await self._hear(node, bmc)
                    found = await bmc.health(self._want.within_s, memory.turn)
                told = bmc_facts.facts(found, memory, self._limits, self._clock(), early=early)
        except (ActionError, TimeoutError) as error:
            if early:
                return 0
            says = str(error) or f"no answer within {self._want.within_s + SPARE_S:g} s"
            refused = isinstance(error, Refused)
            told = bmc_facts.missed(says, memory, self._clock(), refused=refused)
        if not self._leads():
            return 0
        for one in told:
            self._publish(node, one)
        return len(told)

    async def _hear(self, node: str, bmc: Bmc) -> None:
        """Before the look sees how things are, so that nothing that comes to pass meanwhile is missed."""
        if not isinstance(bmc, Announcing) or not self._streams.wants(node):
            return
        source = None
        with suppress(ActionError), answered_by():
            source = await bmc.events()
        if self._leads() and node in self._listed:
            self._streams.offer(node, source)

    def _look_now(self, node: str) -> None:
        self._early[node] = None

    def _unwell(self, node: str) -> bool:
        memory = self._memory.get(node)
        return memory is not None and any(one.active for one in memory.told.values())

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads: what it tells need not be told again."""
        source, _, rest = given.id.partition(":")
        node, _, rest = rest.partition(":")
        kind, _, rest = rest.partition(":")
        what, _, digest = rest.partition(":")
        if source != SOURCE or node != given.node or kind != given.kind or not self._mine(node):
            return
        memory = self._memory.setdefault(node, NodeMemory())
        if kind == bmc_kinds.BMC_ENTRY:
            entry = str(given.data.get("entry", ""))
            if entry not in memory.seen:
                memory.seen.append(entry)
            return
        memory.told[(kind, what)] = ToldState(
            digest=digest.partition(":")[0],
            active=bool(given.data.get("active")),
            at_s=self._clock(),
            parts=tuple(filter(None, str(given.data.get("parts", "")).split(", "))),
        )

    def _publish(self, node: str, fact: BmcFact) -> None:
        hour = int(self._clock() // bmc_facts.AGAIN_S)
        self._put(
            Reported(
                id=f"{SOURCE}:{node}:{fact.kind}:{fact.what}:{fact.digest}"
                + ("" if fact.kind == bmc_kinds.BMC_ENTRY else f":{hour}"),
                source=SOURCE,
                node=node,
                kind=fact.kind,
                component="node",
                severity=fact.severity,
                data=fact.data,
            )
        )

    async def _look(self, node: str, due_s: float) -> None:
        await self.look(node)
        every_s = self._want.every_s
        if node not in self._listed:
            self._memory.pop(node, None)
            return
        if self._memory[node].misses >= bmc_facts.MISSES:
            every_s = max(every_s, min(SLOWEST_S, every_s * SLOWER))
        heapq.heappush(self._due, (max(due_s + every_s, self._clock()), node))

    async def _look_early(self, node: str) -> None:
        await self.look(node, early=True)
        if node not in self._listed:
            self._memory.pop(node, None)

    def _begin(self) -> None:
        """This brain leads from now on: what stands on the log ends when its part is well."""
        self._led = True
        for kind in _STATES:
            for node in self._standing(kind):
                whats = ("inlet", "fan", "memory") if kind == bmc_kinds.BMC_RISING else ("",)
                memory = self._memory.setdefault(node, NodeMemory())
                for what in whats:
                    memory.told.setdefault(
                        (kind, what), ToldState(digest="", active=True, at_s=self._clock())
                    )

    async def _rest(self) -> None:
        """Another brain leads: what is under way ends, and what is due is forgotten."""
        self._led = False
        await self._streams.close()
        await end(*self._looks.values())
        self._looks.clear()
        self._early.clear()
        self._early_looks.clear()
        self._due.clear()
        self._listed.clear()
        self._listed_s = float("-inf")
        for memory in self._memory.values():
            memory.looked, memory.misses = False, 0
            memory.usual.clear()
            memory.counted.clear()

    async def _list(self, now_s: float) -> None:
        """Gives each new node its moment in the interval, and forgets nodes that are gone."""
        self._listed_s = now_s
        known = {node for node in self._known() if self._mine(node)}
        for node in sorted(known - self._listed - set(self._looks)):
            heapq.heappush(self._due, (self._moment(node, now_s), node))
        gone = self._listed - known
        if gone:
            self._due = [one for one in self._due if one[1] not in gone]
            heapq.heapify(self._due)
            for node in gone:
                self._memory.pop(node, None)
                await self._streams.forget(node)
        self._listed = known

    def _moment(self, node: str, now_s: float) -> float:
        """The next one: a part of the interval that only the node's name decides, so that each brain has the same."""
        share = int.from_bytes(hashlib.sha256(node.encode()).digest()[:4], "big") / 2**32
        every_s = self._want.every_s
        begun_s = now_s - now_s % every_s + share * every_s
        return begun_s if begun_s >= now_s else begun_s + every_s

    def _mine(self, node: str) -> bool:
        """Is the node among those that are wanted, and has it a BMC?"""
        if not fnmatchcase(node, self._want.nodes):
            return False
        try:
            return bool(self._bmcs.tables_of(node))
        except Refused:
            return False

    def _late(self, late_s: float) -> None:
        """Notes once that the BMCs do not answer quickly enough for the interval."""
        if late_s > self._want.every_s and not self._behind:
            self._behind = True
            says = f"BMCs are asked {late_s:.0f} s late: more of them at once (bmc_poll.at_once), or a longer interval"
            self._note("bmc.behind", says)
        elif late_s < self._want.every_s / 4:
            self._behind = False


def listeners(
    tables: Mapping[str, Mapping[str, Any]],
    want: BmcPollConfig,
    *,
    put: Callable[[Reported], None],
    note: Callable[[str, str], None],
    leads: Callable[[], bool],
    known: Callable[[], Collection[str]],
    standing: Callable[[str], Iterable[str]],
) -> list[BmcPoll]:
    """One poller where the site wants it; ConfigError names the key."""
    if not want.on:
        return []
    return [
        BmcPoll(
            bmc_tables.build(tables),
            want,
            put=put,
            note=note,
            leads=leads,
            known=known,
            standing=standing,
        )
    ]
