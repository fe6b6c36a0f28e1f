"""The InfiniBand fabrics that the site names: who can run a subnet manager, who is asked, who looks over them.

[subnet_managers.default]            # by fabric
hosts = [{node = "ufm1", unit = "opensm.service"}, {node = "ufm2"}]
ask = ["gpu001", "gpu101"]           # nodes that are asked whether a master answers; none: the hosts
inspect = ["ufm1"]                   # nodes that may look over the fabric, the first that can; none: `ask`, then hosts
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
from brain.actions.base import Fleet, Order
from brain.actions.subnet_view import FabricView, ManagerHost

STATE, START, STOP = "ib.sm_state", "service.start", "service.stop"
_STAY_S = 2.0  # a manager that dies at once did not start


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagersOptions:
    """What a table of `[subnet_managers]` holds."""

    hosts: tuple[ManagerHost, ...] = ()  # that can run a manager, in the order in which they are started
    ask: tuple[str, ...] = ()  # nodes that are asked whether a master answers; none: the hosts
    inspect: tuple[
        str, ...
    ] = ()  # nodes that look over the fabric, the first that can; none: `ask`, then the hosts
    look_s: Annotated[float, Field(ge=0.05, le=60)] = 2.0  # pause between looks while a change is waited for
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    @property
    def inspectors(self) -> tuple[str, ...]:
        """Nodes that may look over the fabric, in the order in which they are asked."""
        return self.inspect or tuple(dict.fromkeys((*self.ask, *(host.node for host in self.hosts))))


class Fabrics:
    """The configured fabrics, and what the three actions share."""

    def __init__(
        self,
        fabrics: dict[str, ManagersOptions],
        fleet: Fleet,
        *,
        nonce: Callable[[], str] = lambda: f"{time.time_ns():x}",
    ) -> None:
        """`nonce`: part of the ids of questions, so that an answer from before a crash is not taken for news."""
        self._fabrics = fabrics
        self._fleet = fleet
        self._nonce = nonce

    def of(self, order: Order) -> ManagersOptions:
        """The fabric that the order is about: its `fabric`, or the only one. Refused when there is none."""
        name = str(order.params.get("fabric", "")).removeprefix("fabric/")
        if not name and len(self._fabrics) == 1:
            return next(iter(self._fabrics.values()))
        if name not in self._fabrics:
            have = ", ".join(self._fabrics)
            raise Refused(f"[subnet_managers] has no fabric {name!r} (have: {have})")
        return self._fabrics[name]

    async def look(self, order: Order) -> FabricView:
        """Asks all hosts and `ask` nodes at once. Unreachable when none of the `ask` nodes can be asked."""
        fabric = self.of(order)
        hosts = tuple(host.node for host in fabric.hosts)
        ask = fabric.ask or hosts
        nodes = tuple(dict.fromkeys((*ask, *hosts)))
        part = f"look-{self._nonce()}"
        answers = await asyncio.gather(*(self._ask(node, order, f"{part}-{node}") for node in nodes))
        seen = {
            node: answer for node, answer in zip(nodes, answers, strict=True) if not isinstance(answer, str)
        }
        silent = {
            node: answer for node, answer in zip(nodes, answers, strict=True) if isinstance(answer, str)
        }
        view = FabricView(hosts=fabric.hosts, ask=ask, seen=seen, silent=silent)
        if not view.asked:
            raise Unreachable(f"no node could be asked: {'; '.join(f'{k}: {v}' for k, v in silent.items())}")
        return view

    async def until_master(self, order: Order, until_s: float) -> FabricView:
        """Looks until a master answers or the loop's clock is at `until_s`; the last look."""
        loop = asyncio.get_running_loop()
        while True:
            view = await self.look(order)
            if view.works or loop.time() >= until_s:
                return view
            order.say(view.text())
            await asyncio.sleep(self.of(order).look_s)

    async def service(self, order: Order, host: ManagerHost, action: str) -> tuple[Outcome, str]:
        """Starts or stops the host's manager; the same step orders it once, however often it is performed."""
        params: dict[str, str | float] = {"unit": host.unit}
        if action == START:
            params["stay_s"] = _STAY_S
        try:
            return await self._fleet.order(
                host.node, action, params, of=order, part=f"{action.partition('.')[2]}-{host.node}"
            )
        except (Refused, Unreachable, TimedOut) as error:
            return _OUTCOMES[type(error)], str(error)

    async def _ask(self, node: str, order: Order, part: str) -> subnet.SubnetView | str:
        """What the node sees, or why it could not be asked."""
        try:
            outcome, why = await self._fleet.order(node, STATE, {}, of=order, part=part)
        except (Refused, Unreachable, TimedOut) as error:
            return str(error)
        if outcome is not Outcome.OK:
            return f"{outcome.value}: {why}"
        view = subnet.read(why)
        return view if view.ports else f"its answer cannot be read: {why[:80]!r}"


_OUTCOMES: dict[type[ActionError], Outcome] = {
    Refused: Outcome.REFUSED,
    Unreachable: Outcome.UNREACHABLE,
    TimedOut: Outcome.UNKNOWN,
}
