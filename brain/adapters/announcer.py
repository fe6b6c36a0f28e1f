"""Tells nodes the announcements of keys that they lack (agent/contract/trust.py). A node's beats say which it trusts."""

import asyncio
import time
from collections.abc import Callable

import orjson

from agent.contract.commands import Answer, decode_reply
from agent.contract.errors import ConfigError, ContractError
from agent.contract.trust import pack_announcements
from agent.shared.nats_connection import LOST
from brain.adapters.liveness import FRESH_S, Beats
from brain.adapters.node_requests import NodeRequests
from brain.cell.trust import TrustFile

ANSWER_S = 2.0
AGAIN_S = 5.0  # a node that has not answered is told again after this
REFUSED_AGAIN_S = 600.0  # one that has refused: it is an incident each time
AT_ONCE = 64  # nodes
IN_ONE = 12  # announcements in one message: with certificates each has about 2 KiB, and a node reads 64 KiB


class Announcer:
    """Of one brain."""

    def __init__(
        self,
        requests: NodeRequests,
        beats: Beats,
        file: TrustFile,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests = requests
        self._beats = beats
        self._file = file
        self._clock = clock
        # Node -> the run of its agent, the newest announcement that it was told, and when it may be told again.
        self._told: dict[str, tuple[str, int, float]] = {}

    def serial(self, node: str) -> int:
        """The newest announcement that the node trusts, by its last beat; 0: it was not heard."""
        found = self._beats.newest.get(node)
        return found.beat.trust if found else 0

    async def tell_all(self) -> None:
        """Tells all nodes that are heard and lack something."""
        newest = self._file.state().serial
        now = self._clock()
        lacking = [
            node
            for node, last in self._beats.newest.items()
            if last.beat.trust < newest
            and now - last.at < FRESH_S
            and not self._knows(node, last.beat.session, newest)
        ]
        for first in range(0, len(lacking), AT_ONCE):
            await asyncio.gather(*(self.tell(node) for node in lacking[first : first + AT_ONCE]))

    def lacks(self, node: str) -> bool:
        """Would `tell` tell the node anything now?"""
        try:
            return self._lacks(node, self._file.state().serial)
        except ConfigError:
            return False  # as `tell`

    async def tell(self, node: str) -> None:
        """Tells one node what it lacks, if it does. What goes wrong is left to the next time."""
        try:
            state = self._file.state()
        except ConfigError:
            return  # whoever rotates says so
        if not self._lacks(node, state.serial):
            return
        session = self._session(node)
        self._told[node] = (session, state.serial, self._clock() + AGAIN_S)
        lacks = state.after(self.serial(node))
        if not lacks:
            return
        answers = set()
        try:
            for first in range(0, len(lacks), IN_ONE):
                body = pack_announcements(lacks[first : first + IN_ONE])
                reply = decode_reply(orjson.loads(await self._requests.request(node, body, ANSWER_S)))
                answers.add(reply.answer)
        except (ContractError, ValueError, *LOST):
            return
        if Answer.ACCEPTED not in answers:
            self._told[node] = (session, state.serial, self._clock() + REFUSED_AGAIN_S)

    def _lacks(self, node: str, newest: int) -> bool:
        return self.serial(node) < newest and not self._knows(node, self._session(node), newest)

    def _session(self, node: str) -> str:
        found = self._beats.newest.get(node)
        return found.beat.session if found else ""

    def _knows(self, node: str, session: str, serial: int) -> bool:
        """Was this run of its agent told of it, and not so long ago that it should be told again?"""
        told_session, told_serial, until = self._told.get(node, ("", 0, 0.0))
        return (told_session, told_serial) == (session, serial) and self._clock() < until
