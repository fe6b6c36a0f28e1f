"""The processes of the cell that act on simulated machines, with an independent record of what they did.

    python -m tests.chaos.recorder fleet --config FILE --record FILE
    python -m tests.chaos.recorder brain --config FILE --record FILE

The record has one line for each action that was really begun: `<who> <id of the attempt> <action>`. It is written before
the action by the process that performs it, and it knows nothing of journals, leases and logs.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from agent.actions.base import Action as NodeAction
from agent.commands.runner import Execution, Runner
from agent.contract.commands import Command
from brain import config as brain_config
from brain.actions import Request, SiteActions
from brain.actions.base import Action, Done, NodeCommands, Order
from brain.cli.run import serve
from brain.config import BrainConfig
from simulations import brain as simulated_brain
from simulations import fleet
from tests.chaos import machines

Write = Callable[[str], None]


def appending(path: Path) -> Write:
    """One `write` for each line, so that lines of several processes do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    return lambda line: (os.write(file, f"{line}\n".encode()), None)[1]


class _RecordedAction:
    """An action of the brain; see brain.actions.base. What it asks of the simulated machines is recorded as it leaves."""

    name: ClassVar[str]

    def __init__(self, action: Action) -> None:
        self._action = action

    async def plan(self, order: Order) -> list[str]:
        """See brain.actions.base."""
        return await self._action.plan(order)

    async def run(self, order: Order) -> Done:
        """See brain.actions.base."""
        _attempt.set(f"{order.id} {self.name}")
        return await self._action.run(order)


def _recorded(action: Action) -> Action:
    made: type[_RecordedAction] = type(action.name, (_RecordedAction,), {"name": action.name})
    return made(action)


_attempt: ContextVar[str] = ContextVar("_attempt", default="")  # empty: a question, for no action


def brain(config: BrainConfig, write: Write) -> None:
    """A brain on the simulated machines, until it is stopped."""

    def make(config: BrainConfig, nodes: NodeCommands, stack: AsyncExitStack, ask: Request) -> SiteActions:
        async def recorded(node: str, body: bytes, timeout_s: float) -> bytes:
            if attempt := _attempt.get():
                write(f"brain-{config.brain} {attempt}")
            return await ask(node, body, timeout_s)

        made = simulated_brain.make(config, nodes, stack, recorded)
        actions = {name: _recorded(action) for name, action in made.actions.items()}
        return replace(made, actions=actions)

    serve(config, make=make)


def simulated_fleet(config: fleet.FleetConfig, write: Write) -> None:
    """The simulated nodes, until they are stopped."""
    begin = Runner._perform

    async def perform(self: Runner, command: Command, action: NodeAction, execution: Execution) -> None:
        write(f"node-{command.node} {command.id} {command.action}")
        await begin(self, command, action, execution)

    Runner._perform = perform  # type: ignore[method-assign]
    machines.keep(config.data_dir / "machines")
    asyncio.run(fleet.serve(config))


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["fleet", "brain"])
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    given = parser.parse_args()
    write = appending(given.record)
    if given.part == "fleet":
        simulated_fleet(fleet.load(given.config), write)
    else:
        brain(brain_config.load(given.config), write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
