"""What drivers of Ethernet cards say of their ports' links. The agent hears rtnetlink; a kept log has these lines only.

Formats: Linux, drivers/net/ethernet: mellanox/mlx5/core/en_main.c, mellanox/mlx4/en_netdev.c, intel (e1000e, igb, ixgbe, i40e,
ice), broadcom (bnxt, tg3), chelsio, and drivers/net/phy/phy.c. A driver may say at once, when it finds a card, that
a port has no link: it has no cable. Such a line is no fact.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, unsent
from agent.contract.messages import Severity, UnsentEvent

_NAME = r"[\w.@-]{1,31}"
_LINK = re.compile(
    rf"\s*(?:[\w-]{{1,40}} [0-9a-fA-F]{{4}}:[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}\.[0-7] ({_NAME}): (?:[\w-]{{1,20}}: {_NAME} )?"
    rf"|(?:mlx4_en|e1000e|igb): ({_NAME}):? )(?:NIC )?[Ll]ink (?:is )?(up|down|Up|Down)\b"
)
_FOUND = re.compile(
    rf"\s*[\w-]{{1,40}} [0-9a-fA-F]{{4}}:[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}\.[0-7] ({_NAME}): renamed from "
)
_MOST = 256  # ports of one machine that are remembered


class EthernetArea:
    """link.state, as the agent tells it."""

    markers: ClassVar[tuple[str, ...]] = (
        "ink up",
        "ink down",
        "ink is ",
        "ink Up",
        "ink Down",
        "renamed from ",
    )
    kinds: ClassVar[tuple[str, ...]] = ("link.state",)
    distinguishing: ClassVar[tuple[str, ...]] = ("up",)

    def __init__(self) -> None:
        # Ports that the log has shown to be found, and without a link since.
        self._found: set[str] = set()

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _FOUND.match(text):
            if len(self._found) >= _MOST:
                self._found.clear()
            self._found.add(match[1])
            return None
        match = _LINK.match(text)
        if match is None:
            return None
        name, up = match[1] or match[2], match[3].lower() == "up"
        if up:
            self._found.discard(name)
        elif name in self._found:
            return None
        state = {"up": up, "admin_up": True, "carrier": up, "operstate": "up" if up else "down"}
        return unsent(
            "link.state", component("link", name), Severity.INFO if up else Severity.WARNING, state, text
        )
