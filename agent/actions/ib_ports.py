"""InfiniBand ports of this node, from sysfs."""

from agent.contract.errors import Refused
from agent.host import Host


def fabric_ports(host: Host, root: str) -> list[tuple[str, int, int]]:
    """(name, LID, LID of its subnet manager) of the ports with a link, one port per subnet manager; Refused without any.
    `root`: folder of the InfiniBand devices.
    """
    found: dict[tuple[str, int], tuple[str, int, int]] = {}
    for device in host.listdir(root):
        for port in host.listdir(f"{root}/{device}/ports"):
            folder = f"{root}/{device}/ports/{port}"
            if host.read(f"{folder}/link_layer") == "Ethernet":
                continue
            if "LinkUp" not in host.read(f"{folder}/phys_state"):
                continue
            lid, sm_lid = (number(host.read(f"{folder}/{name}")) for name in ("lid", "sm_lid"))
            prefix = host.read(f"{folder}/gids/0")[:19]  # two fabrics may use the same LIDs
            found.setdefault((prefix, sm_lid), (f"{device}.{port}", lid, sm_lid))
    if not found:
        raise Refused("this node has no InfiniBand port with a link")
    return list(found.values())


def number(text: str) -> int:
    """A number as sysfs writes it, decimal or hexadecimal; 0 when it is none."""
    try:
        return int(text, 0)
    except ValueError:
        return 0
