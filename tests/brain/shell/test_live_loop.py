"""The live loop: who acts, when, and what is not done a second time."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from brain.adapters.readmodel import ReadModel
from brain.core.inputs import Delivery, Intent, Leader, PackLoaded, StepResult
from tests.brain.shell.loop_kit import Brain, Log
from tests.brain.world import GPU, pack

Start = Callable[[str], Brain]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts brains, each in a folder of its own; the same name again is the same brain after its restart."""
    async with contextlib.AsyncExitStack() as stack:

        def begin(name: str) -> Brain:
            brain = Brain(name, tmp_path / name)
            stack.callback(brain.close)
            stack.push_async_exit(brain.background)
            return brain

        yield begin


def lost_gpu(leader: str = "b1", epoch: int = 1) -> Log:
    """Rules, a leader, and a fault whose remedy may be performed: collect evidence."""
    log = Log()
    log.put(PackLoaded(id="p", pack=pack(hold_off_s=0)), Leader(id=f"l:{epoch}", epoch=epoch, brain=leader))
    log.event("gpu.xid", GPU, code=79)
    return log


async def test_a_standby_decides_everything_and_does_nothing(start: Start) -> None:
    """It shows the incident, and neither pages nor appends anything."""
    brain, log = start("b2"), lost_gpu("b1")
    await brain.read(log)
    assert [one["cause"] for one in brain.readmodel.incidents(open_only=True)] == ["gpu-lost"]
    assert brain.outbox.inputs == []
    assert brain.background.names == []
    assert brain.began == []


async def test_a_leader_writes_the_intent_and_performs_only_what_it_reads_back(start: Start) -> None:
    """Nothing goes to the node before the intent is on the log with this leader's epoch."""
    brain, log = start("b1"), lost_gpu("b1")
    brain.lease.give(1)
    await brain.read(log)
    (intent,) = brain.appended(Intent)
    assert (intent.epoch, intent.brain) == (1, "b1")
    assert brain.nodes.steps == [], "the intent is only appended"
    assert brain.began == [1]
    log.put(intent)
    await brain.read(log)
    assert [step.id for step in brain.nodes.steps] == [intent.step]
    assert [result.step for result in brain.appended(StepResult)] == [intent.step]


async def test_what_machines_wait_for_goes_out_before_what_people_read(start: Start) -> None:
    """The page of the same fault is begun when the connection has had the intent, though the engine tells of it first."""
    brain, log = start("b1"), lost_gpu("b1")
    brain.lease.give(1)
    begun: list[
        list[str]
    ] = []  # at each look of the outbox whether it has something to send: what was begun by then

    async def send() -> None:
        begun.append(list(brain.background.names))

    brain.outbox.send = send  # type: ignore[method-assign]  # what goes out is heard here
    await brain.read(log)
    assert brain.appended(Intent)
    assert begun == [[]]
    assert any(name.startswith("page ") for name in brain.background.names)


async def test_an_intent_of_an_older_epoch_is_void(start: Start) -> None:
    """A former leader's intent is on the log after its successor's epoch: nobody performs it."""
    brain, log = start("b1"), lost_gpu("b1")
    brain.lease.give(1)
    await brain.read(log)
    (intent,) = brain.appended(Intent)
    log.put(Leader(id="l:2", epoch=2, brain="b2"), intent)
    await brain.read(log)
    assert brain.nodes.steps == []
    assert not brain.leadership.leads()


@pytest.mark.parametrize(
    ("held", "epoch", "stopped", "leads"),
    [
        (True, 1, "", True),
        (False, 1, "", False),
        (True, 2, "", False),
        (True, 1, "an invariant is broken", False),
    ],
    ids=["leads", "lease lost", "its own epoch is not on the log yet", "stopped"],
)
async def test_a_brain_acts_only_with_lease_and_log(
    start: Start, held: bool, epoch: int, stopped: str, leads: bool
) -> None:
    """The lease alone is not enough, nor is the log; and a broken invariant ends it."""
    brain, log = start("b1"), lost_gpu("b1")
    brain.lease.give(epoch)
    brain.lease.is_held = held
    if stopped:
        brain.leadership.stop(stopped)
    await brain.read(log)
    assert brain.leadership.leads() is leads
    assert bool(brain.appended(Intent)) is leads
    assert ("page" in [name.partition(" ")[0] for name in brain.background.names]) is leads


async def test_a_brain_without_an_epoch_does_not_lead(start: Start) -> None:
    """Nobody has led yet: epoch 0 is no leader's."""
    brain, log = start("b1"), Log()
    log.put(PackLoaded(id="p", pack=pack()))
    brain.lease.give(0)
    await brain.read(log)
    assert not brain.leadership.leads()


async def test_what_is_read_again_is_not_done_again(start: Start) -> None:
    """After a restart nothing is done until the new epoch comes off the log; then what is outstanding is asked for."""
    before, log = start("b1"), lost_gpu("b1")
    before.lease.give(1)
    await before.read(log)
    (intent,) = before.appended(Intent)
    log.put(intent)
    before.close()

    brain = start("b1")
    brain.lease.give(2)
    await brain.read(log)
    assert brain.outbox.inputs == []
    assert brain.background.names == []
    log.put(Leader(id="l:2", epoch=2, brain="b1"))
    await brain.read(log)
    (again,) = brain.appended(Intent)
    assert (again.step, again.epoch) == (intent.step, 2), (
        "evidence.collect is safe to repeat, with an intent of its own"
    )
    assert brain.began == [2]


async def test_a_page_is_sent_once_and_its_delivery_appended(start: Start, tmp_path: Path) -> None:
    """The engine learns what became of it."""
    brain, log = start("b1"), lost_gpu("b1")
    brain.lease.give(1)
    await brain.read(log)
    (delivery,) = await brain.awaited(Delivery)
    assert (delivery.ok, delivery.channel) == (True, "log")
    log.put(delivery)
    await brain.read(log)
    (incident,) = brain.replica.state.incidents.values()
    assert not incident.pages.waiting
    assert brain.pages().count("[P1] ") == 1


async def test_what_was_done_outlives_the_connection_and_what_a_leader_wants_does_not(start: Start) -> None:
    """Results and deliveries go onto the log by the next connection; by then another brain may lead, with its own intents."""
    brain, log = start("b1"), lost_gpu("b1")
    brain.lease.give(1)
    await brain.read(log)
    log.put(*brain.appended(Intent))
    await brain.read(log)
    await brain.awaited(Delivery)
    assert {type(given) for given in brain.outbox.kept} == {StepResult, Delivery}
    brain.outbox.drop_unkept()
    assert len(brain.outbox) == len(brain.outbox.kept)


async def test_a_snapshot_is_never_ahead_of_the_history(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the disk refuses the history there is no snapshot; a restart then reads the log from where both agree."""
    brain, log = start("b1"), lost_gpu("b2")
    write = ReadModel.put

    def refuse(self: ReadModel, *args: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ReadModel, "put", refuse)
    await brain.read(log)
    await brain.keeper.write()
    assert not (brain.folder / "state.snapshot").exists()
    monkeypatch.setattr(ReadModel, "put", write)
    await brain.keeper.write()
    assert (brain.folder / "state.snapshot").exists()
    assert not brain.replica.unsaved
    brain.close()

    again = start("b1")
    again.replica.attach(log.info())
    assert (again.replica.seq, again.replica.caught_up) == (3, True)
    assert list(again.replica.state.incidents) == [
        one["id"] for one in again.readmodel.incidents(open_only=True)
    ]


async def test_a_log_that_lost_its_newest_messages_is_noted_and_read_on(start: Start) -> None:
    """The places are used again by other inputs: they must be handled and shown."""
    brain, log = start("b1"), lost_gpu("b2")
    await brain.read(log)
    log.records.pop()
    brain.replica.attach(log.info())
    assert brain.replica.seq == 2
    log.event("gpu.lost", "gpu/0000:5e:00", "n2")
    await brain.read(log)
    notes = [note["kind"] for note in brain.readmodel.newest_notes(100)]
    assert "log_shortened" in notes
    assert sorted(one["node"] for one in brain.readmodel.incidents(open_only=True)) == ["n1", "n2"]


async def test_what_the_log_drops_while_it_is_read_is_told_once(start: Start) -> None:
    """It had everything when the brain began to read, and its oldest messages went before they were sent."""
    brain, log = start("b1"), lost_gpu("b2")
    brain.replica.attach(log.info())
    del log.records[1]
    await brain.read(log)
    gaps = [note["text"] for note in brain.readmodel.newest_notes(100) if note["kind"] == "log_gap"]
    assert gaps == ["messages 2 to 2 were removed before this brain read them"]
