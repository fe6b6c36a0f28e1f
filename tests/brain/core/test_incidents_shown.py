"""Incidents: what one shows, and what one explains."""

import re

import pytest

from brain.core import incidents
from brain.core.effects import ShowIncident
from brain.core.listed import MAX_LISTED
from brain.core.pack.spec import Place
from brain.core.state import Evidence, IncidentState, SymptomState
from tests.brain.core.cell import GPU as ONE_GPU
from tests.brain.core.cell import NOW, Cell
from tests.brain.core.test_incidents import OTHER_GPU, told_by
from tests.brain.world import GPU, Story, pack, rule


def test_an_incidents_id() -> None:
    """Eight letters and digits that a person can type, the same for the same event, and for each fault another."""
    first, again = Story(), Story()
    for story in (first, again):
        story.event(10, "gpu.xid", GPU, code=79)
        story.event(11, "gpu.xid", OTHER_GPU, code=79)
        story.run(20)
    ids = [incident.id for incident in first.incidents()]
    assert all(re.fullmatch(r"inc-[a-z2-7]{8}", one) for one in ids)
    assert len(set(ids)) == 2
    assert [incident.id for incident in again.incidents()] == ids


def active(number: int) -> SymptomState:
    """A symptom with two facts, on some GPU of n1."""
    facts = [
        Evidence(id=f"e{number}-{n}", at=NOW, node="n1", kind="gpu.hot", component="", text="")
        for n in (1, 2)
    ]
    return SymptomState(
        name="hot", scope=f"gpu/n1/{number}", active=True, since=NOW, last=NOW, evidence=facts
    )


def test_an_incident_names_so_many_symptoms_and_facts_and_counts_the_rest() -> None:
    """Its facts are bounded; its symptoms are bounded by the parts of a node."""
    cell = Cell()
    cell.incident.symptoms, cell.incident.symptom_count = [], 0
    ctx = cell.ctx()
    for number in (*range(20), *range(20), *range(20, 100)):  # the second time it is no news
        incidents.renewed(ctx, cell.incident, active(number))
    assert cell.incident.symptom_count == 100
    assert len(cell.incident.symptoms) == 100, "what it does not list it could not see to be gone"
    assert len(cell.incident.evidence) == MAX_LISTED == 40
    assert cell.incident.symptoms[:2] == ["hot@gpu/n1/0", "hot@gpu/n1/1"]
    assert [fact.id for fact in cell.incident.evidence[:3]] == ["e0-1", "e0-2", "e1-1"]


def test_an_incident_knows_how_many_nodes_have_shown_it() -> None:
    """The most that there ever were."""
    cell = Cell()
    ctx = cell.ctx()
    for nodes, shown in ((3, 3), (7, 7), (2, 7)):
        symptom = active(1)
        symptom.members = {f"m{number}": NOW for number in range(nodes)}
        incidents.renewed(ctx, cell.incident, symptom)
        assert cell.incident.nodes == shown


@pytest.mark.parametrize(
    ("stale", "age_s", "still", "said"),
    [
        pytest.param(True, 0, False, 1, id="a fresh fact confirms it"),
        pytest.param(True, 120, False, 1, id="a fact that is just fresh enough"),
        pytest.param(True, 121, True, 0, id="one more old fact"),
        pytest.param(False, 0, False, 0, id="it was fresh before"),
        pytest.param(False, 121, False, 0, id="an old fact makes nothing stale"),
    ],
)
def test_what_makes_a_stale_incident_fresh(stale: bool, age_s: float, still: bool, said: int) -> None:
    """Law 13: old news become a present fault by a fact that is at most two minutes old."""
    cell = Cell()
    cell.incident.stale = stale
    symptom = active(1)
    symptom.last = NOW - age_s
    ctx = cell.ctx()
    incidents.renewed(ctx, cell.incident, symptom)
    assert cell.incident.stale is still
    assert len([effect for effect in ctx.effects if getattr(effect, "kind", "") == "incident.fresh"]) == said


@pytest.mark.parametrize(
    ("ages_s", "stale"),
    [
        pytest.param([0], False, id="a fresh fact"),
        pytest.param([120], False, id="just fresh enough"),
        pytest.param([121], True, id="an old fact"),
        pytest.param([300, 200], True, id="old facts"),
        pytest.param([300, 10], False, id="old facts and a fresh one"),
    ],
)
def test_an_incident_that_rests_on_old_facts_only_is_stale(ages_s: list[float], stale: bool) -> None:
    """Law 13, when it opens."""
    cell = Cell()
    cell.state.incidents.clear()
    symptom = cell.state.symptoms[f"off_bus@{ONE_GPU}"]
    symptom.evidence = [
        Evidence(id=f"e{age}", at=NOW - age, node="n1", kind="gpu.off_bus", component="", text="")
        for age in ages_s
    ]
    opened = incidents.match_began(cell.ctx(), rule("gpu-lost", "gpu", {"symptom": "off_bus"}), ONE_GPU)
    assert opened is not None
    assert opened.stale is stale


def test_what_rests_on_no_symptom_is_shown_and_no_old_news() -> None:
    """A rule may be true of a scope by its other fields: the incident is seen, and again when such a rule joins it."""
    cell = Cell()
    cell.state.incidents.clear()
    ctx = cell.ctx()
    opened = incidents.match_began(ctx, rule("cold", "gpu", {"symptom": "hot"}), ONE_GPU)
    assert opened is not None
    assert (opened.stale, opened.symptoms, opened.evidence) == (False, [], [])
    assert opened in [effect.incident for effect in ctx.finish() if isinstance(effect, ShowIncident)]
    again = cell.ctx()
    incidents.match_began(again, rule("colder", "gpu", {"symptom": "hot"}, cause="cold"), ONE_GPU)
    assert sorted(opened.matching_rules.values()) == ["cold", "colder"]
    assert opened in [effect.incident for effect in again.finish() if isinstance(effect, ShowIncident)]


PLACES = {f"n{number}": Place(leaf="l1" if number < 8 else "l2") for number in range(40)}


def test_what_is_explained_says_by_what() -> None:
    """The narrow incident names the wide one, which counts it."""
    story = Story()
    for number in range(5):
        story.event(10 + number, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    story.run(16)
    (wide,) = story.incidents("sm-failover")
    narrow = story.incidents("sm-moved")
    assert [(one.state, one.explained_by) for one in narrow] == [("explained", wide.id)] * 3
    assert (wide.explains, wide.nodes) == (5, 5)


def test_an_incident_explains_only_what_is_within_its_scope() -> None:
    """A link of another leaf, which was there before the leaf's fault, stays a fault of its own."""
    story = Story(pack(places=PLACES))
    for number in range(40):
        story.event(1, "agent.started", "node", f"n{number}")
    for number in (20, *range(6)):
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(14)
    assert [one.scope for one in story.incidents("shared-link-down-leaf")] == ["leaf/l1"]
    states = {one.node: one.state for one in story.incidents("link-down")}
    assert states.pop("n20") is not IncidentState.EXPLAINED
    assert set(states.values()) == {IncidentState.EXPLAINED}


def test_a_wide_incident_explains_the_narrow_ones_of_its_own_cause_but_not_itself() -> None:
    """Rules for node and fabric may name one cause."""
    wide = rule(
        "sm-failover", "fabric", {"symptom": "sm_moved_widely"}, cause="sm-moved", inhibits=("sm-moved",)
    )
    story = told_by(wide, also=("sm-moved",))
    for number in range(3):
        story.event(10, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    story.run(12)
    states = {one.scope: one.state for one in story.incidents("sm-moved")}
    assert states.pop("fabric/default") is IncidentState.OPEN
    assert set(states.values()) == {IncidentState.EXPLAINED}


def test_the_trail_does_not_name_each_of_a_thousand() -> None:
    """The first forty that a wide incident explains are named, all are counted."""
    story = Story()
    for number in range(60):
        story.event(10 + number / 10, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    story.run(30)
    (wide,) = story.incidents("sm-failover")
    assert wide.explains == 60
    assert len(story.notes("incident.explained")) + len(story.notes("incident.explains")) == MAX_LISTED
