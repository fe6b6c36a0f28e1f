"""switch.port_bounce, switch.port_disable, switch.port_enable: the switch's end of a node's cable.

    [switches.fabric-a]
    type = "ufm"                         # UFM knows the cables and sets the ports
    ufm = "fabric-a"                     # a table of [ufm]

    [switches.ethernet]
    type = "command"                     # a tool of the site, on this host or by ssh on a management host
    nodes = "gpu*"
    command = ["/usr/bin/ssh", "mgmt", "switch-port", "{switch}", "{port}", "{do}"]   # do: disable, enable or state
    cables = "cables.yaml"               # node: {port: {switch: leaf1, port: "12"}}

A port that leads to another switch carries the jobs of many nodes: refused unless `switch_links = true`.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import ClassVar, Protocol

from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused
from brain.actions.base import Action, Done, Order

POLL_S = 0.5  # interval of reading a port that was set
PAUSE_S = 2.0  # a bounced port stays down so long that the node's end notices
_BACK_S = 30.0  # how long an interrupted bounce tries to enable the port again
_LEFT_S = 3.0  # part of the step's time that is kept for reporting its outcome


class PortState(StrEnum):
    """The state of a port, as the switch reports it."""

    UP = "up"  # it has a link
    DOWN = "down"  # it is enabled and has no link
    DISABLED = "disabled"  # someone has taken it down


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchEnd:
    """A switch's port."""

    # For messages
    switch: str
    # For messages
    port: str
    # The backend's name of it
    id: str

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}"


class Switches(Protocol):
    """One way to set switch ports. Errors as in `Action`."""

    @property
    def nodes(self) -> str:
        """Glob of the nodes whose cables it knows."""
        ...

    async def end(self, node: str, component: str) -> SwitchEnd:
        """Returns the switch port at the other end. Refused when it is unknown, or leads to another switch."""
        ...

    async def state(self, end: SwitchEnd) -> PortState:
        """Returns the state of the port now."""
        ...

    async def set(self, end: SwitchEnd, *, up: bool, why: str) -> None:
        """Requests the change; `state` shows when it has taken effect."""
        ...


class _Ports:
    """What the three actions share."""

    def __init__(self, backends: Sequence[Switches], *, poll_s: float, pause_s: float) -> None:
        self._backends = backends
        self._poll_s = poll_s
        self.pause_s = pause_s

    async def find(self, order: Order) -> tuple[Switches, SwitchEnd, PortState]:
        """Returns the backend and the port of the order, and the state of the port now."""
        if not order.node:
            raise Refused("the step names no node")
        try:
            component = components.check(str(order.params["component"]))
        except ContractError as error:
            raise Refused(str(error)) from error
        if components.type_of(component) not in ("port", "link"):
            raise Refused(f"component must be port/<device>.<port> or link/<interface>, not {component!r}")
        for backend in self._backends:
            if fnmatchcase(order.node, backend.nodes):
                end = await backend.end(order.node, component)
                return backend, end, await backend.state(end)
        raise Refused(f"no table of [switches] has the node {order.node}")

    async def until(
        self, backend: Switches, end: SwitchEnd, wanted: Callable[[PortState], bool], until_s: float
    ) -> PortState:
        """Polls until the state is as wanted, or the loop's clock is at `until_s`; returns the last state."""
        loop = asyncio.get_running_loop()
        while True:
            state = await backend.state(end)
            if wanted(state) or loop.time() >= until_s:
                return state
            await asyncio.sleep(self._poll_s)

    async def disable(self, backend: Switches, end: SwitchEnd, why: str, until_s: float) -> None:
        """Disables the port and reads it back."""
        await backend.set(end, up=False, why=why)
        state = await self.until(backend, end, lambda state: state is not PortState.UP, until_s)
        if state is PortState.UP:
            raise ActionError(f"{end} was disabled and is still up")

    async def enable(self, backend: Switches, end: SwitchEnd, why: str, until_s: float) -> PortState:
        """Enables the port and reads it back: at least enabled, and with a link if that comes up in time."""
        await backend.set(end, up=True, why=why)
        state = await self.until(backend, end, lambda state: state is PortState.UP, until_s)
        if state is PortState.DISABLED:
            raise ActionError(f"{end} was enabled and is still disabled")
        return state


class PortDisable:
    """Disables the port."""

    name: ClassVar[str] = "switch.port_disable"

    def __init__(self, ports: _Ports) -> None:
        self._ports = ports

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        _, end, state = await self._ports.find(order)
        return (
            [f"nothing: {end} is disabled"]
            if state is PortState.DISABLED
            else [f"disable {end} (now {state})"]
        )

    async def run(self, order: Order) -> Done:
        """As in Action. A disabled port is left as it is."""
        backend, end, state = await self._ports.find(order)
        if state is not PortState.DISABLED:
            await self._ports.disable(backend, end, order.why, _deadline(order))
        return Done(text=f"{end} is disabled", data=_about(end))


class PortEnable:
    """Enables the port."""

    name: ClassVar[str] = "switch.port_enable"

    def __init__(self, ports: _Ports) -> None:
        self._ports = ports

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        _, end, state = await self._ports.find(order)
        return [f"nothing: {end} is up"] if state is PortState.UP else [f"enable {end} (now {state})"]

    async def run(self, order: Order) -> Done:
        """As in Action. A link that does not come up is not its failure, but is reported."""
        backend, end, state = await self._ports.find(order)
        if state is not PortState.UP:
            state = await self._ports.enable(backend, end, order.why, _deadline(order))
        return Done(
            text=f"{end} is {'up' if state is PortState.UP else 'enabled, without a link yet'}",
            data=_about(end),
        )


class PortBounce:
    """Disables the port, enables it after a pause, and waits for its link."""

    name: ClassVar[str] = "switch.port_bounce"

    def __init__(self, ports: _Ports) -> None:
        self._ports = ports

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        _, end, state = await self._found(order)
        return [
            f"disable {end} (now {state})",
            f"wait {self._ports.pause_s:g} s",
            f"enable {end} and wait for its link",
        ]

    async def run(self, order: Order) -> Done:
        """As in Action. However it ends, the port is enabled again."""
        backend, end, _ = await self._found(order)
        loop = asyncio.get_running_loop()
        until_s = _deadline(order)
        done = False
        try:
            await self._ports.disable(backend, end, order.why, (loop.time() + until_s) / 2)
            await asyncio.sleep(self._ports.pause_s)
            order.progress(f"{end} is down; it is being enabled again")
            state = await self._ports.enable(backend, end, order.why, until_s)
            done = True
        finally:
            if not done:
                await _finish(lambda: backend.set(end, up=True, why=f"undo: {order.why}"))
        if state is not PortState.UP:
            raise ActionError(f"{end} is enabled again and has no link")
        return Done(text=f"{end} was down and has its link again", data=_about(end))

    async def _found(self, order: Order) -> tuple[Switches, SwitchEnd, PortState]:
        backend, end, state = await self._ports.find(order)
        if state is PortState.DISABLED:  # by a person, or on purpose by an earlier rung
            raise Refused(f"{end} is disabled: a bounce would enable what someone has disabled")
        return backend, end, state


def port_actions(
    backends: Sequence[Switches], *, poll_s: float = POLL_S, pause_s: float = PAUSE_S
) -> list[Action]:
    """Builds the three actions; none without a backend. `pause_s`: how long a bounced port stays down."""
    if not backends:
        return []
    ports = _Ports(backends, poll_s=poll_s, pause_s=pause_s)
    return [PortBounce(ports), PortDisable(ports), PortEnable(ports)]


def _deadline(order: Order) -> float:
    return asyncio.get_running_loop().time() + max(0.0, order.timeout_s - _LEFT_S)


def _about(end: SwitchEnd) -> Mapping[str, str]:
    return {"switch": end.switch, "switch_port": end.port}


async def _finish(work: Callable[[], Awaitable[None]]) -> None:
    """Completes the work even while the step is being cancelled; its own errors matter less than the one before."""

    async def bounded() -> None:
        with contextlib.suppress(ActionError, TimeoutError):
            async with asyncio.timeout(_BACK_S):
                await work()

    task = asyncio.ensure_future(bounded())
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
