"""What is under way: long steps say so, are cancelled in order, and may outlive the agent."""

import asyncio
import json
from pathlib import Path
from typing import ClassVar

import pytest

from agent.actions.base import Done, NotPassed, Params, Resumable, StillRunning, report_progress
from agent.commands.journal import Journal
from agent.contract.commands import Answer, Command, decode_command
from agent.contract.errors import ActionError, ContractError, TimedOut, Unreachable
from agent.contract.figures import Figure
from tests.agent.commander_kit import Node, Rehearsal, Tidy, accepted, order, signed, tasks_of

ID = order().id


def cancellation(of: str = ID, **changes: object) -> bytes:
    """The signed word that ends a command; its parameters do not matter."""
    fields = {"id": f"{of}.x", "cancels": of, "params": {}, "why": "ann: wrong node"}
    return signed(order(**(fields | changes)).payload())


async def begun(node: Node, **changes: object) -> None:
    """A command that waits in the middle of its action."""
    node.action.go.clear()
    assert (await node.commander.handle(signed(order(**changes).payload()))).answer is Answer.ACCEPTED
    await asyncio.sleep(0)
    assert node.action.runs == 1


class Leaving(Rehearsal):
    """Outlives the agent; the test says how it ended."""

    name: ClassVar[str] = "node.reboot"

    def __init__(self) -> None:
        super().__init__()
        self.ended: Done | Exception = StillRunning("still going down")

    async def run(self, params: Params) -> Done:
        """Never sees its own end."""
        try:
            return await super().run(params)
        except asyncio.CancelledError:
            raise StillRunning("asked to go down") from None

    async def resume(self, params: Params, *, rebooted: bool) -> Done:
        """As the test wants it, in this boot."""
        if rebooted:
            return Done(text="back")
        if isinstance(self.ended, Exception):
            raise self.ended
        return self.ended


async def test_what_takes_long_says_so(tmp_path: Path) -> None:
    """Nothing in the first ten seconds; then every ten seconds what the action is doing, until it ends."""
    node = Node(tmp_path)
    node.action.progress = "waiting for the light"
    await begun(node)
    for _ in range(35):
        node.commander.tick()
        node.clock.mono_s += 1
    heard = [dict(unsent.data) for unsent in node.sent if unsent.kind == "command.progress"]
    assert [data["elapsed_s"] for data in heard] == [10.0, 20.0, 30.0]
    assert all(data["command"] == ID and data["text"] == "waiting for the light" for data in heard)
    node.action.go.set()
    await node.settled()
    node.clock.mono_s += 60
    node.commander.tick()
    assert [unsent.kind for unsent in node.sent[-2:]] == ["command.progress", "command.result"]
    report_progress("outside of a command nobody listens")


async def test_a_cancelled_command_ends_in_order(tmp_path: Path, tidy: Tidy) -> None:
    """Answered at once; the action tidies up undisturbed, even by a second cancellation; then the result says why."""
    node = Node(tmp_path, action=tidy)
    await begun(node)
    assert (await node.commander.handle(cancellation())).answer is Answer.ACCEPTED
    await asyncio.sleep(0)
    assert (await node.commander.handle(cancellation())).answer is Answer.KNOWN
    await asyncio.sleep(0)
    assert node.results() == [], "it is not over before the action says so"
    tidy.may_end.set()
    await node.settled()
    assert tidy.disturbed == 0
    (event,) = node.sent
    assert (event.data["outcome"], event.data["why"]) == ("failed", "cancelled: ann: wrong node")
    assert f"{ID}.x" not in Journal(node.path), "a cancellation is no run"
    late = await node.commander.handle(cancellation())
    assert (late.answer, late.why) == (Answer.KNOWN, "it ended: failed")
    again = await node.commander.handle(signed(order().payload()))
    assert (again.answer, node.action.runs) == (Answer.KNOWN, 1), "and it does not begin again"


async def test_cancelled_before_it_began(tmp_path: Path) -> None:
    """Then nothing was done, and the result says so: refused."""
    node = Node(tmp_path)
    node.action.go.clear()
    accepted(node, order())
    node.commander.runner.cancel(ID, "too late")
    await node.settled()
    assert node.results() == [(ID, "refused")]
    assert node.action.runs == 0


async def test_an_action_that_ends_while_it_is_cancelled(tmp_path: Path) -> None:
    """What could not be put in order is told with the cancellation."""

    class Clumsy(Rehearsal):
        async def run(self, params: Params) -> Done:
            try:
                return await super().run(params)
            except asyncio.CancelledError:
                raise ActionError("eth1 could not be set up again") from None

    node = Node(tmp_path, action=Clumsy())
    await begun(node)
    await node.commander.handle(cancellation())
    await node.settled()
    (event,) = node.sent
    assert event.data["outcome"] == "failed"
    assert event.data["why"] == "cancelled: ann: wrong node; eth1 could not be set up again"


async def test_what_cannot_be_cancelled(tmp_path: Path) -> None:
    """What was never accepted, another action's, an older leader's: refused, and what runs goes on."""
    node = Node(tmp_path, allow=frozenset({"evidence.collect"}))
    await begun(node)
    for envelope, why in (
        (cancellation("inc-9.r1.s1.a1"), "inc-9.r1.s1.a1 was never accepted here"),
        (cancellation(action="node.reboot"), f"{ID} is evidence.collect, not node.reboot"),
        (cancellation(epoch=4), "not the leader"),
        (cancellation(session="run-0"), "another run"),
        (cancellation(not_after_s=999.0), "expired"),
        (cancellation(action="shell"), "unknown action"),
    ):
        reply = await node.commander.handle(envelope)
        assert reply.answer is Answer.REFUSED
        assert why in reply.why
    assert list(node.commander.runner.running) == [ID]
    node.allow = frozenset()
    node.action.go.set()
    await node.settled()
    assert node.results() == [(ID, "ok")]


async def test_cancelling_needs_no_permission(tmp_path: Path) -> None:
    """A node whose allow-list has lost the action can still be told to stop it."""
    node = Node(tmp_path)
    await begun(node)
    node.commander._allow = frozenset()
    assert (await node.commander.handle(cancellation())).answer is Answer.ACCEPTED
    await node.settled()


def test_versions_of_the_order() -> None:
    """An older brain does not say `cancels`; an older agent, which does not read it, sees a plan and does nothing."""
    plain = json.loads(order().payload())
    del plain["cancels"]
    assert decode_command(json.dumps(plain).encode()).cancels == ""
    sent = json.loads(order(cancels=ID, params={}).payload())
    assert sent["plan"] is True
    assert decode_command(json.dumps(sent).encode()).cancels == ID
    with pytest.raises(ContractError):
        decode_command(json.dumps(sent | {"cancels": 7}).encode())


def reboot(**changes: object) -> Command:
    """An order to reboot."""
    return order(**({"action": "node.reboot", "params": {}, "timeout_s": 600.0} | changes))


async def leaving(folder: Path) -> Node:
    """A node that was asked to go down, and whose agent was stopped on the way."""
    node = Node(folder, allow=frozenset({"node.reboot"}), action=Leaving())
    assert isinstance(node.action, Resumable)
    node.action.go.clear()
    await node.commander.handle(signed(reboot().payload()))
    await asyncio.sleep(0)
    await node.commander.stop()
    assert node.results() == []
    return node


async def test_a_reboot_is_told_by_the_next_boot(tmp_path: Path) -> None:
    """The journal keeps it open over the agent's end; another boot id: it is done. It is not done again."""
    node = await leaving(tmp_path)
    node.clock.boot, node.clock.mono_s = "boot-2", 20.0
    node.restart("run-2")
    await node.commander.recover()
    assert node.results() == [(ID, "ok")]
    reply = await node.commander.handle(signed(reboot(session="run-2", not_after_s=80.0).payload()))
    assert reply.answer is Answer.KNOWN
    assert node.action.runs == 1


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (ActionError("it did not reboot"), "failed"),
        (Unreachable("no D-Bus"), "unknown"),
        (TimedOut("no answer"), "unknown"),
    ],
)
async def test_the_same_boot_again(tmp_path: Path, ended: Exception, outcome: str) -> None:
    """An agent that comes back in the same boot asks what became of it, and never asks for a second reboot."""
    node = await leaving(tmp_path)
    assert isinstance(node.action, Leaving)
    node.action.ended = ended
    node.restart("run-2")
    await node.commander.recover()
    assert node.results() == [(ID, outcome)]
    assert node.action.runs == 1


async def test_still_going_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the node is on its way the command stays open, over any number of agents, until its time is over."""
    monkeypatch.setattr("agent.commands.runner.FOLLOW_S", 0.0)
    node = await leaving(tmp_path)
    for session in ("run-2", "run-3"):
        node.restart(session)
        await node.commander.recover()
        assert (await node.commander.handle(signed(reboot().payload()))).why == "it is running"
        assert node.results() == []
        if session == "run-2":
            await node.commander.stop()
    await node.commander.handle(cancellation(action="node.reboot", session="run-3"))
    await asyncio.sleep(0)
    assert node.results() == [], "it cannot be called back"
    node.clock.mono_s += 601
    await node.settled()
    assert node.results() == [(ID, "unknown")]


async def test_a_reboot_that_nobody_holds_up_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled after it was asked for, the agent looks on: when the node stays after all, the result says so."""
    monkeypatch.setattr("agent.commands.runner.FOLLOW_S", 0.0)
    node = Node(tmp_path, allow=frozenset({"node.reboot"}), action=Leaving())
    node.action.go.clear()
    await node.commander.handle(signed(reboot().payload()))
    await asyncio.sleep(0)
    await node.commander.handle(cancellation(action="node.reboot"))
    await asyncio.sleep(0)
    assert node.results() == []
    assert isinstance(node.action, Leaving)
    node.action.ended = ActionError("it stays")
    await node.settled()
    assert node.results() == [(ID, "failed")]
    assert tasks_of(node) == []


async def test_a_result_carries_figures_and_what_was_not_tested(tmp_path: Path) -> None:
    """In the event's data, whether the test was passed or not; and after a restart of the agent too."""
    done = Done(
        text="acceptance",
        evidence="bundle.tar.gz",
        evidence_bytes=17,
        figures=(Figure(name="bus_gb_per_s", value=371.5),),
        alike="8 NVIDIA H100",
        untested=("nvbandwidth: it is not installed",),
    )
    for error, outcome in ((None, "ok"), (NotPassed(done), "failed")):
        node = Node(tmp_path / outcome, action=Measuring(done))
        node.action.ends = error
        await node.commander.handle(signed(order().payload()))
        await node.settled()
        node.restart("run-2")
        node.commander.runner.report_result(node.journal[ID])
        for event in node.sent:
            assert (event.data["outcome"], event.data["why"]) == (outcome, "acceptance")
            assert event.data["figures"] == '{"higher":{"bus_gb_per_s":371.5},"lower":{}}'
            assert event.data["alike"] == "8 NVIDIA H100"
            assert event.data["untested"] == "nvbandwidth: it is not installed"
            assert event.data["evidence_bytes"] == 17
        assert len(node.sent) == 2


class Measuring(Rehearsal):
    """Ends with what the test gave it."""

    def __init__(self, done: Done) -> None:
        super().__init__()
        self.done = done

    async def run(self, params: Params) -> Done:
        """Without evidence of its own."""
        await super().run(params)
        return self.done
