"""Incidents: one for each fault. What joins one, what raises, narrows, explains and ends it."""

import re
from dataclasses import replace

import pytest

from brain.core import incidents
from brain.core.context import Context
from brain.core.effects import Note, ShowIncident
from brain.core.incidents import MAX_LISTED, OVER, TRANSITIONS, IncidentTrigger
from brain.core.pack.spec import Paging, Place, Priority, Rule, Runbook, Rung
from brain.core.state import Evidence, IncidentState, SymptomState
from tests.brain.core.cell import GPU as ONE_GPU
from tests.brain.core.cell import NOW, Cell
from tests.brain.world import GPU, Story, pack, rule

OTHER_GPU = "gpu/0000:5e:00"


def notes_of(ctx: Context) -> list[Note]:
    """The notes that an input led to."""
    return [effect for effect in ctx.effects if isinstance(effect, Note)]


def told_by(*rules: Rule, also: tuple[str, ...] = ()) -> Story:
    """A story in which these rules hold, and those of the small pack that are named."""
    small = pack()
    kept = tuple(one for one in small.rules if one.name in also)
    return Story(replace(small, rules=(*kept, *rules)), heals=False)


# The states of an incident


@pytest.mark.parametrize("state", IncidentState)
@pytest.mark.parametrize("what", IncidentTrigger)
def test_an_incident_goes_along_its_table_and_no_other_way(
    state: IncidentState, what: IncidentTrigger
) -> None:
    """Where the table has no arrow nothing happens, and the caller is told so."""
    cell = Cell()
    cell.incident.state = state
    ctx = cell.ctx()
    moved = incidents.transition(ctx, cell.incident, what, "for a reason")
    assert moved == ((state, what) in TRANSITIONS)
    assert cell.incident.state is TRANSITIONS.get((state, what), state)
    assert bool(ctx.effects) == moved


def test_what_is_over_stays_over() -> None:
    """No arrow leads out of a closed or explained incident, and from all other states a person can close it."""
    assert not [state for state, _ in TRANSITIONS if state in OVER]
    assert {IncidentState.SETTLING, *TRANSITIONS.values()} == set(IncidentState), "each can be reached"
    for state in IncidentState:
        assert (TRANSITIONS.get((state, IncidentTrigger.CLOSED_BY_OPERATOR)) is IncidentState.CLOSED) == (
            state not in OVER
        )


@pytest.mark.parametrize(
    ("state", "what", "quiet"),
    [
        (IncidentState.SETTLING, IncidentTrigger.CLEARED, True),
        (IncidentState.SETTLING, IncidentTrigger.ABSORBED, True),
        (IncidentState.SETTLING, IncidentTrigger.HOLD_OFF_ENDED, False),
        (IncidentState.OPEN, IncidentTrigger.CLOSED_BY_OPERATOR, False),
        (IncidentState.RECOVERED, IncidentTrigger.STAYED_CLEAR, False),
    ],
)
def test_what_ends_before_anybody_heard_of_it_is_quiet(
    state: IncidentState, what: IncidentTrigger, quiet: bool
) -> None:
    """The trail says so, that reports can leave it out."""
    cell = Cell()
    cell.incident.state = state
    ctx = cell.ctx()
    incidents.transition(ctx, cell.incident, what, "for a reason")
    (data,) = [note.data for note in notes_of(ctx) if note.kind.startswith("incident.")]
    assert data == {"cause": "gpu-lost", "quiet": quiet}


def test_an_incident_that_is_over_says_when_and_why() -> None:
    """In the form that people keep seeing."""
    story = Story()
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(12)
    story.say(20, "close", id=story.incidents()[0].id, why="the cable was pulled")
    story.run(30)
    (incident,) = story.incidents()
    assert (incident.closed_at, incident.closed_why) == (20, "ann: the cable was pulled")


def test_a_closed_incident_is_kept_until_its_last_page_is_delivered() -> None:
    """Law 10: nobody is left with an alarm that is over; then it is forgotten with its runs."""
    story = Story(heals=False, undelivered=10_000)
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(20)
    story.say(20, "close", id=story.incidents()[0].id)
    story.run(1000)
    state = story.engine.state
    assert [(one.state, bool(one.pages.waiting)) for one in state.incidents.values()] == [("closed", True)]
    assert state.runs
    story.undelivered = 0
    story.run(2000)
    assert (state.incidents, state.runs) == ({}, {})


def test_an_incident_with_two_pages_in_one_is_forgotten_once() -> None:
    """In a storm one page tells that an incident opened and what its runbook said; by then it is over."""
    story = Story(pack(group_within_s=120, shared_nodes=100, shared_share=1))
    story.event(1, "gpu.returned", GPU, "n-well", by="nvml")
    for number in range(7):
        story.event(10, "gpu.xid", GPU, f"n{number}", code=79)
        story.event(20, "gpu.returned", GPU, f"n{number}", by="nvml")
    story.run(1000)
    assert [incident.state for incident in story.incidents()] == ["closed"] * 7
    assert any(len(page.subject.listed) for page in story.time.pages)
    assert story.engine.state.fault_free()


# Which matches are one fault


def test_the_symptoms_of_one_gpu_are_one_incident_in_any_order() -> None:
    """The driver names the GPU, then a job of the node complains: the incident stays at the GPU, with both symptoms."""
    story = Story()
    story.event(10, "gpu.xid", GPU, code=79)
    story.event(11, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(20)
    (incident,) = story.incidents()
    assert incident.scope == "gpu/n1/0000:3b:00"
    assert incident.symptoms == ["off_bus@gpu/n1/0000:3b:00", "device_removed@node/n1"]
    assert incident.symptom_count == 2
    assert story.notes("incident.narrowed") == []


def test_two_rules_of_one_scope_narrow_nothing() -> None:
    """The second sign on the node itself says no more about where it is."""
    story = told_by(
        rule("sm-moved", "node", {"symptom": "sm_moved"}, cause="node-trouble"),
        rule("job-trouble", "node", {"symptom": "device_removed"}, cause="node-trouble"),
    )
    story.event(10, "ib.sm_lid", "port/mlx5_0.1", sm_lid=7)
    story.event(11, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(12)
    (incident,) = story.incidents()
    assert sorted(incident.matching_rules.values()) == ["job-trouble", "sm-moved"]
    assert story.notes("incident.narrowed") == []


def test_the_same_cause_on_two_gpus_is_two_incidents() -> None:
    """A fault has one place."""
    story = Story()
    story.event(10, "gpu.xid", GPU, code=79)
    story.event(11, "gpu.xid", OTHER_GPU, code=79)
    story.run(20)
    assert [incident.scope for incident in story.incidents()] == ["gpu/n1/0000:3b:00", "gpu/n1/0000:5e:00"]


def test_a_node_joins_the_wider_incident_of_its_own_cause() -> None:
    """The fabric is known to be at fault: a node that shows the same cause is a part of it."""
    story = told_by(
        rule("sm-failover", "fabric", {"symptom": "sm_moved_widely"}, cause="sm-trouble"),
        rule("sm-moved", "node", {"symptom": "device_removed"}, cause="sm-trouble"),
    )
    for number in range(3):
        story.event(10, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    story.event(11, "job.cuda_error", "node", "n7", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(12)
    (incident,) = story.incidents()
    assert sorted(incident.matching_rules) == ["sm-failover@fabric/default", "sm-moved@node/n7"]
    assert incident.scope == "fabric/default", "it is not narrowed to one of its nodes"


def test_an_incident_is_over_only_when_its_last_sign_is() -> None:
    """The GPU is back on the bus, and the job's complaint still stands."""
    story = Story()
    story.event(10, "gpu.xid", GPU, code=79)
    story.event(11, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.event(100, "gpu.returned", GPU, by="nvml")
    story.run(101)
    assert story.incidents()[0].state is IncidentState.NEEDS_HUMAN
    story.say(200, "return", node="n1")
    story.run(201)
    assert story.incidents()[0].state is IncidentState.RECOVERED


# What a further match brings


@pytest.mark.parametrize(
    ("severity", "now", "raised"),
    [(Priority.P1, "P1", 1), (Priority.P2, "P2", 0), (Priority.P3, "P2", 0)],
)
def test_a_match_may_only_raise_the_severity(severity: Priority, now: str, raised: int) -> None:
    """More urgent raises, and whoever was told hears of it; as urgent or less changes nothing."""
    worse = rule("bad-link", "node", {"symptom": "device_removed"}, cause="link-down", severity=severity)
    story = told_by(worse, also=("link-down",))
    story.event(10, "link.state", "link/eth1", up=False)
    story.event(20, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(21)
    (incident,) = story.incidents()
    assert incident.severity == now
    assert len(story.notes("incident.raised")) == raised
    assert len([page for page in story.time.pages if page.text.startswith("raised from P2")]) == raised


@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ("", "gentle", "gentle"),
        ("gentle", "harsh", "gentle"),
        ("gentle", "", "gentle"),
        ("", "", ""),
    ],
)
def test_an_incident_without_a_remedy_takes_that_of_the_next_match(
    first: str, second: str, given: str
) -> None:
    """With that rule's parameters; and one that has a remedy keeps it."""
    story = told_by(
        rule("sm-moved", "node", {"symptom": "sm_moved"}, cause="x", hold_off_s=10, runbook=first, params={"by": "first"}),
        rule("job", "node", {"symptom": "device_removed"}, cause="x", hold_off_s=10, runbook=second, params={"by": "second"}),
    )  # fmt: skip
    story.event(10, "ib.sm_lid", "port/mlx5_0.1", sm_lid=7)
    story.event(11, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(12)
    (incident,) = story.incidents()
    assert incident.runbook == given
    assert incident.params == {"by": "second" if second and not first else "first"}


def test_a_rules_parameters_reach_the_remedy() -> None:
    """`$depth` of a runbook's rung is what the rule says."""
    book = Runbook(
        name="look",
        summary="look",
        rungs=(
            Rung(name="look", do="evidence.collect", params={"component": "$component", "depth": "$depth"}),
        ),
    )
    small = pack()
    deep = rule("gpu-lost", "gpu", {"symptom": "off_bus"}, runbook="look", params={"depth": 3})
    story = Story(replace(small, rules=(deep,), runbooks=(book,)))
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(20)
    assert [perform.step.params["depth"] for perform in story.performed] == [3]


def test_a_match_that_must_be_told_at_once_makes_the_incident_so() -> None:
    """An incident that was in the list only rings when a rule joins that says `page: open`."""
    story = told_by(
        rule("sm-moved", "node", {"symptom": "sm_moved"}, cause="x", page=Paging.NEVER),
        rule("job", "node", {"symptom": "device_removed"}, cause="x", page=Paging.OPEN),
    )
    story.event(10, "ib.sm_lid", "port/mlx5_0.1", sm_lid=7)
    story.run(20)
    assert story.time.pages == []
    story.event(21, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(22)
    assert [page.what for page in story.time.pages] == ["open"]


# What an incident shows


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


# What one incident explains


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
