"""Many simulated nodes over one NATS connection, as a process: `python -m simulations.fleet --config FILE`.

Each has the subjects, codec, ids, heartbeats and commander of a real agent: the brain sees no difference.
"""

import argparse
import asyncio
import base64
import contextlib
import logging
import signal
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from agent.contract import requests, subjects
from agent.contract.acknowledgements import decode_acknowledgement
from agent.contract.commands import encode_reply
from agent.contract.errors import ConfigError
from agent.contract.messages import Event, encode_event
from agent.host import Host
from agent.shared import inert_log
from agent.uplink.connection import node_connection
from brain.console.drill import RECIPIENT
from simulations import fleet_requests
from simulations.infrastructure import Infrastructure
from simulations.node import SimulatedNode

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

WINDOW = 256  # nodes with an event in flight
ACK_TIMEOUT_S = 5.0
FLUSH_S = 2.0  # how long a fleet that is being stopped goes on sending

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetConfig:
    """The configuration file, TOML."""

    nats_url: str
    # Of a user that may publish and subscribe as any of the nodes, and under the name `drill`.
    nats_seed_file: str = ""
    cell: str = "default"
    nodes: tuple[str, ...] = ()
    # Folder of the journals.
    data_dir: Path
    # Key id -> base64 of the Ed25519 public key.
    trusted_keys: Mapping[str, str] = field(default_factory=dict)
    beat_interval_s: Annotated[float, Field(gt=0)] = 2.0
    # Added to the duration of every action.
    slow_s: Annotated[float, Field(ge=0)] = 0.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class SimulatedFleet:
    """The nodes of one process, and the connection that they share."""

    def __init__(self, config: FleetConfig, host: Host | None = None) -> None:
        self._config = config
        host = host or Host()
        keys = {name: base64.b64decode(text) for name, text in config.trusted_keys.items()}
        folder = config.data_dir / "fleet"
        folder.mkdir(parents=True, exist_ok=True)
        self.nodes = {
            name: SimulatedNode(
                subjects.token(name, "node"),
                cell=config.cell,
                keys=keys,
                folder=folder,
                host=host,
                on_event=self._ready_to_send,
                slow_s=config.slow_s,
            )
            for name in config.nodes
        }
        self._host = host
        self._infrastructure = Infrastructure({name: node.machine for name, node in self.nodes.items()})
        self._connection = node_connection([config.nats_url], RECIPIENT, seed_file=config.nats_seed_file)
        # Nodes with an event to send, the longest waiting first.
        self._to_send: dict[str, SimulatedNode] = {}
        self._wake = asyncio.Event()
        # Node → its event that is in flight, and when it was sent: one at a time, so that they keep their order.
        self._in_flight: dict[str, tuple[Event, float]] = {}
        self.connected = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled; then stops the nodes, and sends their last events for up to FLUSH_S."""
        for node in self.nodes.values():
            await node.start()
        uplink = asyncio.ensure_future(self._connection.serve(self._session))
        try:
            await asyncio.wait({uplink})
            uplink.result()
        finally:
            for node in self.nodes.values():
                await node.stop()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    while not uplink.done() and any(node.next_event() for node in self.nodes.values()):  # noqa: ASYNC110 - two uplinks have no event in common
                        await asyncio.sleep(0.02)
            uplink.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await uplink

    async def _session(self, client: "Client") -> None:
        for node in self.nodes.values():
            await client.subscribe(
                subjects.command(self._config.cell, node.name), cb=self._on_command(client, node)
            )
            await client.subscribe(
                subjects.acknowledgement(self._config.cell, node.name, subjects.EVENT),
                cb=self._on_acknowledgement(node),
            )
        await client.subscribe(subjects.command(self._config.cell, RECIPIENT), cb=self._on_request(client))
        await client.flush()
        self._in_flight.clear()
        self._to_send.update(self.nodes)
        self._wake.set()
        self.connected.set()
        _log.info("%d simulated nodes on %s", len(self.nodes), self._config.nats_url)
        tasks = [asyncio.create_task(work(client)) for work in (self._beat, self._send)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _on_command(self, client: "Client", node: SimulatedNode) -> Any:
        async def handle(message: "Msg") -> None:
            request = requests.unpack(message.data)
            if request is None or node.unreachable():
                return
            reference, envelope = request
            answer = orjson.dumps(encode_reply(await node.commander.handle(envelope)))
            offer = subjects.offer(self._config.cell, node.name, subjects.ANSWER)
            await client.publish(offer, requests.pack(reference, answer))

        return handle

    def _on_request(self, client: "Client") -> Any:
        async def handle(message: "Msg") -> None:
            found = requests.unpack(message.data)
            if found is None:
                return
            reference, body = found
            try:
                request = orjson.loads(body)
            except orjson.JSONDecodeError:
                request = None
            reply = fleet_requests.answer(self.nodes, request, self._infrastructure, self._host.mono_s())
            if request != {"do": "bmc"}:  # asked every few seconds
                _log.info("drill %s: %s", request, reply.get("error") or reply.get("why") or "injected")
            offer = subjects.offer(self._config.cell, RECIPIENT, subjects.ANSWER)
            await client.publish(offer, requests.pack(reference, orjson.dumps(reply)))

        return handle

    async def _beat(self, client: "Client") -> None:
        while True:
            for node in self.nodes.values():
                if (body := node.beat()) is not None:
                    offer = subjects.offer(self._config.cell, node.name, subjects.BEAT)
                    await client.publish(offer, body)
                node.commander.report_refusals()
            await asyncio.sleep(self._config.beat_interval_s)

    def _ready_to_send(self, node: SimulatedNode) -> None:
        self._to_send[node.name] = node
        self._wake.set()

    def _on_acknowledgement(self, node: SimulatedNode) -> Any:
        async def handle(message: "Msg") -> None:
            event, _ = self._in_flight.get(node.name, (None, 0.0))
            stored = {id_ for id_, _ in decode_acknowledgement(orjson.loads(message.data))}
            if event is not None and event.id in stored:
                del self._in_flight[node.name]
                node.sent(event)
                self._ready_to_send(node)

        return handle

    async def _send(self, client: "Client") -> None:
        """Sends one event of each node at a time, so that its events keep their order; of many nodes at once. One that no
        brain has taken for ACK_TIMEOUT_S is sent again.
        """
        loop = asyncio.get_running_loop()
        while True:
            for name in list(self._to_send):
                if len(self._in_flight) >= WINDOW:
                    break
                node = self._to_send.pop(name)
                if name not in self._in_flight and (event := node.next_event()) is not None:
                    self._in_flight[name] = (event, loop.time())
                    await self._offer(client, event)
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ACK_TIMEOUT_S / 4 if self._in_flight else None):
                    await self._wake.wait()
            for name, (event, sent_s) in list(self._in_flight.items()):
                if loop.time() - sent_s > ACK_TIMEOUT_S and not self.nodes[name].unreachable():
                    _log.warning("no brain takes events of %s: sending again", name)
                    self._in_flight[name] = (event, loop.time())
                    await self._offer(client, event)

    async def _offer(self, client: "Client", event: Event) -> None:
        offer = subjects.offer(self._config.cell, event.node, subjects.EVENT)
        await client.publish(offer, orjson.dumps(encode_event(event)))


def load(path: Path) -> FleetConfig:
    """The configuration in `path`; ConfigError names file and key."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    try:
        return TypeAdapter(FleetConfig).validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


async def serve(config: FleetConfig) -> None:
    """Runs the fleet until SIGTERM or SIGINT."""
    fleet = asyncio.ensure_future(SimulatedFleet(config).run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, fleet.cancel)
    try:
        await fleet
    except asyncio.CancelledError:
        _log.info("stopped")


def main() -> int:
    """Entry point; 2 when the configuration is wrong."""
    parser = argparse.ArgumentParser(prog="python -m simulations.fleet", description=__doc__.split("\n")[0])
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    layout = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.INFO, handlers=[inert_log.handler(layout)])
    try:
        asyncio.run(serve(load(options.config)))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
