"""Commands: what a node refuses, and that what it accepts runs once, whatever crashes when."""

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.commands.journal import Journal, Result
from agent.contract.commands import Answer, Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from tests.agent.commander_kit import REFUSALS, Node, accepted, order, signed, tasks_of


@pytest.mark.parametrize(("envelope", "why"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
async def test_what_is_refused(tmp_path: Path, envelope: bytes, why: str) -> None:
    """Nothing runs, nothing is journaled, the answer and an event say why."""
    node = Node(tmp_path)
    reply = await node.commander.handle(envelope)
    assert reply.answer is Answer.REFUSED
    assert why in reply.why
    assert node.action.runs == 0
    assert order().id not in Journal(node.path)
    (event,) = node.sent
    assert event.kind == "agent.bad_command"
    assert why in str(event.data["why"])


async def test_a_command_runs_and_its_result_goes_up(tmp_path: Path) -> None:
    """Accepted (in the journal first), run, reported, with what it cost and the name of its evidence."""
    node = Node(tmp_path)
    node.action.go.clear()
    reply = await node.commander.handle(signed(order().payload()))
    assert (reply.answer, reply.session, reply.boot, reply.mono_s) == (
        Answer.ACCEPTED,
        "run-1",
        "boot-1",
        1000.0,
    )
    assert order().id in Journal(node.path), "it is on disk before it is accepted"
    await asyncio.sleep(0)
    node.clock.mono_s += 2.5
    node.action.go.set()
    await node.settled()
    (event,) = node.sent
    assert event.data == {
        "command": order().id,
        "outcome": "ok",
        "why": "looked",
        "took_s": 2.5,
        "evidence": "gpu-1/inc-1.r1.s1.a1",
        "evidence_bytes": 17,
    }


async def test_a_command_that_is_in_the_journal_runs_even_when_the_connection_is_lost_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-py cancels the callback when the broker goes. Accepted and never begun, nobody would ever hear of it."""
    node = Node(tmp_path)
    writing, may_end = threading.Event(), threading.Event()
    accept = Journal.accept

    def slow(journal: Journal, *args: Any) -> None:
        accept(journal, *args)
        writing.set()
        may_end.wait(60)

    monkeypatch.setattr(Journal, "accept", slow)
    asking = asyncio.create_task(node.commander.handle(signed(order().payload())))
    await asyncio.to_thread(writing.wait, 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    may_end.set()
    async with asyncio.timeout(60):
        while not node.results():
            await asyncio.sleep(0.01)
    assert node.results() == [(order().id, "ok")]
    assert node.action.runs == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Refused("no"), Outcome.REFUSED),
        (Unreachable("nobody there"), Outcome.UNREACHABLE),
        (TimedOut("who knows"), Outcome.UNKNOWN),
        (ActionError("did not help"), Outcome.FAILED),
        (PermissionError(1, "not permitted"), Outcome.FAILED),
        (ZeroDivisionError("a bug"), Outcome.UNKNOWN),
    ],
)
async def test_how_an_action_may_end(tmp_path: Path, error: Exception, outcome: Outcome) -> None:
    """Each way to fail has its outcome; a bug leaves "unknown" and never no result at all."""
    node = Node(tmp_path)
    node.action.ends = error
    await node.commander.handle(signed(order().payload()))
    tasks = tasks_of(node)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert node.results() == [(order().id, outcome.value)]


async def test_a_command_that_takes_too_long_is_cut(tmp_path: Path) -> None:
    """At its time limit the action is cancelled; whether it was done nobody knows."""
    node = Node(tmp_path)
    node.action.go.clear()
    await node.commander.handle(signed(order(timeout_s=0.02).payload()))
    await asyncio.sleep(0.05)
    await node.settled()
    assert node.results() == [(order().id, "unknown")]


async def test_the_same_id_twice_runs_once(tmp_path: Path) -> None:
    """While it runs: "known". Afterwards, from any session and however late: "known", and the result
    again.
    """
    node = Node(tmp_path)
    node.action.go.clear()
    envelope = signed(order().payload())
    first, second = await asyncio.gather(node.commander.handle(envelope), node.commander.handle(envelope))
    assert {first.answer, second.answer} == {Answer.ACCEPTED, Answer.KNOWN}
    node.action.go.set()
    await node.settled()
    node.clock.mono_s += 10_000
    late = await node.commander.handle(signed(order(session="run-7", epoch=6).payload()))
    assert late.answer is Answer.KNOWN
    assert node.action.runs == 1
    assert node.results() == [(order().id, "ok")] * 2


async def test_an_older_leader_is_refused_even_after_a_restart(tmp_path: Path) -> None:
    """The highest epoch is on disk; a plan of a new leader is enough to fence the old one."""
    node = Node(tmp_path)
    await node.commander.handle(signed(order(plan=True, epoch=9).payload()))
    for _ in range(2):
        reply = await node.commander.handle(signed(order(epoch=8).payload()))
        assert reply.answer is Answer.REFUSED
        assert "epoch 8 is older than 9" in reply.why
        node.restart("run-1")
    assert node.action.runs == 0
    assert (await node.commander.handle(signed(order(epoch=9).payload()))).answer is Answer.ACCEPTED
    await node.settled()


@pytest.mark.parametrize(("boot", "says"), [("boot-1", "same boot"), ("boot-2", "rebooted")])
async def test_the_agent_dies_between_accepted_and_done(tmp_path: Path, boot: str, says: str) -> None:
    """After the restart the command is not run again; its action puts right what it left, and the result is
    "unknown", saying whether the node has rebooted."""
    node = Node(tmp_path)
    node.action.go.clear()
    await node.commander.handle(signed(order().payload()))
    await asyncio.sleep(0)
    dead = tasks_of(node)
    text = node.path.read_text()
    node.clock.boot = boot
    node.restart("run-2")
    await node.commander.recover()
    (event,) = node.sent
    assert event.data["outcome"] == "unknown"
    assert says in str(event.data["why"])
    assert node.action.recovered == [{"component": "node"}]
    again = await node.commander.handle(signed(order(session="run-2").payload()))
    assert again.answer is Answer.KNOWN
    assert node.action.runs == 1
    node.restart("run-3")
    await node.commander.recover()
    assert node.results() == [(order().id, "unknown")] * 2, "told once by itself and once when asked again"
    assert text.count("\n") > 0
    for task in dead:
        task.cancel()
    await asyncio.gather(*dead, return_exceptions=True)


async def test_a_result_that_was_not_told_is_told_at_the_next_start(tmp_path: Path) -> None:
    """Killed between journal and spool: the result goes up after the restart."""
    node = Node(tmp_path)
    journal = Journal(node.path)
    journal.accept(order(), "boot-1", "run-1")
    journal.finish(order().id, Result(outcome=Outcome.OK, why="done"))
    node.restart("run-2")
    await node.commander.recover()
    assert node.results() == [(order().id, "ok")]


async def test_stopping_the_agent_writes_down_what_was_cut(tmp_path: Path) -> None:
    """SIGTERM in the middle of a command: cancelled, "unknown", in the journal; one that had not yet begun is
    known not to have been done."""
    node = Node(tmp_path)
    node.action.go.clear()
    await node.commander.handle(signed(order().payload()))
    await asyncio.sleep(0)
    accepted(node, order(id="just-accepted"))
    await node.commander.stop()
    assert node.results() == [(order().id, "unknown"), ("just-accepted", "unreachable")]
    assert node.action.runs == 1
    assert Journal(node.path).unfinished() == []


async def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    """It needs no session and no place on the allow-list, says so, and leaves no trace but the epoch."""
    node = Node(tmp_path, allow=frozenset())
    plan = order(plan=True, session="", not_after_s=0.0)
    reply = await node.commander.handle(signed(plan.payload()))
    assert reply.answer is Answer.ACCEPTED
    assert "not on its allow-list" in reply.plan[0]
    assert reply.plan[1] == "look at node"
    assert node.action.runs == 0
    assert order().id not in Journal(node.path)
    gone = replace(plan, action="link.bounce", params={"link": "link/eth0"})
    assert "cannot be done on this machine" in (await node.commander.handle(signed(gone.payload()))).why


async def test_hello_tells_the_clock(tmp_path: Path) -> None:
    """Unsigned, harmless: by which session and clock commands to this node expire."""
    node = Node(tmp_path)
    reply = await node.commander.handle(b'{ "hello" : true }')
    assert (reply.answer, reply.why, reply.session, reply.mono_s) == (
        Answer.ACCEPTED,
        "hello",
        "run-1",
        1000.0,
    )
    assert node.sent == []


async def test_refusals_do_not_flood(tmp_path: Path) -> None:
    """A thousand bad commands are one event at once and one later, which counts the others."""
    node = Node(tmp_path)
    for _ in range(1000):
        await node.commander.handle(b"{}")
    node.commander.report_refusals()
    assert [unsent.count for unsent in node.sent] == [1]
    node.clock.mono_s += 11
    node.commander.report_refusals()
    assert [unsent.count for unsent in node.sent] == [1, 999]


async def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    """What cannot be written down is not done; nor is anything when nobody knows what was done before."""
    node = Node(tmp_path)
    node.path.unlink()
    node.path.mkdir()
    for _ in range(2):
        reply = await node.commander.handle(signed(order().payload()))
        assert reply.answer is Answer.REFUSED
        assert "journal cannot be written" in reply.why
        assert node.action.runs == 0
        node.restart("run-1")


async def test_accepted_means_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is synced to the disk before the answer is given: a power cut does not make a command
    run twice.
    """
    node = Node(tmp_path)
    synced: list[bytes] = []
    really = os.fsync

    def sync(fd: int) -> None:
        really(fd)
        synced.append(node.path.read_bytes())

    monkeypatch.setattr("agent.commands.journal.os.fsync", sync)
    node.action.go.clear()
    reply = await node.commander.handle(signed(order().payload()))
    assert reply.answer is Answer.ACCEPTED
    assert order().id.encode() in synced[-1]
    await node.commander.stop()
    assert b'"done"' in synced[-1]
