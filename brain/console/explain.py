"""What is known of whatever has an id: the whole chain of its incident, page → run → steps → rule → symptoms → evidence."""

from agent.contract.messages import clip
from brain.console import held, named, shapes, who_is_hit, why
from brain.console.api.base import TwoLanguagesShape
from brain.console.api.chain_shapes import (
    AckShape,
    ChainShape,
    ExplainedRunShape,
    KnowledgeShape,
    LineShape,
    PageShape,
    RuleShape,
    SymptomShape,
    WouldShape,
)
from brain.console.api.needs_shapes import WantedApprovalShape
from brain.console.brain_view import History
from brain.console.fleet.facts import OVER
from brain.console.needs.items import wanted_approval
from brain.console.shapes import Json
from brain.console.speech import told, told_note, told_plan
from brain.core import ids
from brain.core.healing import advice
from brain.core.pack.shared import rule_named
from brain.core.pack.topology import unknown
from brain.core.state import Run, State
from brain.traces.ids import trace_id

_GATED = ("run.held", "run.approval", "run.observed", "run.skipped")
_OPERATOR = "operator."


def explain(
    history: History, state: State, id_: str, *, traced: bool, judge: why.Judge = why.nothing
) -> ChainShape | None:
    """Returns what is known of whatever has this id, with the chain of its incident; None: nothing is. `traced`: traces are
    told. `judge` says how sure an incident is, and what would change it.
    """
    found = named.find(history, state, id_)
    if found is None:
        return None
    raw = history.incident(found.incidents[0]) if len(found.incidents) == 1 else None
    notes = history.notes_of(raw["id"]) if raw else []
    if raw and found.kind in named.PARTS and not found.notes:
        found = found.model_copy(update={"notes": [shapes.note(one) for one in named.about(found, notes)]})
    judged = judge(raw["id"]) if raw else None
    return ChainShape(
        found=found,
        incident=who_is_hit.whole(raw, state) if raw else None,
        pages=_pages(notes),
        runs=[_run(run, notes, state) for run in history.runs_of(raw["id"])] if raw else [],
        rule=_rule(raw, state) if raw else None,
        symptoms=_symptoms(raw, history) if raw else [],
        evidence=[shapes.evidence(item) for item in raw["evidence"]] if raw else [],
        notes=[shapes.note(item) for item in notes],
        out_of_service=[node for node, owners in state.drains.items() if raw["id"] in owners] if raw else [],
        holds=held.over(state, raw["scope"], raw["node"]) if raw and raw["state"] not in OVER else [],
        sureness=why.sureness(judged) if judged else None,
        places=why.considered(raw) if raw else [],
        places_unknown=_unknown(raw["node"], state) if raw else [],
        place_sure=raw.get("sure", 0.0) if raw else 0.0,
        changes=why.changes(judged) if judged else [],
        trace_id=trace_id(raw["id"]) if raw and traced else "",
    )


def _unknown(node: str, state: State) -> list[str]:
    return unknown(state.pack.places, node) if node and state.pack else []


def _pages(notes: list[Json]) -> list[PageShape]:
    """Returns each page with its deliveries, failures and acknowledgements."""
    pages: dict[str, Json] = {}
    for note in notes:
        page = note["data"].get("page", "")
        if note["kind"] == "page.sent":
            at = shapes.iso(note["at"])
            pages[page] = {
                "id": page,
                "at": at,
                "text": told(note["text"]),
                "delivered": "",
                "failures": [],
                "note": note["id"],
            }
        elif page in pages and note["kind"] == "page.delivered":
            pages[page]["delivered"] = told(note["text"])
        elif page in pages and note["kind"] == "page.undelivered":
            pages[page]["failures"].append(told(note["text"]))
    acks = [
        AckShape(at=shapes.iso(note["at"]), text=told(note["text"]))
        for note in notes
        if note["kind"] == "page.acked"
    ]
    return [PageShape(**page, acked=acks) for page in pages.values()]


def _run(raw: Json, notes: list[Json], state: State) -> ExplainedRunShape:
    """Returns a run with its plan, the plans of whoever would perform its steps, its gates, and its approvals."""
    own = [note for note in notes if note["run"] == raw["id"]]
    run = state.runs.get(raw["id"])
    plan: list[str] = next(
        (note["data"].get("plan", []) for note in own if note["kind"] == "run.started"), []
    )
    would = [
        WouldShape(
            step=note["data"]["step"],
            ok=note["data"]["ok"],
            lines=[told(line) for line in note["data"]["lines"]],
        )
        for note in own
        if note["kind"] == "step.plan"
    ]
    return ExplainedRunShape(
        **shapes.run_fields(raw),
        plan=[told_plan(line) for line in plan],
        approval=_approval(run, state) if run is not None else None,
        would=sorted(would, key=lambda would: _place(would.step)),
        gates=[_line(note) for note in own if note["kind"] in _GATED],
        approvals=[_line(note) for note in own if note["kind"].startswith(_OPERATOR)],
        notes=[_line(note) for note in own],
    )


def _approval(run: Run, state: State) -> WantedApprovalShape | None:
    wanted = wanted_approval(run, state)
    return wanted and wanted.model_copy(update={"why": told(wanted.why)})


def _place(step: str) -> tuple[bool, int]:
    """Where a step's rung stands: `<run>.s2.a1` in the ladder, `<run>.b1.a1` in the return to service after it."""
    rung = step.rsplit(".", 2)[1]
    return rung.startswith("b"), int(rung[1:])


def _rule(raw: Json, state: State) -> RuleShape:
    """Returns the rule that opened the incident, with its knowledge if the rule is still in force."""
    return RuleShape(
        name=raw["rule"],
        because=raw["because"],
        because_zh=raw.get("because_zh", ""),
        version=raw["pack"],
        matching_rules=list(raw["matching_rules"]),
        support=list(raw["matching_rules"]),  # its name in version 0.1, read by scripts until 0.3
        knowledge=_knowledge(raw, state),
    )


def _knowledge(raw: Json, state: State) -> KnowledgeShape | None:
    spec = rule_named(state.pack, raw["rule"])
    if spec is None:
        return None
    knowledge = advice.fitted(spec, state, state.incidents.get(raw["id"])).knowledge
    return KnowledgeShape(
        cause=TwoLanguagesShape(en=knowledge.cause.en, zh=knowledge.cause.zh),
        todo=TwoLanguagesShape(en=knowledge.todo.en, zh=knowledge.todo.zh),
        links=list(knowledge.links),
    )


def _symptoms(raw: Json, readmodel: History) -> list[SymptomShape]:
    """Returns each symptom with the notes on its start and the events that caused it."""
    events = [item["id"] for item in raw["evidence"]]
    notes = readmodel.symptom_notes(events) if events else []
    found = []
    for key in raw["symptoms"]:
        name, scope = ids.split(key)
        own = [note for note in notes if note["scope"] == scope and note["data"].get("symptom") == name]
        found.append(
            SymptomShape(name=name, scope=scope, notes=[_line(note) for note in own], events=_events(own))
        )
    return found


def _events(notes: list[Json]) -> list[str]:
    events: dict[str, None] = {}
    for note in notes:
        for event in note["data"].get("events", []) or [note["caused_by"]]:
            events[str(event)] = None
    return list(events)


def _line(note: Json) -> LineShape:
    return LineShape(
        id=note["id"],
        at=shapes.iso(note["at"]),
        kind=note["kind"],
        text=clip(told_note(note["kind"], note["text"]), 1000),
        caused_by=note["caused_by"],
    )
