"""Other rules, or other places, come into force while faults are open: each is judged by what holds now."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.inputs import NodeState, PackLoaded
from brain.core.pack.spec import Mode, Pack, Place, Rung, Symptom, Verify
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


def edited(name: str, **changes: Any) -> Pack:
    """The pack with one rule changed."""
    given = pack(Mode.AUTO, version="p2")
    return replace(
        given, rules=tuple(replace(one, **changes) if one.name == name else one for one in given.rules)
    )


@pytest.mark.parametrize(
    ("begins", "rules", "ends"),
    [
        pytest.param(
            ("gpu.xid", "gpu/0000:3b:00", {"code": 79}),
            edited("gpu-lost", scope="node"),
            ("gpu.returned", "gpu/0000:3b:00", {}),
            id="another scope",
        ),
        pytest.param(
            ("service.state", "service/x", {"active": "failed"}),
            edited("service-failed", when={"symptom": "link_down"}, scope="service"),
            ("service.state", "service/x", {"active": "active"}),
            id="another symptom",
        ),
    ],
)
def test_a_rule_that_does_not_match_any_more_as_it_is_defined_now(
    begins: tuple[str, str, dict[str, Any]], rules: Pack, ends: tuple[str, str, dict[str, Any]]
) -> None:
    """Its incident is judged by the new rules; it does not stay open for ever when its fault is over."""
    story = Story(pack(Mode.AUTO), heals=False)
    story.event(10, begins[0], begins[1], **begins[2])
    story.run(20)
    story.time.feed(PackLoaded(id="pack-2", pack=rules), 30)
    story.run(40)
    story.event(50, ends[0], ends[1], **ends[2])
    story.run(400_000)
    assert story.engine.state.fault_free()


@pytest.mark.parametrize("first", ["the sick", "the healthy"])
def test_a_site_of_which_the_sick_nodes_are_heard_first(first: str) -> None:
    """Three of three are a shared cause, three of a thousand are not: it ends when the others are heard."""
    story = Story(pack(Mode.AUTO, shared_small_share=0.5))
    story.engine.state.nodes.clear()
    at = {"the sick": 20.0, "the healthy": 1.0}[first]
    for number in range(997 if at < 10 else 0):
        story.time.feed(NodeState(id=f"h{number}", node=f"h{number}", alive=True), at)
    for number in range(3):
        story.event(10 + number, "link.state", "link/eth0", f"s{number}", up=False)
    story.run(15)
    for number in range(997 if at > 10 else 0):
        story.time.feed(NodeState(id=f"h{number}", node=f"h{number}", alive=True), at)
    story.run(900)
    assert not [one for one in story.incidents("shared-link-down-cell") if one.state != "closed"]
    assert {node for node, *_ in story.actions()} == {"s0", "s1", "s2"}


@pytest.mark.parametrize("reload", [True, False], ids=["reloaded", "from the start"])
def test_a_node_whose_remedy_is_verified_counts_where_it_stands_now(reload: bool) -> None:
    """The symptom that its run has set aside counts in the spreads and places that are in force."""
    places = {"n0": Place(leaf="l2"), "n5": Place(leaf="l2")}

    def rules(version: str, places: dict[str, Place]) -> Pack:
        given = pack(Mode.AUTO, places=places, version=version)
        patient = Rung(
            name="restart",
            do="service.restart",
            params={"unit": "$name"},
            verify=Verify(within_s=900, for_s=600),
        )
        runbooks = tuple(
            replace(one, rungs=(patient,)) if one.name == "restart" else one for one in given.runbooks
        )
        symptoms = tuple(
            replace(one, clear=()) if one.name == "service_failed" else one for one in given.symptoms
        )
        wide = Symptom(
            name="wide", scope="leaf", summary="x", detect="spread", of="service_failed", at_least=2
        )
        return replace(given, runbooks=runbooks, symptoms=(*symptoms, wide))

    story = Story(rules("p1", {} if reload else places), heals=False)
    story.event(10, "service.state", "service/x", "n0", active="failed")
    story.run(60)
    assert list(story.engine.state.set_aside) == ["service_failed@service/n0/x"]
    if reload:
        story.time.feed(PackLoaded(id="pack-2", pack=rules("p2", places)), 70)
    story.event(100, "service.state", "service/x", "n5", active="failed")
    story.run(103)
    assert story.engine.state.symptoms["wide@leaf/l2"].active


def test_nodes_that_recovered_and_moved() -> None:
    """They are no beginning of a shared cause where they stood."""
    story = Story(pack(places=LEAF), heals=False)
    for number in (0, 1):
        story.event(10 + number, "link.state", "link/eth0", f"n{number}", up=False)
        story.event(30 + number, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(50)
    moved = pack(places={**LEAF, "n0": Place(leaf="l2"), "n1": Place(leaf="l2")}, version="p2")
    story.time.feed(PackLoaded(id="pack-2", pack=moved), 60)
    for number in (2, 3):
        story.event(100 + number, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(110)
    assert not story.engine.state.symptoms["shared_link_down_leaf@leaf/l1"].active


def test_it_is_told_how_many_nodes_moved() -> None:
    """One note when places change, none when only rules do, nor when the first rules come."""
    story = Story(pack(places=LEAF | {"gone": Place(leaf="l1")}))
    after = LEAF | {"n4": Place(leaf="l2"), "n5": Place(leaf="l2"), "new": Place(leaf="l2")}
    for number, places in enumerate((LEAF | {"gone": Place(leaf="l1")}, after, after)):
        story.time.feed(PackLoaded(id=f"again-{number}", pack=pack(places=places, version=f"p{number}")), 30)
    story.run(31)
    assert [(note.text, dict(note.data)) for note in story.time.notes if note.kind == "topology.changed"] == [
        (
            "the topology: 2 nodes stand elsewhere (n4, n5); 1 node more has a place (new); of 1 node it is not known any more "
            "(gone)",
            {"moved": 2, "added": 1, "removed": 1},
        )
    ]
