"""What drivers of Ethernet cards say of their ports' links. The agent hears rtnetlink; a kept log has these lines only.

Formats: Linux, drivers/net/ethernet: mellanox/mlx5/core/en_main.c, mellanox/mlx4/en_netdev.c, intel (e1000, e1000e, igb, ixgbe,
i40e, ice), broadcom (bnx2, bnx2x, bnxt, tg3), chelsio, cisco/enic, qlogic/qede, aquantia, and drivers/net/phy/phy.c; as
netdev_info, dev_info and, of old drivers, printk write them. A driver may say at once, when it finds a card, that a port
has no link: it has no cable. Such a line is no fact.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, unsent
from agent.contract.messages import Severity, UnsentEvent

_NAME = r"[\w.@-]{1,31}"
# On PCI, on a platform's own bus, virtual, or a part of a card.
_DEVICE = (
    r"(?:[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]|[0-9a-f]{4,16}\.\w{1,20}|[A-Z0-9]{4,12}:[0-9]{2}"
    r"|[0-9]{1,2}-[0-9a-f]{4}|virtio[0-9]{1,3})"
)
_HEAD = rf"\s*(?P<device>(?:(?!pcie)[\w-]{{1,40}} {_DEVICE}|(?:mlx5_core )?mlx5_core\.sf\.[0-9]{{1,5}}))"
_LINK = re.compile(
    rf"(?:{_HEAD}(?:: (?P<dev>{_NAME})(?=:| NIC)| (?P<netdev>{_NAME}):)"
    rf"|\s*(?:mlx4_en|e1000e?|igb|bnx2x?|tg3): (?P<alone>{_NAME})|\s*\[qede_\w{{1,40}}:[0-9]{{1,6}}\((?P<qede>{_NAME})\)\]):? ?"
    rf"(?:[a-z0-9_-]{{2,20}}: (?:{_NAME} (?=NIC))?)?(?:NIC )?(?:Copper |SerDes )?"
    r"(?:[Ll]ink (?:is )?(?P<state>up|down|Up|Down|UP|DOWN)\b|link change old [0-9]{1,7} new (?P<speed>[0-9]{1,7})\b)"
)
_RENAMED = re.compile(rf"{_HEAD} (?P<new>{_NAME}): renamed from (?P<old>{_NAME})")
_MOST = 256  # ports of one machine that are remembered


class EthernetArea:
    """link.state, as the agent tells it."""

    markers: ClassVar[tuple[str, ...]] = (
        *("ink up", "ink down", "ink is ", "ink Up", "ink Down", "ink UP", "ink DOWN"),
        *("link change old ", "renamed from "),
    )
    kinds: ClassVar[tuple[str, ...]] = ("link.state",)
    distinguishing: ClassVar[tuple[str, ...]] = ("up",)

    def __init__(self) -> None:
        # (device, name) of ports that the log has shown to be found or to have a link → whether they have had one since.
        self._linked: dict[tuple[str, str], bool] = {}

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _RENAMED.match(text):
            linked = self._linked.pop((match["device"], match["old"]), False)
            self._remember(match["device"], match["new"], linked=linked)
            return None
        match = _LINK.match(text)
        if match is None:
            return None
        name = match["dev"] or match["netdev"] or match["alone"] or match["qede"]
        up = match["state"].lower() == "up" if match["state"] else match["speed"] != "0"
        if up:
            self._remember(match["device"] or "", name, linked=True)
        elif not self._linked.get((match["device"] or "", name), True):
            return None
        state = {"up": up, "admin_up": True, "carrier": up, "operstate": "up" if up else "down"}
        return unsent(
            "link.state", component("link", name), Severity.INFO if up else Severity.WARNING, state, text
        )

    def _remember(self, device: str, name: str, *, linked: bool) -> None:
        if len(self._linked) >= _MOST:
            self._linked.clear()
        self._linked[device, name] = linked
