"""What a node answers, to the letter, and what of refusals goes up."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from agent.actions.base import Params
from agent.commands.commander import MAX_RUNNING
from agent.commands.journal import Journal
from agent.contract import requests
from agent.contract.commands import Answer, Reply
from agent.contract.errors import ActionError, Refused
from agent.contract.messages import Severity, UnsentEvent
from tests.agent.commander_kit import Node, Rehearsal, Tidy, order, signed, soon

ID = order().id


def reply(answer: Answer, why: str = "", plan: list[str] | None = None, mono_s: float = 1000.0) -> Reply:
    """An answer of this run of the agent."""
    return Reply(answer=answer, why=why, session="run-1", boot="boot-1", mono_s=mono_s, plan=plan or [])


def refused(why: str, **more: Any) -> Reply:
    """A refusal."""
    return reply(Answer.REFUSED, why, **more)


def complaint(command: str, why: str, count: int = 1) -> UnsentEvent:
    """What goes up about refused commands."""
    return UnsentEvent(
        kind="agent.bad_command",
        component="node",
        severity=Severity.WARNING,
        data={"command": command, "why": why},
        count=count,
    )


async def ask(asked: Node, **changes: Any) -> Reply:
    """The answer to an order that is signed."""
    async with asyncio.timeout(10):
        return await asked.commander.handle(signed(order(**changes).payload()))


async def waiting(node: Node, **changes: Any) -> None:
    """A command that waits in the middle of its action."""
    node.action.go.clear()
    assert await ask(node, **changes) == reply(Answer.ACCEPTED, mono_s=node.clock.mono_s)
    await asyncio.sleep(0)


class Held:
    """A journal that holds each acceptance up until the test lets it go, and may break then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writing, self.may_end = threading.Event(), threading.Event()
        self.breaks: Exception | None = None
        accept = Journal.accept

        def held(journal: Journal, *args: Any) -> None:
            self.writing.set()
            self.may_end.wait(30)
            if self.breaks:
                raise self.breaks
            accept(journal, *args)

        monkeypatch.setattr(Journal, "accept", held)


@dataclass
class Message:
    """As nats-py hands it over."""

    data: bytes
    reply: str


@dataclass
class Bus:
    """A connection that remembers what was subscribed and published."""

    subscribed: dict[str, Callable[[Message], Awaitable[None]]] = field(default_factory=dict)
    published: list[tuple[str, Any]] = field(default_factory=list)

    async def subscribe(
        self, subject: str, cb: Callable[[Message], Awaitable[None]], *, pending_bytes_limit: int
    ) -> None:
        """One more subject."""
        self.subscribed[subject] = cb

    async def publish(self, subject: str, data: bytes) -> None:
        """One more message."""
        reference, body = requests.unpack(data) or ("", b"")
        self.published.append((f"{subject} {reference}", orjson.loads(body)))


@pytest.fixture
async def disk(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Held]:
    """A slow one."""
    held = Held(monkeypatch)
    yield held
    held.may_end.set()


async def test_serving_a_connection(tmp_path: Path) -> None:
    """This node's subject, until cancelled; each request with a reference has its answer, and no other is read."""
    node, bus = Node(tmp_path), Bus()
    serving = asyncio.create_task(node.commander.serve(cast(Any, bus)))
    for _ in range(3):
        await asyncio.sleep(0)
    assert list(bus.subscribed) == ["ward.default.cmd.gpu-1"]
    assert not serving.done()
    (on_command,) = bus.subscribed.values()
    await on_command(Message(requests.pack("a" * 24, b'{"hello": true}'), "inbox.1"))
    await on_command(Message(b'{"hello": true}', "inbox.1"))
    await on_command(Message(requests.pack("b" * 24, signed(order().payload())), ""))
    await node.settled()
    answer = {"answer": "accepted", "why": "hello", "session": "run-1", "boot": "boot-1", "mono_s": 1000.0}
    offer = "ward.default.offer.gpu-1.answer"
    assert bus.published == [
        (f"{offer} {'a' * 24}", answer | {"plan": []}),
        (f"{offer} {'b' * 24}", answer | {"why": "", "plan": []}),
    ]
    assert node.results() == [(ID, "ok")]
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (b'{"hello": true}', "hello"),
        (b'{"hello": true}'.ljust(99), "hello"),
        (b'{"hello": true}'.ljust(100), "not a signed envelope"),
        (b'{"hello": false}', "not a signed envelope"),
        (b'{"hello": true, "id": 1}', "not a signed envelope"),
        (b"hello", "not a signed envelope"),
    ],
)
async def test_hello(tmp_path: Path, request_: bytes, why: str) -> None:
    """Only the short and exact word is answered unsigned; it is no refusal, and nothing goes up."""
    node = Node(tmp_path)
    answer = Answer.ACCEPTED if why == "hello" else Answer.REFUSED
    assert await node.commander.handle(request_) == reply(answer, why)
    assert node.sent == ([] if why == "hello" else [complaint("", why)])


async def test_accepted_known_ended(tmp_path: Path) -> None:
    """The journal has all of the command before the answer is given; the same id again gets what became of it."""
    node = Node(tmp_path)
    await waiting(node)
    entry = Journal(node.path)[ID]
    assert (entry.boot, entry.session, entry.until_s, entry.epoch) == ("boot-1", "run-1", 1060.0, 5)
    assert await ask(node) == reply(Answer.KNOWN, "it is running")
    assert node.sent == []
    node.action.go.set()
    await node.settled()
    assert node.bundles == 1, "its evidence can be uploaded"
    assert await ask(node, epoch=7) == reply(Answer.KNOWN, "it ended: ok")
    assert node.sent[0] == node.sent[1]
    assert Journal(node.path).epoch == 7, "a newer leader has asked"
    assert await ask(node, id="b", epoch=6) == refused("epoch 6 is older than 7: not the leader")
    assert node.action.runs == 1


async def test_what_this_machine_cannot_do(tmp_path: Path) -> None:
    """Allowed, but there is no such action here."""
    node = Node(tmp_path, allow=frozenset({"service.restart"}))
    why = "service.restart cannot be done on this machine"
    assert await ask(node, action="service.restart", params={"unit": "x.service"}) == refused(why)
    assert node.sent == [complaint(ID, why)]
    assert ID not in node.journal


async def test_how_many_run_at_once(tmp_path: Path) -> None:
    """Eight; the ninth may come again when one of them has ended."""
    node = Node(tmp_path)
    for number in range(MAX_RUNNING):
        await waiting(node, id=f"c{number}")
    why = "8 commands are running here already"
    assert await ask(node) == refused(why)
    assert node.sent == [complaint(ID, why)]
    assert ID not in node.journal
    assert await ask(node, id="c7") == reply(Answer.KNOWN, "it is running")
    node.action.go.set()
    await node.settled()
    assert await ask(node) == reply(Answer.ACCEPTED)
    await node.settled()


async def test_a_disk_that_fails(tmp_path: Path) -> None:
    """What cannot be written down is not done, and the refusal is about this command."""
    node = Node(tmp_path)
    node.path.unlink()
    node.path.mkdir()
    answer = await ask(node)
    assert answer.why.startswith("the journal cannot be written ([Errno 21] Is a directory")
    assert answer.why.endswith("): nothing was done")
    assert node.sent == [complaint(ID, answer.why)]
    assert (node.action.runs, node.commander.runner.running) == (0, {})


async def test_refusals_are_counted(tmp_path: Path) -> None:
    """The first at once, also just after the boot; the others every ten seconds, with the last of them."""
    node = Node(tmp_path)
    node.clock.mono_s = 0.0
    node.restart("run-1")
    await node.commander.handle(b"{}")
    assert node.sent == [complaint("", "not a signed envelope")]
    await ask(node, node="gpu-2")
    await ask(node, epoch=5, session="run-0", id="i" * 100)
    node.clock.mono_s = 9.99
    node.commander.tick()
    assert len(node.sent) == 1
    node.clock.mono_s = 10.0
    node.commander.tick()
    assert node.sent[1:] == [complaint("i" * 79 + "…", "it is for another run of this agent", 2)]
    assert node.sent_at == [0.0, 10.0]
    node.clock.mono_s = 30.0
    node.commander.tick()
    assert len(node.sent) == 2, "nothing new, nothing to tell"
    await node.commander.handle(b"[]")
    assert node.sent[2:] == [complaint("", "not a signed envelope")]


async def test_a_long_reason(tmp_path: Path) -> None:
    """It is shortened, in the answer and in the event."""

    class Wordy(Rehearsal):
        async def plan(self, params: Params) -> list[str]:
            raise Refused("x" * 600)

    node = Node(tmp_path, action=Wordy())
    assert await ask(node, plan=True) == refused("x" * 499 + "…")
    node.commander._refused("c", "x" * 600)
    assert node.sent == [complaint("c", "x" * 499 + "…")]


async def test_a_second_has_passed(tmp_path: Path) -> None:
    """What runs for long says so."""
    node = Node(tmp_path)
    await waiting(node)
    node.clock.mono_s += 10
    node.commander.tick()
    assert [unsent.kind for unsent in node.sent] == ["command.progress"]
    await soon(node.commander.stop())


async def test_a_plan(tmp_path: Path) -> None:
    """Its lines; nothing is begun or written down, but for a newer leader's epoch."""
    node = Node(tmp_path)
    before = node.path.read_bytes()
    assert await ask(node, plan=True) == reply(Answer.ACCEPTED, "plan", ["look at node"])
    assert before.startswith(b'{"epoch":0,')
    assert node.path.read_bytes().startswith(before + b'{"epoch":5,')
    assert await ask(node, plan=True) == reply(Answer.ACCEPTED, "plan", ["look at node"])
    assert node.path.read_bytes().count(b'{"epoch":5,') == 1, "the same epoch is written once"
    node.commander._allow = frozenset()
    refusal = "(this node would refuse it: evidence.collect is not on its allow-list)"
    assert await ask(node, plan=True) == reply(Answer.ACCEPTED, "plan", [refusal, "look at node"])
    gone = await ask(node, plan=True, action="link.bounce", params={"link": "link/eth0"})
    assert gone == refused("link.bounce cannot be done on this machine")
    assert (node.action.runs, node.commander.runner.running) == (0, {})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ActionError("eth9 is no link"), "eth9 is no link"),
        (OSError("no D-Bus"), "no D-Bus"),
        (None, "no plan within the time limit"),
    ],
)
async def test_a_plan_that_cannot_be_made(tmp_path: Path, error: Exception | None, why: str) -> None:
    """It is refused with the reason; a plan that hangs at its time limit."""

    class Clueless(Rehearsal):
        async def plan(self, params: Params) -> list[str]:
            if error:
                raise error
            await asyncio.Event().wait()
            return []

    node = Node(tmp_path, action=Clueless())
    assert await ask(node, plan=True, timeout_s=0.01) == refused(why)


async def test_an_epoch_that_cannot_be_written(tmp_path: Path) -> None:
    """The plan is made all the same: nothing depends on it."""
    node = Node(tmp_path)
    node.path.unlink()
    node.path.mkdir()
    assert (await ask(node, plan=True)).answer is Answer.ACCEPTED


async def test_a_cancellation(tmp_path: Path, tidy: Tidy) -> None:
    """Each answer in its words; the reason goes to the result; even a cancellation that does nothing tells the epoch."""
    node = Node(tmp_path, action=tidy)
    await waiting(node)
    cancelling = order(id=f"{ID}.x", cancels=ID, params={}, why="ann: wrong node")

    async def answer(**changes: Any) -> Reply:
        return await node.commander.handle(signed(replace(cancelling, **changes).payload()))

    assert await answer(cancels="other", epoch=6) == refused("other was never accepted here")
    assert Journal(node.path).epoch == 6
    assert await answer() == refused("epoch 5 is older than 6: not the leader")
    other = await answer(action="node.reboot", epoch=6)
    assert other == refused(f"{ID} is evidence.collect, not node.reboot")
    assert list(node.commander.runner.running) == [ID]
    assert await answer(epoch=6) == reply(Answer.ACCEPTED, f"{ID} is being cancelled")
    assert await answer(epoch=6) == reply(Answer.KNOWN, "it is running")
    tidy.may_end.set()
    await node.settled()
    assert [unsent.data["why"] for unsent in node.sent if unsent.kind == "command.result"] == [
        "cancelled: ann: wrong node"
    ]
    assert await answer(epoch=6) == reply(Answer.KNOWN, "it ended: failed")
    assert node.results() == [(ID, "failed")] * 2


async def test_the_second_of_two_waits_for_the_first(tmp_path: Path, disk: Held) -> None:
    """While the disk is slow nothing else is answered but a hello."""
    node = Node(tmp_path)
    node.action.go.clear()
    first = asyncio.create_task(ask(node))
    await asyncio.to_thread(disk.writing.wait, 30)
    second = asyncio.create_task(ask(node))
    assert (await node.commander.handle(b'{"hello": true}')).why == "hello"
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    disk.may_end.set()
    assert (await first, await second) == (reply(Answer.ACCEPTED), reply(Answer.KNOWN, "it is running"))
    node.action.go.set()
    await node.settled()
    assert node.action.runs == 1
    await asyncio.sleep(0)
    assert node.commander._answering == set()


@pytest.mark.parametrize("breaks", [None, RuntimeError("a bug")])
async def test_the_agent_stops_while_it_answers(tmp_path: Path, disk: Held, breaks: Exception | None) -> None:
    """The connection is gone, the answer is on its way to the journal: it is waited for, and the command has its result."""
    node = Node(tmp_path)
    disk.may_end.set()
    await waiting(node, id="before")
    disk.writing.clear()
    disk.may_end.clear()
    disk.breaks = breaks
    asking = asyncio.create_task(ask(node))
    await asyncio.to_thread(disk.writing.wait, 30)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    stopping = asyncio.create_task(node.commander.stop())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not stopping.done()
    disk.may_end.set()
    async with asyncio.timeout(10):
        await stopping
    assert node.commander.runner.running == {}
    assert {command for command, _ in node.results()} == ({"before"} if breaks else {"before", ID})


async def test_at_the_start(tmp_path: Path) -> None:
    """What was running is settled."""
    node = Node(tmp_path)
    node.journal.accept(order(), "boot-1", "run-0", 0.0)
    await soon(node.commander.recover())
    assert node.results() == [(ID, "unknown")]
