"""A real subnet manager fails over, a link goes, errors are counted: what the agent's source and collector report."""

import asyncio
import signal
from pathlib import Path

import pytest

from agent.collectors.congestion import CongestionOptions
from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.samples import IbPort
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from tests.agent.following import following
from tests.real import ibsim_fabric


@pytest.mark.root
@pytest.mark.component("ibsim opensm")
@pytest.mark.slow
async def test_a_subnet_manager_dies_and_counters_grow(tmp_path: Path) -> None:
    """sm_lid changes once when the standby takes over; symbol errors are counted; the port stays ACTIVE."""
    if why := ibsim_fabric.missing():
        pytest.skip(why)
    with ibsim_fabric.fabric(tmp_path) as net:
        master = net.subnet_manager("H1", priority=10)
        net.until(lambda: "MASTER" in net.ask("H3", "sminfo"), "H1 did not become master")
        net.subnet_manager("H2", priority=5)
        second = lid(net, "H2")
        net.until(lambda: "STANDBY" in net.ask("H3", "sminfo", second), "H2 did not become standby")
        source = InfinibandSource(Host(root=net.mirror("H3")), InfinibandSourceOptions(ib_interval_s=0.05))
        async with following(source) as emitted:
            unsent_events: list[UnsentEvent] = []
            collector = InfinibandCollector(CongestionOptions())
            fed = 0

            async def until(kind: str, timeout_s: float = 180.0) -> UnsentEvent:
                """Mirrors the fabric until the collector reports `kind`."""
                nonlocal fed
                deadline = asyncio.get_running_loop().time() + timeout_s
                while not (reported := [unsent for unsent in unsent_events if unsent.kind == kind]):
                    late = asyncio.get_running_loop().time() >= deadline
                    assert not late, f"{kind} was not said: {unsent_events}\n{net.said('H2')}"
                    await asyncio.to_thread(net.mirror, "H3")
                    await asyncio.sleep(0.1)
                    while fed < len(emitted):
                        unsent_events.extend(collector.feed(emitted[fed], 0.0))
                        fed += 1
                return reported[-1]

            await emitted.until(
                lambda emitted: any(isinstance(r, IbPort) and r.state == "ACTIVE" for r in emitted)
            )
            net.console('PerformanceSet "H3"[1] PortCounters.SymbolErrorCounter=121')
            errors = await until("ib.errors")
            assert (errors.data["counter"], errors.data["delta"]) == ("symbol_error", 121)
            master.send_signal(signal.SIGKILL)
            changed = await until("ib.sm_lid")
            assert changed.data["sm_lid"] == int(second)
            assert {unsent.kind for unsent in unsent_events} <= {"ib.errors", "ib.sm_lid", "ib.port_state"}


def lid(net: ibsim_fabric.Fabric, host: str) -> str:
    """LID of a host's port, once the master has given it one."""
    found = ""

    def given() -> bool:
        nonlocal found
        words = net.ask(host, "smpquery", "portinfo", "-D", "0", "1")
        found = next((line.rpartition(".")[2] for line in words.splitlines() if line.startswith("Lid:")), "0")
        return found not in ("", "0")

    net.until(given, f"{host} got no LID")
    return found
