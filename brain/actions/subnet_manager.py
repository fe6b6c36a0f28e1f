"""sm.status, sm.start_standby, sm.stop_master: the subnet managers of an InfiniBand fabric, as services of their hosts.

The state of a manager is never written (`sminfo -s` may leave two masters, or none): a hung master is stopped as a
service, a missing one is started as a service, and the managers agree among themselves who is master. The hosts are
listed in `[subnet_managers]` (brain/actions/fabrics.py).
"""

import asyncio
from typing import Any, ClassVar

from agent.contract import subjects
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Unreachable
from brain.actions.base import Action, Done, NodeCommands, Order, Site
from brain.actions.fabric_inspect import FabricInspect
from brain.actions.fabrics import START, STOP, Fabrics, ManagersOptions
from brain.actions.subnet_view import FabricView, ManagerHost
from brain.options import options

_LEFT_S = 5.0  # part of the step's time that is kept for reporting its outcome


class SmStatus:
    """Lists the managers that answer."""

    name: ClassVar[str] = "sm.status"

    def __init__(self, fabrics: Fabrics) -> None:
        self._fabrics = fabrics

    async def plan(self, order: Order) -> list[str]:
        """As in Action. No node is asked."""
        fabric = self._fabrics.of_order(order)
        nodes = dict.fromkeys((*fabric.ask, *(host.node for host in fabric.hosts)))
        return [f"ask {', '.join(nodes)} which subnet managers answer"]

    async def run(self, order: Order) -> Done:
        """As in Action. A fabric without a working master is a result, not an error."""
        view = await self._fabrics.observe(order)
        return Done(text=view.text(), data={"works": view.works})


class SmStartStandby:
    """Starts managers where none runs, one after the other, until a master answers."""

    name: ClassVar[str] = "sm.start_standby"

    def __init__(self, fabrics: Fabrics) -> None:
        self._fabrics = fabrics

    async def plan(self, order: Order) -> list[str]:
        """As in Action: the services that would be started, in this order."""
        view = await self._fabrics.observe(order)
        if view.works:
            return [f"nothing: {view.text()}"]
        starts = [f"start {host.unit} on {host.node}" for host in _startable(view)]
        return [*starts, "after each: wait until a master answers"]

    async def run(self, order: Order) -> Done:
        """As in Action. Does nothing when a master answers already."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + order.timeout_s - _LEFT_S
        view = await self._fabrics.observe(order)
        if view.works:
            return Done(text=f"nothing to start: {view.text()}")
        hosts = _startable(view)
        tried: list[str] = []
        outcomes: list[Outcome] = []
        for left, host in zip(range(len(hosts), 0, -1), hosts, strict=True):
            order.progress(f"starting {host.unit} on {host.node}")
            outcome, why = await self._fabrics.service(order, host, START)
            outcomes.append(outcome)
            tried.append(f"{host.node}: {outcome.value}: {why}")
            if outcome in (Outcome.REFUSED, Outcome.UNREACHABLE):
                continue
            share_s = (end_s - loop.time()) / left
            view = await self._fabrics.until_master(order, loop.time() + share_s)
            if view.works:
                return Done(text=f"started {host.unit} on {host.node}: {view.text()}")
        raise _failure(outcomes)(f"{'; '.join(tried)}. {view.text()}")


class SmStopMaster:
    """Stops the master that does not answer, if another host can take over."""

    name: ClassVar[str] = "sm.stop_master"

    def __init__(self, fabrics: Fabrics) -> None:
        self._fabrics = fabrics

    async def plan(self, order: Order) -> list[str]:
        """As in Action: the service that would be stopped, and the host that takes over."""
        view = await self._fabrics.observe(order)
        if view.works:
            return [f"nothing: {view.text()}"]
        hung = _hung(view)
        ready = view.ready()
        lines = [f"{host.node} runs a manager that can take over" for host in ready]
        if not ready:
            lines = [f"start {host.unit} on {host.node}, to take over" for host in _successors(view, hung)]
        return [
            *lines,
            f"stop {hung.unit} on {hung.node}",
            "wait until another master answers",
        ]

    async def run(self, order: Order) -> Done:
        """As in Action. Does nothing when a master answers already."""
        end_s = asyncio.get_running_loop().time() + order.timeout_s - _LEFT_S
        view = await self._fabrics.observe(order)
        if view.works:
            return Done(text=f"nothing to stop: {view.text()}")
        hung = _hung(view)
        if not view.ready():
            await self._succession(order, view, hung)
            view = await self._fabrics.observe(
                order
            )  # a last check: the new manager may have taken over already
            if view.works:
                return Done(text=f"nothing to stop any more: {view.text()}")
        order.progress(f"stopping {hung.unit} on {hung.node}")
        outcome, why = await self._fabrics.service(order, hung, STOP)
        if outcome is not Outcome.OK:
            raise _failure([outcome])(f"{hung.unit} on {hung.node} was not stopped: {outcome.value}: {why}")
        view = await self._fabrics.until_master(order, end_s)
        if not view.works:
            raise ActionError(f"{hung.unit} on {hung.node} is stopped, but {view.text()}")
        return Done(text=f"stopped {hung.unit} on {hung.node}: {view.text()}")

    async def _succession(self, order: Order, view: FabricView, hung: ManagerHost) -> None:
        """Starts a manager on another host. Refused when that fails: no manager would be left after the stop."""
        failures: list[str] = []
        for host in _successors(view, hung):
            outcome, why = await self._fabrics.service(order, host, START)
            if outcome is Outcome.OK:
                return
            failures.append(f"{host.node}: {outcome.value}: {why}")
        raise Refused(
            f"no other host can take over from {hung.node} ({'; '.join(failures)}): it is not stopped"
        )


def area(site: Site) -> list[Action]:
    """As in Area."""
    return subnet_managers(dict(site.config.subnet_managers), site.node_commands)


def subnet_managers(tables: dict[str, Any], commands: NodeCommands) -> list[Action]:
    """Builds the actions for `[subnet_managers]`; none without a fabric. ConfigError names the key."""
    fabrics = {}
    for name, table in tables.items():
        where = f"subnet_managers.{name}"
        found = options(ManagersOptions, table, where)
        if not (found.hosts or found.inspect):
            raise ConfigError(
                f"{where}.hosts: names no host that can run a subnet manager (nor `inspect` one that looks at the fabric)"
            )
        for node in (*found.ask, *found.inspect, *(host.node for host in found.hosts)):
            subjects.token(node, f"{where}: node")
        fabrics[name] = found
    if not fabrics:
        return []
    shared = Fabrics(fabrics, commands)
    return [SmStatus(shared), SmStartStandby(shared), SmStopMaster(shared), FabricInspect(shared, commands)]


def _failure(outcomes: list[Outcome]) -> type[ActionError]:
    """Returns the error for attempts that did not help: the worst that may have been done decides."""
    if all(outcome is Outcome.REFUSED for outcome in outcomes):
        return Refused
    if all(outcome in (Outcome.REFUSED, Outcome.UNREACHABLE) for outcome in outcomes):
        return Unreachable
    return TimedOut if outcomes[-1] is Outcome.UNKNOWN else ActionError


def _startable(view: FabricView) -> list[ManagerHost]:
    hosts = view.startable()
    if not hosts:
        raise Refused(f"a subnet manager answers on every host already: {view.text()}")
    return hosts


def _hung(view: FabricView) -> ManagerHost:
    hung = view.hung()
    if not hung:
        raise Refused(f"none of the configured hosts is the master that does not answer: {view.text()}")
    return hung[0]


def _successors(view: FabricView, hung: ManagerHost) -> list[ManagerHost]:
    hosts = [host for host in view.startable() if host != hung]
    if not hosts:
        raise Refused(f"no other host can take over from {hung.node}: it is not stopped")
    return hosts
