"""What the tests of the runner share: results and progress in full, and a command on its way."""

import asyncio
from typing import Any

from agent.commands.journal import Journal
from agent.contract.messages import Severity, UnsentEvent
from tests.agent.commander_kit import TURNS, Node, accepted, order, tasks_of

ID = order().id
LONG = "x" * 600
CLIPPED = "x" * 499 + "…"


def event(kind: str, **data: Any) -> UnsentEvent:
    """What is told of the command."""
    return UnsentEvent(kind=kind, component="node", severity=Severity.INFO, data={"command": ID, **data})


def ended(outcome: str, why: str, took_s: float = 0.0, **data: Any) -> UnsentEvent:
    """The result as it goes up."""
    return event("command.result", outcome=outcome, why=why, took_s=took_s, **data)


def kept(node: Node) -> list[Any]:
    """The journal as a later agent reads it."""
    again = Journal(node.path)
    return [again[ID].result, again[ID].reported]


async def begun(node: Node, **changes: Any) -> None:
    """A command that waits in the middle of its action."""
    node.action.go.clear()
    accepted(node, order(**changes))
    await asyncio.sleep(0)
    assert node.action.runs == 1


async def over(node: Node) -> None:
    """It goes on, and ends."""
    node.action.go.set()
    for _ in range(TURNS):
        if not tasks_of(node):
            break
        await asyncio.sleep(0)
    assert node.commander.runner.running == {}
