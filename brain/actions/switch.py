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

LOOK_S = 0.5  # between looks at a port that was set
PAUSE_S = 2.0  # a bounced port stays down so long: the node's end must notice
_BACK_S = 30.0  # how long an interrupted bounce tries to set the port up again
_LEFT_S = 3.0  # of the step's time, kept for saying how it ended


class State(StrEnum):
    """What a switch says of a port."""

    UP = "up"  # it has a link
    DOWN = "down"  # it may have one and has none
    DISABLED = "disabled"  # somebody took it down


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchEnd:
    """A switch's port."""

    switch: str  # for people
    port: str  # for people
    id: str  # how the backend calls it

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}"


class Switches(Protocol):
    """One way to set switch ports. Errors as in `Action`."""

    @property
    def nodes(self) -> str:
        """Glob of the nodes whose cables it knows."""
        ...

    async def end(self, node: str, component: str) -> SwitchEnd:
        """The switch port at the other end. Refused when it is not known, or leads to another switch."""
        ...

    async def state(self, end: SwitchEnd) -> State:
        """What the port is now."""
        ...

    async def set(self, end: SwitchEnd, *, up: bool, why: str) -> None:
        """Asks for it; `state` tells when it is so."""
        ...


class _Ports:
    """What the three actions share."""

    def __init__(self, backends: Sequence[Switches], *, look_s: float, pause_s: float) -> None:
        self._backends = backends
        self._look_s = look_s
        self.pause_s = pause_s

    async def find(self, order: Order) -> tuple[Switches, SwitchEnd, State]:
        """The port that the order means, and what it is now."""
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
        self, backend: Switches, end: SwitchEnd, wanted: Callable[[State], bool], until_s: float
    ) -> State:
        """Looks until the state is as wanted, or the loop's clock is at `until_s`; the last state."""
        loop = asyncio.get_running_loop()
        while True:
            state = await backend.state(end)
            if wanted(state) or loop.time() >= until_s:
                return state
            await asyncio.sleep(self._look_s)

    async def disable(self, backend: Switches, end: SwitchEnd, why: str, until_s: float) -> None:
        """Takes it down and reads it back."""
        await backend.set(end, up=False, why=why)
        state = await self.until(backend, end, lambda state: state is not State.UP, until_s)
        if state is State.UP:
            raise ActionError(f"{end} was told to go down and is still up")

    async def enable(self, backend: Switches, end: SwitchEnd, why: str, until_s: float) -> State:
        """Takes it up and reads it back: enabled at least, with its link when that comes in time."""
        await backend.set(end, up=True, why=why)
        state = await self.until(backend, end, lambda state: state is State.UP, until_s)
        if state is State.DISABLED:
            raise ActionError(f"{end} was told to go up and is still disabled")
        return state


class PortDisable:
    """Takes the port down."""

    name: ClassVar[str] = "switch.port_disable"

    def __init__(self, ports: _Ports) -> None:
        self._ports = ports

    async def plan(self, order: Order) -> list[str]:
        """One line."""
        _, end, state = await self._ports.find(order)
        return (
            [f"nothing: {end} is disabled"] if state is State.DISABLED else [f"disable {end} (now {state})"]
        )

    async def run(self, order: Order) -> Done:
        """Does it; a port that is disabled stays so."""
        backend, end, state = await self._ports.find(order)
        if state is not State.DISABLED:
            await self._ports.disable(backend, end, order.why, _deadline(order))
        return Done(text=f"{end} is disabled", data=_about(end))


class PortEnable:
    """Takes the port up."""

    name: ClassVar[str] = "switch.port_enable"

    def __init__(self, ports: _Ports) -> None:
        self._ports = ports

    async def plan(self, order: Order) -> list[str]:
        """One line."""
        _, end, state = await self._ports.find(order)
        return [f"nothing: {end} is up"] if state is State.UP else [f"enable {end} (now {state})"]

    async def run(self, order: Order) -> Done:
        """Does it. A link that does not come is the other end's business, and said."""
        backend, end, state = await self._ports.find(order)
        if state is not State.UP:
            state = await self._ports.enable(backend, end, order.why, _deadline(order))
        return Done(
            text=f"{end} is {'up' if state is State.UP else 'enabled, without a link yet'}", data=_about(end)
        )


class PortBounce:
    """Down, a pause, up, and its link again."""

    name: ClassVar[str] = "switch.port_bounce"

    def __init__(self, ports: _Ports) -> None:
        self._ports = ports

    async def plan(self, order: Order) -> list[str]:
        """Down, pause, up."""
        _, end, state = await self._found(order)
        return [
            f"disable {end} (now {state})",
            f"wait {self._ports.pause_s:g} s",
            f"enable {end} and wait for its link",
        ]

    async def run(self, order: Order) -> Done:
        """Does it. However it ends, the port is told to go up again."""
        backend, end, _ = await self._found(order)
        loop = asyncio.get_running_loop()
        until_s = _deadline(order)
        done = False
        try:
            await self._ports.disable(backend, end, order.why, (loop.time() + until_s) / 2)
            await asyncio.sleep(self._ports.pause_s)
            order.say(f"{end} is down; it is set up again")
            state = await self._ports.enable(backend, end, order.why, until_s)
            done = True
        finally:
            if not done:
                await _whatever_happens(lambda: backend.set(end, up=True, why=f"undo: {order.why}"))
        if state is not State.UP:
            raise ActionError(f"{end} is enabled again and has no link")
        return Done(text=f"{end} was down and has its link again", data=_about(end))

    async def _found(self, order: Order) -> tuple[Switches, SwitchEnd, State]:
        backend, end, state = await self._ports.find(order)
        if state is State.DISABLED:  # by a person, or by an earlier rung that meant it
            raise Refused(f"{end} is disabled: a bounce would enable what somebody took down")
        return backend, end, state


def port_actions(
    backends: Sequence[Switches], *, look_s: float = LOOK_S, pause_s: float = PAUSE_S
) -> list[Action]:
    """The three actions; none without a backend. `pause_s`: how long a bounced port stays down."""
    if not backends:
        return []
    ports = _Ports(backends, look_s=look_s, pause_s=pause_s)
    return [PortBounce(ports), PortDisable(ports), PortEnable(ports)]


def _deadline(order: Order) -> float:
    return asyncio.get_running_loop().time() + max(0.0, order.timeout_s - _LEFT_S)


def _about(end: SwitchEnd) -> Mapping[str, str]:
    return {"switch": end.switch, "switch_port": end.port}


async def _whatever_happens(work: Callable[[], Awaitable[None]]) -> None:
    """Finishes it even when the step is being cancelled; the error that led here counts more than its own."""

    async def bounded() -> None:
        with contextlib.suppress(ActionError, TimeoutError):
            async with asyncio.timeout(_BACK_S):
                await work()

    task = asyncio.ensure_future(bounded())
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
