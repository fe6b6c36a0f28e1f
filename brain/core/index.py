"""Lookups that follow from the state. Rebuilt when a state is loaded, kept up by symptoms.py and incidents.py; never saved."""

from collections.abc import Mapping

from brain.core.state import Incident, IncidentState, State, SymptomState
from brain.core.topology import node_of
from brain.core.usual import Likes

Cause = str
_GONE = (IncidentState.CLOSED, IncidentState.EXPLAINED)


class Index:
    """Active symptoms by place; live incidents by cause and place, by support, and by what they explain."""

    def __init__(self, state: State, inhibits: Mapping[str, tuple[str, ...]]) -> None:
        self.active: dict[str, dict[str, SymptomState]] = {}  # node, or a wider scope -> key -> symptom
        self.by_cause: dict[
            Cause, dict[str, dict[str, Incident]]
        ] = {}  # cause -> node ("" for wider) -> id -> incident
        self.by_support: dict[str, str] = {}  # "<rule>@<scope>" -> incident id
        self.inhibitors: dict[Cause, dict[str, Incident]] = {}  # cause -> incidents that explain it
        self.claims: dict[str, str] = {}  # run id -> node, of runs that hold their node
        self.likes: dict[str, Likes] = {}  # symptom -> its counts; made when they are first needed
        for key, symptom in state.symptoms.items():
            if symptom.active:
                self.started(key, symptom)
        for incident in state.incidents.values():
            if incident.state not in _GONE:
                self.opened(incident, inhibits.get(incident.rule, ()))
        for run in state.runs.values():
            if run.claimed:
                self.claims[run.id] = run.node

    def started(self, key: str, symptom: SymptomState) -> None:
        """A symptom became active."""
        self.active.setdefault(node_of(symptom.scope) or symptom.scope, {})[key] = symptom

    def ended(self, key: str, symptom: SymptomState) -> None:
        """A symptom is not active any more."""
        place = node_of(symptom.scope) or symptom.scope
        here = self.active.get(place)
        if here is not None and here.pop(key, None) is not None and not here:
            del self.active[place]

    def opened(self, incident: Incident, inhibits: tuple[str, ...]) -> None:
        """A live incident; `inhibits` are the causes that it explains."""
        self.by_cause.setdefault(incident.cause, {}).setdefault(incident.node, {})[incident.id] = incident
        for support in incident.support:
            self.by_support[support] = incident.id
        for cause in inhibits:
            self.inhibitors.setdefault(cause, {})[incident.id] = incident

    def gone(self, incident: Incident) -> None:
        """An incident that is closed or explained."""
        nodes = self.by_cause.get(incident.cause, {})
        here = nodes.get(incident.node, {})
        here.pop(incident.id, None)
        if not here:
            nodes.pop(incident.node, None)
        if not nodes:
            self.by_cause.pop(incident.cause, None)
        for support in incident.support:
            self.by_support.pop(support, None)
        for cause in list(self.inhibitors):
            self.inhibitors[cause].pop(incident.id, None)
            if not self.inhibitors[cause]:
                del self.inhibitors[cause]
