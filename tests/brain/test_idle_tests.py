"""Nodes that a scheduler calls idle are tested by schedule: few at once, no other one, and what fails stays out of service."""

from collections.abc import Iterable
from dataclasses import replace

from agent.contract.commands import Outcome
from agent.contract.messages import Severity
from brain.core.effects import Effect, Perform
from brain.core.inputs import Input, StepResult
from brain.core.pack.spec import Mode, ModeSetting, Pack, Settings
from brain.core.state import Incident, IncidentState
from tests.brain.world import Story
from tests.shipped import shipped_pack

NODES = [f"n{number:02}" for number in range(20)]
DAY_S = 86_400.0


def site(mode: Mode = Mode.AUTO) -> Pack:
    pack = shipped_pack(Settings(modes=(ModeSetting(mode=mode),), ask_jobs=False))
    kept = tuple(one if one.name == "test-idle-node" else replace(one, every_s=0) for one in pack.runbooks)
    return replace(pack, runbooks=kept)


class Trial(Story):
    """A cell of nodes; `bad` are those whose diagnostics fail."""

    bad: tuple[str, ...] = ()

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if (
            isinstance(effect, Perform)
            and effect.step.action == "gpu.diagnose"
            and effect.step.node in self.bad
        ):
            self.performed.append(effect)
            why = "diagnostics of level 3 failed: diagnostic on GPU 3: wrong results"
            step = effect.step.id
            yield now + 20, StepResult(id=f"r:{step}:{now}", step=step, outcome=Outcome.FAILED, why=why)
            return
        yield from super()._answer(effect, now)


def cell(mode: Mode = Mode.AUTO, bad: tuple[str, ...] = ()) -> Trial:
    story = Trial(site(mode), heals=False)
    story.bad = bad
    for node in NODES:
        story.event(1, "agent.started", node=node)
    return story.run(2)


def idle(story: Story, at: float, nodes: Iterable[str], *, active: bool = True) -> None:
    """Slurm's word of these nodes, told again each half hour by its witness."""
    for node in nodes:
        story.event(
            at,
            "scheduler.idle",
            node=node,
            severity=Severity.INFO,
            active=active,
            scheduler="t",
            idle_s=3600.0,
        )


def inspected(story: Story) -> list[Incident]:
    return [one for one in story.incidents() if one.runbook == "test-idle-node"]


def test_only_idle_nodes_are_tested_each_once_a_week() -> None:
    """Each drained, tested and given back; a node that is not idle is never touched."""
    story = cell()
    for half_hour in range(3 * 48):
        idle(story, 10 + 1800 * half_hour, NODES[:5])
        story.run(1000 + 1800 * half_hour)
    assert sorted(one.node for one in inspected(story)) == NODES[:5]
    assert {one.state for one in inspected(story)} == {IncidentState.CLOSED}
    assert {node for node, _ in story.actions()} == set(NODES[:5])
    wanted = ["scheduler.drain", "gpu.diagnose", "node.accept", "scheduler.resume"]
    assert [name for node, name in story.actions() if node == "n00"] == wanted
    assert story.time.pages == []


def test_nothing_is_tested_where_no_scheduler_calls_nodes_idle_or_nobody_lets_it() -> None:
    """Off by default twice: no fact, or the mode of a new site."""
    quiet, observed = cell(), cell(Mode.OBSERVE)
    idle(observed, 10, NODES)
    for story in (quiet, observed):
        story.run(10 * DAY_S)
        assert inspected(story) == []
        assert story.actions() == []


def test_few_are_tested_at_once() -> None:
    """However many are idle: as many as the site's budget of disruptive runs of one runbook."""
    story = cell(bad=tuple(NODES))  # each fails after ten minutes
    idle(story, 10, NODES)
    at_once: set[int] = set()
    for second in range(60, 4000, 60):
        story.run(second)
        at_once.add(len(story.engine.look().state.claims))
    assert max(at_once) == Settings().disruptive_runs_per_runbook


def test_a_job_that_came_ends_its_turn() -> None:
    """The witness says so before the schedule looks: the node is left alone."""
    story = cell()
    idle(story, 10, NODES[:2])
    idle(story, 20, NODES[:1], active=False)
    story.run(5000)
    assert {node for node, _ in story.actions()} == {"n01"}


def test_a_node_that_fails_stays_drained_and_people_are_paged() -> None:
    """With what the test said."""
    story = cell(bad=("n03",))
    idle(story, 10, ["n03"])
    story.run(5000)
    assert [name for node, name in story.actions()] == ["scheduler.drain", "gpu.diagnose"]
    (one,) = inspected(story)
    assert (one.state, one.pages.sent > 0) == (IncidentState.NEEDS_HUMAN, True)
    assert any("wrong results" in note for note in story.notes("step.result"))
