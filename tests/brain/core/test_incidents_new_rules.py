"""Incidents: what new rules say of an old one, signs that are renewed, and what operators have dismissed."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core import incidents
from brain.core.context import Context
from brain.core.pack.spec import Priority, Rule
from brain.core.state import Evidence, IncidentState, SymptomState
from tests.brain.core.cell import GPU, NOW, SYMPTOMS, Cell, Given
from tests.brain.core.givens import sick, site
from tests.brain.core.test_incidents_again import notes_of, rule, shown
from tests.brain.world import GPU as ONE_GPU
from tests.brain.world import Story, pack
from tests.brain.world import rule as plain_rule


def judged(*givens: Given, by: Rule) -> tuple[Cell, Context]:
    """The incident after it was judged by the rule."""
    cell = Cell(*givens)
    cell.incident.pack = "old"
    ctx = cell.ctx()
    incidents.rejudged(ctx, cell.incident, by)
    return cell, ctx


def test_an_incident_takes_over_what_its_rule_says_now() -> None:
    """Its reason, its delay, its remedy with the parameters; and people see it."""
    cell, ctx = judged(by=rule(runbook="replace", params={"part": "gpu"}))
    now = cell.incident
    assert (now.because, now.resolve_delay_s, now.pack) == ("as it reads now", 90, "p")
    assert (now.runbook, now.params) == ("replace", {"part": "gpu"})
    assert shown(ctx) == ["inc-1"]


def test_a_rule_that_names_no_remedy_takes_none_away() -> None:
    """The incident keeps what it had."""
    cell, _ = judged(by=rule(params={"part": "gpu"}))
    assert (cell.incident.runbook, cell.incident.params) == ("reset-gpu", {})


@pytest.mark.parametrize(
    ("severity", "then", "raised"),
    [(Priority.P0, "P0", ["P1"]), (Priority.P1, "P1", []), (Priority.P2, "P1", [])],
)
def test_new_rules_may_only_raise_a_severity(severity: Priority, then: str, raised: list[str]) -> None:
    """Whoever was paged hears of it."""
    cell = Cell()
    cell.incident.pages.first_at = NOW - 60
    incidents.rejudged(cell.ctx(), cell.incident, rule(severity=severity))
    assert cell.incident.severity == then
    assert cell.incident.pages.severities == raised


def test_another_rule_of_the_incident_tells_only_what_it_explains() -> None:
    """The incident reads as the rule that opened it does."""
    cell, ctx = judged(by=rule("off-bus", runbook="replace", severity=Priority.P0, inhibits=("hot",)))
    now = cell.incident
    assert (now.because, now.resolve_delay_s, now.pack, now.runbook) == (
        "it is off the bus",
        60,
        "old",
        "reset-gpu",
    )
    assert (now.severity, now.inhibits) == (Priority.P1, ["hot"])
    assert shown(ctx) == []


def another(id_: str, cause: str, scope: str = GPU, **more: Any) -> Given:
    """Another open incident on n1."""

    def given(cell: Cell) -> None:
        fields = {
            "id": id_,
            "cause": cause,
            "scope": scope,
            "state": IncidentState.OPEN,
            "matching_rules": {},
        }
        cell.state.incidents[id_] = replace(cell.incident, **(fields | more))

    return given


def test_what_a_rule_explains_now_is_absorbed_at_once() -> None:
    """In the order in which they opened; only what is new is looked for, and once."""
    cell, ctx = judged(
        another("inc-2", "hot"), another("inc-3", "hot", opened_at=NOW - 900), another("inc-4", "cold"),
        by=rule(inhibits=("hot",)),
    )  # fmt: skip
    assert cell.incident.inhibits == ["hot"]
    assert (cell.incident.explains, ctx.index.inhibitors["hot"]) == (2, {"inc-1": cell.incident})
    assert [note.incident for note in notes_of(ctx, "incident.explained")] == ["inc-3", "inc-2"]
    again = cell.ctx()
    incidents.inhibit(again, cell.incident, rule(inhibits=("hot",)))
    assert cell.incident.inhibits == ["hot"]


def test_what_is_explained_by_two_is_explained_once() -> None:
    """An incident that is over is not absorbed a second time; one that opened later is."""
    cell = Cell(another("inc-2", "hot", opened_at=NOW - 900), another("inc-3", "hot"))
    cell.incident.inhibits = ["cold"]
    ctx = cell.ctx()
    cell.state.incidents["inc-2"].state = IncidentState.CLOSED
    incidents.inhibit(ctx, cell.incident, rule(inhibits=("hot",)))
    assert (cell.incident.explains, cell.incident.inhibits) == (1, ["cold", "hot"])


def test_a_further_sign_may_explain_more() -> None:
    """What its rule explains is absorbed when it joins."""
    cell = Cell(another("inc-2", "hot"))
    joined = incidents.match_began(cell.ctx(), rule("off-bus", cause="gpu-lost", inhibits=("hot",)), GPU)
    assert joined is cell.incident
    assert (cell.incident.inhibits, cell.incident.explains) == (["hot"], 1)


def test_what_opens_is_counted() -> None:
    """Its node is affected, and its fault has come once."""
    cell = Cell()
    incident = incidents.match_began(cell.ctx(), rule("hot"), GPU)
    assert incident is not None
    assert ([*incident.affected], incident.nodes) == (["n1"], 1)
    assert cell.state.recurred == {f"hot@{GPU}": [NOW]}


@pytest.mark.parametrize(
    ("known", "told"), [([], True), ([f"off_bus@{GPU}"], False)], ids=["a new sign", "a sign that is known"]
)
def test_a_sign_that_is_renewed(known: list[str], *, told: bool) -> None:
    """It is listed and counted once, its facts once, and its nodes are the incident's."""
    cell = Cell(sick(GPU))
    cell.incident.symptoms = list(known)
    fact = Evidence(id="e1", at=NOW, node="n1", kind="k", component="c", text="t")
    symptom = SymptomState(name="off_bus", scope=GPU, active=True, since=NOW, members={"n1": NOW, "n2": NOW})
    symptom.evidence = [fact]
    for _ in range(2):
        incidents.renewed(cell.ctx(), cell.incident, symptom)
    assert cell.incident.symptoms == [f"off_bus@{GPU}"]
    assert cell.incident.symptom_count == (1 if told else 0)
    assert [each.id for each in cell.incident.evidence] == ["e1"]
    assert (cell.incident.nodes, [*cell.incident.affected]) == (2, ["n1", "n2"])


@pytest.mark.parametrize(
    ("dismissed", "opens"),
    [
        pytest.param([], True, id="nothing was closed"),
        pytest.param(["leaf-down@leaf/l1"], False, id="the wider cause that explains it was closed, and is there still"),
        pytest.param(["leaf-down@leaf/l9"], True, id="of another leaf switch"),
        pytest.param(["leaf-hot@leaf/l1"], True, id="a wider one that explains something else"),
        pytest.param(["removed@leaf/l1"], True, id="one whose rule was removed since"),
        pytest.param(["removed@leaf/l1", "leaf-hot@leaf/l1", "leaf-down@leaf/l1"], False, id="each is looked at"),
    ],
)  # fmt: skip
def test_what_a_closed_cause_explains_is_not_opened(dismissed: list[str], *, opens: bool) -> None:
    """The operator has judged it; without this the narrow ones would come instead, one by one."""
    cell = Cell()
    cell.state.dismissed = dict.fromkeys(dismissed, NOW)
    ctx = cell.ctx()
    ctx.compiled.rules["leaf-down"] = rule("leaf-down", inhibits=("hot",))
    ctx.compiled.rules["leaf-hot"] = rule("leaf-hot", inhibits=("cold",))
    incident = incidents.match_began(ctx, rule("hot"), GPU)
    assert (incident is not None) == opens
    assert (len(cell.state.incidents) == 2) == opens


def test_a_match_that_opens_an_incident_is_dismissed_no_longer() -> None:
    """A newer fact came after the operator had closed the old one."""
    cell = Cell()
    cell.state.dismissed = {f"hot@{GPU}": NOW - 60, "hot@gpu/n9/0": NOW - 60}
    ctx = cell.ctx()
    assert incidents.match_began(ctx, rule("hot"), GPU) is not None
    assert [*cell.state.dismissed] == ["hot@gpu/n9/0"]
    incidents.match_ended(ctx, "hot", "gpu/n9/0")
    assert cell.state.dismissed == {}


@pytest.mark.parametrize(
    ("page_once", "carried", "value"),
    [
        pytest.param("job", {"job": "77"}, "idle@77", id="the value of its field"),
        pytest.param("job", {}, "", id="the field has none"),
        pytest.param("", {"job": "77"}, "", id="its rule pages for each incident"),
    ],
)
def test_for_which_value_an_incident_is_paged_once(
    page_once: str, carried: dict[str, Any], value: str
) -> None:
    """The rule's name is in it: two rules may look at one field."""
    story = Story(
        replace(pack(), rules=(plain_rule("idle", "gpu", {"symptom": "gpu_idle"}, page_once=page_once),))
    )
    story.event(10, "gpu.idle", ONE_GPU, **carried)
    story.run(100)
    (incident,) = story.incidents()
    assert incident.page_once == value


@pytest.mark.parametrize(("nodes", "opens"), [(4, False), (5, True)], ids=["the same nodes", "one node more"])
def test_the_same_nodes_are_one_fault(nodes: int, monkeypatch: pytest.MonkeyPatch, *, opens: bool) -> None:
    """The nodes of a leaf switch are all in one rack: what the switch's incident says, the rack's would only repeat."""
    (at_leaf,) = (one for one in SYMPTOMS if one.name == "off_bus_leaf")
    at_rack = replace(at_leaf, name="off_bus_rack", scope="rack")
    monkeypatch.setattr("tests.brain.core.cell.SYMPTOMS", (*SYMPTOMS, at_rack))
    cell = Cell(sick("leaf/l1", "off_bus_leaf", nodes=4), sick("rack/r1", "off_bus_rack", nodes=nodes))
    another("inc-2", "leaf-bad", "leaf/l1", node="", rule="leaf-bad")(cell)
    ctx = cell.ctx()
    leaf = plain_rule("leaf-bad", "leaf", {"symptom": "off_bus_leaf"})
    rack = plain_rule("rack-bad", "rack", {"symptom": "off_bus_rack"})
    ctx.compiled.rules |= {"leaf-bad": leaf, "rack-bad": rack}
    ctx.compiled.families |= dict.fromkeys(("leaf-bad", "rack-bad"), (at_leaf.of,))
    ctx.compiled.counting[at_leaf.of] = [leaf, rack]
    ctx.compiled.counting_at[at_leaf.of] = {one.scope: [one] for one in (leaf, rack)}
    cell.state.matched |= {"leaf/l1": ["leaf-bad"], "rack/r1": ["rack-bad"]}
    ctx.index.by_match["leaf-bad@leaf/l1"] = "inc-2"
    assert (incidents.match_began(ctx, rack, "rack/r1") is not None) == opens
    assert cell.state.incidents["inc-2"].explains == (0 if opens else 1)


@pytest.mark.parametrize(("age_s", "stale"), [(119, False), (120, False), (121, True)])
def test_what_must_last_may_be_older(age_s: float, monkeypatch: pytest.MonkeyPatch, *, stale: bool) -> None:
    """A fact of a symptom that lasts for a minute is a minute old by definition."""
    slow = replace(SYMPTOMS[1], name="slow", detect="lasting", for_s=60)
    monkeypatch.setattr("tests.brain.core.cell.SYMPTOMS", (*SYMPTOMS, slow))
    cell = Cell(site(stale_s=60), sick(GPU, "slow"))
    fact = Evidence(id="e1", at=NOW - age_s, node="n1", kind="k", component="c", text="t")
    cell.state.symptoms[f"slow@{GPU}"].evidence = [fact]
    incident = incidents.match_began(cell.ctx(), plain_rule("slow", "gpu", {"symptom": "slow"}), GPU)
    assert getattr(incident, "stale", None) is stale
