"""bond.failover: makes another slave of an active-backup bond the active one; only a slave whose MII status is up, and
never in the bond that carries the control path.
"""

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup, Peer
from agent.actions.base import Done, NodeAction, Params
from agent.actions.interfaces import off_the_control_path, typed
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.shared import rtnetlink

_MODE = "active-backup"
_READ_BACK_S = 5.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failover:
    bond: str
    # The active slave now, and the one that is to be.
    active: str
    to: str
    # The slave to which the bond returns by itself; empty: none.
    primary: str


class BondFailover(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "bond.failover"

    def __init__(self, host: Host, peer: Peer) -> None:
        self._host = host
        self._peer = peer

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host, setup.peer)

    async def plan(self, params: Params) -> list[str]:
        """One line, with the active slave now."""
        wanted = await self._checked(params)
        if wanted.to == wanted.active:
            return [f"nothing: {wanted.to} is the active slave of {wanted.bond} already"]
        return [f"make {wanted.to} the active slave of {wanted.bond} (now {wanted.active or 'none'})"]

    async def run(self, params: Params) -> Done:
        """Does it and reads it back. A slave that is active already is left alone."""
        wanted = await self._checked(params)
        if wanted.to == wanted.active:
            return Done(text=f"{wanted.to} is the active slave of {wanted.bond} already")
        try:
            await asyncio.to_thread(rtnetlink.set_active_slave, wanted.bond, wanted.to)
        except OSError as error:
            raise ActionError(
                f"{wanted.to} cannot be made the active slave of {wanted.bond}: {error.strerror or error}"
            ) from error
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _READ_BACK_S
        while (active := self._read(wanted.bond, "active_slave")) != wanted.to:
            if loop.time() > end_s:
                raise ActionError(f"the active slave of {wanted.bond} is {active or 'none'}, not {wanted.to}")
            await asyncio.sleep(_LOOK_S)
        returns = wanted.primary and wanted.primary != wanted.to
        note = f"; its primary is {wanted.primary}, to which it may return by itself" if returns else ""
        return Done(
            text=f"{wanted.to} is the active slave of {wanted.bond}, was {wanted.active or 'none'}{note}"
        )

    async def recover(self, params: Params) -> None:
        """Nothing to repair: one message to the kernel does it."""

    async def _checked(self, params: Params) -> _Failover:
        if not self._host.live:
            raise Refused("this is a recorded machine")
        _, bond = typed("bond", str(params["bond"]), "bond", "link")
        mode = self._read(bond, "mode").partition(" ")[0]
        if not mode:
            raise Refused(f"there is no bond {bond}")
        if mode != _MODE:
            raise Refused(f"{bond} is in mode {mode}: only in {_MODE} there is one active slave to choose")
        danger = "the slave that it is on is not ours to choose"
        await asyncio.to_thread(off_the_control_path, self._host, self._peer, bond, danger)
        active, slaves = self._read(bond, "active_slave"), self._read(bond, "slaves").split()
        away_from = str(params.get("away_from", "")).split(",")
        if active and away_from != [""] and active not in away_from:
            raise Refused(
                f"nothing to do: the active slave of {bond} is {active}, not {' or '.join(away_from)}"
            )
        status = {one: self._host.read(f"/sys/class/net/{one}/bonding_slave/mii_status") for one in slaves}
        to = str(params.get("to", "")) or next(
            (one for one, mii in status.items() if mii == "up" and one != active), ""
        )
        if not to:
            raise Refused(f"{bond} has no other slave whose MII status is up")
        if to not in status:
            raise Refused(f"{to} is no slave of {bond} (has: {', '.join(slaves) or 'none'})")
        if status[to] != "up":
            raise Refused(f"the MII status of {to} is {status[to] or 'not known'}: it cannot carry traffic")
        return _Failover(
            bond=bond, active=active, to=to, primary=self._read(bond, "primary").partition(" ")[0]
        )

    def _read(self, bond: str, file: str) -> str:
        return self._host.read(f"/sys/class/net/{bond}/bonding/{file}")
