"""A job whose GPUs fail all over a cell is the place, where its scheduler says how large it is; else nothing changes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from agent.contract.messages import Severity
from brain.adapters.snapshot import dump, parse
from brain.core.effects import AskJobs, Effect
from brain.core.faults import jobs
from brain.core.inputs import Input, JobsAnswer, NodeState
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Mode, ModeSetting, Place, Settings
from brain.core.pack.topology import CELL
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

NODES = [f"n{number:03}" for number in range(256)]
PLACES = {node: Place(leaf=f"l{number // 32}", rack=f"r{number // 16}") for number, node in enumerate(NODES)}
ITS_NODES = NODES[::11]  # two of each rack at most
TRAIN = JobSeen(id="4711", name="train", user="alice", nodes=len(ITS_NODES), gpus=8)


class JobCluster(Story):
    """Two hundred and fifty-six nodes, and a scheduler that knows what runs on them; None: it says nothing."""

    def __init__(self, runs: Mapping[str, JobSeen] | None, *, asks: bool = True) -> None:
        self.runs, self.asked = runs, list[str]()
        settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),), ask_who_is_hit=asks)
        whole = shipped_pack(settings, PLACES)
        runbooks = tuple(replace(one, every_s=0) for one in whole.runbooks)
        super().__init__(replace(whole, runbooks=runbooks), heals=False)
        for node in NODES:
            self.time.feed(NodeState(id=f"h-{node}", node=node, alive=True), 1)
        self.run(2)

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if not isinstance(effect, AskJobs):
            return super()._answer(effect, now)
        self.asked.append(effect.node)
        if self.runs is None:
            return []
        seen = tuple(job for node, job in self.runs.items() if node == effect.node)
        return [
            (
                now + 0.5,
                JobsAnswer(id=f"j{len(self.asked)}", node=effect.node, known=True, seen=seen, people=True),
            )
        ]

    def fail(self, nodes: Iterable[str], every_s: float = 0.3, at: float = 1000) -> list[str]:
        """A GPU of each does not answer any more. The places that people see as the cause, an hour later."""
        for number, node in enumerate(nodes):
            self.event(
                at + every_s * number, "gpu.xid", GPU, node, severity=Severity.FATAL, code=119, name="GSP_RPC_TIMEOUT",
                action="RESET_GPU", message="x",
            )  # fmt: skip
        self.run(at + 3600)
        return [one.scope for one in self.incidents() if one.state != "explained"]


def on(nodes: Iterable[str], job: JobSeen = TRAIN) -> dict[str, JobSeen]:
    """It runs on these nodes."""
    return dict.fromkeys(nodes, job)


def sized(nodes: int) -> JobSeen:
    """The job, of another size."""
    return JobSeen(id="4711", nodes=nodes)


@pytest.mark.parametrize("every_s", [0.0, 0.3, 1.0])
def test_a_job_of_which_all_nodes_are_ill_is_the_place(every_s: float) -> None:
    """However fast they fail; and none of its nodes is touched."""
    story = JobCluster(on(ITS_NODES))
    assert story.fail(ITS_NODES, every_s) == ["job/4711"]
    assert not story.actions()
    (incident,) = (one for one in story.incidents() if one.scope == "job/4711")
    assert sorted(incident.affected) == sorted(ITS_NODES)
    assert story.engine.state.symptoms["shared_gpu_fatal_xid_job@job/4711"].size == len(ITS_NODES)
    assert parse(dump(story.engine.state)) == story.engine.state


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(None, id="the scheduler does not answer"),
        pytest.param({}, id="no job runs there"),
        pytest.param(on(ITS_NODES, sized(0)), id="nobody says how large the job is"),
        pytest.param(on(ITS_NODES[:9], sized(9)), id="it is on nine of 24"),
        pytest.param(
            {node: JobSeen(id=f"job {n}", nodes=24) for n, node in enumerate(ITS_NODES)}, id="no names"
        ),
        pytest.param(
            {node: JobSeen(id=str(n % 6), nodes=8) for n, node in enumerate(ITS_NODES)}, id="six jobs"
        ),
    ],
)
def test_else_it_is_the_cell(runs: Mapping[str, JobSeen] | None) -> None:
    """As if there were no jobs."""
    story = JobCluster(runs)
    assert story.fail(ITS_NODES) == [CELL]
    assert not story.actions()


def test_a_site_that_does_not_ask_counts_no_jobs() -> None:
    """There are no rules for it."""
    story = JobCluster(on(ITS_NODES), asks=False)
    assert story.fail(ITS_NODES) == [CELL]
    assert not story.asked


def test_a_rack_in_a_job_is_the_rack() -> None:
    """Three quarters of the job are well."""
    assert JobCluster(on(NODES[:64], sized(64))).fail(NODES[16:32]) == ["rack/r1"]


def test_a_small_job_is_no_place() -> None:
    """Its four nodes are healed one by one, as ever."""
    story = JobCluster(on(ITS_NODES[:4], sized(4)))
    places = story.fail(ITS_NODES[:4])
    assert all(place.startswith(("gpu/", "node/")) for place in places)


def test_a_storm_asks_the_scheduler_so_much_and_no_more() -> None:
    """All nodes of one job of a large cell fail, and no answer comes."""
    story = JobCluster(on(NODES, sized(256)))
    story.fail(NODES, 0.0)
    assert len(story.asked) <= jobs.MAX_ASKED + 64
    assert len(story.engine.state.asked) <= jobs.MAX_ASKED
