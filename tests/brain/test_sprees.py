"""One fault after the other: from when the next nodes wait for people anyway, one incident of the cell says so."""

from dataclasses import replace

from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.state import Incident, IncidentState
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

NODES = [f"n{number:03}" for number in range(256)]
LEAVES = {node: Place(leaf=f"l{number // 16}") for number, node in enumerate(NODES)}
PAUSE_S = 120.0


def site(places: dict[str, Place] | None = None) -> Pack:
    """The shipped rules, which act."""
    whole = shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),), ask_jobs=False), places or {})
    return replace(whole, runbooks=tuple(replace(one, every_s=0) for one in whole.runbooks))


def cell(places: dict[str, Place] | None = None) -> Story:
    story = Story(site(places), heals=False)
    for node in NODES:
        story.event(1, "agent.started", node=node)
    return story.run(2)


def lost(story: Story, nodes: list[str], at: float = 100.0, every_s: float = PAUSE_S) -> float:
    """A GPU of each falls off the bus, one after the other. Returns when all have."""
    for number, node in enumerate(nodes):
        story.event(
            at + number * every_s, "gpu.xid", GPU, node, code=79, name="x", known=True, what="", action=""
        )
    return at + len(nodes) * every_s


def open_ones(story: Story, cause: str) -> list[Incident]:
    over = (IncidentState.CLOSED, IncidentState.EXPLAINED)
    return [one for one in story.incidents(cause) if one.state not in over]


def test_as_many_wait_as_were_treated() -> None:
    """Five are healed, five wait with an incident each; with the eleventh they are one, and the twentieth is no news."""
    story = cell()
    end = lost(story, NODES[:10])
    story.run(end)
    assert story.incidents("fault-goes-round") == []
    assert len(open_ones(story, "gpu-lost")) == 5
    end = lost(story, NODES[10:20], at=end)
    story.run(end)
    (spree,) = open_ones(story, "fault-goes-round")
    assert open_ones(story, "gpu-lost") == []
    assert (spree.scope, spree.pages.notified) == ("cell", ["oncall"])
    assert set(spree.affected) >= set(NODES[5:20])
    assert {node for node, action in story.actions() if action == "node.reboot"} == set(NODES[:5])
    opened = {page.subject.id for page in story.time.pages if page.what == "open"}
    assert len(opened) == 11  # ten nodes, and the eleventh
    assert spree.pages.key in opened, "the oldest alert of those that wait goes on as the cell's"


def test_it_ends_when_no_node_has_the_fault() -> None:
    """The GPUs are back, one after the other; after the last one it is over."""
    story = cell()
    end = lost(story, NODES[:14])
    story.run(end)
    for number, node in enumerate(NODES[5:14]):
        story.event(end + number, "gpu.returned", GPU, node, by="nvml")
    story.run(end + 7)
    assert len(open_ones(story, "fault-goes-round")) == 1
    story.run(end + 200)
    assert open_ones(story, "fault-goes-round") == []
    assert "fault_goes_round@cell" not in story.engine.state.symptoms


def test_who_closes_it_has_the_nodes_judged_one_by_one() -> None:
    """Each that waits is an incident again, waits for an approval, and no spree is told anew for them."""
    story = cell()
    end = lost(story, NODES[:14])
    story.run(end)
    (spree,) = open_ones(story, "fault-goes-round")
    story.say(end, "close", id=spree.id, why="a fan speed that was set; it is repaired")
    story.run(end + 30)
    assert {one.node for one in open_ones(story, "gpu-lost")} == set(NODES[5:14])
    assert open_ones(story, "fault-goes-round") == []
    assert {node for node, action in story.actions() if action == "node.reboot"} == set(NODES[:5])


def test_another_fault_is_healed_meanwhile() -> None:
    """Only what goes round is explained."""
    story = cell()
    end = lost(story, NODES[:14])
    story.event(
        end,
        "service.state",
        "service/slurmd.service",
        NODES[40],
        active="failed",
        unit="slurmd.service",
        result="x",
        restarts=0,
    )
    story.run(end + 120)
    assert (NODES[40], "service.restart") in story.actions()


def test_few_nodes_of_each_of_three_leaf_switches_accuse_no_switch() -> None:
    """Four of sixteen nodes of one leaf after the other: two are told as what they look like, with the third they are one."""
    story = cell(LEAVES)
    at = 100.0
    for first in (0, 32, 64):
        at = lost(story, NODES[first : first + 4], at=at, every_s=1.0) + 900
        story.run(at)
    (spree,) = open_ones(story, "fault-goes-round")
    assert set(spree.affected) >= {*NODES[0:4], *NODES[32:36], *NODES[64:68]}
    assert [one.scope for one in story.incidents() if not one.node and one.state is IncidentState.OPEN] == [
        "cell"
    ]


def test_three_leaf_switches_that_are_ill_as_a_whole_are_three() -> None:
    """What takes all nodes of a place is the place's, however often it happens in the hour."""
    story = cell(LEAVES)
    at = 100.0
    for first in (0, 32, 64):
        at = lost(story, NODES[first : first + 16], at=at, every_s=1.0) + 900
        story.run(at)
    assert story.incidents("fault-goes-round") == []
