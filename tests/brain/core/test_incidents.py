"""Incidents: one for each fault. What joins one, what raises, narrows, explains and ends it."""

from dataclasses import replace

import pytest

from brain.core import incidents
from brain.core.context import Context
from brain.core.effects import Note
from brain.core.incidents import OVER, TRANSITIONS, IncidentTrigger
from brain.core.pack.spec import Paging, Priority, Rule, Runbook, Rung
from brain.core.state import IncidentState
from tests.brain.core.cell import Cell
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
    """Only what comes back leads out of a closed or explained incident, and from all other states a person can close it."""
    assert {what for state, what in TRANSITIONS if state in OVER} == {IncidentTrigger.CAME_BACK}
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
