"""What the bonding driver says of its slaves. The agent reads /proc/net/bonding; a kept log has these lines only.

Formats: Linux, drivers/net/bonding/bond_main.c, before 5.8 (`for interface eth0`) and since (`(slave eth0)`). A log seldom
names all slaves of a bond: those that it has named are counted, and at least two.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, unsent
from agent.contract.messages import Severity, UnsentEvent

_NAME = r"[\w.@-]{1,31}"
_HEAD = re.compile(
    rf"\s*(?:bonding: )?({_NAME})(?: \(unregistering\))?: (?:\(slave ({_NAME})\): )?(.{{1,160}})", re.DOTALL
)
_LINK = re.compile(rf"link status definitely (up|down)(?: for (?:active )?interface ({_NAME}))?\b")
_ENSLAVED = re.compile(rf"[Ee]nslaving(?: ({_NAME}))? as an? \w{{1,10}} interface with an? (up|down) link")
_RELEASED = re.compile(rf"[Rr]eleasing (?:active|backup) interface(?: ({_NAME}))?|Released all slaves")
_NONE_LEFT = "now running without any active interface"
_MOST = 64  # bonds of one machine that are remembered


class BondArea:
    """bond.slaves, as the agent tells it."""

    markers: ClassVar[tuple[str, ...]] = (
        "link status definitely ",
        "nslaving ",
        "eleasing ",
        "Released all ",
        _NONE_LEFT,
    )
    kinds: ClassVar[tuple[str, ...]] = ("bond.slaves",)
    distinguishing: ClassVar[tuple[str, ...]] = ("down",)

    def __init__(self) -> None:
        # Bond → slave → whether its link is up.
        self._bonds: dict[str, dict[str, bool]] = {}

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        head = _HEAD.match(text)
        if head is None:
            return None
        bond, slave, said = head[1], head[2] or "", head[3]
        if len(self._bonds) >= _MOST:
            self._bonds.clear()
        slaves = self._bonds.setdefault(bond, {})
        if found := _ENSLAVED.match(said):
            slaves[slave or found[1] or "?"] = found[2] == "up"
            return None
        if found := _RELEASED.match(
            said
        ):  # also of a bond that is taken apart: what is no slave is no slave that is down
            if slave or found[1]:
                slaves.pop(slave or found[1], None)
            else:
                slaves.clear()
            return _told(bond, slaves, none_left=False, text=text)
        none_left = said.startswith(_NONE_LEFT)
        if none_left:
            slaves.update(dict.fromkeys(slaves, False))
        elif found := _LINK.match(said):
            slaves[slave or found[2] or "?"] = found[1] == "up"
        else:
            return None
        return _told(bond, slaves, none_left=none_left, text=text)


def _told(bond: str, slaves: dict[str, bool], *, none_left: bool, text: str) -> UnsentEvent:
    down = sorted(name for name, up in slaves.items() if not up)
    count = max(2, len(slaves))
    up = 0 if none_left else count - len(down)
    degraded = bool(down) or none_left
    severity = Severity.INFO if not degraded else Severity.WARNING if up else Severity.ERROR
    data = {"up": up, "slaves": count, "degraded": degraded}
    # An empty text would be left out.
    found = unsent("bond.slaves", component("bond", bond), severity, data, text)
    return UnsentEvent(
        kind=found.kind,
        component=found.component,
        severity=severity,
        data={**found.data, "down": ",".join(down)},
        evidence=found.evidence,
    )
