"""link.bounce: takes a network interface down and up again; never the one that carries the control path."""

import asyncio
import contextlib
import threading
from typing import ClassVar

from agent.actions import rtnetlink
from agent.actions.base import Done, Params, number
from agent.actions.interfaces import Peer, bounce, known, named, off_the_control_path
from agent.contract.errors import ActionError, Refused
from agent.host import Host

MAX_DOWN_S = 10.0
CARRIER_S = 10.0  # an InfiniBand or 400 Gbit/s link needs several seconds to train
_LOOK_S = 0.05


class LinkBounce:
    """See the module's docstring. `peer`: host and port of the broker that we are connected to."""

    name: ClassVar[str] = "link.bounce"

    def __init__(self, host: Host, peer: Peer, *, carrier_s: float = CARRIER_S) -> None:
        self._host = host
        self._peer = peer
        self._carrier_s = carrier_s

    async def plan(self, params: Params) -> list[str]:
        """Down, pause, up, wait for the carrier."""
        name, down_s = await self._checked(params)
        link = await asyncio.to_thread(known, name)
        state = "up" if link.running else "without carrier" if link.up else "set down"
        return [
            f"set {name} down (now {state})",
            f"wait {down_s:g} s",
            f"set {name} up",
            f"wait up to {self._carrier_s:g} s for its carrier",
        ]

    async def run(self, params: Params) -> Done:
        """Does it. However it ends, the interface is set up again."""
        name, down_s = await self._checked(params)
        stop = threading.Event()
        # One thread does both, so that nothing can come between them; a cancelled wait only cuts the pause
        # short.
        work = asyncio.ensure_future(asyncio.to_thread(bounce, name, down_s, stop))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            with contextlib.suppress(OSError, ActionError):
                await asyncio.shield(work)
            raise
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        while not (await asyncio.to_thread(rtnetlink.link, name)).running:
            if loop.time() - started_s > self._carrier_s:
                raise ActionError(f"{name} is set up again but has no carrier after {self._carrier_s:g} s")
            await asyncio.sleep(_LOOK_S)
        return Done(text=f"{name} was down for {down_s:g} s and has its carrier again")

    async def recover(self, params: Params) -> None:
        """The agent died while the interface may have been down: sets it up."""
        with contextlib.suppress(Refused):
            name = named(self._host, str(params["link"]))
            await asyncio.to_thread(rtnetlink.set_up, name, True)

    async def _checked(self, params: Params) -> tuple[str, float]:
        down_s = number(params, "down_s", 0.5, 0.0, MAX_DOWN_S)
        if not self._host.live:
            raise Refused("this is a recorded machine")
        name = named(self._host, str(params["link"]))
        await asyncio.to_thread(known, name)
        danger = "down, it could not be told to come up again"
        await asyncio.to_thread(off_the_control_path, self._host, self._peer, name, danger)
        return name, down_s
