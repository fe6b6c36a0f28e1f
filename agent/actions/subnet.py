"""ib.sm_state: which subnet managers there are and whether the one that this node's ports know is the master.

By `sminfo` and `saquery` of infiniband-diags, queries only: writing a manager's state is never the remedy.
"""

import re
from pathlib import Path
from typing import ClassVar

from agent.actions import tool
from agent.actions.base import Done, Params
from agent.contract import subnet
from agent.contract.errors import Refused, TimedOut
from agent.host import Host

_MAD_MS = "300"  # of one question; the tools ask three times
_TOOL_S = 6.0
_MOST_LIDS = 8  # managers that are asked one by one
_LID = re.compile(r"^\s*(?:EndPortLid|base_lid|LID)\.*(\d+)\s*$", re.MULTILINE)


class SmState:
    """See the module's docstring. `tools`: folder of infiniband-diags; `root`: folder of the devices."""

    name: ClassVar[str] = "ib.sm_state"

    def __init__(self, host: Host, *, tools: Path, root: str = "/sys/class/infiniband") -> None:
        self._host = host
        self._tools = tools
        self._root = root

    async def plan(self, params: Params) -> list[str]:  # noqa: ARG002  it has none
        """One line for each port."""
        return [
            f"ask {name} by sminfo and saquery (queries only)" for name, *_ in ports(self._host, self._root)
        ]

    async def run(self, params: Params) -> Done:  # noqa: ARG002  it has none
        """Asks. That no manager answers is an answer, no error."""
        views: list[subnet.PortView] = []
        managers: dict[str, subnet.Manager] = {}
        for name, lid, sm_lid in ports(self._host, self._root):
            device, _, port = name.rpartition(".")
            at = ("-C", device, "-P", port, "-t", _MAD_MS)
            own = await self._sminfo(*at, "-D", "0", here=True)
            master = await self._sminfo(*at) if sm_lid else None
            views.append(
                subnet.PortView(
                    port=name, lid=lid, sm_lid=sm_lid, sm=master.state if master else subnet.NO_ANSWER
                )
            )
            others = await self._others(at) if master and master.state == subnet.MASTER else []
            for found in (master, *others):
                if found is not None:
                    managers.setdefault(found.guid, found)
            if own is not None:  # asked by its route it says LID 0
                managers[own.guid] = subnet.Manager(
                    guid=own.guid, lid=lid, priority=own.priority, state=own.state, here=True
                )
        return Done(text=subnet.SubnetView(ports=tuple(views), managers=tuple(managers.values())).text())

    async def recover(self, params: Params) -> None:
        """Nothing: it only asks."""

    async def _others(self, at: tuple[str, ...]) -> list[subnet.Manager]:
        """The managers that the master knows of, each asked itself."""
        lids = dict.fromkeys(_LID.findall(await self._tool("saquery", *at[:4], "-s")))
        answers = [await self._sminfo(*at, lid) for lid in list(lids)[:_MOST_LIDS]]
        return [answer for answer in answers if answer is not None]

    async def _sminfo(self, *argv: str, here: bool = False) -> subnet.Manager | None:
        return subnet.sminfo(await self._tool("sminfo", *argv), here=here)

    async def _tool(self, name: str, *argv: str) -> str:
        """What it printed; empty when it failed or hangs, which is how a manager that does not answer shows."""
        try:
            ran = await tool.run([str(self._tools / name), *argv], deadline_s=_TOOL_S, max_bytes=64 * 1024)
        except TimedOut:
            return ""
        return ran.out if ran.status == 0 else ""


def ports(host: Host, root: str) -> list[tuple[str, int, int]]:
    """(name, LID, LID of its manager) of the ports with a link, one for each manager; Refused without any."""
    found: dict[tuple[str, int], tuple[str, int, int]] = {}
    for device in host.listdir(root):
        for port in host.listdir(f"{root}/{device}/ports"):
            folder = f"{root}/{device}/ports/{port}"
            if host.read(f"{folder}/link_layer") == "Ethernet":
                continue
            if "LinkUp" not in host.read(f"{folder}/phys_state"):
                continue
            lid, sm_lid = (_number(host.read(f"{folder}/{name}")) for name in ("lid", "sm_lid"))
            prefix = host.read(f"{folder}/gids/0")[:19]  # two fabrics may use the same LIDs
            found.setdefault((prefix, sm_lid), (f"{device}.{port}", lid, sm_lid))
    if not found:
        raise Refused("this node has no InfiniBand port with a link")
    return list(found.values())


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0
