"""Incidents: faults that come and go, nodes that stay drained when an incident is over, and what new rules say of an old one."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core import ids, incidents, left_drained, recurrence
from brain.core.context import Context
from brain.core.effects import Note, ShowIncident
from brain.core.pack.spec import Paging, Priority, Rule
from brain.core.state import Incident, IncidentState, OwnedDrain
from tests.brain.core.cell import GPU, NOW, Cell
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
        pytest.param([1440], [], "", id="a day ago: that is forgotten"),
        pytest.param([1439], [1439], "it came 2 times in 24 hours, every 24 hours", id="less than a day ago"),
    ],
)  # fmt: skip
def test_how_often_a_fault_came(before: list[float], kept: list[float], told: str) -> None:
    """The trail says so, and it is remembered for a day after the last time."""
    cell = Cell()
    cell.state.recurred[KEY] = [NOW - minutes * MINUTE for minutes in before]
    ctx = cell.ctx()
    recurrence.came(ctx, cell.incident)
    assert cell.state.recurred == {KEY: [NOW - minutes * MINUTE for minutes in [*kept, 0]]}
    assert cell.state.timers == {f"recurred:{KEY}": NOW + 24 * 3600}
    notes = notes_of(ctx, "incident.recurs")
    assert [(note.text, note.incident, note.scope) for note in notes] == (
        [(told, "inc-1", GPU)] if told else []
    )


def test_a_fault_that_flutters_fills_no_memory() -> None:
    """The newest thirty times are kept."""
    cell = Cell()
    cell.state.recurred[KEY] = [NOW - 100 + number for number in range(40)]
    recurrence.came(cell.ctx(), cell.incident)
    assert cell.state.recurred[KEY] == [*(NOW - 100 + number for number in range(11, 40)), NOW]


def test_a_fault_that_stayed_away_is_forgotten() -> None:
    """By its timer, once; others are not."""
    cell = Cell()
    cell.state.recurred = {KEY: [NOW], "hot@x": [NOW]}
    for _ in range(2):
        recurrence.forget(cell.ctx(), KEY)
    assert cell.state.recurred == {"hot@x": [NOW]}


@pytest.mark.parametrize(
    ("came", "delay_s"),
    [
        pytest.param([], 60, id="it is not known to come again"),
        pytest.param([30, 0], 3600, id="twice within a day, half an hour apart"),
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
    assert recurrence.resolve_delay_s(cell.state, cell.incident) == delay_s


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
    return ctx, left_drained.open_left(ctx, "n1", cell.incident)


def test_the_incident_of_a_node_that_is_left_drained() -> None:
    """It says why the node is out of service and what gives it back; nobody is woken for it, and it is done at once."""
    cell = Cell()
    ctx, left = left_over(cell)
    text = (
        "n1 was drained for gpu-lost (inc-1), which is over: ann closed it. "
        "It stays out of service until it is given back: gpuward return n1"
    )
    zh = "n1 曾因 gpu-lost（inc-1）被排空，而该故障已结束：ann closed it。归还之前它一直停用：gpuward return n1"
    assert left == Incident(
        id=ids.hashed(ids.INCIDENT, "input-1", "left-drained", "node/n1", "inc-1"),
        cause="left-drained", state=IncidentState.OPEN, severity=Priority.P2, scope="node/n1", node="n1",
        rule="left-drained", because=text, runbook="return-node", pack="p", opened_at=NOW, hold_off_until=NOW,
        resolve_delay_s=1, page=Paging.FAILURE, matching_rules={"left-drained@inc-1@node/n1": "left-drained"},
        because_zh=zh,
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
        left_drained.end_left(ctx, left)
    assert left.matching_rules == {"hot@node/n1": "hot"}
    assert [match for match in ctx.index.by_match if match.startswith("left-drained")] == []
    left_drained.end_left(ctx, cell.incident)
    assert cell.incident.matching_rules == {KEY: "gpu-lost"}


def test_a_node_that_is_given_back_after_its_incident_was_closed() -> None:
    """The run that was under way ends later than the incident: there is nothing left to end."""
    cell = Cell()
    ctx, left = left_over(cell)
    incidents.transition(ctx, left, incidents.IncidentTrigger.CLOSED_BY_OPERATOR, "it is a spare")
    left_drained.end_left(ctx, left)
    assert left.matching_rules == {}


def rule(name: str = "gpu-lost", **more: Any) -> Rule:
    """A rule as it reads now."""
    fields: dict[str, Any] = {"severity": Priority.P1, "because": "as it reads now", "resolve_delay_s": 90.0}
    return replace(plain_rule(name, "gpu", {"symptom": "off_bus"}), **(fields | more))
