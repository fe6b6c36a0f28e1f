"""mtu.set: sets the MTU of a network interface and reads it back; never of one that carries the control path."""

import asyncio
from typing import ClassVar

from agent.actions import rtnetlink
from agent.actions.base import Done, Params, number
from agent.actions.interfaces import Peer, known, off_the_control_path, typed
from agent.actions.rtnetlink import Link
from agent.contract.errors import ActionError, Refused
from agent.host import Host

MIN_MTU, MAX_MTU = 576, 65520  # bytes: what every IPv4 host must take; IPoIB in connected mode


class MtuSet:
    """See the module's docstring. `peer`: host and port of the broker that we are connected to."""

    name: ClassVar[str] = "mtu.set"

    def __init__(self, host: Host, peer: Peer) -> None:
        self._host = host
        self._peer = peer

    async def plan(self, params: Params) -> list[str]:
        """One line, with the MTU now."""
        link, mtu = await self._checked(params)
        if link.mtu == mtu:
            return [f"nothing: the MTU of {link.name} is {mtu} already"]
        return [f"set the MTU of {link.name} from {link.mtu} to {mtu}, and read it back"]

    async def run(self, params: Params) -> Done:
        """Sets it. One that has it already is left alone."""
        link, mtu = await self._checked(params)
        if link.mtu == mtu:
            return Done(text=f"the MTU of {link.name} is {mtu} already")
        try:
            await asyncio.to_thread(rtnetlink.set_mtu, link.name, mtu)
            now = await asyncio.to_thread(rtnetlink.link, link.name)
        except OSError as error:
            raise ActionError(
                f"the MTU of {link.name} cannot be set to {mtu}: {error.strerror or error}"
            ) from error
        if now.mtu != mtu:
            raise ActionError(f"the kernel took {mtu}, but the MTU of {link.name} is {now.mtu}")
        return Done(text=f"the MTU of {link.name} is {mtu}, was {link.mtu}")

    async def recover(self, params: Params) -> None:
        """Nothing: one message to the kernel does it."""

    async def _checked(self, params: Params) -> tuple[Link, int]:
        mtu = int(number(params, "mtu", 0, MIN_MTU, MAX_MTU))
        if not self._host.live:
            raise Refused("this is a recorded machine")
        _, name = typed("link", str(params["link"]), "link")
        link = await asyncio.to_thread(known, name)
        danger = "with another MTU it may not be heard any more"
        await asyncio.to_thread(off_the_control_path, self._host, self._peer, name, danger)
        if mtu < link.min_mtu or (link.max_mtu and mtu > link.max_mtu):
            most = link.max_mtu or MAX_MTU
            raise Refused(f"the driver of {name} takes an MTU from {link.min_mtu} to {most}, not {mtu}")
        return link, mtu
