"""Law 15 over time: what a node says of a step holds a budget that others wait for no longer than the step can be true.

A leaf has a budget of one. A GPU of `THIEF` falls off the bus, its reboot begins, and then one of its neighbour's falls off.
"""

from collections.abc import Callable, Iterable

import pytest

from agent.actions import node_reboot
from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.core.effects import AskLook, Effect, Perform, Step
from brain.core.healing import unanswered
from brain.core.inputs import EventSeen, Input, NodeState, StepProgress, StepResult
from brain.core.pack.spec import Place
from tests.brain.test_one_node_lies import THIEF, lost, site
from tests.brain.world import Story

MATE = "n01"
Says = Callable[["Held", Step, float], None]


class Held(Story):
    """`says` is what the thief tells of a step that it accepts."""

    def __init__(self, says: Says, *, loses_a_gpu: bool = True) -> None:
        self.says = says
        self.begun: list[tuple[float, str, str]] = []  # (when, node, action)
        places = {f"n{number:02}": Place(leaf=f"l{number // 8}") for number in range(40)}
        super().__init__(site(places, hold_off_s=1))
        for number in range(40):
            self.event(0, "agent.started", node=f"n{number:02}")
        if loses_a_gpu:
            lost(self, 10, THIEF)
        for at in range(60, 9000, 90):
            lost(self, at, MATE)

    def progress(self, step: Step, at: float) -> None:
        """One sign of life."""
        given = StepProgress(id=f"g:{step.id}:{at}", step=step.id, elapsed_s=at, text="at it", node=step.node)
        self.time.feed(given, at)

    def boots(self, at: float, boot: str) -> None:
        """The thief tells of a start."""
        event = Event(
            id=f"{THIEF}:{boot}:1", node=THIEF, kind="agent.started", component="node", severity=Severity.INFO, at="",
            age_s=0.0, boot=boot, count=1, data={"version": "1"},
        )  # fmt: skip
        self.time.feed(EventSeen(event=event), at)

    def heard(self, at: float, *, alive: bool) -> None:
        """The brain misses its beats, or not any more."""
        self.time.feed(NodeState(id=f"heard:{at}", node=THIEF, alive=alive), at)

    def first(self, node: str, action: str = "node.reboot") -> float:
        """When it was first begun there."""
        return next((at for at, *what in self.begun if what == [node, action]), float("inf"))

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, Perform):
            self.begun.append((now, effect.step.node, effect.step.action))
            if (
                effect.step.node == THIEF
                and effect.step.where == "node"
                and effect.step.action != "evidence.collect"
            ):
                self.performed.append(effect)
                self.says(self, effect.step, now)
                return ()
        if isinstance(effect, AskLook):
            looked = StepResult(
                id=f"k:{effect.step.id}",
                step=effect.step.id,
                outcome=Outcome.OK,
                why="looked",
                node=effect.step.node,
            )
            return [(now + 1, looked)]
        return super()._answer(effect, now)


def talks(story: Held, step: Step, now: float) -> None:
    """It is at it, it says, all the time."""
    for after in range(10, 4000, 10):
        story.progress(step, now + after)


def boots_and_talks(story: Held, step: Step, now: float) -> None:
    """It has started anew, it says, again and again, and is still at it."""
    talks(story, step, now)
    for after in range(60, 4000, 60):
        story.boots(now + after, f"boot-{after}")


def flickers(story: Held, step: Step, now: float) -> None:
    """It talks, and is silent whenever somebody might look whether it is there."""
    talks(story, step, now)
    for after in range(40, 4000, 20):
        story.heard(now + after, alive=after % 40 == 20)


def is_down(story: Held, step: Step, now: float) -> None:
    """It is silent as a node is that boots for a quarter of an hour, and comes back."""
    story.heard(now + 45, alive=False)
    story.boots(now + 900, "second")
    story.heard(now + 901, alive=True)
    ended = StepResult(id=f"r:{step.id}", step=step.id, outcome=Outcome.OK, why="back", node=THIEF)
    story.time.feed(ended, now + 905)


def was_cut_off(story: Held, step: Step, now: float) -> None:
    """It is cut off, says meanwhile that it does not go down, and is heard again."""
    story.heard(now + 20, alive=False)
    story.heard(now + 500, alive=True)
    ended = StepResult(
        id=f"r:{step.id}", step=step.id, outcome=Outcome.FAILED, why="it still runs", node=THIEF
    )
    story.time.feed(ended, now + 530)


def ends_well(story: Held, step: Step, now: float) -> None:
    """It does what it is told at once; only its tests take as long as they may."""
    if step.action in ("gpu.diagnose", "node.accept"):
        talks(story, step, now)
        return
    done = StepResult(id=f"r:{step.id}", step=step.id, outcome=Outcome.OK, why="done", node=THIEF)
    story.time.feed(done, now + 30)


class TestRebootOfAThief:
    """A node that is heard does not reboot, whatever it says of it."""

    @pytest.mark.parametrize("says", [talks, flickers])
    def test_a_node_that_only_talks_of_its_reboot_leaves_the_budget(self, says: Says) -> None:
        story = Held(says)
        story.run(2000)
        began = story.first(THIEF)
        assert began < 60
        assert began + 300 < story.first(MATE) < began + 480, (
            "once it could not be true any more, and not before"
        )
        (told,) = [one for one in story.notes("run.exhausted") if "reboot" in one]
        assert told.startswith(f"{THIEF} is heard, and gives no sign of life of reboot")
        assert [one.text for one in story.time.pages if one.subject.node == THIEF and told in one.text]

    def test_a_node_that_tells_of_a_new_start_has_rebooted(self) -> None:
        """However often it tells so: what it does not say of the step is not waited for, and its fault is verified."""
        story = Held(boots_and_talks)
        story.run(1500)
        began = story.first(THIEF)
        (run,) = [one for one in story.time.runs.values() if one.node == THIEF]
        (reboot,) = [one for one in run.steps if one.action == "node.reboot"]
        assert (reboot.outcome, "has started anew" in reboot.why) == ("unknown", True)
        assert story.first(MATE) < began + 900

    def test_what_it_says_late_gives_it_no_further_share(self) -> None:
        """Each time that it is given up it says at last that its step has failed: twice, and then a person must let it."""
        story = Held(talks)
        for number in range(1, 13):  # so far apart that each is a fault of its own
            lost(story, 10 + 700 * number, THIEF, f"gpu/0000:{number:02x}:00")
        for at in range(400, 9000, 30):
            story.run(at)
            for run in list(story.time.runs.values()):
                if run.node == THIEF and run.state == "exhausted" and run.steps:
                    late = StepResult(
                        id=f"late:{run.id}:{at}",
                        step=run.steps[-1].id,
                        outcome=Outcome.FAILED,
                        why="no",
                        node=THIEF,
                    )
                    story.time.feed(late, at)
        assert len([at for at, *what in story.begun if what == [THIEF, "node.reboot"]]) == 2
        assert [one for one in story.notes("run.exhausted") if "2 steps without a result within a day" in one]


class TestOtherSteps:
    """What is no reboot has short deadlines; whoever only talks until then may do so once."""

    def test_a_node_that_talks_until_the_deadline_twice_goes_to_a_person(self) -> None:
        story = Held(talks, loses_a_gpu=False)
        for number in range(12):
            story.event(
                20 + 100 * number, "service.state", f"service/a{number}.service", THIEF, active="failed"
            )
        story.run(6000)
        restarts = [at for at, *what in story.begun if what == [THIEF, "service.restart"]]
        assert len(restarts) == 2
        assert [one for one in story.notes("run.exhausted") if "2 steps without a result within a day" in one]

    def test_a_step_that_is_not_wanted_any_more_is_not_waited_for_longer(self) -> None:
        """A person closes its incident while it talks of the reboot."""
        story = Held(talks)
        story.run(40)
        began = story.first(THIEF)
        (incident,) = [one for one in story.incidents("gpu-lost") if one.node == THIEF]
        story.say(40, "close", id=incident.id)
        story.run(2000)
        assert began + 300 < story.first(MATE) < began + 480
        (run,) = [story.time.runs[one] for one in incident.runs]
        assert run.state == "cancelled"


class TestHonestNodes:
    """The price is not theirs."""

    def test_a_node_that_boots_for_a_quarter_of_an_hour_keeps_the_budget(self) -> None:
        """Law 1: its neighbour does not reboot meanwhile."""
        story = Held(is_down)
        story.run(4000)
        began = story.first(THIEF)
        assert story.first(MATE) > began + 900
        assert not [one for one in story.notes("run.exhausted") if "sign of life" in one]

    def test_a_node_that_was_cut_off_and_not_rebooted_says_so_when_it_is_heard(self) -> None:
        """It comes back with its old boot, and its result with it: the next rung follows."""
        story = Held(was_cut_off)
        story.run(1200)
        (incident,) = [one for one in story.incidents("gpu-lost") if one.node == THIEF]
        (reboot,) = [one for one in story.time.runs[incident.runs[0]].steps if one.action == "node.reboot"]
        assert (reboot.outcome, reboot.why) == ("failed", "it still runs")
        assert story.first(THIEF, "bmc.power_cycle") < 700

    def test_an_agent_says_in_time_that_its_node_does_not_go_down(self) -> None:
        """With what it waits for logind, for systemd, and for the node to go down."""
        assert node_reboot.GO_DOWN_S + 3 * node_reboot._ANSWER_S < unanswered.GONE_BY_S


class TestLongTests:
    """A node that is tested before its return keeps itself, and after a while no budget (as one that waits for jobs)."""

    def test_who_waits_does_not_wait_for_long_tests(self) -> None:
        story = Held(ends_well)
        story.run(4000)
        began = story.first(THIEF, "gpu.diagnose")
        assert began + 700 < story.first(MATE) < began + 1000
        (run,) = [one for one in story.time.runs.values() if one.node == THIEF]
        assert run.worked, "and the tests go on"
