"""Other rules, or other places, come into force while faults are open: each is judged by what holds now."""

from dataclasses import replace
from typing import Any

from brain.core.inputs import PackLoaded
from brain.core.pack.spec import Place
from tests.brain.world import Story, pack

LEAF = {f"n{number}": Place(leaf="l1") for number in range(6)}


def sick_leaf() -> Story:
    """Six nodes of a leaf have lost a link, which is one shared cause."""
    story = Story(pack(places=LEAF), heals=False)
    for number in range(6):
        story.event(10, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(20)
    assert [one.scope for one in story.incidents("shared-link-down-leaf")] == ["leaf/l1"]
    return story


def test_a_node_that_moves_away_from_what_explains_its_fault() -> None:
    """The shared cause of its old leaf says nothing of it any more: its fault has an incident of its own."""
    story = sick_leaf()
    assert not [one for one in story.incidents("link-down") if one.node == "n5" and one.state != "explained"]
    moved = pack(places={**LEAF, "n5": Place(leaf="l2")}, version="p2")
    story.time.feed(PackLoaded(id="pack-2", pack=moved), 30)
    story.run(40)
    assert [one.state for one in story.incidents("link-down") if one.node == "n5"][-1] == "healing"
    assert story.engine.state.symptoms["shared_link_down_leaf@leaf/l1"].members.keys() == LEAF.keys() - {"n5"}
    for number in range(6):
        story.event(50, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(200_000)
    assert story.engine.state.fault_free()


def test_a_spread_that_is_defined_in_another_way() -> None:
    """What it had counted says nothing any more: it ends with that reason, and so does its incident."""
    story = Story()
    for number in range(4):
        story.event(10, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7, before=1)
    story.run(12)
    assert [one.state for one in story.incidents("sm-failover")] == ["open"]
    given = pack(version="p2")
    seen: dict[str, Any] = {"detect": "seen", "of": "", "on": given.symptoms[0].on}
    symptoms = tuple(replace(one, **seen) if one.name == "sm_moved_widely" else one for one in given.symptoms)
    story.time.feed(PackLoaded(id="pack-2", pack=replace(given, symptoms=symptoms)), 15)
    story.run(15)
    ended = [note.text for note in story.time.notes if note.kind == "symptom.ended"]
    assert ended == ["sm_moved_widely at fabric/default ended: it is defined in another way now"]
    story.run(100)
    assert [one.state for one in story.incidents("sm-failover")] == ["closed"]
