"""Polling BMCs: bounded, spread, one slow one holds up nobody, only the leader asks, and each speaks for its own node only."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import Refused, Unreachable
from brain.actions.bmc_base import BmcOptions, BmcRequest, BmcTiming, Power, Readings
from brain.actions.bmc_facts import AGAIN_S, MISSES
from brain.actions.bmc_health import BmcHealth, PartKind, PartState, part
from brain.actions.bmc_poll import BmcPoll
from brain.actions.bmc_tables import Bmcs, Table
from brain.bmc_poll_config import BmcPollConfig
from brain.core.inputs import Reported
from brain.core.pack import bmc_kinds

EVERY_S = 300.0
WELL = BmcHealth(parts=(part(PartKind.PSU, "PS1", PartState.WELL),))
ILL = BmcHealth(parts=(part(PartKind.PSU, "PS1", PartState.CRITICAL),))
Say = Callable[[str], Awaitable[BmcHealth]]


class _Bmc:
    """A session with a BMC that says what the test wants."""

    where, timing = "fake", BmcTiming()

    def __init__(self, say: Say, node: str) -> None:
        self._say, self._node = say, node

    async def health(self, within_s: float, turn: int) -> BmcHealth:
        assert within_s > 0
        assert turn >= 0
        return await self._say(self._node)

    async def power(self) -> Power:
        raise NotImplementedError

    async def offers(self) -> frozenset[BmcRequest]:
        raise NotImplementedError

    async def last_reset(self) -> str:
        raise NotImplementedError

    async def request(self, wanted: BmcRequest) -> None:
        raise AssertionError(f"a poll asks for {wanted}")

    async def readings(self, within_s: float) -> Readings:
        raise NotImplementedError


class _Backend:
    def __init__(self, say: Say) -> None:
        self._say = say
        self.open_now = self.most_open = 0
        self.asked: list[str] = []

    async def reach(self, node: str) -> str:
        raise NotImplementedError

    @asynccontextmanager
    async def open(self, node: str) -> AsyncIterator[_Bmc]:
        self.asked.append(node)
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            yield _Bmc(self._say, node)
        finally:
            self.open_now -= 1


class Site:
    """A poller of some nodes, and what it published."""

    def __init__(self, count: int, say: Say, **want: Any) -> None:
        self.now_s = 1_000_000.0
        self.leads = True
        self.nodes = {f"n{n:03}" for n in range(count)}
        self.got: list[Reported] = []
        self.notes: list[str] = []
        self.stands: dict[str, list[str]] = {}
        self.backend = _Backend(say)
        options = BmcOptions(user="u", password_file=Path("/nowhere"), nodes="n*")
        self.poll = BmcPoll(
            Bmcs({"t": Table(name="t", options=options, backend=self.backend)}),
            BmcPollConfig.model_validate({"every_s": EVERY_S, "at_once": 4} | want),
            put=self.got.append,
            note=lambda kind, _: self.notes.append(kind),
            leads=lambda: self.leads,
            known=lambda: self.nodes,
            standing=lambda kind: self.stands.get(kind, ()),
            clock=lambda: self.now_s,
        )

    async def runs(self, for_s: float, step_s: float = 1.0) -> None:
        """Time goes on; looks that are quick end between two ticks."""
        ends_s = self.now_s + for_s
        while self.now_s < ends_s:
            await self.poll.tick()
            for _ in range(8):
                await asyncio.sleep(0)
            self.now_s += step_s

    def told(self) -> list[tuple[str, str, object]]:
        found: list[tuple[str, str, object]] = [
            (one.node, one.kind, one.data.get("active")) for one in self.got
        ]
        self.got.clear()
        return found


def says(found: BmcHealth) -> Say:
    async def say(_: str) -> BmcHealth:
        return found

    return say


async def test_each_node_is_looked_at_once_per_interval_and_the_looks_are_spread() -> None:
    """100 nodes in 300 s: no second has many, and the order is the same each time."""
    site = Site(100, says(WELL))
    await site.runs(EVERY_S)
    assert sorted(site.backend.asked) == sorted(site.nodes)
    assert site.backend.most_open <= 4
    first = list(site.backend.asked)
    await site.runs(EVERY_S)
    assert site.backend.asked[100:] == first
    assert site.told() == []


async def test_slow_bmcs_hold_up_nobody_and_the_load_is_bounded() -> None:
    """Three that never answer take three of four places; all others are looked at in their interval."""
    never = asyncio.Event()

    async def say(node: str) -> BmcHealth:
        if node in ("n000", "n001", "n002"):
            await never.wait()
        return WELL

    site = Site(60, say)
    await site.runs(2 * EVERY_S)
    assert {node for node in site.nodes if site.backend.asked.count(node) < 2} == {"n000", "n001", "n002"}
    assert site.backend.most_open <= 4
    await site.poll.close()
    assert site.backend.open_now == 0


async def test_a_site_that_is_too_slow_is_told_so_once() -> None:
    """At most four at once, whatever is due; the operator hears of it."""
    never = asyncio.Event()

    async def say(_: str) -> BmcHealth:
        await never.wait()
        return WELL

    site = Site(40, say)
    await site.runs(2 * EVERY_S)
    assert site.backend.most_open == 4
    never.set()
    await site.runs(EVERY_S)
    assert site.notes == ["bmc.behind"]
    await site.poll.close()


async def test_a_dead_bmc_is_told_once_and_asked_more_rarely() -> None:
    """Four times as rarely, until it answers; the others are asked as ever."""
    dead = {"n001"}

    async def say(node: str) -> BmcHealth:
        if node in dead:
            raise Unreachable("no answer")
        return WELL

    site = Site(3, say)
    await site.runs(MISSES * EVERY_S)
    assert site.told() == [("n001", bmc_kinds.BMC_UNREACHABLE, True)]
    before = site.backend.asked.count("n001")
    await site.runs(8 * EVERY_S)
    assert site.backend.asked.count("n001") - before <= 2
    assert site.backend.asked.count("n002") == MISSES + 8
    assert site.told() == []
    dead.clear()
    await site.runs(5 * EVERY_S)
    assert site.told() == [("n001", bmc_kinds.BMC_UNREACHABLE, False)]


async def test_only_the_leader_asks_and_publishes() -> None:
    """A look that is under way when the lead is lost publishes nothing."""
    gate = asyncio.Event()

    async def say(_: str) -> BmcHealth:
        await gate.wait()
        return ILL

    site = Site(2, say)
    site.leads = False
    await site.runs(EVERY_S)
    assert site.backend.asked == []
    site.leads = True
    await site.runs(EVERY_S)
    assert site.backend.open_now == 2
    site.leads = False
    gate.set()
    await site.runs(5)
    assert site.backend.open_now == 0
    assert site.told() == []


async def test_the_next_leader_goes_on_from_the_log() -> None:
    """It tells nothing twice, ends what has ended, also what it has never read; and the same fact has the same id."""
    ill = {"n000"}

    async def say(node: str) -> BmcHealth:
        return ILL if node in ill else WELL

    first, second = Site(2, say), Site(2, say)
    await first.runs(EVERY_S)
    (report,) = first.got
    second.poll.mark_published(report)
    await second.runs(EVERY_S)
    assert second.told() == []
    amnesiac = Site(2, say)
    await amnesiac.runs(EVERY_S)
    assert [one.id for one in amnesiac.got] == [report.id]
    ill.clear()
    await second.runs(EVERY_S)
    assert second.told() == [("n000", bmc_kinds.BMC_POWER, False)]
    restarted = Site(2, say)
    restarted.stands = {bmc_kinds.BMC_POWER: ["n000"]}
    await restarted.runs(EVERY_S)
    assert restarted.told() == [("n000", bmc_kinds.BMC_POWER, False)]


async def test_a_bmc_speaks_for_its_own_node_only() -> None:
    """Law 15: whatever names stand in its answers, the fact is its node's, and short; a report of another source is not ours."""
    lie = BmcHealth(
        parts=(part(PartKind.PSU, "node/n001: PS1, bmc:n001:bmc.leak", PartState.CRITICAL, text="x" * 9999),)
    )

    async def say(node: str) -> BmcHealth:
        return lie if node == "n000" else WELL

    site = Site(2, say)
    await site.runs(EVERY_S)
    (report,) = site.got
    assert report.node == "n000"
    assert report.component == "node"
    assert len(str(report.data)) < 1500
    assert report.id.startswith("bmc:n000:bmc.power::")
    other = Site(2, says(WELL))
    forged = Reported(
        id="bmc:n001:bmc.power::0:0",
        source="bmc",
        node="n000",
        kind=bmc_kinds.BMC_POWER,
        component="node",
        severity=report.severity,
        data={"active": True},
    )
    other.poll.mark_published(forged)
    await other.runs(EVERY_S)
    assert other.told() == []


async def test_nodes_without_a_bmc_are_not_asked_and_gone_ones_are_forgotten() -> None:
    """Nodes come and go while the brain runs."""
    site = Site(3, says(ILL), nodes="n00[0-2]")
    site.nodes |= {"n007", "other"}
    await site.runs(EVERY_S)
    assert {node for node, _, _ in site.told()} == {"n000", "n001", "n002"}
    site.nodes.discard("n001")
    await site.runs(2 * EVERY_S)
    assert site.backend.asked.count("n001") == 1
    site.nodes.add("n001")
    site.now_s += AGAIN_S
    await site.runs(EVERY_S + 60)
    assert "n001" in {node for node, _, _ in site.told()}


@pytest.mark.parametrize("error", [Refused("wrong password"), Unreachable("no route")])
async def test_a_look_never_fails(error: Exception) -> None:
    """What a BMC does is a fact of its node, and no trouble of the brain."""

    async def say(_: str) -> BmcHealth:
        raise error

    site = Site(1, say)
    await site.runs(MISSES * EVERY_S)
    ((_, kind, active),) = site.told()
    assert (kind, active) == (bmc_kinds.BMC_UNREACHABLE, True)
