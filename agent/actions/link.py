"""link.bounce: takes a network interface down and up again; never the one that carries the control path."""

import asyncio
import contextlib
import errno
import fcntl
import socket
import struct
import threading
from collections.abc import Callable
from typing import ClassVar

from agent.actions import rtnetlink
from agent.actions.base import Done, Params, number
from agent.actions.control_path import carriers
from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused
from agent.host import Host

MAX_DOWN_S = 10.0
CARRIER_S = 10.0  # an InfiniBand or 400 Gbit/s link needs several seconds to train
_LOOK_S = 0.05
_UP, _RUNNING, _LOOPBACK = 0x1, 0x40, 0x8
_SIOCGIFFLAGS = 0x8913
_NAME_BYTES = 15


class LinkBounce:
    """See the module's docstring. `peer`: host and port of the broker that we are connected to."""

    name: ClassVar[str] = "link.bounce"

    def __init__(
        self, host: Host, peer: Callable[[], tuple[str, int] | None], *, carrier_s: float = CARRIER_S
    ) -> None:
        self._host = host
        self._peer = peer
        self._carrier_s = carrier_s

    async def plan(self, params: Params) -> list[str]:
        """Down, pause, up, wait for the carrier."""
        name, down_s = await self._checked(params)
        state = "up" if _flags(name) & _RUNNING else "without carrier" if _flags(name) & _UP else "set down"
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
        work = asyncio.ensure_future(asyncio.to_thread(_bounce, name, down_s, stop))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            with contextlib.suppress(OSError, ActionError):
                await asyncio.shield(work)
            raise
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        while not _flags(name) & _RUNNING:
            if loop.time() - started_s > self._carrier_s:
                raise ActionError(f"{name} is set up again but has no carrier after {self._carrier_s:g} s")
            await asyncio.sleep(_LOOK_S)
        return Done(text=f"{name} was down for {down_s:g} s and has its carrier again")

    async def recover(self, params: Params) -> None:
        """The agent died while the interface may have been down: sets it up."""
        with contextlib.suppress(Refused):
            name = self._interface(str(params["link"]))
            await asyncio.to_thread(rtnetlink.set_up, name, True)

    async def _checked(self, params: Params) -> tuple[str, float]:
        down_s = number(params, "down_s", 0.5, 0.0, MAX_DOWN_S)
        if not self._host.live:
            raise Refused("this is a recorded machine")
        name = self._interface(str(params["link"]))
        try:
            if _flags(name) & _LOOPBACK:
                raise Refused(f"{name} is the loopback interface")
        except OSError as error:
            raise Refused(f"there is no interface {name}: {error.strerror}") from error
        if name in await asyncio.to_thread(carriers, self._host, self._peer()):
            raise Refused(f"{name} carries the control path: down, it could not be told to come up again")
        return name, down_s

    def _interface(self, component: str) -> str:
        """The interface's name; of an InfiniBand device's port the one interface that belongs to it."""
        try:
            kind, name = components.type_of(components.check(component)), components.name_of(component)
        except ContractError as error:
            raise Refused(str(error)) from error
        if kind == "link":
            return name
        if kind != "port":
            raise Refused(f"link must be link/<interface> or port/<device>.<port>, not {component!r}")
        device, _, port = name.rpartition(".")
        names = self._host.listdir(f"/sys/class/infiniband/{device}/device/net")
        # dev_port counts from 0, InfiniBand from 1.
        dev_port = str(int(port) - 1) if port.isascii() and port.isdigit() else ""
        own = [n for n in names if self._host.read(f"/sys/class/net/{n}/dev_port") == dev_port]
        found = own if own or len(names) != 1 else names
        if len(found) != 1:
            raise Refused(
                f"{component} has no network interface of its own (found: {', '.join(found) or 'none'})"
            )
        return found[0]


def _bounce(name: str, down_s: float, stop: threading.Event) -> None:
    try:
        rtnetlink.set_up(name, False)
        stop.wait(down_s)
    finally:
        try:
            rtnetlink.set_up(name, True)
        except OSError as error:
            raise ActionError(f"{name} could not be set up again: {error}") from error


def _flags(name: str) -> int:
    """Flags of the interface; OSError when there is none. An ioctl, since sysfs may be another
    namespace's.
    """
    if len(name.encode()) > _NAME_BYTES:
        raise OSError(errno.ENODEV, "name too long")  # cut short it could be another interface's
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        request = struct.pack("16sH14x", name.encode(), 0)
        return int(struct.unpack("16sH14x", fcntl.ioctl(sock, _SIOCGIFFLAGS, request))[1])
