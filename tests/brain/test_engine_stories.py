"""Stories about the engine: what happens on the nodes, and what gpuward does about it."""

from brain.core.pack.spec import Place
from brain.core.state import IncidentState, RunState
from tests.brain.world import GPU, Story, pack


def test_three_facts_about_one_lost_gpu_are_one_incident() -> None:
    """XID 79, NVML, and a job's CUDA error within moments: one incident at the GPU, evidence of all, one page."""
    story = Story()
    story.event(10.0, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.event(10.1, "gpu.xid", GPU, code=79)
    story.event(10.3, "gpu.lost", GPU, reason="lost")
    story.run(60)
    (incident,) = story.incidents()
    assert incident.cause == "gpu-lost"
    assert incident.scope == "gpu/n1/0000:3b:00"
    assert [fact.kind for fact in incident.evidence] == ["job.cuda_error", "gpu.xid", "gpu.lost"]
    assert story.actions() == [("n1", "evidence.collect")]
    assert incident.state is IncidentState.NEEDS_HUMAN
    assert [page.what for page in story.time.pages] == ["open", "update"]


def test_a_returned_gpu_closes_the_incident_and_everything_is_forgotten() -> None:
    """Law forget: once the fault is over and its pages are delivered, the engine remembers nothing of it."""
    story = Story()
    story.event(10, "gpu.xid", GPU, code=79)
    story.event(100, "gpu.returned", GPU, by="nvml")
    story.run(1000)
    (incident,) = story.incidents()
    assert incident.state is IncidentState.CLOSED
    assert story.time.pages[-1].what == "resolve"
    assert story.engine.state.fault_free(), story.engine.state


def test_a_link_goes_down_is_bounced_and_verified() -> None:
    """One page, one bounce, one resolution."""
    story = Story()
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(200)
    (incident,) = story.incidents()
    assert story.actions() == [("n1", "link.bounce")]
    assert incident.state is IncidentState.CLOSED
    assert [page.what for page in story.time.pages] == ["open", "resolve"]
    assert story.time.runs[incident.runs[0]].state is RunState.SUCCEEDED


def test_a_link_that_no_bounce_helps_ends_with_people() -> None:
    """Two attempts, then the next rung pages, then people must act; nothing is tried for ever."""
    story = Story(heals=False)
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(200)
    (incident,) = story.incidents()
    assert story.actions() == [("n1", "link.bounce")] * 2
    assert incident.state is IncidentState.NEEDS_HUMAN
    assert story.notes("run.not_verified")


def test_a_link_that_comes_back_by_itself_in_time_is_left_alone() -> None:
    """Within the hold-off nobody is paged and nothing is done."""
    story = Story()
    story.event(10, "link.state", "link/eth1", up=False)
    story.event(10.5, "link.state", "link/eth1", up=True)
    story.run(100)
    assert story.actions() == []
    assert story.time.pages == []
    assert story.engine.state.fault_free()


def test_subnet_manager_failover_is_one_incident_and_no_node_is_touched() -> None:
    """Sixteen nodes get a new subnet manager within seconds."""
    story = Story()
    for number in range(16):
        story.event(10 + number * 0.2, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7, before=1)
    story.run(40)
    told = [incident for incident in story.incidents() if incident.pages.sent]
    assert [incident.cause for incident in told] == ["sm-failover"]
    assert told[0].nodes == 16
    assert story.actions() == []
    story.run(1000)
    assert story.engine.state.fault_free()


def test_a_single_host_with_a_new_subnet_manager_is_a_host_problem() -> None:
    """The fabric is not blamed for one node."""
    story = Story()
    story.event(10, "ib.sm_lid", "port/mlx5_0.1", "n3", sm_lid=7, before=1)
    story.run(30)
    (incident,) = story.incidents()
    assert (incident.cause, incident.scope) == ("sm-moved", "node/n3")


def test_a_storm_of_links_is_one_incident_without_any_action() -> None:
    """Law 6: all 200 nodes lose a link within one second."""
    story = Story()
    for number in range(200):
        story.event(1, "agent.started", "node", f"n{number}")
    for number in range(200):
        story.event(10 + number / 200, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(60)
    told = [incident for incident in story.incidents() if incident.pages.sent]
    assert [incident.cause for incident in told] == ["shared-link-down-cell"]
    assert told[0].explains + told[0].nodes >= 200
    assert story.actions() == []


def test_a_storm_that_goes_on_is_not_over() -> None:
    """Law 6: the ports of 20 nodes have errors for ten minutes, five times as long as one report of them counts."""
    story = Story()
    for at in range(10, 610, 30):
        for number in range(20):
            story.event(
                at,
                "ib.errors",
                "port/mlx5_0.1",
                f"n{number}",
                counter="symbol_error",
                delta=500,
                spec_s=15_000.0,
            )
    story.run(620)
    assert [incident.cause for incident in story.incidents() if incident.pages.sent] == [
        "shared-phy-errors-cell"
    ]
    assert story.actions() == []


def test_after_a_storm_what_is_still_broken_is_healed() -> None:
    """Law 7: when the shared cause is over, the one link that is still down gets its remedy."""
    story = Story()
    for number in range(40):
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    for number in range(1, 40):
        story.event(30, "link.state", "link/eth1", f"n{number}", up=True)
    story.run(400)
    assert story.actions() == [("n0", "link.bounce")]
    assert story.engine.state.incidents == {}


def test_a_leaf_switch_explains_its_links() -> None:
    """Half of a leaf's nodes: the leaf is the cause. A link elsewhere at the same time is a fault of its own."""
    places = {f"n{number}": Place(leaf="l1" if number < 8 else "l2") for number in range(40)}
    story = Story(pack(places=places))
    for number in range(40):
        story.event(1, "agent.started", "node", f"n{number}")
    for number in [*range(6), 20]:
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(25)
    told = {incident.cause: incident.scope for incident in story.incidents() if incident.pages.sent}
    assert told == {"shared-link-down-leaf": "leaf/l1", "link-down": "link/n20/eth1"}
    assert story.actions() == [("n20", "link.bounce")]
