"""Heartbeats: they are not stored, and their absence tells the brain that the node is unreachable."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from agent.contract import subjects
from agent.contract.messages import Beat, encode_beat
from agent.host import Host
from agent.shared.rhythm import pause
from agent.uplink.spool import Spool

if TYPE_CHECKING:
    from nats.aio.client import Client


class Heartbeat:
    """One node's heartbeat; `serve` for each connection."""

    def __init__(
        self,
        host: Host,
        spool: Spool,
        *,
        cell: str,
        node: str,
        session: str,
        version: str,
        interval_s: float,
        trusts: Callable[[], int] = lambda: 0,
        asks: Callable[[bool], bool] = lambda _: False,
    ) -> None:
        """`trusts`: the newest announcement of keys that counts here. `asks`: called before each beat, with whether events wait;
        does it ask for an answer?
        """
        self._host = host
        self._spool = spool
        self._subject = subjects.offer(cell, node, subjects.BEAT)
        self._node = node
        self._session = session
        self._version = version
        self._interval_s = interval_s
        self._trusts = trusts
        self._asks = asks
        self._boot = host.boot_id()

    async def serve(self, client: "Client") -> None:
        """Publishes a beat at once, then one per interval, until cancelled."""
        while True:
            beat = Beat(
                node=self._node,
                session=self._session,
                boot=self._boot,
                mono_s=self._host.mono_s(),
                version=self._version,
                spooled=self._spool.spooled,
                dropped=self._spool.dropped,
                trust=self._trusts(),
                wall_s=round(self._host.wall().timestamp(), 3),
                asks=self._asks(self._spool.spooled > 0),
            )
            await client.publish(self._subject, orjson.dumps(encode_beat(beat)))
            await pause(self._interval_s)
