"""Names of the parts of a node, one spelling for each.

A component is `<type>/<name>`: `gpu/0000:3b:00` (PCI address without the function; MIG instances add `/gi5/ci0`),
`nvswitch/0000:c1:00`, `nic/mlx5_0` (an InfiniBand or RoCE device; `nic/0000:5e:00.0` where only its address is known),
`port/mlx5_0.1` (its port), `link/eth0` (a network interface), `bond/bond0`, `service/nvidia-persistenced.service`,
`job/<id>`, `disk/nvme0n1`, `mount//data` (a file system by its path), `pcie/0000:17:00` (an address whose device type
is not known), or only `node` (the whole machine).
"""

import re
from functools import lru_cache

from agent.contract.errors import ContractError

TYPES = ("gpu", "nvswitch", "nic", "port", "link", "bond", "service", "job", "disk", "mount", "pcie", "node")
NODE = "node"

_BDF = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-7])?")
# A partition, a namespace or a path of a disk, in the kernel's names (Linux, block/partitions/core.c, disk_name: a `p` after a
# digit; drivers/nvme/host/multipath.c: `nvme0c1n1`), and a device at its ATA port.
_OF_DISK = re.compile(
    r"(nvme[0-9]+)(?:c[0-9]+)?(?:n[0-9]+)?(?:p[0-9]+)?|((?:s|v|xv|h)d[a-z]+)[0-9]+|((?:mmcblk|md_d|md|nbd|pmem|loop)[0-9]+)p[0-9]+"
    r"|(ata[0-9]+)\.[0-9]+"
)
_NAME = re.compile(r"[A-Za-z0-9_.:@/\\+-]{1,200}")


def bdf(text: str) -> str:
    """The PCI address `dddd:bb:dd` (lower case, no function) for any common spelling; ContractError if it is none.

    >>> bdf("00000000:3B:00.0")
    '0000:3b:00'
    """
    match = _BDF.fullmatch(text.strip())
    if match is None:
        raise ContractError(f"not a PCI address: {text[:40]!r}")
    domain = int(match[1], 16) if match[1] else 0
    return f"{domain:04x}:{match[2].lower()}:{match[3].lower()}"


def gpu(address: str) -> str:
    """Component of a GPU from any spelling of its PCI address."""
    return f"gpu/{bdf(address)}"


def whole_disk(name: str) -> str:
    """The disk that a partition, a namespace or a path belongs to, by the kernel's names; any other name as it is.

    >>> [whole_disk(name) for name in ("nvme0n1p2", "nvme0", "sda1", "md0p1", "dm-3")]
    ['nvme0', 'nvme0', 'sda', 'md0', 'dm-3']
    """
    part = _OF_DISK.fullmatch(name)
    return next(filter(None, part.groups())) if part else name


def type_of(component: str) -> str:
    """`gpu` of `gpu/0000:3b:00`; `node` of `node`."""
    return component.partition("/")[0]


def name_of(component: str) -> str:
    """`eth0` of `link/eth0`; the empty string of `node`."""
    return component.partition("/")[2]


@lru_cache(4096)
def check(component: str) -> str:
    """The component itself if it is one, else ContractError."""
    kind, _, name = component.partition("/")
    if component == NODE or (kind in TYPES and kind != NODE and _NAME.fullmatch(name)):
        return component
    raise ContractError(
        f"not a component: {component[:80]!r} (want <type>/<name>, type one of {', '.join(TYPES)})"
    )
