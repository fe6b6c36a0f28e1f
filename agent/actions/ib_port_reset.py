"""ib.port_reset: resets an InfiniBand port of this node, so that its link trains again; never one that carries the
control path.

`ibportstate` of infiniband-diags asks the port's own firmware, by the directed route that ends where it begins: it needs
neither a subnet manager nor a LID. It disables the port and enables it again; a port that is found disabled afterwards
was left half-way and is enabled. One that is disabled before is left so.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup, Peer
from agent.actions.base import Done, NodeAction, Params
from agent.actions.control_path import carriers
from agent.actions.ib_ports import number
from agent.actions.interfaces import of_port, typed
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.shared import tool

ACTIVE_S = 35.0  # training takes seconds, and the subnet manager may sweep only every 10 s
_TOOL_S = 10.0
_STAY_S = 1.0  # a link over a bad cable trains and falls again at once
_LOOK_S = 0.02  # training takes at least some 100 ms
_IS_SM = 0x2  # of cap_mask: PortInfo:CapabilityMask.IsSM (InfiniBand Architecture Specification, 14.2.5.6)
_UP, _DISABLED = "LinkUp", "Disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Port:
    device: str
    number: str
    folder: str

    @property
    def text(self) -> str:
        return f"{self.device} port {self.number}"


class IbPortReset(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "ib.port_reset"

    def __init__(
        self, host: Host, peer: Peer, *, ibportstate: str, ib_root: str, active_s: float = ACTIVE_S
    ) -> None:
        """`ibportstate`: its absolute path; `ib_root`: folder of the InfiniBand devices; `active_s`: how long the port may
        take to be ACTIVE again.
        """
        self._host = host
        self._peer = peer
        self._ibportstate = ibportstate
        self._ib_root = ib_root
        self._active_s = active_s

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        config = setup.config
        return cls(setup.host, setup.peer, ibportstate=config.ibportstate, ib_root=config.ib_root)

    async def plan(self, params: Params) -> list[str]:
        """The command and the wait."""
        port = await self._checked(params)
        state, physical = self._state(port)
        return [
            f"{' '.join(self._argv(port, 'reset'))} (now {state}, {physical})",
            f"wait up to {self._active_s:g} s until it is ACTIVE again",
        ]

    async def run(self, params: Params) -> Done:
        """Resets it and waits. However it ends, the port is not left disabled."""
        port = await self._checked(params)
        try:
            ran = await tool.run(self._argv(port, "reset"), deadline_s=_TOOL_S)
            if ran.status != 0:
                raise ActionError(f"ibportstate could not reset {port.text}: {ran.last_line}")
            took_s = await self._trained(port, fell=_fell(ran.out))
        finally:
            await asyncio.shield(asyncio.ensure_future(self._enable(port)))
        return Done(text=f"{port.text} was reset and is ACTIVE again after {took_s:.1f} s")

    async def recover(self, params: Params) -> None:
        """The port may have been left disabled: enables it."""
        await self._enable(self._port(params))

    async def _trained(self, port: _Port, *, fell: bool) -> float:
        """Waits until the port has been down and is ACTIVE to stay, and returns the seconds that it took; ActionError when
        it is not in time. `fell`: it has been seen down already.
        """
        loop = asyncio.get_running_loop()
        started_s = up_s = loop.time()
        while True:
            now_s = loop.time()
            state, physical = self._state(port)
            if (state, physical) != ("ACTIVE", _UP):
                fell, up_s = True, now_s + _LOOK_S
            elif fell and now_s - up_s >= _STAY_S:
                return up_s - started_s
            if now_s - started_s > self._active_s:
                break
            await asyncio.sleep(_LOOK_S)
        if not fell:
            raise ActionError(f"{port.text} did not go down: its firmware ignored the request")
        if physical == _UP and state != "ACTIVE":
            raise ActionError(
                f"{port.text} has trained but is {state} after {self._active_s:g} s: "
                "no subnet manager makes it active"
            )
        raise ActionError(
            f"{port.text} has not come up to stay after {self._active_s:g} s: {state}, {physical}"
        )

    async def _enable(self, port: _Port) -> None:
        """Enables the port if it is disabled."""
        if self._state(port)[1] == _DISABLED:
            ran = await tool.run(self._argv(port, "enable"), deadline_s=_TOOL_S)
            if ran.status != 0:
                raise ActionError(f"{port.text} is disabled and could not be enabled: {ran.last_line}")

    async def _checked(self, params: Params) -> _Port:
        if not self._host.live:
            raise Refused("this is a recorded machine")
        port = self._port(params)
        layer = self._host.read(f"{port.folder}/link_layer")
        if layer not in ("InfiniBand", "IB"):
            raise Refused(
                f"{port.text} is an {layer or 'unknown'} port: only InfiniBand ports train this way"
            )
        if self._state(port)[1] == _DISABLED:
            raise Refused(f"{port.text} is disabled: whoever did that enables it again")
        lid, sm_lid = (number(self._host.read(f"{port.folder}/{name}")) for name in ("lid", "sm_lid"))
        if number(self._host.read(f"{port.folder}/cap_mask")) & _IS_SM or (lid and lid == sm_lid):
            raise Refused(f"a subnet manager of the fabric runs on {port.text}")
        own = of_port(self._host, self._ib_root, f"{port.device}.{port.number}")
        carrying = await asyncio.to_thread(carriers, self._host, self._peer())
        if cut := sorted(carrying.intersection(own)):
            raise Refused(f"{port.text} carries the control path ({', '.join(cut)})")
        return port

    def _port(self, params: Params) -> _Port:
        component = str(params["port"])
        _, name = typed("port", component, "port")
        device, _, port_number = name.rpartition(".")
        folder = f"{self._ib_root}/{device}/ports/{port_number}"
        # A device's name becomes part of a path and of an argument list.
        if not re.fullmatch(r"[A-Za-z0-9_]+\.[0-9]+", name) or not self._host.read(f"{folder}/state"):
            raise Refused(f"this node has no {component}")
        return _Port(device=device, number=port_number, folder=folder)

    def _state(self, port: _Port) -> tuple[str, str]:
        """Logical and physical state, e.g. ACTIVE and LinkUp; sysfs writes `4: ACTIVE`."""
        state, physical = (
            self._host.read(f"{port.folder}/{name}", "?").rpartition(": ")[2]
            for name in ("state", "phys_state")
        )
        return state, physical

    def _argv(self, port: _Port, what: str) -> list[str]:
        return [self._ibportstate, "-C", port.device, "-P", port.number, "-D", "0", port.number, what]


def _fell(output: str) -> bool:
    """Does ibportstate show the port down after it was set?"""
    after = output.partition("After PortInfo set:")[2]
    state = re.search(r"^PhysLinkState:\.*(\S+)", after, re.MULTILINE)
    return state is not None and state[1] != _UP
