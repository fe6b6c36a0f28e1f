"""node.reboot: an orderly reboot by systemd; done when the node is back with another boot id.

The agent does not live to see the end: it is stopped during the shutdown, its journal keeps the command open, and after
the boot `resume` reports that the node is back.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Self

from agent import dbus
from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, StillRunning, report_progress
from agent.actions.units import systemd
from agent.contract.errors import ActionError, Refused, TimedOut

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

_LOGIND, _LOGIND_PATH = "org.freedesktop.login1", "/org/freedesktop/login1"
_LOGIND_MANAGER = "org.freedesktop.login1.Manager"
_ABSENT = ("ServiceUnknown", "NameHasNoOwner", "UnitMasked", "NoSuchUnit", "LoadFailed")  # no logind here
# Inhibitors may delay by seconds; an orderly stop of other units comes after that of the agent.
GO_DOWN_S = 180.0
_ANSWER_S = 25.0  # logind may have to be started first


class NodeReboot(NodeAction):
    """See the module's docstring.

    Refused while a program holds an inhibitor lock of mode `block` on shutdowns (`systemd-inhibit --what=shutdown`), and
    while the node goes down already.
    """

    name: ClassVar[str] = "node.reboot"

    def __init__(self, bus_address: str, *, go_down_s: float = GO_DOWN_S) -> None:
        """`go_down_s`: an agent that still runs so long after systemd agreed reports a failure."""
        self._address = bus_address
        self._go_down_s = go_down_s

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.config.dbus_address)

    async def plan(self, params: Params) -> list[str]:  # noqa: ARG002 - it has none
        """Two lines."""
        async with systemd(self._address) as bus:
            logind = await _check(bus)
        how = "systemd-logind: Reboot" if logind else "systemd: start reboot.target"
        return [f"reboot the node ({how})", "wait until it is back with another boot id"]

    async def run(self, params: Params) -> Done:  # noqa: ARG002 - it has none
        """Requests the reboot. Does not return when that works: the agent is stopped, and StillRunning is raised."""
        async with systemd(self._address) as bus:
            logind = await _check(bus)
            with _outlived():
                agreed = await _request(bus, logind)
                report_progress("systemd was asked to reboot: waiting until the node goes down")
                await asyncio.sleep(self._go_down_s)
        if not agreed:
            raise TimedOut(f"systemd did not answer, and the node still runs after {self._go_down_s:g} s")
        raise ActionError(
            f"systemd agreed to reboot {self._go_down_s:g} s ago, and the node still runs: something holds it up"
        )

    async def recover(self, params: Params) -> None:
        """Nothing to repair: see `resume`."""

    async def resume(self, params: Params, *, rebooted: bool) -> Done:  # noqa: ARG002 - it has none
        """With another boot id the node is back. With the same one it is still going down, or was never asked to."""
        if rebooted:
            return Done(text="the node is back with another boot id")
        async with systemd(self._address) as bus:
            if await _goes_down(bus):
                raise StillRunning("the node is going down")
        raise ActionError("the node was not rebooted (same boot id), and it is not going down")


async def _check(bus: "MessageBus") -> bool:
    """Is there a logind to ask? Refused when the node must not be rebooted now."""
    if await _goes_down(bus):
        raise Refused("the node is going down already: somebody else asked for it")
    try:
        (locks,) = await dbus.call(
            bus, _LOGIND_PATH, _LOGIND_MANAGER, "ListInhibitors", destination=_LOGIND, timeout_s=_ANSWER_S
        )
    except dbus.ErrorReply as error:
        if error.short_name in _ABSENT:
            return False
        raise
    for what, who, why, mode, uid, pid in locks:
        if "shutdown" in str(what).split(":") and str(mode).startswith("block"):
            raise Refused(f"{who} (uid {uid}, pid {pid}) inhibits the shutdown of the node: {why}")
    return True


async def _request(bus: "MessageBus", logind: bool) -> bool:
    """Did systemd agree? False: the connection broke before its answer, perhaps because the node goes down."""
    try:
        if logind:
            await dbus.call(
                bus,
                _LOGIND_PATH,
                _LOGIND_MANAGER,
                "Reboot",
                "b",
                [False],  # not interactive: there is nobody to type a password
                destination=_LOGIND,
                timeout_s=_ANSWER_S,
            )
        else:
            # Not Manager.Reboot, which stops no service and unmounts no file system.
            body = ["reboot.target", "replace-irreversibly"]
            await dbus.call(bus, dbus.MANAGER_PATH, dbus.MANAGER, "StartUnit", "ss", body)
    except dbus.NoAnswer:
        return False
    return True


async def _goes_down(bus: "MessageBus") -> bool:
    state = await dbus.properties(bus, dbus.MANAGER_PATH, interface=dbus.MANAGER)
    if state.get("SystemState") == "stopping":
        return True
    if not await dbus.has_owner(bus, _LOGIND):
        return False
    logind = await dbus.properties(bus, _LOGIND_PATH, interface=_LOGIND_MANAGER, destination=_LOGIND)
    return bool(logind.get("PreparingForShutdown"))  # locks of mode `delay` hold it up for a moment


@contextlib.contextmanager
def _outlived() -> Iterator[None]:
    """As soon as systemd may have received the request, stopping the agent does not end the command."""
    try:
        yield
    except asyncio.CancelledError:
        raise StillRunning("the node was asked to reboot") from None
