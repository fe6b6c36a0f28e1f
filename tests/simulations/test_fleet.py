"""The simulated fleet against a real NATS server, and the brain's own way of sending commands."""

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from nacl.signing import SigningKey
from nats.aio.client import Client

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.commands import Outcome
from agent.contract.errors import ConfigError
from agent.contract.messages import Event, decode_event
from brain.adapters.keys import Signer
from brain.adapters.nodes import Nodes
from brain.core.effects import Step
from simulations.drills import DRILLS
from simulations.fleet import FleetConfig, SimulatedFleet, load
from tests.real import nats as real
from tests.real.intake_kit import Reception, intake

CELL = "default"
GPU = "gpu/0000:1b:00"
NODES = ("sim-01", "sim-02", "sim-03")
SIGNER = Signer(key_id="brain", key=SigningKey(bytes(32)))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[real.NatsServer]:
    """A real server."""
    with real.nats_server(tmp_path, nodes={"fleet": (*NODES, "drill")}) as running:
        yield running


def config(server: real.NatsServer, folder: Path, **more: Any) -> FleetConfig:
    """Three nodes that trust the test's key."""
    keys = {"brain": base64.b64encode(bytes(SIGNER.key.verify_key)).decode()}
    return FleetConfig(
        nats_url=server.node_url("fleet"),
        nodes=NODES,
        data_dir=folder,
        trusted_keys=keys,
        beat_interval_s=0.2,
        **more,
    )


@contextlib.asynccontextmanager
async def running(fleet: SimulatedFleet) -> AsyncIterator[SimulatedFleet]:
    """The fleet, connected, until the end of the block."""
    task = asyncio.create_task(fleet.run())
    try:
        async with asyncio.timeout(60):
            await fleet.connected.wait()
        yield fleet
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def events_until(url: str, done: Callable[[list[Event]], bool], within_s: float = 60.0) -> list[Event]:
    """All events on the log, read again until `done` accepts them; fails after the time."""
    deadline = asyncio.get_running_loop().time() + within_s
    while True:
        bodies = await real.whole_log(url)
        events = [decode_event(raw, str(raw["node"])) for raw in map(orjson.loads, bodies)]
        if done(events):
            return events
        seen = [event.kind for event in events]
        assert asyncio.get_running_loop().time() < deadline, f"the log holds only {seen}"
        await asyncio.sleep(0.02)


def saw(kind: str, node: str = "sim-01") -> Callable[[list[Event]], bool]:
    return lambda events: any(event.kind == kind and event.node == node for event in events)


async def drill(taking: Reception, name: str, node: str = "") -> dict[str, Any]:
    """The request of `gpuward drill`, as the brain passes it on."""
    body = orjson.dumps({"do": "inject", "name": name, "node": node})
    answer: dict[str, Any] = orjson.loads(await taking.requests.ask("drill", body, 60))
    return answer


def client_of(taking: Reception) -> Client:
    """The connection of this moment."""
    assert taking.client is not None
    return taking.client


def step(id_: str, action: str, node: str = "sim-01", **params: str | float) -> Step:
    """A step as the engine plans it."""
    return Step(
        id=id_, run="r", incident="i", node=node, action=action, where="node", params=params, timeout_s=60,
        disrupts=Disrupts.NODE, repeat=Repeat.SAFE, why="test",
    )  # fmt: skip


@contextlib.asynccontextmanager
async def brain(url: str, *, signer: Signer = SIGNER) -> AsyncIterator[tuple[Reception, Nodes]]:
    """The side of the brain: what takes in the nodes' offers, and the sender of commands."""
    async with intake(url) as taking:
        yield taking, Nodes(taking.requests, lambda: signer, taking.beats, lambda epoch: epoch >= 1)


async def test_a_drill_reaches_the_log_and_is_healed_by_a_command_of_the_brain(
    server: real.NatsServer, tmp_path: Path
) -> None:
    """link-down: its event, a signed link.bounce, the result, the recovery; the other nodes report nothing."""
    await real.make_log(server.url)
    async with (
        running(SimulatedFleet(config(server, tmp_path))) as fleet,
        brain(server.url) as (taking, nodes),
    ):
        assert (await drill(taking, "link-down"))["nodes"] == ["sim-01"]
        await events_until(server.url, saw("link.state"))
        assert await nodes.perform(client_of(taking), step("s1", "link.bounce", link="link/eth1"), 1) is None
        assert (
            await nodes.perform(client_of(taking), step("s1", "link.bounce", link="link/eth1"), 1) is None
        ), "known"
        events = await events_until(server.url, saw("command.result"))
        assert fleet.nodes["sim-01"].machine.healthy()
    story = [(event.kind, event.data.get("up")) for event in events if event.node == "sim-01"]
    assert story[0][0] == "agent.started"
    assert [item for item in story if item[0] == "link.state"] == [
        ("link.state", False),
        ("link.state", False),
        ("link.state", True),
    ]
    at_start = {"agent.started", "node.inventory", "node.inventory.gpu", "node.inventory.nic"}
    assert all(event.kind in at_start for event in events if event.node != "sim-01")
    assert [kind for kind, _ in story if kind == "node.inventory"] == ["node.inventory"], (
        "it has not booted since"
    )
    results = [event for event in events if event.kind == "command.result"]
    assert {event.data["command"] for event in results} == {"s1"}
    assert results[0].data["outcome"] == Outcome.OK.value


async def test_a_look_tells_the_conditions_before_its_result(server: real.NatsServer, tmp_path: Path) -> None:
    """driver-hung and a link that is down: both are told again, all else is told well, and then the result says blind."""
    await real.make_log(server.url)
    async with running(SimulatedFleet(config(server, tmp_path))), brain(server.url) as (taking, nodes):
        for name in ("driver-hung", "link-down"):
            await drill(taking, name, "sim-01")
        await events_until(server.url, saw("link.state"))
        assert await nodes.perform(client_of(taking), step("s1", "agent.look"), 1) is None
        events = [
            event for event in await events_until(server.url, saw("command.result")) if event.node == "sim-01"
        ]
    *facts, result = events
    assert (result.kind, result.data["outcome"]) == ("command.result", "ok")
    assert result.data["blind"] == "NVML,udev or NVML"
    last = {(event.kind, event.component): event for event in facts}
    assert last["link.state", "link/eth1"].data["up"] is False
    assert last["link.state", "link/eth2"].data["up"] is True
    assert sum(event.kind == "nvml.hung" for event in facts) == 2
    assert "gpu.answers" not in {event.kind for event in facts}


async def test_ids_and_ages_are_as_an_agent_makes_them(server: real.NatsServer, tmp_path: Path) -> None:
    """Numbers grow by one within the spool of a node; an event that had to wait carries its age."""
    await real.make_log(server.url)
    async with running(SimulatedFleet(config(server, tmp_path))) as fleet:
        began = time.monotonic()
        node = fleet.nodes["sim-02"]
        node.inject(DRILLS["gpu-off-bus"].plan(node.machine.state))
        await asyncio.sleep(1.0)  # no brain takes anything yet
        async with intake(server.url):
            events = await events_until(server.url, saw("gpu.removed", "sim-02"))
        took_s = time.monotonic() - began
    mine = [event for event in events if event.node == "sim-02"]
    assert [event.order[1] for event in mine] == list(range(1, len(mine) + 1))
    assert len({event.order[0] for event in mine}) == 1
    assert len({event.id for event in events}) == len(events), "no event twice"
    xid = next(event for event in mine if event.kind == "gpu.xid")
    assert 0.9 < xid.age_s < took_s


async def test_a_killed_broker_loses_and_doubles_nothing(server: real.NatsServer, tmp_path: Path) -> None:
    """Events from the time when it was away are on the log afterwards, in order, each once."""
    await real.make_log(server.url)
    async with running(SimulatedFleet(config(server, tmp_path))) as fleet, intake(server.url) as taking:
        await drill(taking, "ib-phy-errors")
        await events_until(server.url, saw("ib.errors"))
        server.kill()
        await asyncio.sleep(2.2)
        server.start()
        port = fleet.nodes["sim-01"].machine.state.ports["mlx5_0"]
        want = port.symbol_error + 240
        events = await events_until(
            server.url, lambda events: any(event.data.get("value") == want for event in events)
        )
    values = [event.data["value"] for event in events if event.kind == "ib.errors"]
    assert values == list(range(240, int(str(values[-1])) + 1, 240))


async def test_an_unreachable_node_neither_sends_nor_receives(
    server: real.NatsServer, tmp_path: Path
) -> None:
    """No heartbeats, no answer to commands; the other nodes go on."""
    await real.make_log(server.url)
    async with running(SimulatedFleet(config(server, tmp_path))), brain(server.url) as (taking, nodes):
        await drill(taking, "node-unreachable", "sim-03")
        await asyncio.sleep(0.1)
        taking.beats.newest.clear()
        async with asyncio.timeout(60):
            for _ in range(3):
                while "sim-01" not in taking.beats.newest:
                    await asyncio.sleep(0.02)
                assert "sim-03" not in taking.beats.newest
                taking.beats.newest.clear()
        answered = asyncio.create_task(
            nodes.perform(client_of(taking), step("s", "evidence.collect", "sim-03", component=GPU), 1)
        )
        await asyncio.wait({answered}, timeout=0.5)
        assert not answered.done()
        answered.cancel()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (step("s", "link.bounce", link="link/eth0"), "carries the control path"),
        (step("s", "service.restart", unit="sshd.service"), "is not a unit of this node"),
    ],
)
async def test_refusals_come_back_as_results(
    server: real.NatsServer, tmp_path: Path, wanted: Step, message: str
) -> None:
    """An action that the machine refuses ends as `refused`, with its reason."""
    await real.make_log(server.url)
    async with running(SimulatedFleet(config(server, tmp_path))), brain(server.url) as (taking, nodes):
        assert await nodes.perform(client_of(taking), wanted, 1) is None
        events = await events_until(server.url, saw("command.result"))
    data = next(event.data for event in events if event.kind == "command.result")
    assert data["outcome"] == "refused"
    assert message in str(data["why"])


async def test_a_command_with_a_wrong_signature_does_nothing(server: real.NatsServer, tmp_path: Path) -> None:
    """The commands of a simulated machine pass the agent's own verification."""
    await real.make_log(server.url)
    stranger = Signer(key_id="brain", key=SigningKey(bytes([7] * 32)))
    async with (
        running(SimulatedFleet(config(server, tmp_path))) as fleet,
        brain(server.url, signer=stranger) as (taking, nodes),
    ):
        result = await nodes.perform(client_of(taking), step("s", "link.bounce", link="link/eth1"), 1)
        assert result is not None
        assert (result.outcome, result.why) == (Outcome.REFUSED, "signature does not fit")
        assert fleet.nodes["sim-01"].machine.next_at() is None
        await events_until(server.url, saw("agent.bad_command"))


async def test_no_command_runs_twice_over_a_restart_of_the_fleet(
    server: real.NatsServer, tmp_path: Path
) -> None:
    """The journals are on disk: a command that was running is reported as unknown, and is not performed again."""
    await real.make_log(server.url)
    slow = config(server, tmp_path, slow_s=30)
    async with brain(server.url) as (taking, nodes):
        async with running(SimulatedFleet(slow)):
            assert (
                await nodes.perform(client_of(taking), step("s", "evidence.collect", component=GPU), 1)
                is None
            )
        async with running(SimulatedFleet(slow)):
            events = await events_until(server.url, saw("command.result"))
            assert (
                await nodes.perform(client_of(taking), step("s", "evidence.collect", component=GPU), 1)
                is None
            )
    outcomes = [event.data["outcome"] for event in events if event.kind == "command.result"]
    assert outcomes[0] == "unknown"
    assert set(outcomes) == {"unknown"}


async def test_wrong_requests_are_answered_with_a_sentence(server: real.NatsServer, tmp_path: Path) -> None:
    """A misspelt drill, an unknown node, a node for a drill of all nodes, a broken request."""
    async with running(SimulatedFleet(config(server, tmp_path))), intake(server.url) as taking:
        for name, node, message in [
            ("gpu-needs-rest", "", "there is no drill 'gpu-needs-rest': did you mean gpu-needs-reset"),
            ("gpu-off-bus", "n7", "'n7' is not a simulated node (have: sim-01"),
            ("sm-failover", "sim-01", "affects all nodes"),
        ]:
            answer = await drill(taking, name, node)
            assert not answer["ok"]
            assert message in answer["error"]
        reply = await taking.requests.ask("drill", b"\xff", 60)
        assert "want {do: list}" in orjson.loads(reply)["error"]
        listing = await taking.requests.ask("drill", b'{"do":"list"}', 60)
        assert len(orjson.loads(listing)["drills"]) >= 8


async def test_drills_take_another_healthy_node_each_time(server: real.NatsServer, tmp_path: Path) -> None:
    """Without --node the first healthy one; when all have a fault, a sentence says so."""
    async with running(SimulatedFleet(config(server, tmp_path))), intake(server.url) as taking:
        seen = [(await drill(taking, "cable-cut")).get("nodes") for _ in range(4)]
        assert seen == [["sim-01"], ["sim-02"], ["sim-03"], None]
        assert (await drill(taking, "repair"))["nodes"] == ["sim-01"]
        assert (await drill(taking, "cable-cut"))["nodes"] == ["sim-01"]
        assert (await drill(taking, "sm-failover"))["nodes"] == ["sim-01", "sim-02", "sim-03"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nats_url = 1", "nats_url: "),
        ('nats_url = "x"', "data_dir: "),
        ('nats_url = "x"\ndata_dir = "/tmp"\nnods = []', "nods: "),
        ("=", "fleet.toml: "),
    ],
)
def test_what_is_wrong_in_the_configuration_is_named(tmp_path: Path, text: str, message: str) -> None:
    """File and key."""
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(file)
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        load(tmp_path / "gone.toml")
