"""Commands over the end of the agent: what the next one settles, asks about, and follows."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.actions.base import Done, Params, StillRunning
from agent.commands.journal import Journal, Result
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from tests.agent.commander_kit import Node, Rehearsal, Tidy, order, soon, tasks_of
from tests.agent.runner_kit import CLIPPED, ID, LONG, begun, ended, event, kept, over


class Leaving(Tidy):
    """Outlives the agent; the test says how it ended, or that it goes on."""

    name: ClassVar[str] = "node.reboot"

    def __init__(self) -> None:
        super().__init__(StillRunning("asked to go down"))
        self.may_end.set()
        self.outcome: Done | Exception = StillRunning("still going down")
        self.asked: list[tuple[dict[str, Any], bool]] = []

    async def resume(self, params: Params, *, rebooted: bool) -> Done:
        """As the test wants it."""
        self.asked.append((dict(params), rebooted))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


REBOOT: dict[str, Any] = {"action": "node.reboot", "params": {"reason": "x"}, "timeout_s": 600.0}


def stays_open(node: Node) -> None:
    """No result, now or in the journal."""
    assert node.results() == []
    assert [entry.id for entry in Journal(node.path).unfinished()] == [ID]
    assert node.commander.runner.running == {}


async def leaving(folder: Path) -> tuple[Node, Leaving]:
    """A node on its way down, whose agent has stopped."""
    action = Leaving()
    node = Node(folder, allow=frozenset({"node.reboot"}), action=action)
    await begun(node, **REBOOT)
    await soon(node.commander.stop())
    stays_open(node)
    return node, action


async def test_what_was_running_when_the_agent_died(tmp_path: Path) -> None:
    """All that is open is settled at the next start, after what had ended is told; in order."""
    node = Node(tmp_path)
    for name in ("told", "untold", "same boot"):
        node.journal.accept(order(id=name), "boot-1", "run-1", 1000.0)
    node.journal.accept(order(id="other boot"), "boot-0", "run-0", 1000.0)
    node.journal.accept(
        order(id="gone", action="service.restart", params={"unit": "x"}), "boot-1", "run-1", 1000.0
    )
    for name in ("told", "untold"):
        node.journal.finish(name, Result(outcome=Outcome.OK, why="done", took_s=7.0, evidence="b"))
    node.journal.mark_reported("told")
    node.restart("run-2")
    await soon(node.commander.recover())
    rebooted = "the node was rebooted while it ran"
    restarted = "the agent was restarted while it ran (same boot)"
    assert [(unsent.data["command"], unsent.data["outcome"], unsent.data["why"]) for unsent in node.sent] == [
        ("untold", "ok", "done"),
        ("same boot", "unknown", restarted),
        ("other boot", "unknown", rebooted),
        ("gone", "unknown", restarted),
    ]
    assert node.action.recovered == [{"component": "node"}] * 2
    again = Journal(node.path)
    assert (again.unfinished(), again.unreported()) == ([], [])


@pytest.mark.parametrize("error", [ActionError, OSError])
async def test_what_cannot_be_put_right(tmp_path: Path, error: type[Exception]) -> None:
    """It is told; a long reason is shortened."""
    reasons = ["eth1 is gone", LONG]

    class Broken(Rehearsal):
        async def recover(self, params: Params) -> None:
            raise error(reasons.pop(0))

    node = Node(tmp_path, action=Broken())
    node.journal.accept(order(), "boot-1", "run-1", 1000.0)
    await soon(node.commander.recover())
    why = "the agent was restarted while it ran (same boot); putting it right failed: eth1 is gone"
    assert node.sent == [ended("unknown", why)]
    node.journal.accept(order(id="again"), "boot-1", "run-1", 1000.0)
    await soon(node.commander.recover())
    assert len(str(node.sent[-1].data["why"])) == 500


@pytest.mark.parametrize(
    ("boot", "outcome", "told"),
    [
        ("boot-1", Done(text="back"), ("ok", "back")),
        ("boot-2", Done(text=LONG), ("ok", CLIPPED)),
        ("boot-1", ActionError("it did not reboot"), ("failed", "it did not reboot")),
        ("boot-1", Refused(LONG), ("failed", CLIPPED)),
        ("boot-1", Unreachable("no D-Bus"), ("unknown", "cannot tell what became of it: no D-Bus")),
        ("boot-1", TimedOut("no answer"), ("unknown", "cannot tell what became of it: no answer")),
        ("boot-1", OSError("no D-Bus"), ("unknown", "cannot tell what became of it: no D-Bus")),
    ],
)
async def test_how_it_ended_without_the_agent(
    tmp_path: Path, boot: str, outcome: Done | Exception, told: tuple[str, str]
) -> None:
    """Its action is asked once, with its parameters and whether the node has rebooted; it is not repaired or repeated."""
    node, action = await leaving(tmp_path)
    node.clock.boot, node.clock.mono_s, action.outcome = boot, 1300.0, outcome
    node.restart("run-2")
    await soon(node.commander.recover())
    assert action.asked == [({"reason": "x"}, boot == "boot-2")]
    assert node.sent == [ended(*told)]
    assert (action.recovered, action.runs, node.commander.runner.running) == ([], 1, {})
    assert kept(node) == [Result(outcome=Outcome(told[0]), why=told[1]), True]


@pytest.mark.parametrize("late", [StillRunning("still going down"), StillRunning(LONG)])
async def test_it_goes_on_beyond_its_time(tmp_path: Path, late: Exception) -> None:
    """At the end of its time nobody waits any more."""
    node, action = await leaving(tmp_path)
    action.outcome = late
    node.clock.mono_s = 1600.0
    node.restart("run-2")
    await soon(node.commander.recover())
    why = f"its time is over, and it still goes on: {late}"
    assert node.sent == [ended("unknown", why if len(why) <= 500 else why[:499] + "…")]


async def test_the_next_agent_follows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is checked each second, reports progress, cannot be called back, and ends with its result."""
    slept: list[float] = []
    really = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        if delay_s:
            slept.append(delay_s)
        await really(0)

    node, action = await leaving(tmp_path)
    monkeypatch.setattr("agent.commands.runner.asyncio.sleep", sleep)
    node.restart("run-2")
    node.clock.mono_s = 1100.0
    await soon(node.commander.recover())
    runner = node.commander.runner
    assert [task.get_name() for task in tasks_of(node)] == [f"command {ID}"]
    runner.cancel(ID, "ann: stop")
    for _ in range(10):
        await really(0)
    assert set(slept) == {1.0}
    assert len(action.asked) > 1
    node.clock.mono_s = 1110.0
    runner.report_progress()
    assert node.sent == [
        event("command.progress", elapsed_s=10.0, text="node.reboot goes on without the agent")
    ]
    action.outcome = Done(text="it stays up", evidence="b", evidence_bytes=3)
    await over(node)
    assert node.sent[1:] == [ended("ok", "it stays up", 10.0)]


async def test_an_agent_that_stops_while_it_follows(tmp_path: Path) -> None:
    """The command stays open: before the first look, between two, and though it was cancelled."""
    node, _ = await leaving(tmp_path)
    for looks, cancelled in ((0, False), (1, False), (1, True)):
        node.restart("run-2")
        await soon(node.commander.recover())
        if cancelled:
            node.commander.runner.cancel(ID, "ann: stop")
        for _ in range(looks):
            await asyncio.sleep(0)
        await soon(node.commander.stop())
        stays_open(node)


async def test_cancelled_but_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be called back is followed in the same run, and says what it does."""
    monkeypatch.setattr("agent.commands.runner.FOLLOW_S", 0.0)
    action = Leaving()
    node = Node(tmp_path, allow=frozenset({"node.reboot"}), action=action)
    await begun(node, **REBOOT)
    runner = node.commander.runner
    runner.cancel(ID, "ann: stop")
    for _ in range(3):
        await asyncio.sleep(0)
    node.clock.mono_s += 10
    runner.report_progress()
    assert node.sent == [event("command.progress", elapsed_s=10.0, text="asked to go down")]
    assert runner.running[ID].detached
    runner.running[ID].cancelled = ""
    runner.cancel(ID, "ann: stop again")
    await asyncio.sleep(0)
    assert ID in runner.running
    action.outcome = Done(text="back")
    await over(node)
    assert node.sent[1:] == [ended("ok", "back", 10.0)]


async def test_what_could_outlive_the_agent_and_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends like any other: nobody asks what became of it."""
    monkeypatch.setattr("agent.commands.runner.FOLLOW_S", 0.0)
    action = Leaving()
    node = Node(tmp_path, allow=frozenset({"node.reboot"}), action=action)
    await begun(node, **REBOOT)
    (task,) = tasks_of(node)
    await over(node)
    for _ in range(20):
        await asyncio.sleep(0)
    assert task.done()
    assert node.results() == [(ID, "ok")]
    assert action.asked == []
