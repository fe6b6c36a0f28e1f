"""Fault to healed on a simulated fabric with real subnet managers: agents' eyes, the shipped rules, the brain's remedies.

Only time is simulated: a round of readings is 30 s apart, the fabric in between is real.
"""

import asyncio
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors.congestion import CongestionOptions
from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.samples import Sample
from agent.collectors.subnet import SubnetCollector
from agent.contract.commands import Outcome
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from agent.sources.subnet import SubnetSource, SubnetSourceOptions
from brain.actions.base import Order
from brain.actions.subnet_manager import subnet_managers
from brain.adapters.pack import load
from brain.config import BrainConfig
from brain.core.effects import Effect, Perform, SendPage
from brain.core.engine import Engine
from brain.core.inputs import Delivery, EventSeen, Input, Leader, PackLoaded, StepResult
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.rehearsal.examples import event_of
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import IncidentState
from tests.real import ibsim_fabric
from tests.real.sm_site import Site
from tests.real.test_subnet_manager import TABLE, led_by, master

pytestmark = [pytest.mark.root, pytest.mark.component("ibsim opensm"), pytest.mark.slow]

ROUND_S = 30.0
NODES = ("H1", "H2", "H3", "H4")


class Cell:
    """Four nodes' agents and a brain."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.performed: list[str] = []
        self.ill: set[str] = set()  # scopes of which nothing is expected
        self._remedies = {action.name: action for action in subnet_managers(TABLE, site)}
        self._collectors = {
            node: (InfinibandCollector(CongestionOptions()), SubnetCollector()) for node in NODES
        }
        self._order = dict.fromkeys(NODES, 0)
        self.time = Timeline(Engine(actions=ACTIONS), self._world)
        config = BrainConfig(settings=Settings(modes=(ModeSetting(mode=Mode.AUTO),)))
        pack = load(config.rules_dir, config.runbooks_dir, config.site_settings(), {})
        unscheduled = tuple(replace(book, every_s=0) for book in pack.runbooks)
        pack = replace(pack, runbooks=unscheduled)
        self.time.feed(PackLoaded(id="pack", pack=pack), 0)
        self.time.feed(Leader(id="leader", epoch=1, brain="b1"), 0)
        self.time.run(0)

    def rounds(self, count: int) -> None:
        """So often all nodes look, and the brain hears what is new."""
        for _ in range(count):
            at = self.time.now + ROUND_S
            for node in NODES:
                for unsent in self._said(node, at):
                    self._order[node] += 1
                    self.time.feed(EventSeen(event=event_of(unsent, node, order=self._order[node])), at)
            self.time.run(at)

    def causes(self) -> list[str]:
        """`cause at scope: state` of all incidents ever that no other one explains."""
        return [
            f"{one.cause} at {one.scope}: {one.state.value}"
            for one in self.time.incidents.values()
            if one.state is not IncidentState.EXPLAINED and one.scope not in self.ill
        ]

    def _said(self, node: str, at: float) -> Iterator[UnsentEvent]:
        samples: list[Sample] = []
        host = Host(root=self.site.net.mirror(node))

        async def look() -> None:
            await InfinibandSource(host, InfinibandSourceOptions()).once(samples.append)
            if f"node/{node}" not in self.ill:  # whether its own manager answers it in time is chance
                source = SubnetSource(host, SubnetSourceOptions(), tools=self.site.net.tools(node))
                await source.once(samples.append)

        asyncio.run(look())
        for sample in samples:
            for collector in self._collectors[node]:
                if isinstance(sample, collector.wants):
                    yield from collector.feed(sample, at)

    def _follows(self, node: str) -> None:
        net = self.site.net
        if f"node/{node}" not in self.ill:
            net.until(lambda: "MASTER" in net.ask(node, "sminfo"), f"{node} follows no master")

    def _world(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, SendPage):
            yield now, Delivery(id=f"d:{effect.id}:{now}", page=effect.id, ok=True, channel="test")
        elif isinstance(effect, Perform):
            step = effect.step
            if step.where == "node":  # it only reads; the agents of this story may perform no action
                yield (
                    now + 1,
                    StepResult(id=f"r:{step.id}", step=step.id, outcome=Outcome.OK, why="collected"),
                )
                return
            self.performed.append(step.action)
            order = Order(
                id=step.id,
                incident=step.incident,
                node=step.node,
                params=step.params,
                timeout_s=60,
                why=step.why,
            )
            done = asyncio.run(self._remedies[step.action].run(order))
            if step.action == "sm.start_standby":
                # The rounds that follow are simulated, its first sweep is not.
                for node in NODES:
                    self._follows(node)
            yield (
                now + 5,
                StepResult(
                    id=f"r:{step.id}", step=step.id, outcome=Outcome.OK, why=done.text, data=done.data
                ),
            )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Four hosts, a master and a standby."""
    if why := ibsim_fabric.missing():
        pytest.skip(why)
    with ibsim_fabric.fabric(tmp_path) as net:
        found = Site(net)
        found.start("H1", priority=10)
        led_by(found, "H1")
        found.start("H2", priority=5)
        net.until(lambda: "STANDBY" in net.ask("H2", "sminfo", "-D", "0"), "H2 did not become standby")
        yield found


def test_a_failover_is_one_incident_and_a_frozen_master_is_replaced(site: Site) -> None:
    """The master is killed: the standby takes over, one incident closes by itself and nothing is done. The new master
    freezes: no working SM; the other host's manager is started, verified by the nodes' own questions, and it is over.
    """
    cell = Cell(site)
    cell.rounds(2)
    assert cell.causes() == []
    killed = site.units["H1"]
    assert killed is not None
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    led_by(site, "H2")
    cell.rounds(2)
    assert cell.causes() == ["sm-failover at fabric/default: open"]
    cell.time.run(cell.time.now + 600)
    assert [one.rpartition(": ")[2] for one in cell.causes()] == ["closed"]
    assert [page.what for page in cell.time.pages if page.what != "repeat"] == ["open", "resolve"]
    assert cell.performed == []

    site.net.console('Error "H2"[1] 100')
    cell.ill = {"node/H2"}  # all of its packets are lost
    site.net.until(lambda: not master(site, "H2"), "H2 still answers")
    cell.rounds(5)
    assert cell.performed == ["sm.status", "sm.start_standby"]
    assert master(site, "H1")
    cell.rounds(1)
    cell.time.run(cell.time.now + 600)
    assert cell.causes()[1:] == ["no-working-sm at fabric/default: closed"]
    (run,) = [run for run in cell.time.runs.values() if run.runbook.name == "restore-subnet-manager"]
    assert (run.state.value, [step.outcome for step in run.steps]) == ("succeeded", ["ok", "ok"])
    assert site.orders == [("H1", "service.start")]
