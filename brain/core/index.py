"""Lookups derived from the state. Built when a state is loaded, kept up to date by the engine, never saved."""

from brain.core.baseline import Baseline
from brain.core.pack.topology import node_of
from brain.core.state import Incident, IncidentState, State, SymptomState

Cause = str
_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


class Index:
    """Active symptoms by place; incidents that are not over by cause and node, by match, and by what they inhibit."""

    def __init__(self, state: State) -> None:
        self.active: dict[str, dict[str, SymptomState]] = {}  # node, or a wider scope -> key -> symptom
        # cause -> node (empty: a wider scope) -> id -> incident
        self.by_cause: dict[Cause, dict[str, dict[str, Incident]]] = {}
        self.by_match: dict[str, str] = {}  # "<rule>@<scope>" -> incident id
        self.inhibitors: dict[Cause, dict[str, Incident]] = {}  # cause -> id -> incident that inhibits it
        self.claims = state.claims
        self.baselines: dict[str, Baseline] = {}  # `unlike` symptom -> its baseline; built on first use
        for key, symptom in state.symptoms.items():
            if symptom.active:
                self.add_symptom(key, symptom)
        for incident in state.incidents.values():
            if incident.state not in _OVER:
                self.add_incident(incident)
        for run in state.runs.values():
            if run.claimed:
                self.claims.setdefault(run.id, run.node)

    def add_symptom(self, key: str, symptom: SymptomState) -> None:
        """A symptom became active."""
        self.active.setdefault(node_of(symptom.scope) or symptom.scope, {})[key] = symptom

    def remove_symptom(self, key: str, symptom: SymptomState) -> None:
        """A symptom is not active any more."""
        place = node_of(symptom.scope) or symptom.scope
        here = self.active.get(place)
        if here is not None and here.pop(key, None) is not None and not here:
            del self.active[place]

    def add_incident(self, incident: Incident) -> None:
        """An incident was opened, or inhibits more."""
        self.by_cause.setdefault(incident.cause, {}).setdefault(incident.node, {})[incident.id] = incident
        for match in incident.matching_rules:
            self.by_match[match] = incident.id
        for cause in incident.inhibits:
            self.inhibitors.setdefault(cause, {})[incident.id] = incident

    def remove_incident(self, incident: Incident) -> None:
        """An incident is over."""
        nodes = self.by_cause.get(incident.cause, {})
        here = nodes.get(incident.node, {})
        here.pop(incident.id, None)
        if not here:
            nodes.pop(incident.node, None)
        if not nodes:
            self.by_cause.pop(incident.cause, None)
        for match in incident.matching_rules:
            self.by_match.pop(match, None)
        for cause in list(self.inhibitors):
            self.inhibitors[cause].pop(incident.id, None)
            if not self.inhibitors[cause]:
                del self.inhibitors[cause]
