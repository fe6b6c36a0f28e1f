"""A look at a running node: sources that run look again, one that hangs or is down is named, facts come first."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from agent import look
from agent.actions.action_setup import LookedAgain
from agent.actions.agent_look import AgentLook
from agent.collectors import collectors
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.host import Host
from agent.look import Looker
from agent.shared.tasks import end
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.bond import BondSource
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from agent.sources.kmsg import KmsgSource, KmsgSourceOptions
from agent.sources.netlink import NetlinkSource
from agent.sources.node import NodeSource, NodeSourceOptions
from agent.sources.nvml import NvmlSource
from agent.sources.poll import Poller
from agent.supervisor import Feeder, keep_going
from tests.agent.following import following
from tests.agent.nvml_kit import FIRST, PATIENT, QUICK, plug, running
from tests.agent.uplink_kit import Clock, open_spool, waiting
from tests.fixtures.nvml_fake import LOST, FakeNvml

BOND = """Ethernet Channel Bonding Driver: v6.1

Bonding Mode: fault-tolerance (active-backup)
Currently Active Slave: eth3
MII Status: up

Slave Interface: eth2
MII Status: down
Link Failure Count: 1

Slave Interface: eth3
MII Status: up
Link Failure Count: 0
"""


class Stuck(Source):
    """Its first poll returns, the next ones do not."""

    name: ClassVar[str] = "mounts"
    needs: ClassVar[str] = "a test"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.polls = 0
        self._poller = Poller(self._poll, what=self.name, period_s=60.0)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:  # noqa: ARG003  the port of sources
        return cls()

    async def run(self, emit: Emit) -> None:
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """Nothing."""

    def _poll(self) -> list[Sample]:
        self.polls += 1
        if self.polls > 1:
            self.go.wait(60)
        return []


class Node:
    """An agent's sources, collectors and spool, with a looker."""

    def __init__(self, folder: Path, undo: contextlib.AsyncExitStack, *, limit_s: float) -> None:
        self.host = Host()
        self.spool = open_spool(folder / "spool.db", Clock())
        undo.callback(self.spool.close)
        self.feeder = Feeder(self.host, collectors(), self.spool)
        self.looker = Looker(self.host, self.feeder, limit_s=limit_s)
        self._undo = undo

    def runs(self, source: Source) -> None:
        """A source of this node."""
        kept = keep_going(
            self._undo, source.name, lambda: source.run(self.feeder.emit), self.feeder, self.host
        )
        self.looker.watch(source, kept)

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in waiting(self.spool) if message["kind"] == kind]

    async def until_looked(self) -> LookedAgain:
        """The first look that no source missed: they take a moment to begin."""
        async with asyncio.timeout(60):
            while (seen := await self.looker.look()).blind:
                await asyncio.sleep(0.01)
            return seen


@contextlib.asynccontextmanager
async def node(folder: Path, *, limit_s: float = 60.0) -> AsyncIterator[Node]:
    async with contextlib.AsyncExitStack() as undo:
        yield Node(folder, undo, limit_s=limit_s)


def port(root: Path, state: str = "4: ACTIVE", phys: str = "5: LinkUp") -> None:
    """mlx5_0 of a recorded machine."""
    folder = root / "sys/class/infiniband/mlx5_0/ports/1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "state": state,
        "phys_state": phys,
        "link_layer": "InfiniBand",
        "rate": "400 Gb/sec (4X NDR)",
    }.items():
        (folder / name).write_text(f"{text}\n")


async def test_what_has_not_changed_is_told_again(tmp_path: Path) -> None:
    """An hour between polls: a look does not wait for the next one, and tells what the last one told too."""
    root = tmp_path / "root"
    port(root)
    (root / "proc/net/bonding").mkdir(parents=True)
    (root / "proc/net/bonding/bond0").write_text(BOND)
    async with node(tmp_path) as one:
        one.runs(InfinibandSource(Host(root=root), InfinibandSourceOptions(ib_interval_s=3600.0)))
        one.runs(BondSource(Host(root=root), period_s=3600.0))
        seen = await one.until_looked()
        assert seen == LookedAgain(looked=2, blind={}, present=("bond.slaves bond/bond0",))
        before = len(one.told("bond.slaves"))
        port(root, "1: DOWN", "2: Polling")
        seen = await one.looker.look()
        assert seen.present == ("ib.port_state port/mlx5_0.1", "bond.slaves bond/bond0")
        assert [m["data"]["state"] for m in one.told("ib.port_state")][-2:] == ["DOWN", "DOWN"], (
            "seen, and told"
        )
        assert len(one.told("bond.slaves")) == before + 1
        assert (await one.looker.look("service/slurmd.service")).present == ()


async def test_after_a_start_it_is_told_what_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what began before the start and may be over: the clock and its like, once each look, and nothing else."""
    monkeypatch.setattr(look, "AFTER_START_S", (0.0, 0.05))
    root = tmp_path / "root"
    port(root)
    (root / "proc").mkdir(parents=True, exist_ok=True)
    (root / "proc/meminfo").write_text("MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n")
    async with node(tmp_path) as one:
        one.runs(NodeSource(Host(root=root), NodeSourceOptions()))
        one.runs(InfinibandSource(Host(root=root), InfinibandSourceOptions(ib_interval_s=3600.0)))
        await one.until_looked()
        before = len(waiting(one.spool))
        looks = asyncio.create_task(one.looker.after_start())
        async with asyncio.timeout(60):
            while len(waiting(one.spool)) < before + 2:
                await asyncio.sleep(0.01)
        await end(looks)
        told = [(each["kind"], each["data"]["low"]) for each in waiting(one.spool)[before:]]
        assert told == [("node.memory", False)] * 2


async def test_a_source_that_hangs_is_named_and_the_others_look(tmp_path: Path) -> None:
    """Within the limit; the look after it finds it well."""
    root = tmp_path / "root"
    port(root)
    stuck = Stuck()
    async with node(tmp_path, limit_s=0.5) as one:
        one.runs(stuck)
        one.runs(InfinibandSource(Host(root=root), InfinibandSourceOptions(ib_interval_s=3600.0)))
        async with asyncio.timeout(60):
            while "mounts" not in (seen := await one.looker.look()).blind or len(seen.blind) > 1:
                await asyncio.sleep(0.01)
        assert seen.blind == {"mounts": "no answer within 0.5 s"}
        assert one.told("ib.port_state")
        done = await AgentLook(one.looker.look).run({})
        assert done.blind == "statvfs"
        assert (
            done.text
            == "1 sources looked, 1 could not: mounts (no answer within 0.5 s); no conditions are present"
        )
        stuck.go.set()
        assert (await one.until_looked()).looked == 2


async def test_a_source_that_cannot_be_opened_is_blind(tmp_path: Path) -> None:
    """With the reason that its failure was reported with, at once."""

    def denied(_: Path) -> int:
        raise PermissionError(13, "Permission denied")

    async with node(tmp_path) as one:
        one.runs(KmsgSource(Host(), KmsgSourceOptions(), opener=denied))
        async with asyncio.timeout(60):
            while (seen := await one.looker.look()).blind != {"kmsg": "Permission denied"}:
                await asyncio.sleep(0.01)
        assert seen.looked == 0
        assert (await AgentLook(one.looker.look).run({})).blind == "kernel log"


async def test_a_look_that_is_cut_short_leaves_nothing(tmp_path: Path) -> None:
    """The command is cancelled: the next look is a look like any other."""
    root = tmp_path / "root"
    port(root)
    stuck = Stuck()
    async with node(tmp_path) as one:
        one.runs(stuck)
        one.runs(InfinibandSource(Host(root=root), InfinibandSourceOptions(ib_interval_s=3600.0)))
        first = asyncio.create_task(one.looker.look())
        async with asyncio.timeout(60):
            while stuck.polls < 2:
                if first.done():  # a source had not begun yet
                    first = asyncio.create_task(one.looker.look())
                await asyncio.sleep(0.01)
        await end(first)
        stuck.go.set()
        assert (await one.until_looked()).looked == 2


async def test_interfaces_are_dumped_again() -> None:
    """Real rtnetlink: every interface of this machine, once more, not as changes."""
    source = NetlinkSource(Host())
    async with following(source) as emitted:
        await emitted.until(lambda found: found != [])
        again: list[Sample] = []
        await source.look(again.append)
        await source.look(again.append)
        names = [getattr(sample, "name", "") for sample in again]
        assert names.count("lo") == 2


async def test_nvml_samples_everything_at_once(fake: FakeNvml, bus: Path) -> None:
    """Although nothing has changed and the next whole sample is far; a lost GPU that returned is seen at once."""
    plug(bus, FIRST)
    async with running(
        fake, bus, timing=replace(PATIENT, slow_every=10_000, rare_every=10_000, settle_s=0.0)
    ) as machine:
        await machine.next_samples(2)
        looked: list[Sample] = []
        await machine.source.look(looked.append)
        assert {one.bdf for one in looked if isinstance(one, Gpu) and not one.lost} >= {FIRST}
        (health,) = [one for one in looked if isinstance(one, GpuHealth) and one.bdf == FIRST]
        assert health.values["recovery_action"] == 0
        assert health.values["pcie.width"] == 16
        fake.fail(0, LOST)
        await machine.says("gpu.lost")
        lost: list[Sample] = []
        await machine.source.look(lost.append)
        assert [one.lost for one in lost if isinstance(one, Gpu) and one.bdf == FIRST] == ["lost"]
        fake.fail(0, 0)
        returned: list[Sample] = []
        await machine.source.look(returned.append)
        assert [one.lost for one in returned if isinstance(one, Gpu) and one.bdf == FIRST] == [""]


async def test_a_hung_nvml_does_not_hang_the_look(fake: FakeNvml, bus: Path) -> None:
    """It is tried again, and the look says which call did not return. When it answers, all GPUs are told well."""
    async with running(fake, bus, timing=QUICK) as machine:
        await machine.next_samples(2)
        fake.hang("nvmlDeviceGetCount")
        await machine.says("nvml.hung", "node")
        for _ in range(2):  # in the pause after the hang, and with the new child
            with pytest.raises(OSError, match=r"nvml: \w+ did not return within"):
                await machine.source.look(machine.take)
        fake.resume()
        looked: list[Sample] = []
        async with asyncio.timeout(60):
            while not looked:
                with contextlib.suppress(OSError):
                    await machine.source.look(looked.append)
        assert {one.bdf for one in looked if isinstance(one, Gpu) and not one.lost} >= {FIRST}


async def test_a_call_that_is_left_out_blinds_the_look(fake: FakeNvml, bus: Path) -> None:
    """The rest is sampled and told, and that something is missing is said."""
    async with running(fake, bus, timing=replace(QUICK, skip_s=(600.0,))) as machine:
        await machine.next_samples(2)
        fake.hang("nvmlDeviceGetTemperature", 0)
        await machine.says("nvml.hung", "node")
        await machine.next_samples(2)
        looked: list[Sample] = []
        with pytest.raises(OSError, match="not called, as it hung: nvmlDeviceGetTemperature"):
            await machine.source.look(looked.append)
        assert [one for one in looked if isinstance(one, Gpu)]


async def test_no_nvml_is_blind_where_there_are_gpus(fake: FakeNvml, bus: Path) -> None:
    """On a machine without GPUs there is nothing to see; with one on the bus, there is."""
    fake.refuse(9)  # NVML_ERROR_DRIVER_NOT_LOADED
    async with running(fake, bus, timing=replace(PATIENT, retry_s=3600.0)) as machine:
        await machine.says("nvml.absent", "node")
        await machine.source.look(machine.take)
        plug(bus, FIRST)
        with pytest.raises(OSError, match="nvml: "):
            await machine.source.look(machine.take)


async def test_no_look_while_an_action_has_the_driver(fake: FakeNvml, bus: Path) -> None:
    """A reset needs the driver for itself: the look does not wait for it."""
    source = NvmlSource(Host(), timing=PATIENT, env=fake.env, bus=Host(root=bus))
    with pytest.raises(OSError, match="an action has the driver for itself"):
        await source.look(lambda _: None)
