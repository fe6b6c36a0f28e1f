"""Commands as parts of a step: a result that comes early, twice, late, for another command, or never."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nats.aio.client import Client

from agent.contract.commands import Outcome
from agent.contract.errors import Refused, TimedOut
from brain.actions.base import Order
from brain.adapters.lease import Lease
from brain.core.effects import Step
from brain.core.inputs import StepResult
from brain.leader.awaited_commands import AwaitedCommands
from brain.leader.current_client import CurrentClient
from tests.brain.world import Story

OK = (Outcome.OK, "done")
STEP = Order(id="inc-1.r1.s1.a1", incident="inc-1", node="", params={}, timeout_s=60, why="a test")
ID = "inc-1.r1.s1.a1.start-n1"


def ended(command: str, outcome: Outcome, why: str, node: str = "n1") -> StepResult:
    """A node's result, as it comes off the log."""
    return StepResult(id=f"{node}:s:1", step=command, outcome=outcome, why=why, node=node)


class Sender:
    """Stands where `Nodes` sends: `answer` is what the node said at once, None: it has the command."""

    def __init__(self, answer: Outcome | None = None, *, blocks: bool = False) -> None:
        self.answer, self.blocks = answer, blocks
        self.steps: list[Step] = []
        self.sent: Callable[[Step], Any] = lambda _: None

    async def perform(self, client: Client, step: Step, epoch: int) -> StepResult | None:
        """As Nodes.perform."""
        assert epoch == 7
        self.steps.append(step)
        self.sent(step)
        if self.blocks:
            await asyncio.Event().wait()
        if self.answer is None:
            return None
        return StepResult(id="r", step=step.id, outcome=self.answer, why="said the sender")


@pytest.fixture
def nats() -> Iterator[CurrentClient]:
    """One whose client nothing uses."""
    found = CurrentClient()
    with found.established(Client()):
        yield found


def awaiting(
    sender: Sender, nats: CurrentClient, told: Callable[[str, str], None] = lambda _node, _command: None
) -> AwaitedCommands:
    """With hardly any grace, in the term of epoch 7."""
    lease = Lease("c", "b1", 1.0)
    lease.epoch = 7
    return AwaitedCommands(sender, nats=nats, lease=lease, grace_s=0.1, foreign=told)


async def order(commands: AwaitedCommands, step: Order = STEP) -> tuple[Outcome, str]:
    """One command to n1."""
    result = await commands.perform(
        "n1", "service.start", {"unit": "opensm.service"}, of=step, part="start-n1"
    )
    assert result.step == ID
    return result.outcome, result.why


async def test_the_result_that_comes_on_the_log_is_the_answer(nats: CurrentClient) -> None:
    """The command carries the step's id and part, and the node action's own limits."""
    sender = Sender()
    found = awaiting(sender, nats)
    sender.sent = lambda step: asyncio.get_running_loop().call_later(
        0.02, found.on_result, ended(step.id, *OK)
    )
    assert await order(found) == OK
    (step,) = sender.steps
    assert (step.id, step.node, step.action, step.where) == (ID, "n1", "service.start", "node")
    assert (step.timeout_s, step.incident, step.why) == (60, "inc-1", "a test")
    found.on_result(ended(ID, *OK))  # again: nobody waits any more


async def test_a_result_before_the_sending_is_over_counts(nats: CurrentClient) -> None:
    """The node was quicker than its own answer to the request; the sending is ended."""
    sender = Sender(blocks=True)
    found = awaiting(sender, nats)
    sender.sent = lambda step: asyncio.get_running_loop().call_soon(found.on_result, ended(step.id, *OK))
    async with asyncio.timeout(60):
        assert await order(found) == OK


async def test_the_first_of_two_results_counts_and_results_of_others_do_not(nats: CurrentClient) -> None:
    """Results of other commands, among them the engine's own steps, change nothing."""
    sender = Sender()
    found = awaiting(sender, nats)
    task = asyncio.create_task(order(found))
    while not sender.steps:
        await asyncio.sleep(0)
    found.on_result(ended("inc-1.r1.s1.a1", Outcome.FAILED, "a step of the engine"))
    found.on_result(ended(ID + "0", Outcome.FAILED, "another part"))
    found.on_result(ended(ID, *OK))
    found.on_result(ended(ID, Outcome.FAILED, "the same again"))
    assert await task == OK


async def test_another_node_cannot_answer(nats: CurrentClient) -> None:
    """Law 15: a result counts only from the node that was asked; who speaks for it is told of."""
    sender, foreign = Sender(), []
    found = awaiting(sender, nats, lambda *who: foreign.append(who))
    task = asyncio.create_task(order(found))
    while not sender.steps:
        await asyncio.sleep(0)
    found.on_result(ended(ID, Outcome.OK, "all is well", "n2"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    assert foreign == [("n2", ID)]
    found.on_result(ended(ID, Outcome.FAILED, "it is not"))
    assert await task == (Outcome.FAILED, "it is not")


async def test_no_result_is_an_unknown_outcome(nats: CurrentClient) -> None:
    """After the command's time and a grace; and the id is free again."""
    short = Order(id=STEP.id, incident="", node="", params={}, timeout_s=0.05, why="")
    found = awaiting(Sender(), nats)
    with pytest.raises(TimedOut, match=r"n1 took service\.start, or may have"):
        await order(found, short)
    found.on_result(ended(ID, *OK))
    with pytest.raises(TimedOut):
        await order(found, short)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.UNREACHABLE])
async def test_what_was_not_begun_is_reported_at_once(nats: CurrentClient, outcome: Outcome) -> None:
    """No result will come for it."""
    assert await order(awaiting(Sender(outcome), nats)) == (outcome, "said the sender")


async def test_a_request_that_may_have_been_heard_is_waited_for(nats: CurrentClient) -> None:
    """Its answer was lost, its result is not."""
    sender = Sender(Outcome.UNKNOWN)
    found = awaiting(sender, nats)
    sender.sent = lambda step: asyncio.get_running_loop().call_later(
        0.05, found.on_result, ended(step.id, *OK)
    )
    assert await order(found) == OK


async def test_nothing_is_sent_that_no_node_could_do(nats: CurrentClient) -> None:
    """Unknown actions, the brain's own, and parameters that do not fit; and nothing without a connection."""
    sender = Sender()
    found = awaiting(sender, nats)
    for action, params in (
        ("rm.rf", {}),
        ("sm.status", {}),
        ("service.start", {"unti": "x"}),
        ("service.start", {}),
    ):
        with pytest.raises(Refused):
            await found.perform("n1", action, params, of=STEP, part="x")
    assert await order(awaiting(sender, CurrentClient())) == (
        Outcome.UNREACHABLE,
        "there is no connection to NATS",
    )
    assert sender.steps == []


async def test_a_cancelled_order_waits_for_nothing_and_two_of_one_id_hear_the_same(
    nats: CurrentClient,
) -> None:
    """The step's end ends the waiting; a result answers everybody who waits for it."""
    sender = Sender()
    found = awaiting(sender, nats)
    one, two = asyncio.create_task(order(found)), asyncio.create_task(order(found))
    third = asyncio.create_task(order(found))
    while len(sender.steps) < 3:
        await asyncio.sleep(0)
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    found.on_result(ended(ID, *OK))
    assert [await one, await two] == [OK, OK]


def test_the_engine_leaves_the_results_of_parts_alone() -> None:
    """A part's failure is not the step's: only the step's own result moves the run."""
    story = Story(heals=False)
    story.event(10, "link.state", "link/eth0", up=False)
    story.run(11)
    while not story.performed:
        story.run(story.time.now + 0.1)
    (performed,) = story.performed
    story.event(
        story.time.now + 0.1,
        "command.result",
        command=f"{performed.step.id}.look-1-n1",
        outcome="failed",
        why="x",
    )
    story.event(
        story.time.now + 0.1, "command.result", command=f"{performed.step.id}.start-n1", outcome="ok", why="x"
    )
    story.run(story.time.now + 2)
    assert story.notes("step.result") == ["bounce: ok: did it"]
