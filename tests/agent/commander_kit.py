"""What the tests of commands share: orders, signatures, a commander whose clock, action and uplink the test holds."""

import asyncio
import base64
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from nacl.signing import SigningKey

from agent.actions.base import Action, Done, Params, report_progress
from agent.commands.commander import Commander
from agent.commands.journal import Journal
from agent.contract import kinds
from agent.contract.commands import Command
from agent.contract.messages import UnsentEvent
from agent.remembered.trusted import Trusted
from tests.agent.uplink_kit import Clock, FakeHost

KEY = SigningKey(b"\x01" * 32)
OTHER = SigningKey(b"\x02" * 32)
TURNS = 2000  # of the event loop: what needs more waits for something that does not come
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


# What is wrong, the envelope, why it is refused. These are nobody's commands: they have no id.
UNREADABLE: list[tuple[str, bytes, str]] = [
    ("not JSON", b"\xff\xfe", "not a signed envelope"),
    ("no envelope", b"[]", "not a signed envelope"),
    ("deep nesting", b"[" * 60000, "not a signed envelope"),
    ("unsigned", json.dumps({"payload": order().payload().decode()}).encode(), "not a signed envelope"),
    ("a stranger's key", signed(order().payload(), OTHER, "brain-9"), "'brain-9' is not trusted"),
    ("another's signature", signed(order().payload(), OTHER), "signature does not fit"),
    ("changed after signing", signed(order().payload()).replace(b"gpu-off-bus", b"gpu-off-bos"), "signature"),
    ("short signature", b'{"payload": "{}", "key": "brain-1", "sig": "AAAA"}', "signature does not fit"),
    ("no command", signed(b"{}"), "not a command"),
    ("huge", b" " * 70000, "at most"),
    ("unknown action", signed(order(action="shell", params={}).payload()), "unknown action 'shell'"),
    ("unknown parameter", signed(order(params={"component": "node", "x": 1}).payload()), "no parameter 'x'"),
    ("missing parameter", signed(order(params={}).payload()), "needs component"),
    ("wrong type", signed(order(params={"component": 7}).payload()), "component must be component"),
]
# Authentic commands that may not run here, now.
NOT_HERE: list[tuple[str, bytes, str]] = [
    ("another node", signed(order(node="gpu-2").payload()), "it is for node 'gpu-2'"),
    ("another run of the agent", signed(order(session="run-0").payload()), "another run"),
    ("any run", signed(order(session="").payload()), "another run"),
    ("expired", signed(order(not_after_s=999.0).payload()), "expired 1.0 s ago"),
    ("never expires", signed(order(not_after_s=float("nan")).payload()), "expired"),
    ("no time limit", signed(order(timeout_s=float("inf")).payload()), "timeout_s"),
    ("no time", signed(order(timeout_s=0.0).payload()), "timeout_s must be above 0 and at most 3600"),
    (
        "not allowed",
        signed(order(action="service.restart", params={"unit": "sshd.service"}).payload()),
        "allow-list",
    ),
]
REFUSALS = [*UNREADABLE, *NOT_HERE]

_T = TypeVar("_T")


class Rehearsal:
    """An action that the test steers."""

    name: ClassVar[str] = "evidence.collect"

    def __init__(self) -> None:
        self.runs = 0
        self.progress = ""
        self.recovered: list[Params] = []
        self.ends: Exception | None = None
        self.done = Done(text="looked", evidence="bundle.tar.gz", evidence_bytes=17)
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
        return self.done

    async def recover(self, params: Params) -> None:
        """Remembers that it was asked."""
        self.recovered.append(params)


class Tidy(Rehearsal):
    """When it is cancelled it waits for the test, then ends as it was told."""

    def __init__(self, end: Exception | None = None) -> None:
        super().__init__()
        self.may_end = asyncio.Event()
        self.disturbed = 0
        self.end = end

    async def run(self, params: Params) -> Done:
        """Waits, and tidies up."""
        try:
            return await super().run(params)
        except asyncio.CancelledError:
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.disturbed += 1
            if self.end:
                raise self.end from None
            raise


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
        self.sent_at: list[float] = []
        self.bundles = 0  # how often the uploader was woken
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
            trusted=Trusted(self.path.with_name("trusted.json"), cell="default", serial=0, keys=KEYS, ca=""),
            allow=self.allow,
            actions=actions,
            journal=self.journal,
            uplink=self,
            bundle_made=self.bundle_made,
        )

    def bundle_made(self) -> None:
        """The uploader is woken."""
        self.bundles += 1

    def put(self, unsent: UnsentEvent, mono_s: float) -> None:
        """The uplink."""
        self.sent.append(kinds.check(unsent))
        self.sent_at.append(mono_s)

    async def settled(self) -> None:
        """Until nothing runs."""
        for _ in range(TURNS):
            if not self.commander.runner.running:
                return
            await asyncio.sleep(0)
        raise AssertionError("it does not end")

    def results(self) -> list[tuple[str, str]]:
        """(command, outcome) of every result sent."""
        return [
            (str(unsent.data["command"]), str(unsent.data["outcome"]))
            for unsent in self.sent
            if unsent.kind == "command.result"
        ]


async def soon(work: Awaitable[_T]) -> _T:
    """What it returns, if it needs nothing but a few turns of the event loop."""
    task = asyncio.ensure_future(work)
    for _ in range(TURNS):
        if task.done():
            return task.result()
        await asyncio.sleep(0)
    raise AssertionError("it does not end")


def tasks_of(node: Node) -> list[asyncio.Task[None]]:
    """What runs."""
    return [run.task for run in node.commander.runner.running.values() if run.task is not None]


def accepted(node: Node, command: Command) -> None:
    """The command is in the journal and about to begin; nothing has run yet."""
    node.journal.accept(command, "boot-1", "run-1", node.clock.mono_s)
    node.commander.runner.start(command, node.action)
