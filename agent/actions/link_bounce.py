"""link.bounce: takes a network interface down and up again; never one that carries the control path, nor one that somebody
has set down.
"""

import asyncio
import contextlib
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup, Peer
from agent.actions.base import Done, NodeAction, Params, number
from agent.actions.interfaces import bounce, known, named, off_the_control_path
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.shared import rtnetlink

MAX_DOWN_S = 10.0
CARRIER_S = 10.0  # an InfiniBand or 400 Gbit/s link needs several seconds to train
_LOOK_S = 0.05


class LinkBounce(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "link.bounce"

    def __init__(self, host: Host, peer: Peer, *, carrier_s: float = CARRIER_S) -> None:
        """`carrier_s`: how long the link may take to train."""
        self._host = host
        self._peer = peer
        self._carrier_s = carrier_s

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host, setup.peer)

    async def plan(self, params: Params) -> list[str]:
        """Down, pause, up, wait for the carrier."""
        name, down_s = await self._checked(params)
        now = await asyncio.to_thread(known, name)
        state = "up" if now.running else "without carrier"
        return [
            f"set {name} down (now {state})",
            f"wait {down_s:g} s",
            f"set {name} up",
            f"wait up to {self._carrier_s:g} s for its carrier",
        ]

    async def run(self, params: Params) -> Done:
        """Does it. However it ends, the interface is set up again."""
        name, down_s = await self._checked(params)
        await bounce(name, down_s)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        while not (await asyncio.to_thread(rtnetlink.interface, name)).running:
            if loop.time() - started_s > self._carrier_s:
                raise ActionError(f"{name} is set up again but has no carrier after {self._carrier_s:g} s")
            await asyncio.sleep(_LOOK_S)
        return Done(text=f"{name} was down for {down_s:g} s and has its carrier again")

    async def recover(self, params: Params) -> None:
        """The interface may have been left down: sets it up."""
        with contextlib.suppress(Refused):
            name = named(self._host, str(params["link"]))
            await asyncio.to_thread(rtnetlink.set_up, name, True)

    async def _checked(self, params: Params) -> tuple[str, float]:
        down_s = number(params, "down_s", 0.5, 0.0, MAX_DOWN_S)
        if not self._host.live:
            raise Refused("this is a recorded machine")
        name = named(self._host, str(params["link"]))
        if not (await asyncio.to_thread(known, name)).up:
            raise Refused(f"{name} is set down: whoever did that sets it up again")
        danger = "down, it could not be told to come up again"
        await asyncio.to_thread(off_the_control_path, self._host, self._peer, name, danger)
        return name, down_s
