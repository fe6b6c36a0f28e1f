"""What people are to do about an incident: the rule's advice for what is known of it, without what is done already. Pure."""

from dataclasses import replace

from brain.core.ids import name_of
from brain.core.pack import conditions
from brain.core.pack.spec import DRAIN, Rule, Scalar, Text
from brain.core.state import Incident, State

_DRAIN = Text(en="Drain the node.", zh="先排空节点。")


def fitted(rule: Rule, state: State, incident: Incident | None) -> Rule:
    """The rule with the `todo` that fits the incident as it is now. None: nothing is known of it any more."""
    known = _known(state, incident) if incident is not None else {}
    fits = (one.todo for one in rule.knowledge.advice if conditions.holds(one.when, known))
    todo = next(fits, rule.knowledge.todo)
    node = incident.node if incident is not None else ""
    drained = any(drain.sure for drain in state.drains.get(node, {}).values())
    said = Text(en="", zh="") if drained else _DRAIN
    text = Text(en=_filled(todo.en, said.en), zh=_filled(todo.zh, said.zh))
    return replace(rule, knowledge=replace(rule.knowledge, todo=text))


def _known(state: State, incident: Incident) -> dict[str, Scalar]:
    """The fields of its newest run, which had the situation then, and over them those that its symptoms carry now."""
    run = state.runs.get(incident.runs[-1]) if incident.runs else None
    known = dict(run.params) if run is not None else {}
    for key in incident.symptoms:
        if (symptom := state.symptoms.get(key)) is not None:
            known |= {conditions.SYMPTOM_PREFIX + name_of(key): 1} | symptom.carried
    return known


def _filled(text: str, drain: str) -> str:
    """Blanks around a word that says nothing go with it."""
    return text.replace(f"{DRAIN} ", f"{drain} " if drain else "").replace(DRAIN, drain).strip()
