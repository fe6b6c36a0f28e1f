"""A site on a simulated fabric: nodes whose agents' action asks the fabric, and services that are real opensm processes.

    site = Site(net)                       # of tests.real.ibsim_fabric
    site.start("H1", priority=10)
    actions = subnet_managers({"default": {...}}, site)

It is the `NodeCommands` of the brain's actions: `ib.sm_state` is the agent's own action with the real infiniband-diags, and
`service.start|stop` start and end opensm as a unit of the host would.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent.actions.ib_sm_state import IbSmState
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar
from agent.host import Host
from brain.actions.base import Order
from brain.core.inputs import StepResult
from tests.real.ibsim_fabric import Fabric

UNIT = "opensm.service"


class Site:
    """The nodes of a fabric by their names there."""

    def __init__(self, net: Fabric, hosts: tuple[str, ...] = ("H1", "H2", "H3", "H4")) -> None:
        self.net = net
        self.units: dict[str, subprocess.Popen[bytes] | None] = dict.fromkeys(hosts)
        self.unreachable: set[str] = set()  # nodes whose agent cannot be reached
        self.orders: list[tuple[str, str]] = []  # (node, action) that changed something
        self.ids: list[str] = []

    def start(self, host: str, *, priority: int) -> subprocess.Popen[bytes]:
        """The unit of `host` runs from now on."""
        process = self.net.subnet_manager(host, priority=priority)
        self.units[host] = process
        return process

    def tools(self, host: str) -> Path:
        """A folder of infiniband-diags as they are on `host`."""
        return self.net.tools(host)

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """As brain.actions.base.NodeCommands."""
        self.ids.append(f"{of.id}.{part}")
        outcome, why = await self._answer(node, action, params)
        return StepResult(id="r", step=f"{of.id}.{part}", outcome=outcome, why=why)

    async def _answer(self, node: str, action: str, params: Mapping[str, Scalar]) -> tuple[Outcome, str]:
        if node in self.unreachable:
            return Outcome.UNREACHABLE, f"{node}: no agent listens there"
        if action == "ib.sm_state":
            root = await asyncio.to_thread(self.net.mirror, node)
            try:
                done = await IbSmState(Host(root=root), tools=self.tools(node)).run(params)
            except Refused as error:
                return Outcome.REFUSED, str(error)
            except (Unreachable, TimedOut, ActionError) as error:
                return Outcome.UNKNOWN, str(error)
            return Outcome.OK, done.text
        assert params["unit"] == UNIT
        self.orders.append((node, action))
        process = self.units[node]
        running = process is not None and process.poll() is None
        if action == "service.start":
            if not running:
                self.start(node, priority=5)
            return Outcome.OK, f"{UNIT} {'was' if running else 'is'} active"
        if running and process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                await asyncio.to_thread(process.wait, 3)
            except subprocess.TimeoutExpired:  # as systemd: SIGTERM, a while, SIGKILL
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return Outcome.OK, f"{UNIT} is inactive"
