"""The brain of `gpuward up` as a process: the real one, but its own actions are performed on the simulated fleet.

`python -m simulations.brain --config FILE`. No configuration turns a real brain into this one, and this one cannot build a
real BMC, scheduler or switch: which actions a brain has is decided by code (law 9).
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from typing import Any

import orjson

from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, ConfigError, Refused, Unreachable
from agent.contract.messages import Severity
from brain import config as brain_config
from brain import fence
from brain.actions import Request, SiteActions
from brain.actions.base import Action, Done, Job, NodeCommands, Order, Wanted, always
from brain.actions.marks import MARK, Mark
from brain.cli.run import serve
from brain.config import BrainConfig
from brain.console.drill import RECIPIENT
from brain.core.inputs import Reported
from brain.core.pack.actions import BRAIN_ACTIONS
from simulations.events import SIMULATED
from simulations.infrastructure import SCHEDULER

ANSWER_S = 5.0
BMCS_EVERY_S = 2.0
_REAL = ("bmc", "schedulers", "subnet_managers", "switches")


class _FleetAction:
    """One action of the brain, performed by the simulated fleet."""

    name: str

    def __init__(self, ask: Request) -> None:
        self._ask = ask

    async def plan(self, order: Order) -> list[str]:
        """See brain.actions.base. Refused for a real node: its scheduler and its BMC are not known here."""
        if order.node and not order.node.startswith(SIMULATED):
            raise Refused(
                f"{self.name}: {order.node} is only observed. `gpuward up` knows no scheduler, BMC or switch of real machines"
            )
        given = ", ".join(f"{name} {value}" for name, value in order.params.items())
        return [f"{self.name} on a simulated machine{f': {given}' if given else ''}"]

    async def run(self, order: Order) -> Done:
        """See brain.actions.base."""
        request = {
            "do": "perform",
            "action": self.name,
            "node": order.node,
            "params": dict(order.params),
            "why": order.why,
        }
        await fence.passed()
        reply = await self._ask(RECIPIENT, orjson.dumps(request), ANSWER_S)
        answer: dict[str, Any] = orjson.loads(reply)
        if not answer["ok"]:
            raise Unreachable(str(answer["error"]))
        await asyncio.sleep(answer["took_s"])
        outcome = Outcome(answer["outcome"])
        if outcome is Outcome.REFUSED:
            raise Refused(answer["why"])
        if outcome is not Outcome.OK:
            raise ActionError(answer["why"])
        return Done(text=answer["why"])


class _FleetScheduler:
    """The scheduler of the simulated machines, which is only read: what changes something there is an action."""

    name = SCHEDULER

    def __init__(self, ask: Request) -> None:
        self._ask = ask

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler."""
        told = (await self._told(node))["jobs"]
        return [Job(id=str(one["id"]), user=str(one["user"]), nodes=int(one["nodes"])) for one in told]

    async def drained(self, node: str) -> str:
        """As in Scheduler."""
        return str((await self._told(node))["drained"])

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """As in Scheduler. Whose they are is not kept there."""
        reason = await self.drained(node)
        return (Mark(incident="", why=reason),) if reason.startswith(MARK) else ()

    async def drain(self, node: str, mark: Mark) -> None:
        """Refused: scheduler.drain does it."""
        raise Refused(f"{node} is drained by an action, not by {mark.incident or 'a question'}")

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Refused: scheduler.resume does it."""
        raise Refused(f"{node} is resumed by an action, not for {owners or 'all'}")

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Refused: scheduler.requeue does it."""
        await wanted()
        raise Refused(f"{job.id} is requeued by an action, within {within_s:g} s or not")

    async def reboot(self, node: str, mark: Mark) -> None:
        """Refused: scheduler.reboot does it."""
        raise Refused(f"{node} is rebooted by an action, not for {mark.incident or 'a question'}")

    async def _told(self, node: str) -> dict[str, Any]:
        reply = await self._ask(RECIPIENT, orjson.dumps({"do": "jobs", "node": node}), ANSWER_S)
        answer: dict[str, Any] = orjson.loads(reply)
        if not answer["ok"]:
            raise Unreachable(str(answer["error"]))
        return answer


class _FleetBmcs:
    """What the BMCs of the simulated machines say."""

    def __init__(self, ask: Request, put: Callable[[Reported], None], leads: Callable[[], bool]) -> None:
        self._ask, self._put, self._leads = ask, put, leads
        self._told: set[str] = set()

    async def run(self) -> None:
        """As in NodeWitness. A fleet that does not answer is asked again."""
        while True:
            await asyncio.sleep(BMCS_EVERY_S)
            if self._leads():
                with contextlib.suppress(ActionError):
                    self._tell(
                        orjson.loads(await self._ask(RECIPIENT, orjson.dumps({"do": "bmc"}), ANSWER_S))
                    )

    def mark_published(self, given: Reported) -> None:
        """As in NodeWitness."""
        if given.source == "bmc":
            self._told.add(given.id)

    async def close(self) -> None:
        """As in NodeWitness."""

    def _tell(self, answer: dict[str, Any]) -> None:
        for one in answer.get("facts", []):
            given = Reported(
                id=f"bmc:{one['id']}",
                source="bmc",
                node=str(one["node"]),
                kind=str(one["kind"]),
                component=str(one["component"]),
                severity=Severity(one["severity"]),
                data=dict(one["data"]),
            )
            if given.id not in self._told and given.node.startswith(SIMULATED):
                self._told.add(given.id)
                self._put(given)


def make(config: BrainConfig, _fleet: NodeCommands, _stack: AsyncExitStack, ask: Request) -> SiteActions:
    """All actions of the brain, on simulated machines only."""
    for table in _REAL:
        if getattr(config, table):
            raise ConfigError(
                f"{table}: a rehearsal cannot use a real one: start the brain with `gpuward run`"
            )
    classes: list[type[Any]] = [type(name, (_FleetAction,), {"name": name}) for name in BRAIN_ACTIONS]
    actions: list[Action] = [made(ask) for made in classes]
    scheduler = _FleetScheduler(ask)
    return SiteActions(
        actions={action.name: action for action in actions},
        schedulers=lambda node: scheduler if node.startswith(SIMULATED) else None,
        witnesses=lambda put, leads: (_FleetBmcs(ask, put, leads),),
    )


def main() -> int:
    """Entry point; 2 when the configuration is wrong."""
    parser = argparse.ArgumentParser(prog="python -m simulations.brain", description=__doc__.split("\n")[0])
    parser.add_argument("--config", type=Path, required=True)
    try:
        serve(brain_config.load(parser.parse_args().config), make=make)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
