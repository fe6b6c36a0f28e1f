"""The InfiniBand fabrics of the site: which hosts can run a subnet manager, which nodes are asked, which inspect them.

[subnet_managers.default]            # by fabric
hosts = [{node = "ufm1", unit = "opensm.service"}, {node = "ufm2"}]
ask = ["gpu001", "gpu101"]           # nodes that are asked whether a master answers; none: the hosts
inspect = ["ufm1"]                   # nodes that may inspect the fabric, the first that can; none: `ask`, then hosts
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract import subnet
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from brain.actions.base import NodeCommands, Order
from brain.actions.subnet_view import FabricView, ManagerHost

STATE, START, STOP = "ib.sm_state", "service.start", "service.stop"
_STAY_S = 2.0  # a manager that exits within this time did not start


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagersOptions:
    """The keys of a table of `[subnet_managers]`."""

    # Hosts that can run a manager, in the order in which they are started
    hosts: tuple[ManagerHost, ...] = ()
    # Nodes that are asked whether a master answers; none: the hosts
    ask: tuple[str, ...] = ()
    # Nodes that may inspect the fabric, the first that can; none: `ask`, then the hosts
    inspect: tuple[str, ...] = ()
    # Interval of asking while waiting for a change
    look_s: Annotated[float, Field(ge=0.05, le=60)] = 2.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    @property
    def inspectors(self) -> tuple[str, ...]:
        """Nodes that may inspect the fabric, in the order in which they are asked."""
        return self.inspect or tuple(dict.fromkeys((*self.ask, *(host.node for host in self.hosts))))


class Fabrics:
    """The configured fabrics, and what the actions on them share."""

    def __init__(
        self,
        fabrics: dict[str, ManagersOptions],
        commands: NodeCommands,
        *,
        nonce: Callable[[], str] = lambda: f"{time.time_ns():x}",
    ) -> None:
        """`nonce`: part of the ids of queries, so that an answer from before a crash is not taken for a new one."""
        self._fabrics = fabrics
        self._commands = commands
        self._nonce = nonce

    def of_order(self, order: Order) -> ManagersOptions:
        """Returns the fabric that the order names, or the only one. Refused when there is no such fabric."""
        name = str(order.params.get("fabric", "")).removeprefix("fabric/")
        if not name and len(self._fabrics) == 1:
            return next(iter(self._fabrics.values()))
        if name not in self._fabrics:
            have = ", ".join(self._fabrics)
            raise Refused(f"[subnet_managers] has no fabric {name!r} (have: {have})")
        return self._fabrics[name]

    async def observe(self, order: Order) -> FabricView:
        """Queries all hosts and `ask` nodes at once. Unreachable when none of the `ask` nodes answers."""
        fabric = self.of_order(order)
        hosts = tuple(host.node for host in fabric.hosts)
        ask = fabric.ask or hosts
        nodes = tuple(dict.fromkeys((*ask, *hosts)))
        part = f"look-{self._nonce()}"
        answers = await asyncio.gather(*(self._ask(node, order, f"{part}-{node}") for node in nodes))
        seen = {
            node: answer for node, answer in zip(nodes, answers, strict=True) if not isinstance(answer, str)
        }
        unreachable = {
            node: answer for node, answer in zip(nodes, answers, strict=True) if isinstance(answer, str)
        }
        view = FabricView(hosts=fabric.hosts, ask=ask, seen=seen, unreachable=unreachable)
        if not view.asked:
            raise Unreachable(
                f"no node could be asked: {'; '.join(f'{k}: {v}' for k, v in unreachable.items())}"
            )
        return view

    async def until_master(self, order: Order, until_s: float) -> FabricView:
        """Observes until a master answers or the loop's clock is at `until_s`; returns the last view."""
        loop = asyncio.get_running_loop()
        while True:
            view = await self.observe(order)
            if view.works or loop.time() >= until_s:
                return view
            order.progress(view.text())
            await asyncio.sleep(self.of_order(order).look_s)

    async def service(self, order: Order, host: ManagerHost, action: str) -> tuple[Outcome, str]:
        """Starts or stops the host's manager. One step does that only once, however often it is performed."""
        params: dict[str, str | float] = {"unit": host.unit}
        if action == START:
            params["stay_s"] = _STAY_S
        try:
            result = await self._commands.perform(
                host.node, action, params, of=order, part=f"{action.partition('.')[2]}-{host.node}"
            )
        except (Refused, Unreachable, TimedOut) as error:
            return _OUTCOMES[type(error)], str(error)
        return result.outcome, result.why

    async def _ask(self, node: str, order: Order, part: str) -> subnet.SubnetView | str:
        """Returns what the node sees, or why it could not be asked."""
        try:
            result = await self._commands.perform(node, STATE, {}, of=order, part=part)
        except (Refused, Unreachable, TimedOut) as error:
            return str(error)
        if result.outcome is not Outcome.OK:
            return f"{result.outcome.value}: {result.why}"
        view = subnet.read(result.why)
        return view if view.ports else f"its answer cannot be read: {result.why[:80]!r}"


_OUTCOMES: dict[type[ActionError], Outcome] = {
    Refused: Outcome.REFUSED,
    Unreachable: Outcome.UNREACHABLE,
    TimedOut: Outcome.UNKNOWN,
}
