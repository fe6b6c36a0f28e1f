"""Incidents: faults that come and go, nodes that stay drained when an incident is over, and what new rules say of an old one."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core import ids, incidents
from brain.core.context import Context
from brain.core.effects import Note, ShowIncident
from brain.core.pack.spec import Paging, Priority, Rule
from brain.core.state import Evidence, Incident, IncidentState, OwnedDrain, SymptomState
from tests.brain.core.cell import GPU, NOW, SYMPTOMS, Cell, Given, sick, site
from tests.brain.world import GPU as ONE_GPU
from tests.brain.world import Story, pack
from tests.brain.world import rule as plain_rule

KEY = f"gpu-lost@{GPU}"
MINUTE = 60.0


def notes_of(ctx: Context, *kinds: str) -> list[Note]:
    """Those of the kinds."""
    return [effect for effect in ctx.finish() if isinstance(effect, Note) and effect.kind in kinds]


def shown(ctx: Context) -> list[str]:
    """The ids of the incidents that people see changed."""
    return [effect.incident.id for effect in ctx.finish() if isinstance(effect, ShowIncident)]


# Faults that come and go


@pytest.mark.parametrize(
    ("before", "kept", "told"),
    [
        pytest.param([], [], "", id="for the first time"),
        pytest.param([0.5], [0.5], "it came 2 times in 30 seconds, every 30 seconds", id="after half a minute"),
        pytest.param([2, 1], [2, 1], "it came 3 times in 2 minutes, every 60 seconds", id="within two minutes"),
        pytest.param([20], [20], "it came 2 times in 20 minutes, every 20 minutes", id="for the second time"),
        pytest.param([60, 20], [60, 20], "it came 3 times in 60 minutes, every 30 minutes", id="for the third time"),
        pytest.param([360], [], "", id="six hours ago: that is forgotten"),
        pytest.param([359], [359], "it came 2 times in 6 hours, every 6 hours", id="less than six hours ago"),
    ],
)  # fmt: skip
def test_how_often_a_fault_came(before: list[float], kept: list[float], told: str) -> None:
    """The trail says so, and it is remembered for six hours after the last time."""
    cell = Cell()
    cell.state.recurred[KEY] = [NOW - minutes * MINUTE for minutes in before]
    ctx = cell.ctx()
    incidents.came(ctx, cell.incident)
    assert cell.state.recurred == {KEY: [NOW - minutes * MINUTE for minutes in [*kept, 0]]}
    assert cell.state.timers == {f"recurred:{KEY}": NOW + 6 * 3600}
    notes = notes_of(ctx, "incident.recurs")
    assert [(note.text, note.incident, note.scope) for note in notes] == (
        [(told, "inc-1", GPU)] if told else []
    )


def test_a_fault_that_flutters_fills_no_memory() -> None:
    """The newest thirty times are kept."""
    cell = Cell()
    cell.state.recurred[KEY] = [NOW - 100 + number for number in range(40)]
    incidents.came(cell.ctx(), cell.incident)
    assert cell.state.recurred[KEY] == [*(NOW - 100 + number for number in range(11, 40)), NOW]


def test_a_fault_that_stayed_away_is_forgotten() -> None:
    """By its timer, once; others are not."""
    cell = Cell()
    cell.state.recurred = {KEY: [NOW], "hot@x": [NOW]}
    for _ in range(2):
        incidents.forget_recurrences(cell.ctx(), KEY)
    assert cell.state.recurred == {"hot@x": [NOW]}


@pytest.mark.parametrize(
    ("came", "delay_s"),
    [
        pytest.param([], 60, id="it is not known to come again"),
        pytest.param([90, 0], 60, id="twice is no habit"),
        pytest.param([60, 30, 0], 3600, id="every half an hour: it stays open for an hour"),
        pytest.param([60, 50, 20, 0], 2400, id="by the mean of its pauses"),
        pytest.param([0.5, 0.25, 0], 60, id="every few seconds: as long as its rule says"),
        pytest.param([300, 150, 0], 7200, id="every few hours: two hours at most"),
    ],
)
def test_how_long_an_incident_stays_open(came: list[float], delay_s: float) -> None:
    """For longer than the pauses of a fault that comes and goes: else it is a new incident, and a new page, each time."""
    cell = Cell()
    if came:
        cell.state.recurred[KEY] = [NOW - minutes * MINUTE for minutes in came]
    assert incidents.resolve_delay_s(cell.ctx(), cell.incident) == delay_s


# Nodes that stay drained


@pytest.mark.parametrize(
    ("trigger", "by_operator"),
    [(incidents.IncidentTrigger.CLOSED_BY_OPERATOR, True), (incidents.IncidentTrigger.STAYED_CLEAR, False)],
)
def test_what_an_incident_leaves_drained_when_it_is_over(
    trigger: incidents.IncidentTrigger, *, by_operator: bool
) -> None:
    """Law 14: the engine gives each such node another owner, and hears whether a person has closed the old one."""
    cell = Cell()
    cell.incident.state, cell.state.dismissed = IncidentState.RECOVERED, {"hot@gpu/n9/0": NOW - 60}
    for node, owner in (("n1", "inc-1"), ("n2", "inc-9"), ("n3", "inc-1")):
        cell.state.drains[node] = {owner: OwnedDrain(since=NOW, marks=[owner])}
    cell.incident.matching_rules["left-drained@node/n1"] = "left-drained"
    ctx = cell.ctx()
    ctx.compiled.rules["gpu-lost"] = rule()
    incidents.transition(ctx, cell.incident, trigger, "it is over")
    assert ctx.left == [("n1", cell.incident, by_operator), ("n3", cell.incident, by_operator)]
    assert cell.state.dismissed == {"hot@gpu/n9/0": NOW - 60} | ({KEY: NOW} if by_operator else {})
    assert ctx.released == [cell.incident]


def test_what_is_explained_leaves_its_drain_to_what_explains_it() -> None:
    """Nobody has to look after it."""
    cell = Cell()
    cell.state.drains["n1"] = {"inc-1": OwnedDrain(since=NOW, marks=["inc-1"])}
    cell.incident.explained_by = "inc-2"
    ctx = cell.ctx()
    incidents.transition(ctx, cell.incident, incidents.IncidentTrigger.ABSORBED, "the leaf switch is down")
    assert ctx.left == []
    assert [*cell.state.drains["n1"]] == ["inc-2"]


def left_over(cell: Cell) -> tuple[Context, Incident]:
    """inc-1 is over, and n1 is drained."""
    cell.incident.closed_why = "ann closed it"
    ctx = cell.ctx()
    return ctx, incidents.open_left(ctx, "n1", cell.incident)


def test_the_incident_of_a_node_that_is_left_drained() -> None:
    """It says why the node is out of service and what gives it back; nobody is woken for it, and it is done at once."""
    cell = Cell()
    ctx, left = left_over(cell)
    text = (
        "n1 was drained for gpu-lost (inc-1), which is over: ann closed it. "
        "It stays out of service until it is given back: gpuward return n1"
    )
    assert left == Incident(
        id=ids.hashed(ids.INCIDENT, "input-1", "left-drained", "node/n1", "inc-1"),
        cause="left-drained", state=IncidentState.OPEN, severity=Priority.P2, scope="node/n1", node="n1",
        rule="left-drained", because=text, runbook="return-node", pack="p", opened_at=NOW, hold_off_until=NOW,
        resolve_delay_s=1, page=Paging.FAILURE, matching_rules={"left-drained@inc-1@node/n1": "left-drained"},
    )  # fmt: skip
    assert cell.state.incidents[left.id] is left
    assert ctx.index.by_cause["left-drained"] == {"n1": {left.id: left}}
    assert shown(ctx) == [left.id]
    (note,) = notes_of(ctx, "incident.opened")
    assert (note.text, note.incident, note.scope) == (text, left.id, "node/n1")


def test_it_ends_when_the_node_is_given_back() -> None:
    """What stood in place of a rule's match is gone, here and in the index; a rule's own match stays."""
    cell = Cell()
    ctx, left = left_over(cell)
    left.matching_rules["hot@node/n1"] = "hot"
    for _ in range(2):
        incidents.end_left(ctx, left)
    assert left.matching_rules == {"hot@node/n1": "hot"}
    assert [match for match in ctx.index.by_match if match.startswith("left-drained")] == []
    incidents.end_left(ctx, cell.incident)
    assert cell.incident.matching_rules == {KEY: "gpu-lost"}


def test_a_node_that_is_given_back_after_its_incident_was_closed() -> None:
    """The run that was under way ends later than the incident: there is nothing left to end."""
    cell = Cell()
    ctx, left = left_over(cell)
    incidents.transition(ctx, left, incidents.IncidentTrigger.CLOSED_BY_OPERATOR, "it is a spare")
    incidents.end_left(ctx, left)
    assert left.matching_rules == {}


# New rules


def rule(name: str = "gpu-lost", **more: Any) -> Rule:
    """A rule as it reads now."""
    fields: dict[str, Any] = {"severity": Priority.P1, "because": "as it reads now", "resolve_delay_s": 90.0}
    return replace(plain_rule(name, "gpu", {"symptom": "off_bus"}), **(fields | more))


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


# Signs


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


# What operators have dismissed, and values that are paged once


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
    ctx.compiled.rules["leaf-bad"] = plain_rule("leaf-bad", "leaf", {"symptom": "off_bus_leaf"})
    rack = plain_rule("rack-bad", "rack", {"symptom": "off_bus_rack"})
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
