"""Incidents: what the trail and the screens say of them, and what is left when one is over."""

from dataclasses import replace

import pytest

from brain.core import incidents
from brain.core.context import Context
from brain.core.effects import Note, ShowIncident
from brain.core.pack.spec import Paging, Place, Priority, Rule, Runbook
from brain.core.state import Evidence, Incident, IncidentState, RunState
from tests.brain.core.cell import GPU as ONE_GPU
from tests.brain.core.cell import NOW, Cell
from tests.brain.core.climb import Climb, rung
from tests.brain.world import GPU, RUNBOOKS, SYMPTOMS, Story, pack
from tests.brain.world import rule as rule_of

LOST = rule_of("gpu-lost", "gpu", {"symptom": "off_bus"}, hold_off_s=30)
LEAVES = {f"n{number}": Place(leaf=f"l{number % 2}") for number in range(1, 9)}


def trail(story: Story, *kinds: str) -> list[tuple[str, str, str]]:
    """(kind, incident, scope) of the notes."""
    return [
        (note.kind.partition(".")[2], note.incident, note.scope)
        for note in story.time.notes
        if note.kind in {f"incident.{kind}" for kind in kinds}
    ]


def shown(ctx: Context) -> list[Incident]:
    """The incidents that the input shows in their new form."""
    return [effect.incident for effect in ctx.finish() if isinstance(effect, ShowIncident)]


def told_by(*rules: Rule, runbooks: tuple[Runbook, ...] = ()) -> Story:
    """A story in which only these rules hold, on nodes of two leaves."""
    return Story(replace(pack(places=LEAVES), rules=rules, runbooks=(*RUNBOOKS, *runbooks)), heals=False)


# The trail


def test_the_life_of_an_incident_in_the_trail() -> None:
    """Each line names the incident and where it is."""
    down = rule_of("link-down", "link", {"symptom": "link_down"}, hold_off_s=1, resolve_delay_s=5)
    story = told_by(down)
    story.event(20, "link.state", "link/eth1", up=False)
    story.run(30)
    story.event(200, "link.state", "link/eth1", up=True)
    story.run(400)
    (incident,) = story.incidents()
    kinds = ("opened", "open", "recovered", "closed")
    assert trail(story, *kinds) == [(kind, incident.id, "link/n1/eth1") for kind in kinds]


def test_what_the_trail_says_of_a_new_incident() -> None:
    """Its cause and place, the rule and the rules' version that opened it, how urgent it is, and on what signs."""
    story = told_by(LOST)
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(11)
    (incident,) = story.incidents()
    (note,) = [note for note in story.time.notes if note.kind == "incident.opened"]
    scope = "gpu/n1/0000:3b:00"
    assert (note.text, note.incident, note.scope) == (
        f"gpu-lost at {scope}: because of gpu-lost",
        incident.id,
        scope,
    )
    assert note.data == {
        "cause": "gpu-lost",
        "rule": "gpu-lost",
        "pack": "p1",
        "severity": "P2",
        "symptoms": [f"off_bus@{scope}"],
    }


def test_an_incident_settles_for_its_rules_hold_off() -> None:
    """Half a minute, from when it began; it stands in the form that people see."""
    story = told_by(LOST)
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(39.9)
    (incident,) = story.incidents()
    assert (incident.state, incident.opened_at, incident.hold_off_until) == (IncidentState.SETTLING, 10, 40)
    story.run(40)
    assert story.incidents()[0].state is IncidentState.OPEN


def test_a_sign_that_says_more_about_the_place() -> None:
    """A job complains of its node, then the driver names the GPU: that is where the incident is from now on."""
    job = rule_of("job", "node", {"symptom": "device_removed"}, cause="gpu-lost")
    story = told_by(LOST, job)
    story.event(10, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.event(11, "gpu.xid", GPU, code=79)
    story.run(12)
    (incident,) = story.incidents()
    assert (incident.scope, incident.node) == ("gpu/n1/0000:3b:00", "n1")
    assert trail(story, "narrowed") == [("narrowed", incident.id, incident.scope)]
    assert story.notes("incident.narrowed") == ["gpu-lost is now known to be at gpu/n1/0000:3b:00"]


def test_a_sign_that_is_more_urgent() -> None:
    """The line says from what to what, by which rule, and where."""
    job = rule_of("job", "node", {"symptom": "device_removed"}, cause="gpu-lost", severity=Priority.P0)
    story = told_by(LOST, job)
    story.event(10, "gpu.xid", GPU, code=79)
    story.event(11, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(12)
    (incident,) = story.incidents()
    assert trail(story, "raised") == [("raised", incident.id, "node/n1")]
    assert story.notes("incident.raised") == ["from P2 to P0 by rule job: because of job"]


def test_a_fresh_fact_in_the_trail() -> None:
    """It names the incident, and the place of the symptom."""
    cell = Cell()
    cell.incident.stale = True
    symptom = cell.state.symptoms[f"off_bus@{ONE_GPU}"]
    symptom.last = NOW
    ctx = cell.ctx()
    incidents.renewed(ctx, cell.incident, symptom)
    (note,) = [effect for effect in ctx.effects if isinstance(effect, Note)]
    assert (note.kind, note.incident, note.scope) == ("incident.fresh", "inc-1", ONE_GPU)


def test_what_is_explained_at_once_in_the_trail() -> None:
    """The line is of the wide incident, and of the place that it explains; what people see counts it."""
    story = Story()
    for number in range(4):
        story.event(10 + number, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    story.run(14)
    (wide,) = story.incidents("sm-failover")
    assert trail(story, "explains") == [("explains", wide.id, "node/n3")]
    assert (wide.explains, wide.nodes) == (4, 4)


@pytest.mark.parametrize(("cause", "scope"), [("cold", ONE_GPU), ("hot", "gpu/n2/0000:5e:00")])
def test_every_fault_has_an_id_of_its_own(cause: str, scope: str) -> None:
    """Two that one event opens: of another cause, or at another place. And the next time it is another one."""
    cell = Cell()
    first = incidents.match_began(cell.ctx(), rule_of("hot", "gpu", {"symptom": "hot"}), ONE_GPU)
    second = incidents.match_began(cell.ctx(), rule_of(cause, "gpu", {"symptom": "hot"}), scope)
    assert first is not None
    assert second is not None
    assert first.id != second.id
    cell.state.incidents.clear()
    ctx = cell.ctx()
    ctx.cause = "input-2"
    again = incidents.match_began(ctx, rule_of("hot", "gpu", {"symptom": "hot"}), ONE_GPU)
    assert again is not None
    assert again.id != first.id


def test_a_fact_is_listed_once() -> None:
    """Although the symptom carries its first facts each time it is renewed."""
    cell = Cell()
    symptom = cell.state.symptoms[f"off_bus@{ONE_GPU}"]
    for number in (1, 2):
        symptom.evidence.append(Evidence(id=f"e{number}", at=NOW, node="n1", kind="k", component="", text=""))
        ctx = cell.ctx()
        incidents.renewed(ctx, cell.incident, symptom)
        assert shown(ctx) == [cell.incident]
    assert [fact.id for fact in cell.incident.evidence] == ["e1", "e2"]


def test_a_sign_that_ends_is_seen() -> None:
    """One of two rules is not true any more: the incident lasts, in its new form."""
    cell = Cell()
    cell.incident.matching_rules = {f"gpu-lost@{ONE_GPU}": "gpu-lost", "job@node/n1": "job"}
    ctx = cell.ctx()
    assert incidents.match_ended(ctx, "job", "node/n1") is None
    assert cell.incident.matching_rules == {f"gpu-lost@{ONE_GPU}": "gpu-lost"}
    assert shown(ctx) == [cell.incident]
    assert incidents.match_ended(ctx, "gpu-lost", ONE_GPU) is cell.incident


@pytest.mark.parametrize("match", [("gpu-lost", "gpu/n9/0000:3b:00"), ("unknown", ONE_GPU)])
def test_the_end_of_a_match_that_has_no_incident(match: tuple[str, str]) -> None:
    """It was explained by another one, or closed by hand."""
    cell = Cell()
    cell.incident.matching_rules = {f"gpu-lost@{ONE_GPU}": "gpu-lost"}
    assert incidents.match_ended(cell.ctx(), *match) is None
    assert cell.incident.matching_rules


# What one incident explains


def test_only_what_is_within_its_scope_is_explained() -> None:
    """A leaf's switch explains a link of that leaf which falls later, and no other."""
    wide = rule_of("leaf-down", "leaf", {"symptom": "downs"}, inhibits=("link-down",))
    down = rule_of("link-down", "link", {"symptom": "link_down"}, hold_off_s=30)
    downs = replace(
        next(one for one in SYMPTOMS if one.name == "sm_moved_widely"), name="downs", scope="leaf", of="sm_moved",
        at_least=2, share=0.0,
    )  # fmt: skip
    story = Story(replace(pack(places=LEAVES), rules=(wide, down), symptoms=(*SYMPTOMS, downs)), heals=False)
    for node in ("n1", "n3", "n5"):
        story.event(10, "ib.sm_lid", "port/mlx5_0.1", node, sm_lid=7)
    for node in ("n2", "n7"):
        story.event(11, "link.state", "link/eth1", node, up=False)
    story.run(12)
    assert [one.scope for one in story.incidents()] == ["leaf/l1", "link/n2/eth1"]
    assert trail(story, "explains") == [("explains", story.incidents()[0].id, "link/n7/eth1")]


def test_an_incident_that_explains_many_is_as_wide_as_they_are_many() -> None:
    """Its symptom may count fewer nodes than it explains incidents."""
    cell = Cell()
    cell.incident.state = IncidentState.OPEN
    wide = rule_of("all-hot", "cell", {"symptom": "none"}, inhibits=("gpu-lost",))
    others = {}
    for number in (2, 3):
        other = replace(
            cell.incident, id=f"inc-{number}", node=f"n{number}", scope=f"gpu/n{number}/0", runs=[]
        )
        others[other.id] = cell.state.incidents[other.id] = other
    opened = incidents.match_began(cell.ctx(), wide, "cell")
    assert opened is not None
    assert (opened.explains, opened.nodes) == (3, 3)
    assert {one.explained_by for one in others.values()} == {opened.id}


def open_ones(story: Story, cause: str) -> list[str]:
    """Where an incident of that cause is open."""
    return [one.scope for one in story.incidents(cause) if one.state not in incidents.OVER]


def test_what_an_operator_closes_is_not_back_in_pieces() -> None:
    """The wide incident is closed, and the narrow symptoms are there still: none of them opens one of its own for that."""
    story = Story()
    for number in range(4):
        story.event(10, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    story.run(12)
    (wide,) = story.incidents("sm-failover")
    story.say(20, "close", id=wide.id)
    story.run(21)
    assert open_ones(story, "sm-moved") == []
    story.event(22, "ib.sm_lid", "port/mlx5_0.1", "n2", sm_lid=8)
    story.run(23)
    assert open_ones(story, "sm-moved") == [], "a newer fact of one of them is still explained"
    story.event(24, "ib.sm_lid", "port/mlx5_0.1", "n5", sm_lid=8)
    story.run(25)
    assert [one.scope for one in story.incidents("sm-failover")] == ["fabric/default"] * 2, (
        "one node more is news"
    )


# What is left when an incident is over


def test_a_closed_incident_takes_no_further_signs() -> None:
    """What comes next is a new incident."""
    job = rule_of("job", "node", {"symptom": "device_removed"}, cause="gpu-lost")
    story = told_by(LOST, job)
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(50)
    (first,) = story.incidents()
    story.say(60, "close", id=first.id)
    story.event(70, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.run(71)
    closed, opened = story.incidents()
    assert (closed.id, closed.state, closed.symptom_count) == (first.id, IncidentState.CLOSED, 1)
    assert opened.matching_rules == {"job@node/n1": "job"}


def test_an_incident_that_is_closed_in_its_hold_off() -> None:
    """Nothing is kept of it, and nothing happens when the hold-off would have ended."""
    story = told_by(LOST)
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(20)
    (incident,) = story.incidents()
    assert f"incident:{incident.id}" in story.engine.state.timers
    story.say(20, "close", id=incident.id)
    story.run(21)
    assert story.engine.state.incidents == {}
    assert not [timer for timer in story.engine.state.timers if incident.id in timer]
    story.run(100)
    assert story.time.pages == []


@pytest.mark.parametrize("ends", ["ok", "failed"])
def test_an_incident_that_is_closed_while_a_step_is_under_way(ends: str) -> None:
    """The step is told to stop and its end awaited; until then incident and run are kept, then nothing is."""
    it = Climb(rung("bounce"))
    name, run = it.incident.id, it.climber.id
    it.say(4, "close", id=name)
    it.run(5)
    assert (it.incident.state, it.state) == (IncidentState.CLOSED, RunState.CANCELLING)
    assert [*it.engine.state.incidents, *it.engine.state.runs] == [name, run]
    it.answer(ends)
    assert it.time.runs[run].state is RunState.CANCELLED
    assert (it.engine.state.incidents, it.engine.state.runs) == ({}, {})
    assert not [timer for timer in it.engine.state.timers if name in timer and "tries" not in timer]


def test_an_incident_that_is_closed_while_its_run_waits() -> None:
    """Nothing is under way: incident, run and all their timers are gone at once."""
    it = Climb(rung("bounce"), disruptive_runs=0)
    name = it.incident.id
    assert it.state is RunState.HELD
    assert f"run:{it.climber.id}" in it.engine.state.timers
    it.say(4, "close", id=name)
    it.run(5)
    assert it.climber.state is RunState.CANCELLED
    assert (it.engine.state.incidents, it.engine.state.runs) == ({}, {})
    assert not [timer for timer in it.engine.state.timers if name in timer]


def test_what_is_forgotten_with_an_incident() -> None:
    """Its runs, also one that ended long ago, with their timers; what another one needs stays."""
    cell = Cell()
    run = cell.run
    cell.incident.runs = ["inc-1.r0", run.id]
    cell.incident.state, run.state = IncidentState.CLOSED, RunState.SUCCEEDED
    cell.state.runs["inc-2.r1"] = replace(run, id="inc-2.r1")
    cell.state.timers = {f"run:{run.id}": NOW + 5, "run:inc-2.r1": NOW + 5, "page:inc-1": NOW + 5}
    ctx = cell.ctx()
    incidents.forget_if_done(ctx, cell.incident)
    assert cell.state.incidents == {}
    assert [*cell.state.runs] == ["inc-2.r1"]
    assert cell.state.timers == {"run:inc-2.r1": NOW + 5}


@pytest.mark.parametrize("state", [state for state in IncidentState if state not in incidents.OVER])
def test_what_is_not_over_is_not_forgotten(state: IncidentState) -> None:
    """Although nothing is under way."""
    cell = Cell()
    cell.incident.state, cell.run.state = state, RunState.SUCCEEDED
    incidents.forget_if_done(cell.ctx(), cell.incident)
    assert [*cell.state.incidents] == ["inc-1"]


def test_what_is_told_at_once_stays_so() -> None:
    """Although a rule joins it whose page is `never`."""
    cell = Cell()
    ctx = cell.ctx()
    quiet = rule_of("quiet", "gpu", {"symptom": "hot"}, cause="gpu-lost", page=Paging.NEVER)
    assert incidents.match_began(ctx, quiet, ONE_GPU) is cell.incident
    assert cell.incident.page is Paging.OPEN
