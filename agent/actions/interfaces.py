"""What actions on network interfaces share: which interface is meant, whether it may be touched, and how it is bounced."""

import asyncio
import contextlib
import threading

from agent.actions.action_setup import Peer
from agent.actions.control_path import carriers
from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused
from agent.host import Host
from agent.shared import rtnetlink
from agent.shared.rtnetlink import Interface

_INFINIBAND = "/sys/class/infiniband"


def typed(parameter: str, component: str, *types: str) -> tuple[str, str]:
    """Type and name of a component that must be of one of `types`; Refused, with the parameter's name, when it is not."""
    try:
        kind, name = components.type_of(components.check(component)), components.name_of(component)
    except ContractError as error:
        raise Refused(str(error)) from error
    if kind not in types:
        raise Refused(f"{parameter} must be {' or '.join(f'{one}/...' for one in types)}, not {component!r}")
    return kind, name


def named(host: Host, component: str) -> str:
    """The name of `link/<interface>`; for `port/...` of an InfiniBand device the one interface that belongs to it.
    Refused when there is none.
    """
    kind, name = typed("link", component, "link", "port")
    if kind == "link":
        return name
    found = of_port(host, _INFINIBAND, name)
    if len(found) != 1:
        raise Refused(
            f"{component} has no network interface of its own (found: {', '.join(found) or 'none'})"
        )
    return found[0]


def of_port(host: Host, ib_root: str, name: str) -> list[str]:
    """Interfaces of the port `<device>.<port>`, children with a partition key included."""
    device, _, port = name.rpartition(".")
    names = host.listdir(f"{ib_root}/{device}/device/net")
    # dev_port counts from 0, InfiniBand from 1.
    dev_port = str(int(port) - 1) if port.isascii() and port.isdigit() else ""
    own = [n for n in names if host.read(f"/sys/class/net/{n}/dev_port") == dev_port]
    return own if own or len(names) != 1 else names


def known(name: str) -> Interface:
    """The interface's state; Refused when there is none, or when it is the loopback interface."""
    try:
        interface = rtnetlink.interface(name)
    except OSError as error:
        raise Refused(f"there is no interface {name}: {error.strerror}") from error
    if interface.loopback:
        raise Refused(f"{name} is the loopback interface")
    return interface


def off_the_control_path(host: Host, peer: Peer, name: str, danger: str) -> None:
    """Refused when `name` carries the connection to the broker, or when that cannot be told. Blocks (name resolution):
    run it in a thread. `danger`: what would happen otherwise, for people.
    """
    if name in carriers(host, peer()):
        raise Refused(f"{name} carries the control path: {danger}")


async def bounce(name: str, down_s: float) -> None:
    """Sets the interface down, waits, and sets it up. A cancellation cuts the pause short. However it ends, the
    interface is set up again; ActionError when that failed, OSError when it could not be set down.
    """
    stop = threading.Event()
    # One thread does all of it, so that nothing can come between.
    work = asyncio.ensure_future(asyncio.to_thread(_bounce, name, down_s, stop))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        with contextlib.suppress(OSError, ActionError):
            await asyncio.shield(work)
        raise


def _bounce(name: str, down_s: float, stop: threading.Event) -> None:
    try:
        rtnetlink.set_up(name, False)
        stop.wait(down_s)
    finally:
        try:
            rtnetlink.set_up(name, True)
        except OSError as error:
            raise ActionError(f"{name} could not be set up again: {error}") from error
