"""A job as a place: named where its nodes fail together, explained by what fails on one of them, and never an excuse to act."""

from dataclasses import replace
from random import Random

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Priority, Runbook, Rung, Settings, Verify
from brain.core.pack.topology import CELL
from brain.core.state import IncidentState
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

NODES = [f"n{number:02}" for number in range(40)]
PLACES = {node: Place(leaf=f"l{number // 8}") for number, node in enumerate(NODES)}
REBOOT = Runbook(
    name="reboot-for-job",
    summary="what nobody should do for a hung job",
    rungs=(Rung(name="reboot", do="node.reboot", verify=Verify(within_s=600, for_s=30)),),
)


def site(*, by_job: bool = True, mode: Mode = Mode.AUTO) -> Pack:
    """The shipped rules, with a runbook that reboots a node for its hung job; `by_job`: with the rules that judge jobs."""
    whole = shipped_pack(Settings(modes=(ModeSetting(mode=mode),), ask_jobs=False), PLACES)
    rules = tuple(
        replace(rule, runbook=REBOOT.name) if rule.name == "job-hung" else rule
        for rule in whole.rules
        if by_job or rule.scope != "job"
    )
    symptoms = tuple(one for one in whole.symptoms if by_job or one.scope != "job")
    runbooks = (*(replace(one, every_s=0) for one in whole.runbooks), REBOOT)
    return replace(whole, rules=rules, symptoms=symptoms, runbooks=runbooks)


def cell(pack: Pack | None = None) -> Story:
    story = Story(pack or site(), heals=False)
    for node in NODES:
        story.event(1, "agent.started", node=node)
    return story.run(2)


def hangs(story: Story, at: float, nodes: list[str], job: str = "9", pause: float = 0.2) -> None:
    """The ranks of a job say one after the other that a collective hangs."""
    for number, node in enumerate(nodes):
        story.event(
            at + number * pause, "job.nccl_error", f"job/{job}", node, what="timeout", job=job, file="x"
        )


def lost(story: Story, at: float, node: str) -> None:
    """A GPU falls off the bus."""
    story.event(at, "gpu.xid", GPU, node, code=79, name="x", known=True, what="", action="")


def ports(story: Story, at: float, nodes: list[str], *, up: bool) -> None:
    """The ports of all these nodes lose their link, or have it again."""
    state, before = ("ACTIVE", "DOWN") if up else ("DOWN", "ACTIVE")
    for node in nodes:
        story.event(at, "ib.port_state", "port/mlx5_0.1", node, state=state, before=before, phys_state="x")


def seen(story: Story) -> list[tuple[str, str]]:
    """(cause, scope) of the incidents that people see."""
    return [
        (one.cause, one.scope)
        for one in story.incidents()
        if one.state not in (IncidentState.EXPLAINED, IncidentState.SETTLING)
    ]


def test_nodes_that_one_job_accuses_are_its_own() -> None:
    """Nodes of three leaf switches; no node is touched, and the job's page lists them."""
    story = cell()
    hangs(story, 10, NODES[4:20])
    story.run(300)
    assert seen(story) == [("job-collective-hangs", "job/9")]
    assert story.actions() == []
    (one,) = story.incidents("job-collective-hangs")
    assert (one.nodes, one.severity, one.pages.notified) == (16, Priority.P1, ["oncall"])


@pytest.mark.parametrize(
    ("ranks", "said"), [(1, [("job-hung", f"node/{NODES[0]}")]), (2, [("job-collective-hangs", "job/9")])]
)
def test_two_ranks_are_their_job(ranks: int, said: list[tuple[str, str]]) -> None:
    """A job of two nodes hangs on both: it is one incident of the job, and nobody is asked twice to requeue it."""
    story = cell()
    hangs(story, 10, NODES[:ranks])
    story.run(200)
    assert seen(story) == said


def test_several_jobs_at_once_share_a_wider_cause() -> None:
    """Jobs all over the cell hang within a minute: that is no job's doing."""
    story = cell()
    for number in range(6):
        hangs(story, 10 + number, NODES[number * 6 : number * 6 + 6], job=str(number))
    story.run(300)
    assert seen(story) == [("shared-collective-hangs-cell", CELL)]
    assert story.actions() == []


def test_two_jobs_on_the_same_nodes_are_counted_apart() -> None:
    """Half of the nodes run both; the second one is told later, and is a job of its own."""
    story = cell()
    hangs(story, 10, NODES[:6], job="1")
    hangs(story, 20, NODES[3:9], job="2")
    story.run(300)
    state = story.engine.state
    assert list(state.symptoms["job_collectives_hang@job/1"].members) == NODES[:6]
    assert list(state.symptoms["job_collectives_hang@job/2"].members) == NODES[3:9]


@pytest.mark.parametrize("after_s", [-300.0, 10.0, 1800.0])
def test_a_lost_gpu_explains_its_job_in_whatever_order_they_are_told(after_s: float) -> None:
    """The job hangs before the loss is told, at once, or when its watchdog has waited for half an hour."""
    story = cell(site(mode=Mode.OBSERVE))
    if after_s < 0:
        hangs(story, 1000 + after_s, NODES[:12], pause=0.1)
        lost(story, 1000, NODES[5])
    else:
        lost(story, 1000, NODES[5])
        hangs(story, 1000 + after_s, NODES[:12], pause=0.1)
    story.run(1065 + max(0.0, after_s))
    assert seen(story) == [("gpu-lost", f"gpu/{NODES[5]}/0000:3b:00")]


def test_a_gpu_that_was_lost_long_before_explains_nothing() -> None:
    """The job began to hang two hours later: it has another reason."""
    story = cell(site(mode=Mode.OBSERVE))
    lost(story, 1000, NODES[5])
    hangs(story, 8200, NODES[:12], pause=0.1)
    story.run(8300)
    assert ("job-collective-hangs", "job/9") in seen(story)


def test_a_lost_gpu_of_another_node_explains_nothing() -> None:
    """The job does not run there."""
    story = cell(site(mode=Mode.OBSERVE))
    lost(story, 1000, NODES[30])
    hangs(story, 1010, NODES[:12], pause=0.1)
    story.run(1100)
    assert ("job-collective-hangs", "job/9") in seen(story)


def test_when_the_gpu_is_back_the_job_is_news_only_if_it_hangs_again() -> None:
    """What it told before came of the loss. A newer word is told, and no node of it is touched meanwhile."""
    story = cell()
    lost(story, 1000, NODES[5])
    hangs(story, 1010, NODES[:12], pause=0.1)
    story.run(1100)
    story.event(1200, "gpu.returned", GPU, NODES[5], by="nvml")
    (one,) = story.incidents("gpu-lost")
    story.say(1201, "close", id=one.id, why="it is back")
    story.run(1500)
    assert seen(story) == [("gpu-lost", f"gpu/{NODES[5]}/0000:3b:00")]
    hangs(story, 1600, NODES[:14], pause=0.1)
    story.run(1700)
    assert ("job-collective-hangs", "job/9") in seen(story)
    assert {node for node, _ in story.actions()} <= {NODES[5]}


def test_a_leaf_that_the_job_reaches_later_takes_it_over() -> None:
    """The first ranks to tell stand elsewhere; the dead switch explains the job as soon as one of its own does."""
    story = cell()
    ports(story, 100, NODES[8:16], up=False)
    hangs(story, 200, NODES[:16], pause=0.5)
    story.run(400)
    assert seen(story) == [("switch-suspected", "leaf/l1")]


def test_jobs_survive_a_snapshot() -> None:
    """Which job told what is in it, and the engine goes on with it as without."""
    story = cell()
    hangs(story, 10, NODES[:6])
    story.run(20)
    again = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
    assert again.state == story.engine.state
    assert again.state.symptoms[f"collective_hangs@node/{NODES[0]}"].jobs == ["job/9"]


@pytest.mark.parametrize("seed", range(60))
def test_a_job_lets_nothing_be_done_that_would_not_be_done_without_it(seed: int) -> None:
    """Law 6 and decision 65, over random jobs, lost GPUs and dead leaf switches: the nodes that are rebooted for a hung job are
    rebooted without the rules for jobs too; none is while a tenth of the cell shows it; and then people are told.
    """

    def played(pack: Pack) -> Story:
        draw, story = Random(seed), cell(pack)
        for _ in range(draw.randint(1, 6)):
            at = draw.uniform(10, 3000)
            first, count = draw.randrange(len(NODES)), draw.choice((1, 2, 3, 5, 8, 16, 40))
            nodes = NODES[first : first + count]
            match draw.randrange(4):
                case 0:
                    lost(story, at, draw.choice(NODES))
                case 1:
                    leaf = draw.randrange(5) * 8
                    ports(story, at, NODES[leaf : leaf + 8], up=False)
                    ports(story, at + 900, NODES[leaf : leaf + 8], up=True)
                case _:
                    hangs(story, at, nodes, job=str(draw.randrange(3)), pause=draw.choice((0.1, 1.0, 20.0)))
        return story

    with_jobs, without = played(site()), played(site(by_job=False))
    for at in range(30, 6000, 30):
        before = len(with_jobs.performed)
        with_jobs.run(at)
        wide = with_jobs.engine.state.symptoms.get("shared_collective_hangs_cell@cell")
        if wide is not None and wide.active and wide.since < at - 60:
            begun = [
                one.step.action for one in with_jobs.performed[before:] if _for_job(with_jobs, one.step.id)
            ]
            assert begun == []
            assert any(
                page.what == "open" and page.subject.severity <= Priority.P1 for page in with_jobs.time.pages
            )
    without.run(6000)
    mine = {one.step.node for one in with_jobs.performed if _for_job(with_jobs, one.step.id)}
    theirs = {one.step.node for one in without.performed if _for_job(without, one.step.id)}
    assert mine <= theirs


def _for_job(story: Story, step: str) -> bool:
    """Whether a step is one of the runbook that reboots for a hung job."""
    runs = {run.id: run for run in story.time.runs.values()}
    return any(step.startswith(f"{id_}.") and run.runbook.name == REBOOT.name for id_, run in runs.items())
