"""What the runner records and reports, to the letter: how commands end, take long, and are cancelled."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.actions.base import RUNNING_COMMAND, Done, Params, report_progress
from agent.commands.journal import Journal, Result
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.figures import Figure
from agent.contract.messages import UnsentEvent
from tests.agent.commander_kit import Node, Rehearsal, Tidy, accepted, order, soon, tasks_of
from tests.agent.runner_kit import CLIPPED, ID, LONG, begun, ended, event, kept, over


async def test_a_result_in_full(tmp_path: Path) -> None:
    """Recorded and reported alike, by the node's clock, and the uploader is woken for its bundle."""
    node = Node(tmp_path)
    await begun(node)
    (task,) = tasks_of(node)
    assert task.get_name() == f"command {ID}"
    node.clock.mono_s += 2.50049
    await over(node)
    await asyncio.wait([task], timeout=5)
    assert task.exception() is None
    assert node.sent == [
        ended("ok", "looked", 2.5, evidence=f"gpu-1/{ID}", evidence_bytes=17),
    ]
    assert node.sent_at == [1002.50049]
    assert node.bundles == 1
    result = Result(outcome=Outcome.OK, why="looked", took_s=2.5, evidence="bundle.tar.gz", evidence_bytes=17)
    assert kept(node) == [result, True]


MEASURED = Done(
    text="tested", figures=(Figure(name="nccl.bus_gb_per_s", value=370.5),), alike="8 x H100", untested=("no dcgmi",) * 2
)  # fmt: skip
FIGURES = '{"higher":{"nccl.bus_gb_per_s":370.5},"lower":{}}'


@pytest.mark.parametrize(
    ("done", "told"),
    [
        pytest.param(Done(text="looked", blind="nvml,kmsg"), {"blind": "nvml,kmsg"}, id="it could not look everywhere"),
        pytest.param(
            MEASURED,
            {"figures": FIGURES, "alike": "8 x H100", "untested": "no dcgmi; no dcgmi"},
            id="what it measured, and what it could not test",
        ),
    ],
)  # fmt: skip
async def test_what_it_found(tmp_path: Path, done: Done, told: dict[str, str]) -> None:
    """It is told, and kept: a restart tells it again."""
    node = Node(tmp_path)
    node.action.done = done
    await begun(node)
    await over(node)
    assert node.sent == [ended("ok", done.text, 0.0, **told)]
    (result, _) = kept(node)
    assert (result.blind, result.data) == (
        told.get("blind", ""),
        {} if done.blind else told,
    )


@pytest.mark.parametrize(
    ("error", "outcome", "why"),
    [
        (Refused("no"), "refused", "no"),
        (Unreachable("nobody there"), "unreachable", "nobody there"),
        (TimedOut("who knows"), "unknown", "who knows"),
        (ActionError("did not help"), "failed", "did not help"),
        (PermissionError(1, "not permitted"), "failed", "[Errno 1] not permitted"),
        (ZeroDivisionError("a bug"), "unknown", "the agent was stopped, or failed, while it ran"),
        (ActionError(LONG), "failed", CLIPPED),
        (TimeoutError(), "unknown", "not done within 60 s"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_why_it_ended(tmp_path: Path, error: Exception, outcome: str, why: str) -> None:
    """In the action's words, and no bundle is promised."""
    node = Node(tmp_path)
    node.action.ends = error
    await begun(node)
    node.clock.mono_s += 1.2344
    await over(node)
    assert node.sent == [ended(outcome, why, 1.234)]
    assert kept(node) == [Result(outcome=Outcome(outcome), why=why, took_s=1.234), True]
    assert node.bundles == 0


async def test_its_time_is_over(tmp_path: Path) -> None:
    """The action is cancelled; what continues all the same is followed."""
    node = Node(tmp_path)
    await begun(node, timeout_s=0.01)
    await asyncio.wait(tasks_of(node), timeout=5)
    assert node.sent == [ended("unknown", "not done within 0.01 s")]


async def test_a_bundle_that_is_made_before_the_disk_fails(tmp_path: Path) -> None:
    """Without a journal the result is still told once, and its bundle is uploaded."""
    node = Node(tmp_path)
    await begun(node)
    node.path.unlink()
    node.path.mkdir()
    await over(node)
    assert [(unsent.kind, unsent.data["outcome"]) for unsent in node.sent] == [("command.result", "ok")]
    assert node.bundles == 1
    (entry,) = node.journal.unreported()
    assert entry.result is not None


async def test_progress_in_full(tmp_path: Path) -> None:
    """Each ten seconds exactly, since the last report; the action knows for which command it works."""
    working_for: list[str] = []

    class Busy(Rehearsal):
        async def run(self, params: Params) -> Done:
            command = RUNNING_COMMAND.get()
            working_for.append(command.id if command else "")
            return await super().run(params)

    node = Node(tmp_path, action=Busy())
    node.action.progress = LONG
    await begun(node)
    assert working_for == [ID]
    runner = node.commander.runner
    for elapsed_s in (9.99, 10.0, 19.99, 25.16, 30.0, 35.16):
        node.clock.mono_s = 1000.0 + elapsed_s
        runner.report_progress()
    assert node.sent == [
        event("command.progress", elapsed_s=elapsed_s, text=CLIPPED) for elapsed_s in (10.0, 25.2, 35.2)
    ]
    assert node.sent_at == [1010.0, 1025.16, 1035.16]
    await over(node)


async def test_progress_of_several(tmp_path: Path) -> None:
    """Each by its own time: one that was just reported keeps no other back; what says nothing has an empty text."""
    node = Node(tmp_path)
    await begun(node)
    for name in ("second", "third"):
        node.clock.mono_s += 5
        accepted(node, order(id=name))
    runner = node.commander.runner

    def heard() -> list[Any]:
        node.sent.clear()
        runner.report_progress()
        return [tuple(unsent.data.values()) for unsent in node.sent]

    assert heard() == [(ID, 10.0, "")]
    node.clock.mono_s += 5
    assert heard() == [("second", 10.0, "")]
    node.clock.mono_s += 5
    assert heard() == [(ID, 20.0, ""), ("third", 10.0, "")]
    await soon(node.commander.stop())


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("ann: wrong node", "cancelled: ann: wrong node"),
        ("", "cancelled"),
        (LONG, f"cancelled: {'x' * 488}…"),
    ],
)
async def test_a_cancellation(tmp_path: Path, tidy: Tidy, why: str, told: str) -> None:
    """The first counts: its reason is the result's, and the action is cancelled once."""
    node = Node(tmp_path, action=tidy)
    await begun(node)
    node.commander.runner.cancel(ID, why)
    await asyncio.sleep(0)
    node.commander.runner.cancel(ID, "again")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert node.sent == []
    tidy.may_end.set()
    await over(node)
    assert tidy.disturbed == 0
    assert node.sent == [ended("failed", told)]


async def test_a_cancellation_before_the_first_step(tmp_path: Path) -> None:
    """Nothing was done, and the result says so at once."""
    node = Node(tmp_path)
    accepted(node, order())
    task = tasks_of(node)[0]
    node.commander.runner.cancel(ID, "wrong node")
    assert node.sent == [ended("refused", "cancelled: wrong node (before it had begun: nothing was done)")]
    assert node.commander.runner.running == {}
    await asyncio.wait([task], timeout=5)
    assert (len(node.sent), node.action.runs) == (1, 0)
    accepted(node, order(id="again"))
    node.commander.runner.cancel("again", LONG)
    assert len(str(node.sent[-1].data["why"])) == 500


async def test_trouble_while_it_is_cancelled(tmp_path: Path) -> None:
    """It failed, whatever the error: told with the cancellation."""
    action = Tidy(Unreachable("eth1 is gone"))
    action.may_end.set()
    node = Node(tmp_path, action=action)
    await begun(node)
    node.commander.runner.cancel(ID, "")
    await over(node)
    assert node.sent == [ended("failed", "cancelled; eth1 is gone")]


async def test_the_agent_stops(tmp_path: Path, tidy: Tidy) -> None:
    """What runs is cancelled, and waited for; what is being cancelled is not disturbed; what had not begun never does."""
    node = Node(tmp_path, action=tidy)
    await begun(node)
    accepted(node, order(id="cancelled"))
    await asyncio.sleep(0)
    node.commander.runner.cancel("cancelled", "wrong node")
    await asyncio.sleep(0)
    stopping = asyncio.create_task(node.commander.stop())
    accepted(node, order(id="fresh"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not stopping.done()
    assert node.sent == []
    tidy.may_end.set()
    await soon(stopping)
    told = {unsent.data["command"]: (unsent.data["outcome"], unsent.data["why"]) for unsent in node.sent}
    assert told == {
        ID: ("unknown", "the agent was stopped, or failed, while it ran"),
        "cancelled": ("failed", "cancelled: wrong node"),
        "fresh": ("unreachable", "the agent was stopped before it began: nothing was done"),
    }
    assert (len(node.sent), tidy.disturbed, tidy.runs) == (3, 0, 2)
    assert node.commander.runner.running == {}
    assert Journal(node.path).unfinished() == []


async def test_a_result_is_never_told_before_it_is_recorded(tmp_path: Path) -> None:
    """What goes up has been on the disk before; nor is an open command told as ended."""
    node = Node(tmp_path)
    found: list[str] = []
    put = node.put

    def look(unsent: UnsentEvent, mono_s: float) -> None:
        found.append(node.path.read_text().splitlines()[-1])
        put(unsent, mono_s)

    node.put = look  # type: ignore[method-assign]
    await begun(node)
    node.commander.runner.report_result(node.journal[ID])
    assert found == []
    await over(node)
    assert [json.loads(line)["done"] for line in found] == [ID]
    report_progress("nobody listens any more")
