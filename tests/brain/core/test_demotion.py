"""A runbook that harms is taken back to approve mode by gpuward itself, and only a person sets it back."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.commands import Outcome
from brain.adapters.snapshot import dump, parse
from brain.core.context import Context
from brain.core.demotion import HARMS
from brain.core.effects import Effect, Perform
from brain.core.healing import harm, modes
from brain.core.index import Index
from brain.core.inputs import Input, NodeState, PackLoaded, StepResult
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Mode, Priority
from brain.core.state import GPUWARD, IncidentState, RunState
from tests.brain.world import GPU, Story, pack

HOUR = 3600.0


class Bounces(Story):
    """One link after the other goes down, on nodes that have nothing in common, and is bounced."""

    def __init__(self, mode: Mode = Mode.AUTO, *, heals: bool = True, **settings: Any) -> None:
        settings.setdefault("same_cause_nodes", 99)
        settings.setdefault("same_cause_nodes_per_day", 99)
        super().__init__(pack(mode, **settings), heals=heals)
        self.clock = 0.0
        self.fails = False

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if self.fails and isinstance(effect, Perform):
            step = effect.step
            yield (
                now + 1,
                StepResult(id=f"f:{step.id}", step=step.id, outcome=Outcome.FAILED, why="no", node=step.node),
            )
        else:
            yield from super()._answer(effect, now)

    def bounced(self, node: str, after: str = "") -> None:
        """A link of the node goes down and is bounced; then it falls `silent`, gets a `lost` GPU, or an `idle` one."""
        at = self.clock = self.clock + 2 * HOUR
        self.time.feed(NodeState(id=f"{node}-{at}", node=node, alive=True), at)
        self.event(at + 1, "link.state", "link/eth1", node, up=False)
        self.run(at + 60)
        if after == "silent":
            self.time.feed(NodeState(id=f"{node}-gone-{at}", node=node, alive=False, silent_s=30), at + 60)
        elif after == "lost":
            self.event(at + 60, "gpu.xid", GPU, node, code=79)
        elif after == "flaps":
            self.event(at + 60, "ib.sm_lid", node=node)
        self.run(at + 200)

    def mode(self, node: str = "n1") -> Mode:
        """In which `bounce` is there."""
        state = self.engine.state
        assert state.pack is not None
        ctx = Context(state, Compiled(state.pack), Index(state), ACTIONS, "asked", observe_all=False)
        return modes.mode_of(ctx, "bounce", node, Mode.AUTO)

    @property
    def told(self) -> Any:
        """The incident of the runbook that harms."""
        (incident,) = self.incidents(HARMS)
        return incident

    @property
    def stands(self) -> str:
        """Its state."""
        return str(self.told.state)


def test_three_of_four_nodes_that_fell_silent_take_a_runbook_back() -> None:
    """It is noted, paged once at low priority, and the next one needs an approval."""
    story = Bounces()
    story.bounced("n1")
    story.bounced("n2", "silent")
    story.bounced("n3", "silent")
    assert story.mode() is Mode.AUTO
    story.bounced("n4", "silent")
    assert story.mode() is Mode.APPROVE
    incident = story.told
    why = "3 of 4 nodes were worse after it: n2 fell silent, n3 fell silent, n4 fell silent"
    assert incident.because == (
        f"gpuward sets bounce to approve: {why}. A person must look why: `gpuward mode bounce auto` lets it act by itself again"
    )
    assert (incident.severity, incident.state) == (Priority.P3, IncidentState.OPEN)
    assert story.notes("mode.demoted") == [f"gpuward sets bounce to approve: {why}"]
    (entry,) = story.engine.state.modes
    assert (entry.who, entry.why, entry.nodes) == (GPUWARD, why, "*")
    story.run(story.clock + 24 * HOUR)
    assert incident.pages.sent == 1
    story.clock += 24 * HOUR
    story.bounced("n5")
    run = next(one for one in story.time.runs.values() if one.node == "n5")
    assert run.state is RunState.APPROVAL
    assert f"bounce is in approve mode (set by gpuward: {why})" in run.why


@pytest.mark.parametrize(("after", "worse"), [("lost", 3), ("flaps", 0)])
def test_a_harder_fault_counts_and_a_lighter_one_does_not(after: str, worse: int) -> None:
    """A lost GPU (P1) after a link (P2) was bounced; a moved subnet manager (P3) is no harm."""
    story = Bounces()
    for node in ("n1", "n2", "n3"):
        story.bounced(node, after)
    assert [one.worse for one in story.engine.state.aftermath["bounce"].values()] == (
        ["got gpu-lost"] * 3 if worse else [""] * 3
    )
    assert story.mode() is (Mode.APPROVE if worse else Mode.AUTO)


def test_one_node_alone_speaks_against_no_runbook() -> None:
    """Law 15: however often it tells that it is worse; and so do two."""
    story = Bounces()
    for _ in range(6):
        story.bounced("n1", "lost")
        story.bounced("n2", "silent")
        story.event(story.clock + 300, "gpu.returned", GPU, "n1")
        story.run(story.clock + HOUR)
    assert story.mode() is Mode.AUTO
    assert not story.incidents(HARMS)


def test_few_among_many_are_chance() -> None:
    """3 of 12 nodes: the bound is below a quarter."""
    story = Bounces()
    for number in range(9):
        story.bounced(f"well-{number}")
    for number in range(3):
        story.bounced(f"bad-{number}", "silent")
    assert sum(bool(one.worse) for one in story.engine.state.aftermath["bounce"].values()) == 3
    assert story.mode() is Mode.AUTO


def test_what_happens_later_or_was_there_before_is_not_held_against_it() -> None:
    """More than an hour after the step; and a fault that stood there when it left."""
    story = Bounces()
    for node in ("n1", "n2", "n3", "n4"):
        story.bounced(node)
        story.event(story.clock + 1.5 * HOUR, "gpu.xid", GPU, node, code=79)
        story.run(story.clock + 1.6 * HOUR)
    assert [one.worse for one in story.engine.state.aftermath["bounce"].values()] == [""] * 4
    assert len(story.incidents("gpu-lost")) == 4


def test_a_step_that_cannot_be_done_and_nothing_helps() -> None:
    """On three nodes the action itself fails, and the ladder ends."""
    story = Bounces(heals=False)
    story.fails = True
    for node in ("n1", "n2", "n3"):
        story.bounced(node)
    assert story.mode() is Mode.APPROVE
    assert "n1 bounce failed" in story.told.because


def test_only_a_person_sets_it_back() -> None:
    """Reloaded rules and a restart change nothing; `gpuward mode` does, ends the incident, and what follows counts anew."""
    story = Bounces()
    for node in ("n1", "n2", "n3"):
        story.bounced(node, "silent")
    assert story.mode() is Mode.APPROVE
    again = replace(pack(same_cause_nodes=99), version="p2")
    story.time.feed(PackLoaded(id="pack-2", pack=again), story.clock + 300)
    story.run(story.clock + 400)
    assert story.mode() is Mode.APPROVE
    assert story.stands == IncidentState.OPEN
    restarted = parse(dump(story.engine.state))
    assert restarted.modes == story.engine.state.modes
    assert restarted.aftermath == story.engine.state.aftermath
    story.say(story.clock + 500, "mode", runbook="*", mode="auto")
    story.run(story.clock + 600)
    assert story.mode() is Mode.AUTO
    assert story.stands == IncidentState.CLOSED
    assert story.told.closed_why == "ann sets the mode of bounce"
    assert not story.engine.state.aftermath
    story.bounced("n4", "silent")
    assert story.mode() is Mode.AUTO


def test_a_person_may_let_it_act_on_some_nodes() -> None:
    """There it acts; elsewhere it asks, and the incident stays open."""
    story = Bounces()
    for node in ("n1", "n2", "n3"):
        story.bounced(node, "silent")
    story.say(story.clock + 500, "mode", runbook="bounce", mode="auto", nodes="m*")
    story.run(story.clock + 600)
    assert story.mode("m1") is Mode.AUTO
    assert story.mode("n1") is Mode.APPROVE
    assert story.stands == IncidentState.OPEN
    for node in ("m1", "m2", "m3"):
        story.bounced(node, "silent")
    assert story.mode("m1") is Mode.APPROVE
    assert "3 of 3 nodes were worse after it: m1 fell silent" in story.told.because


def test_it_never_loosens() -> None:
    """Where the site or a person has said `observe`, it stays so."""
    story = Bounces()
    story.say(10, "mode", runbook="bounce", mode="observe", nodes="calm*")
    for node in ("n1", "n2", "n3"):
        story.bounced(node, "silent")
    assert story.mode() is Mode.APPROVE
    assert story.mode("calm1") is Mode.OBSERVE


def test_a_site_may_switch_it_off() -> None:
    """`harm_nodes = 0`."""
    story = Bounces(harm_nodes=0)
    for node in ("n1", "n2", "n3", "n4"):
        story.bounced(node, "silent")
    assert story.mode() is Mode.AUTO


def test_what_is_remembered_is_bounded() -> None:
    """Of each runbook the nodes that it treated last, and none for longer than the window."""
    story = Bounces()
    for number in range(3):
        story.bounced(f"n{number}")
    story.clock += harm.WITHIN_S
    story.bounced("n9")
    assert list(story.engine.state.aftermath["bounce"]) == ["n9"]
