"""Asks NATS now and then how what the brain keeps there is, for the metrics: how large, on how many servers, and who leads it."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from nats.aio.client import Client
from nats.js.api import AccountInfo, StreamInfo

from agent.shared.nats_connection import LOST
from brain.adapters import copies, kept_streams
from brain.console.nats_view import NatsSeen, StoreSeen, StreamSeen

EVERY_S = 30.0
ANSWER_S = 5.0


class NatsWatch:
    """What the servers said last."""

    def __init__(self, cell: str, wanted: int) -> None:
        """`wanted`: copies, as configured."""
        self._cell = cell
        self._wanted = wanted
        # None: nothing is known, as there is no connection or no answer
        self.seen: NatsSeen | None = None

    async def serve(self, client: Client) -> None:
        """Asks, on one connection, until cancelled."""
        try:
            while True:
                try:
                    self.seen = await self._look(client)
                except LOST:  # the session's other parts notice what that means
                    self.seen = None
                await asyncio.sleep(EVERY_S)
        finally:
            self.seen = None

    async def _look(self, client: Client) -> NatsSeen:
        before_s = time.perf_counter()
        await client.flush(int(ANSWER_S))
        rtt_s = time.perf_counter() - before_s
        account = await client.jsm().account_info()
        told = await kept_streams.told(client, self._cell)
        here, version = _name(client), client.connected_server_version
        leads, behind, leaderless = Counter[str](), Counter[str](), 0
        by_kind: dict[str, list[StreamInfo]] = {}
        for what, info in told:
            if isinstance(info, Exception):
                leaderless += 1
                continue
            by_kind.setdefault(what.value, []).append(info)
            leader = str(info.cluster.leader or "") if info.cluster else here
            leaderless += not leader
            if leader:
                leads[leader] += 1
            for peer in (info.cluster and info.cluster.replicas) or ():
                leads[str(peer.name)] += 0
                behind[str(peer.name)] += bool(peer.offline or not peer.current)
        for server in leads:
            behind[server] += 0
        return NatsSeen(
            server=here,
            version=f"{version.major}.{version.minor}.{version.patch}",
            rtt_s=rtt_s,
            wanted=self._wanted,
            streams={what: _together(infos) for what, infos in by_kind.items()},
            leaderless=leaderless,
            leads=leads,
            behind=behind,
            stores=_stores(account),
        )


def _name(client: Client) -> str:
    """Of the server: there is no public way."""
    told: Mapping[str, object] = getattr(client, "_server_info", {})
    return str(told.get("server_name", ""))


def _together(infos: Sequence[StreamInfo]) -> StreamSeen:
    limits = [info.config.max_bytes or 0 for info in infos]
    return StreamSeen(
        bytes=sum(info.state.bytes for info in infos),
        max_bytes=sum(limits) if all(limit > 0 for limit in limits) else None,
        messages=sum(info.state.messages for info in infos),
        copies=min(copies.of(info.config) for info in infos),
        current=min(map(_current, infos)),
    )


def _current(info: StreamInfo) -> int:
    """Servers that have all of it."""
    if info.cluster is None:
        return 1
    others = sum(bool(peer.current and not peer.offline) for peer in info.cluster.replicas or ())
    return others + bool(info.cluster.leader)


def _stores(account: AccountInfo) -> dict[str, StoreSeen]:
    file, memory = account.limits.max_storage, account.limits.max_memory
    return {
        "file": StoreSeen(bytes=account.storage, max_bytes=file if file > 0 else None),
        "memory": StoreSeen(bytes=account.memory, max_bytes=memory if memory > 0 else None),
    }
