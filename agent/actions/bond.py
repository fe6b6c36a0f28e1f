"""bond.failover: makes another slave of an active-backup bond the active one; only one whose MII status is up, and never
in the bond that carries the control path.
"""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from agent.actions import rtnetlink
from agent.actions.base import Done, Params
from agent.actions.interfaces import Peer, off_the_control_path, typed
from agent.contract.errors import ActionError, Refused
from agent.host import Host

_MODE = "active-backup"
_READ_BACK_S = 5.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bond:
    name: str
    active: str  # empty: none
    primary: str  # empty: none
    to: str


class BondFailover:
    """See the module's docstring. `peer`: host and port of the broker that we are connected to."""

    name: ClassVar[str] = "bond.failover"

    def __init__(self, host: Host, peer: Peer) -> None:
        self._host = host
        self._peer = peer

    async def plan(self, params: Params) -> list[str]:
        """One line, with the active slave now."""
        bond = await self._checked(params)
        if bond.to == bond.active:
            return [f"nothing: {bond.to} is the active slave of {bond.name} already"]
        return [f"make {bond.to} the active slave of {bond.name} (now {bond.active or 'none'})"]

    async def run(self, params: Params) -> Done:
        """Does it and reads it back. A slave that is active already is left alone."""
        bond = await self._checked(params)
        if bond.to == bond.active:
            return Done(text=f"{bond.to} is the active slave of {bond.name} already")
        try:
            await asyncio.to_thread(rtnetlink.set_active_slave, bond.name, bond.to)
        except OSError as error:
            raise ActionError(
                f"{bond.to} cannot be made the active slave of {bond.name}: {error.strerror or error}"
            ) from error
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _READ_BACK_S
        while (active := self._read(bond.name, "active_slave")) != bond.to:
            if loop.time() > end_s:
                raise ActionError(f"the active slave of {bond.name} is {active or 'none'}, not {bond.to}")
            await asyncio.sleep(_LOOK_S)
        back = bond.primary and bond.primary != bond.to
        note = f"; its primary is {bond.primary}, to which it may return by itself" if back else ""
        return Done(text=f"{bond.to} is the active slave of {bond.name}, was {bond.active or 'none'}{note}")

    async def recover(self, params: Params) -> None:
        """Nothing: one message to the kernel does it."""

    async def _checked(self, params: Params) -> _Bond:
        if not self._host.live:
            raise Refused("this is a recorded machine")
        _, name = typed("bond", str(params["bond"]), "bond", "link")
        mode = self._read(name, "mode").partition(" ")[0]
        if not mode:
            raise Refused(f"there is no bond {name}")
        if mode != _MODE:
            raise Refused(f"{name} is in mode {mode}: only in {_MODE} there is one active slave to choose")
        danger = "the slave that it is on is not ours to choose"
        await asyncio.to_thread(off_the_control_path, self._host, self._peer, name, danger)
        active, slaves = self._read(name, "active_slave"), self._read(name, "slaves").split()
        away_from = str(params.get("away_from", "")).split(",")
        if active and away_from != [""] and active not in away_from:
            raise Refused(
                f"nothing to do: the active slave of {name} is {active}, not {' or '.join(away_from)}"
            )
        status = {one: self._host.read(f"/sys/class/net/{one}/bonding_slave/mii_status") for one in slaves}
        to = str(params.get("to", "")) or next(
            (one for one, mii in status.items() if mii == "up" and one != active), ""
        )
        if not to:
            raise Refused(f"{name} has no other slave whose MII status is up")
        if to not in status:
            raise Refused(f"{to} is no slave of {name} (has: {', '.join(slaves) or 'none'})")
        if status[to] != "up":
            raise Refused(f"the MII status of {to} is {status[to] or 'not known'}: it cannot carry traffic")
        return _Bond(name=name, active=active, primary=self._read(name, "primary").partition(" ")[0], to=to)

    def _read(self, bond: str, file: str) -> str:
        return self._host.read(f"/sys/class/net/{bond}/bonding/{file}")
