"""ib.sm_state: which subnet managers there are, and whether the one that this node's ports know is the master.

By `sminfo` and `saquery` of infiniband-diags, queries only: setting a manager's state is never the remedy.
"""

import re
from pathlib import Path
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.ib_ports import fabric_ports
from agent.contract import subnet
from agent.contract.errors import TimedOut
from agent.host import Host
from agent.shared import tool

_MAD_MS = "300"  # for the answer to one query; the tools send it three times
_TOOL_S = 6.0
_MOST_LIDS = 8  # managers that are queried one by one
_LID = re.compile(r"^\s*(?:EndPortLid|base_lid|LID)\.*(\d+)\s*$", re.MULTILINE)


class IbSmState(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "ib.sm_state"

    def __init__(self, host: Host, *, tools: Path, root: str = "/sys/class/infiniband") -> None:
        """`tools`: folder of infiniband-diags; `root`: folder of the devices."""
        self._host = host
        self._tools = tools
        self._root = root

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host, tools=setup.config.ib_tools, root=setup.config.ib_root)

    async def plan(self, params: Params) -> list[str]:  # noqa: ARG002  it has none
        """One line for each port."""
        return [
            f"ask {name} by sminfo and saquery (queries only)"
            for name, *_ in fabric_ports(self._host, self._root)
        ]

    async def run(self, params: Params) -> Done:  # noqa: ARG002  it has none
        """Queries. That no manager answers is an answer, not an error."""
        views: list[subnet.PortView] = []
        managers: dict[str, subnet.Manager] = {}
        for name, lid, sm_lid in fabric_ports(self._host, self._root):
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
            if own is not None:  # queried by its direct route it reports LID 0
                managers[own.guid] = subnet.Manager(
                    guid=own.guid, lid=lid, priority=own.priority, state=own.state, here=True
                )
        return Done(text=subnet.SubnetView(ports=tuple(views), managers=tuple(managers.values())).text())

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it only queries."""

    async def _others(self, at: tuple[str, ...]) -> list[subnet.Manager]:
        """The managers that the master knows, each queried itself."""
        lids = dict.fromkeys(_LID.findall(await self._tool("saquery", *at[:4], "-s")))
        answers = [await self._sminfo(*at, lid) for lid in list(lids)[:_MOST_LIDS]]
        return [answer for answer in answers if answer is not None]

    async def _sminfo(self, *args: str, here: bool = False) -> subnet.Manager | None:
        return subnet.sminfo(await self._tool("sminfo", *args), here=here)

    async def _tool(self, name: str, *args: str) -> str:
        """What the tool printed; empty when it failed or hung, as it does when no manager answers."""
        try:
            ran = await tool.run([str(self._tools / name), *args], deadline_s=_TOOL_S, max_bytes=64 * 1024)
        except TimedOut:
            return ""
        return ran.out if ran.status == 0 else ""
