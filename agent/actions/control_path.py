"""Which network interfaces carry the connection to the broker: no action may cut them."""

import socket

from agent.contract.errors import Refused
from agent.host import Host
from agent.shared import rtnetlink

LOOPBACK = "lo"


def carriers(host: Host, peer: tuple[str, int] | None) -> frozenset[str]:
    """The interfaces on the way to `peer` (host name or IP address, port), with all that they are built on: the slaves of
    a bond, the parent of a VLAN, the ports of a bridge. Empty when the peer is reached over loopback. Refused when it
    cannot be determined: then nothing may be cut. Blocks (name resolution); run it in a thread.
    """
    if peer is None:
        raise Refused(
            "there was no connection to the broker yet: cannot tell which interface carries the control path"
        )
    try:
        addresses = {
            str(info[4][0]).partition("%")[0] for info in socket.getaddrinfo(*peer, type=socket.SOCK_STREAM)
        }
        found = {rtnetlink.interface_to(address) for address in addresses}
    except (OSError, ValueError) as error:
        raise Refused(
            f"cannot tell which interface carries the control path to {peer[0]}: {error}"
        ) from error
    found.discard(LOOPBACK)
    unvisited = list(found)
    while unvisited:
        name = unvisited.pop()
        entries = host.listdir(f"/sys/class/net/{name}")
        if not entries:
            raise Refused(
                f"/sys/class/net/{name} cannot be read: cannot tell what the control path is built on"
            )
        below = {entry.removeprefix("lower_") for entry in entries if entry.startswith("lower_")} - found
        found |= below
        unvisited += below
    return frozenset(found)
