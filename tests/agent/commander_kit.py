"""What the tests of commands share: orders, signatures, a commander whose clock, action and uplink the test holds."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any, ClassVar

from nacl.signing import SigningKey

from agent.actions.base import Action, Done, Params, report_progress
from agent.commands.commander import Commander
from agent.commands.journal import Journal
from agent.contract import kinds
from agent.contract.commands import Command
from agent.contract.messages import UnsentEvent
from tests.agent.uplink_kit import Clock, FakeHost

KEY = SigningKey(b"\x01" * 32)
OTHER = SigningKey(b"\x02" * 32)
KEYS = {"brain-1": bytes(KEY.verify_key)}


def order(**changes: Any) -> Command:
    """A command that is in order, but for `changes`."""
    fields: dict[str, Any] = {
        "id": "inc-1.r1.s1.a1",
        "node": "gpu-1",
        "action": "evidence.collect",
        "params": {"component": "node"},
        "epoch": 5,
        "session": "run-1",
        "not_after_s": 1060.0,
        "timeout_s": 60.0,
        "why": "inc-1 gpu-off-bus",
    }
    return Command(**(fields | changes))


def signed(payload: bytes, key: SigningKey = KEY, key_id: str = "brain-1") -> bytes:
    """An envelope around these bytes."""
    signature = base64.b64encode(key.sign(payload).signature).decode()
    return json.dumps({"payload": payload.decode(), "key": key_id, "sig": signature}).encode()


class Rehearsal:
    """An action that the test steers."""

    name: ClassVar[str] = "evidence.collect"

    def __init__(self) -> None:
        self.runs = 0
        self.progress = ""
        self.recovered: list[Params] = []
        self.ends: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        return [f"look at {params['component']}"]

    async def run(self, params: Params) -> Done:
        """Waits until it may go on, then ends as it was told."""
        self.runs += 1
        report_progress(self.progress)
        await self.go.wait()
        if self.ends:
            raise self.ends
        return Done(text="looked", evidence="bundle.tar.gz", evidence_bytes=17)

    async def recover(self, params: Params) -> None:
        """Remembers that it was asked."""
        self.recovered.append(params)


class Node:
    """A commander with its clock, journal and what it sent up; `restart` starts it again on the same
    journal.
    """

    def __init__(
        self,
        folder: Path,
        allow: frozenset[str] = frozenset({"evidence.collect"}),
        action: Rehearsal | None = None,
    ) -> None:
        self.path = folder / "journal.jsonl"
        self.clock = Clock()
        self.allow = allow
        self.action = action or Rehearsal()
        self.sent: list[UnsentEvent] = []
        self.restart("run-1")

    def restart(self, session: str) -> None:
        """As after SIGKILL: only the journal's file is left."""
        self.journal = Journal(self.path)
        actions: dict[str, Action] = {self.action.name: self.action}
        self.commander = Commander(
            host=FakeHost(self.clock),
            cell="default",
            node="gpu-1",
            session=session,
            keys=KEYS,
            allow=self.allow,
            actions=actions,
            journal=self.journal,
            uplink=self,
        )

    def put(self, unsent: UnsentEvent, mono_s: float) -> None:
        """The uplink."""
        self.sent.append(kinds.check(unsent))

    async def settled(self) -> None:
        """Until nothing runs."""
        async with asyncio.timeout(60):
            while self.commander.runner.running:
                await asyncio.sleep(0)

    def results(self) -> list[tuple[str, str]]:
        """(command, outcome) of every result sent."""
        return [
            (str(unsent.data["command"]), str(unsent.data["outcome"]))
            for unsent in self.sent
            if unsent.kind == "command.result"
        ]


def tasks_of(node: Node) -> list[asyncio.Task[None]]:
    """What runs."""
    return [run.task for run in node.commander.runner.running.values() if run.task is not None]


def accepted(node: Node, command: Command) -> None:
    """The command is in the journal and about to begin; nothing has run yet."""
    node.journal.accept(command, "boot-1", "run-1", node.clock.mono_s)
    node.commander.runner.start(command, node.action)
