"""mtu.set: sets the MTU of a network interface and reads it back; never of one that carries the control path."""

import asyncio
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup, Peer
from agent.actions.base import Done, NodeAction, Params, number
from agent.actions.interfaces import known, off_the_control_path, typed
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.shared import rtnetlink
from agent.shared.rtnetlink import Interface

# Bytes: what every IPv4 host must accept; IPoIB in connected mode.
MIN_MTU, MAX_MTU = 576, 65520


class MtuSet(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "mtu.set"

    def __init__(self, host: Host, peer: Peer) -> None:
        self._host = host
        self._peer = peer

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host, setup.peer)

    async def plan(self, params: Params) -> list[str]:
        """One line, with the MTU now."""
        interface, mtu = await self._checked(params)
        if interface.mtu == mtu:
            return [f"nothing: the MTU of {interface.name} is {mtu} already"]
        return [f"set the MTU of {interface.name} from {interface.mtu} to {mtu}, and read it back"]

    async def run(self, params: Params) -> Done:
        """Sets it. An interface that has this MTU already is left alone."""
        interface, mtu = await self._checked(params)
        name = interface.name
        if interface.mtu == mtu:
            return Done(text=f"the MTU of {name} is {mtu} already")
        try:
            await asyncio.to_thread(rtnetlink.set_mtu, name, mtu)
            now = await asyncio.to_thread(rtnetlink.interface, name)
        except OSError as error:
            raise ActionError(
                f"the MTU of {name} cannot be set to {mtu}: {error.strerror or error}"
            ) from error
        if now.mtu != mtu:
            raise ActionError(f"the kernel accepted {mtu}, but the MTU of {name} is {now.mtu}")
        return Done(text=f"the MTU of {name} is {mtu}, was {interface.mtu}")

    async def recover(self, params: Params) -> None:
        """Nothing to repair: one message to the kernel does it."""

    async def _checked(self, params: Params) -> tuple[Interface, int]:
        mtu = int(number(params, "mtu", 0, MIN_MTU, MAX_MTU))
        if not self._host.live:
            raise Refused("this is a recorded machine")
        _, name = typed("link", str(params["link"]), "link")
        interface = await asyncio.to_thread(known, name)
        danger = "with another MTU it may not be heard any more"
        await asyncio.to_thread(off_the_control_path, self._host, self._peer, name, danger)
        if mtu < interface.min_mtu or (interface.max_mtu and mtu > interface.max_mtu):
            most = interface.max_mtu or MAX_MTU
            raise Refused(f"the driver of {name} takes an MTU from {interface.min_mtu} to {most}, not {mtu}")
        return interface, mtu
