"""What a person says by `gpuward top`: shown exactly before it is said, said once, and judged by the brain alone."""

from pathlib import Path

import pytest

from brain.cli.top.questions import Question
from brain.core.inputs import OperatorCommand
from tests.brain.top.kit import Served, Terminal, link_down, served, terminal
from tests.brain.world import Story

WHAT = "bounce: link.bounce(link=link/eth0) on link/n1/eth0"


def approved_by(whole: Served) -> str:
    """Who has approved the run, as the engine knows it."""
    (run,) = [one for one in whole.brain.story.time.runs.values() if one.runbook.name == "bounce"]
    return run.approved.who if run.approved else ""


async def open_question(at: Terminal, verb: str) -> None:
    """About the row that is selected: its words, and then the one that is meant."""
    await at.press("a")
    await at.sees("What do you say?")
    names = {"approve": 0, "deny": 1, "ack": 2, "hold": 3}
    await at.press(*(["down"] * names[verb]), "enter")
    await at.until(lambda: isinstance(at.app.screen, Question), "the question is open")


async def select(at: Terminal, what: str) -> None:
    """Moves down to the row whose sentence has this."""
    await at.sees(what)
    await at.press("home")
    for _ in range(20):
        if at.app.view.selected and what in " ".join(one.text for one in at.app.view.selected.fields):
            return
        await at.press("down")
    raise AssertionError(f"no row has {what}:\n{at.screen()}")


async def test_an_approval_shows_exactly_what_is_approved(tmp_path: Path) -> None:
    """Step, parameters, place, what it disrupts, and for how long; whoever only types Enter has said nothing. Agreed, it stands
    on the log under the name of whoever has the token, and the list shows what came of it.
    """
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await select(at, "waits for an approval")
            await open_question(at, "approve")
            await at.sees(
                "Approve this step?", WHAT, "Disrupts: the node, with all of its jobs", "counts for 1 h 0 min"
            )
            await at.press("enter")
            assert not isinstance(at.app.screen, Question)
            assert approved_by(whole) == ""
            await open_question(at, "approve")
            await at.press("tab", "enter")
            await at.until(lambda: approved_by(whole) == "ann", "the run is approved by ann")
            await at.until(lambda: not isinstance(at.app.screen, Question), "the question is answered")
            await at.until(lambda: "waits for an approval" not in at.screen(), "it waits no more")


async def test_what_has_changed_is_not_approved(tmp_path: Path) -> None:
    """Somebody else denies it while the question is read: it says so, and the brain's refusal stands there in its own words."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await select(at, "waits for an approval")
            await open_question(at, "approve")
            await at.sees(WHAT)

            def denied(story: Story) -> None:
                (run,) = [one for one in story.engine.state.runs.values() if one.runbook.name == "bounce"]
                story.say(story.engine.state.now + 1, "deny", id=run.id)
                story.run(story.engine.state.now + 2)

            whole.play(denied)
            await at.sees("This has changed since")
            await at.press("tab", "enter")
            await at.until(lambda: "This has changed since" not in at.screen(), "the brain has answered")
            assert isinstance(at.app.screen, Question), "it stays open, so that the refusal is read"
            refusal = " ".join(at.screen().split())
            assert "bounce" in refusal or "approv" in refusal
            assert approved_by(whole) == ""


@pytest.mark.parametrize(
    ("who", "says"),
    [("vic", "Your role (may read) may say nothing about this."), ("nobody", "You have shown no token")],
)
async def test_whoever_may_not_is_told_so(tmp_path: Path, who: str, says: str) -> None:
    """A viewer, and somebody without a token: nothing is offered, and nothing reaches the log."""
    heard: list[OperatorCommand] = []
    with served(tmp_path, link_down(), open_reading=True) as whole:
        async with terminal(whole, who) as at:
            await select(at, "waits for an approval")
            await at.sees({"vic": "vic, may read", "nobody": "you only read"}[who])
            await at.press("a")
            await at.sees(says)
            assert not heard
            assert approved_by(whole) == ""


async def test_an_operator_is_offered_no_approval(tmp_path: Path) -> None:
    """The brain says which words each may use."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole, "olga") as at:
            await select(at, "waits for an approval")
            await at.sees("olga, operator")
            await at.press("a")
            await at.sees("What do you say?", "Deny")
            assert "Approve" not in at.screen()


async def test_two_persons(tmp_path: Path) -> None:
    """It is said before, and the brain's answer says that a second one is waited for."""
    with served(tmp_path, link_down(), two_persons=["approve"]) as whole:
        async with terminal(whole) as at:
            await select(at, "waits for an approval")
            await open_question(at, "approve")
            await at.sees("Two persons: it counts when a second one says the same.")
            await at.press("tab", "enter")
            await at.until(lambda: not isinstance(at.app.screen, Question), "it is answered")
            await at.sees("ann has said it; it counts when another person says the same")
            assert approved_by(whole) == ""


async def test_a_node_is_held_with_a_reason_and_for_a_while(tmp_path: Path) -> None:
    """Neither without a reason nor for "4": people mean hours. Then the list shows it, and it is released by the same key."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.press("4")
            await select(at, "link-down")
            await at.press("a")
            await at.sees("Hold")
            await at.press("end", "enter")
            await at.sees("Hold everything there?", "hold scope=node/n1")
            await at.press("enter", "enter", "enter")
            await at.sees("This must be given: Why")
            await at.press("shift+tab", "shift+tab", "shift+tab", *"new cable [red]", "enter")
            await at.press("end", "backspace", "enter", "enter")
            await at.sees("That is no span such as 30m, 4h or 1d.")
            await at.press("shift+tab", "shift+tab", "end", "backspace", *"2h", "enter", "enter")
            await at.until(lambda: whole.brain.state.holds, "it is held")
            (hold,) = whole.brain.state.holds.values()
            assert (hold.scope, hold.who, hold.why, round(hold.until - hold.since)) == (
                "node/n1",
                "ann",
                "new cable [red]",
                7200,
            )
            await at.sees("held")
            await at.until(lambda: at.app._status["holds"], "the status has it")
            await at.press("a")
            await at.sees("End the hold")
            await at.press("end", "enter")
            await at.sees("End this hold?", "new cable [red]")
            await at.press("tab", "enter")
            await at.until(lambda: not whole.brain.state.holds, "it is released")
