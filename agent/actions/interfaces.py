"""What actions on network interfaces share: which one is meant, whether it may be touched, and how it is bounced."""

import threading
from collections.abc import Callable

from agent.actions import rtnetlink
from agent.actions.control_path import carriers
from agent.actions.rtnetlink import Link
from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused
from agent.host import Host

Peer = Callable[[], tuple[str, int] | None]  # host and port of the broker that we are connected to
_INFINIBAND = "/sys/class/infiniband"


def typed(what: str, component: str, *types: str) -> tuple[str, str]:
    """Type and name of the parameter `what`, a component that must be of one of `types`; Refused otherwise."""
    try:
        kind, name = components.type_of(components.check(component)), components.name_of(component)
    except ContractError as error:
        raise Refused(str(error)) from error
    if kind not in types:
        raise Refused(f"{what} must be {' or '.join(f'{one}/...' for one in types)}, not {component!r}")
    return kind, name


def named(host: Host, component: str) -> str:
    """The name of `link/<interface>`; of an InfiniBand device's `port/...` the one interface that belongs to
    it. Refused when there is none.
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
    """Interfaces of the port `<device>.<port>`, children with a partition key too."""
    device, _, port = name.rpartition(".")
    names = host.listdir(f"{ib_root}/{device}/device/net")
    # dev_port counts from 0, InfiniBand from 1.
    dev_port = str(int(port) - 1) if port.isascii() and port.isdigit() else ""
    own = [n for n in names if host.read(f"/sys/class/net/{n}/dev_port") == dev_port]
    return own if own or len(names) != 1 else names


def known(name: str) -> Link:
    """How the interface is; Refused when there is none, or when it is the loopback interface."""
    try:
        link = rtnetlink.link(name)
    except OSError as error:
        raise Refused(f"there is no interface {name}: {error.strerror}") from error
    if link.loopback:
        raise Refused(f"{name} is the loopback interface")
    return link


def off_the_control_path(host: Host, peer: Peer, name: str, danger: str) -> None:
    """Refused when `name` carries the connection to the broker, or when that cannot be told. Blocks (name
    resolution): run it in a thread. `danger`: what would happen otherwise, for people.
    """
    if name in carriers(host, peer()):
        raise Refused(f"{name} carries the control path: {danger}")


def bounce(name: str, down_s: float, stop: threading.Event) -> None:
    """Down, a pause that `stop` cuts short, up: one thread does all, so that nothing can come between. However it ends,
    the interface is set up again; ActionError when that failed, OSError when it could not be set down.
    """
    try:
        rtnetlink.set_up(name, False)
        stop.wait(down_s)
    finally:
        try:
            rtnetlink.set_up(name, True)
        except OSError as error:
            raise ActionError(f"{name} could not be set up again: {error}") from error
