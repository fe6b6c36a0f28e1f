"""A node that neither gpuward nor its scheduler hears is restarted without people, where the site wants it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.messages import Severity
from brain.core.effects import AskJobs, Effect, Perform
from brain.core.inputs import Input, JobsAnswer, NodeState, Reported
from brain.core.pack.spec import Mode, ModeSetting, Place, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
RESTART = "bmc.restart"
AFTER_S = 900.0
FALLS_SILENT = 100.0


class Site(Story):
    """Its BMCs work, and its scheduler says which jobs run on a node. No person ever says anything."""

    def __init__(
        self,
        *,
        mode: Mode = Mode.AUTO,
        nodes: int = 1,
        places: dict[str, Place] | None = None,
        **settings: Any,
    ) -> None:
        given: dict[str, Any] = {"ask_jobs": True, "restart_lost_nodes_s": AFTER_S, **settings}
        self.jobs: tuple[str, ...] = ()
        self.protected = ""
        self.knows = True
        self.answers = True
        self.answered_by = "train"
        self.asked = 0
        super().__init__(
            replace(
                SHIPPED, settings=Settings(modes=(ModeSetting(mode=mode),), **given), places=places or {}
            ),
            heals=False,
        )
        self.nodes = [f"n{number + 1}" for number in range(nodes)]
        for node in self.nodes:
            self.time.feed(NodeState(id=f"{node}-here", node=node, alive=True), 1)

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, AskJobs):
            self.asked += 1
            if not self.answers:
                return
            yield (
                now + 1,
                JobsAnswer(
                    id=f"j{self.asked}",
                    node=effect.node,
                    known=self.knows,
                    jobs=self.jobs,
                    protected=self.protected,
                    why="" if self.knows else "it is down",
                    scheduler=self.answered_by,
                ),
            )
            return
        yield from super()._answer(effect, now)
        if isinstance(effect, Perform) and effect.step.action == RESTART:
            node = effect.step.node
            yield now + 200, NodeState(id=f"{node}-back", node=node, alive=True)

    def silent(self, at: float = FALLS_SILENT) -> None:
        """Its nodes are not heard any more by gpuward."""
        for node in self.nodes:
            self.time.feed(NodeState(id=f"{node}-gone", node=node, alive=False, silent_s=15), at)

    def lost(self, at: float, *, active: bool = True) -> None:
        """What the scheduler says of them, which has a daemon of its own there."""
        for node in self.nodes:
            self.time.feed(
                Reported(
                    id=f"scheduler:train:{node}:scheduler.lost:{at}",
                    source="scheduler",
                    node=node,
                    kind="scheduler.lost",
                    component="node",
                    severity=Severity.WARNING if active else Severity.INFO,
                    data={"active": active, "scheduler": "train", "text": "DOWN+NOT_RESPONDING"},
                ),
                at,
            )

    def restarts(self) -> list[str]:
        """The nodes that were restarted."""
        return [node for node, action in self.actions() if action == RESTART]

    def wanted(self) -> str:
        """Why the newest run waits for an approval."""
        run = list(self.time.runs.values())[-1]
        assert run.state == "approval", run
        return str(run.why)

    def held(self) -> str:
        """Why it waits, and for nobody."""
        run = list(self.time.runs.values())[-1]
        assert run.state == "held", run
        return str(run.why)


def test_two_witnesses_and_no_job_need_no_person() -> None:
    """Slurm gives a node up after five minutes; when it could have booted by itself it is restarted, and is back in service."""
    site = Site()
    site.silent()
    site.lost(400)
    site.run(FALLS_SILENT - 15 + AFTER_S - 1)
    assert site.restarts() == []
    assert "wake-node may go on without an approval once n1 has been silent for 15 minutes" in site.held()
    site.run(FALLS_SILENT + AFTER_S + 700)
    assert site.restarts() == ["n1"]
    assert [one.state for one in site.incidents("node-unreachable")] != ["open"]


@pytest.mark.parametrize(
    ("what", "change", "reason"),
    [
        ("the site has not said so", {"restart_lost_nodes_s": 0.0}, "wake-node is in approve mode"),
        ("no scheduler is asked", {"ask_jobs": False}, "wake-node is in approve mode"),
        ("approve mode", {"mode": Mode.APPROVE}, "wake-node is in approve mode"),
    ],
)
def test_what_the_site_says_counts(what: str, change: dict[str, Any], reason: str) -> None:
    """Nothing is restarted, for a day."""
    site = Site(**change)
    site.silent()
    site.lost(400)
    site.run(86_400)
    assert site.restarts() == [], what
    assert reason in site.wanted(), what


def test_observe_mode_only_plans() -> None:
    """Whatever else is set."""
    site = Site(mode=Mode.OBSERVE)
    site.silent()
    site.lost(400)
    site.run(86_400)
    assert site.actions() == []


def test_one_witness_is_not_enough() -> None:
    """Perhaps only the agent is dead. What keeps the run from going on is said."""
    site = Site()
    site.silent()
    site.run(86_400)
    assert site.restarts() == []
    assert "(nothing says that the scheduler hears nothing of the node either)" in site.wanted()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"jobs": ("4711",)}, "by the scheduler 4711 runs there"),
        ({"jobs": ("4711",), "protected": "4711 (of vip)"}, "by the scheduler 4711 runs there"),
        ({"knows": False}, "it is not known what runs there: it is down"),
    ],
)
def test_a_job_that_may_run_there_is_not_ended(change: dict[str, Any], reason: str) -> None:
    """Until the scheduler has given it up: then nobody needs to say anything."""
    site = Site()
    vars(site).update(change)
    site.silent()
    site.lost(400)
    site.run(4000)
    assert site.restarts() == []
    assert reason in site.wanted()
    site.jobs, site.protected, site.knows = (), "", True
    site.run(4900)
    assert site.restarts() == ["n1"]


def test_a_scheduler_that_says_nothing_is_asked_for_five_minutes() -> None:
    """Then people are."""
    site = Site()
    site.answers = False
    site.silent()
    site.lost(400)
    site.run(FALLS_SILENT + AFTER_S + 200)
    assert "if no job runs there: the scheduler is asked" in site.held()
    site.run(FALLS_SILENT + AFTER_S + 700)
    assert site.restarts() == []
    assert "the scheduler has not said what runs there" in site.wanted()
    assert site.asked < 120


def test_people_may_agree_before_that() -> None:
    """They know more."""
    site = Site()
    site.silent()
    site.run(300)
    (run,) = site.time.runs.values()
    site.say(301, "approve", id=run.id)
    site.run(320)
    site.say(321, "approve", id=run.id)
    site.run(700)
    assert site.restarts() == ["n1"]


def test_a_scheduler_that_hears_the_node_again_stops_it() -> None:
    """The last moment counts."""
    site = Site()
    site.silent()
    site.lost(400)
    site.lost(401, active=False)
    site.run(86_400)
    assert site.restarts() == []


def test_a_hold_stops_it() -> None:
    """Law 2."""
    site = Site()
    site.say(50, "hold", scope="node/n1", why="cables", for_s=50_000)
    site.silent()
    site.lost(400)
    site.run(40_000)
    assert site.restarts() == []


def test_many_at_once_are_a_shared_cause() -> None:
    """Law 6: a switch of the control network silences the agents and the scheduler's daemons alike."""
    site = Site(nodes=24, shared_small_share=0.5)
    site.silent()
    site.lost(400)
    site.run(7200)
    assert site.restarts() == []


def test_it_ends_after_two() -> None:
    """Law 8: who does not stay up is for people."""
    site = Site()
    for times in range(4):
        at = FALLS_SILENT + 4000 * times
        site.time.feed(NodeState(id=f"gone {times}", node="n1", alive=False, silent_s=15), at)
        site.lost(at + 300)
        site.run(at + 3000)
        site.time.feed(NodeState(id=f"back {times}", node="n1", alive=True), at + 3000)
        site.lost(at + 3001, active=False)
        site.run(at + 4000)
    assert len(site.restarts()) <= 2
