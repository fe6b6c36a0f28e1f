"""Jobs whose results are not numbers: people are told of the job, the node that one rank accuses, or the fault behind it."""

from dataclasses import replace
from typing import Any

from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.state import IncidentState, RunState
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

NODES = [f"n{number:02}" for number in range(24)]
JOB = "4711"


def site() -> Pack:
    places = {node: Place(leaf=f"l{number // 8}") for number, node in enumerate(NODES)}
    pack = shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),), ask_jobs=False), places)
    return replace(pack, runbooks=tuple(replace(one, every_s=0) for one in pack.runbooks))


PACK = site()


def cell() -> Story:
    story = Story(PACK, heals=False)
    for node in NODES:
        story.event(1, "agent.started", node=node)
    return story.run(2)


def says(story: Story, at: float, node: str, what: str = "loss", **more: Any) -> None:
    said: dict[str, Any] = {
        "here": what in ("local", "not_reproducible"),
        "job": JOB,
        "file": f"/var/log/jobs/{JOB}.log",
    }
    story.event(at, "job.nan_loss", f"job/{JOB}", node, what=what, **said, **more)


def ecc(story: Story, at: float) -> None:
    data: dict[str, Any] = {
        "location": "dram",
        "corrected": False,
        "counter": "volatile",
        "delta": 1,
        "errors": 1,
    }
    story.event(at, "gpu.ecc", GPU, "n05", **data)


def open_causes(story: Story) -> dict[str, str]:
    shut = (IncidentState.EXPLAINED, IncidentState.CLOSED)
    incidents = story.engine.look().state.incidents.values()
    return {one.cause: one.scope for one in incidents if one.state not in shut}


def test_a_loss_that_is_no_number_is_one_incident_of_its_job() -> None:
    """Whether one node's log has it, step after step, or those of all nodes: people are told once, and nothing is done."""
    for nodes in (NODES[:1], NODES[:20]):
        story = cell()
        for step in range(0, 1200, 30):
            for node in nodes:
                says(story, 100 + step, node)
        story.run(1400)
        assert open_causes(story) == {"job-nan": f"job/{JOB}"}
        (one,) = story.incidents("job-nan")
        assert one.pages.sent > 0
        assert story.actions() == []
        story.run(9000)
        assert open_causes(story) == {}, "it ends with the job"


def test_one_rank_alone_proposes_the_test_of_its_node() -> None:
    """Nothing is done until a person approves each step; then the node is drained, tested, and given back."""
    story = cell()
    says(story, 100, "n05", "local", rank=41, device=1)
    says(story, 105, "n00")
    story.run(1000)
    assert open_causes(story) == {"job-accuses-node": "node/n05"}
    assert {name for _, name in story.actions()} <= {"evidence.collect"}
    (run,) = [one for one in story.engine.look().state.runs.values() if one.node == "n05"]
    assert run.state is RunState.APPROVAL
    story.say(1001, "approve", id=run.id, rung="drain")
    story.run(90_000)
    assert "scheduler.resume" not in [name for _, name in story.actions()], "drained and not tested: it waits"
    story.say(90_001, "approve", id=run.id, rung="diagnose")
    story.run(95_000)
    done = [name for _, name in story.actions()]
    assert done == ["evidence.collect", "scheduler.drain", "gpu.diagnose", "node.accept", "scheduler.resume"]


def test_several_ranks_take_the_blame_from_each_node() -> None:
    """The second node says it a minute later: the first one's test is not proposed any more."""
    story = cell()
    says(story, 100, "n05", "local", rank=41)
    says(story, 160, "n06", "local", rank=49)
    says(story, 170, "n00")
    story.run(1000)
    assert open_causes(story) == {"job-nan-on-several": f"job/{JOB}"}
    assert story.actions() == []


def test_ranks_of_two_jobs_accuse_their_own_nodes() -> None:
    """Each is alone in its job."""
    story = cell()
    says(story, 100, "n05", "not_reproducible", rank=41)
    story.event(110, "job.nan_loss", "job/5", "n13", what="local", here=True, rank=3, job="5", file="y")
    story.run(1000)
    assert sorted(one.scope for one in story.incidents("job-accuses-node")) == ["node/n05", "node/n13"]


def test_a_fault_of_a_gpu_explains_it() -> None:
    """ECC errors or an XID minutes before, or half a minute after: the fault's incident stands for the job's, too."""
    for at in (60, 480, 530):
        story = cell()
        if at < 500:
            ecc(story, at)
        says(story, 500, "n05", "local", rank=41)
        says(story, 505, "n05")
        if at > 505:
            ecc(story, at)
        story.run(1000)
        assert open_causes(story) == {"gpu-ecc": "gpu/n05/0000:3b:00"}, at


def test_overflows_of_a_loss_scaler_are_told_when_they_do_not_end() -> None:
    """A scale that begins too high says nothing; a hundred in half an hour do."""
    story = cell()
    for step in range(32):
        says(story, 100 + 3 * step, "n00", "gradient")
    story.run(900)
    assert open_causes(story) == {}
    for step in range(150):
        says(story, 3000 + 5 * step, "n00", "gradient")
    story.run(4000)
    assert open_causes(story) == {"job-nan": f"job/{JOB}"}
