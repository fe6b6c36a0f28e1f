"""Lookups derived from the state. Built when a state is loaded, kept up to date by the engine, never saved."""

from typing import Any

from brain.core.baseline import Baseline
from brain.core.ids import split
from brain.core.minutes import JobMinutes
from brain.core.pack.topology import node_of, type_of, whole_of
from brain.core.state import Incident, IncidentState, State, SymptomState

Cause = str
_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


class Index:
    """Active symptoms by place; incidents that are not over by cause and node, by match, and by what they inhibit.

    What one event of a node costs must not grow with what the node has said before (decision 33): so what is looked up for
    each event is kept by node and by part.
    """

    def __init__(self, state: State) -> None:
        self.active: dict[str, dict[str, SymptomState]] = {}  # node, or a wider scope -> key -> symptom
        self.near: dict[
            str, dict[str, SymptomState]
        ] = {}  # `whole_of` a node's scope -> key -> active symptom
        self.spread_at: dict[
            str, dict[str, SymptomState]
        ] = {}  # active `spread` symptom -> scope -> its state
        # symptom -> what is seen of all places where it is spread (faults/reached.py); built on first use
        self.spreads: dict[str, Any] = {}
        # `spread` symptom of these -> the scopes where nodes came or went since
        self.recounted: dict[str, dict[str, None]] = {}
        self.parts: dict[str, int] = {}  # node -> number of symptoms of its parts, active or on the way to it
        self.open_at: dict[str, dict[str, Incident]] = {}  # node (empty: wider) -> id -> incident
        self.matched: dict[
            str, dict[str, None]
        ] = {}  # node, or a wider scope -> scopes at which a rule matches
        # cause -> node (empty: a wider scope) -> id -> incident
        self.by_cause: dict[Cause, dict[str, dict[str, Incident]]] = {}
        self.by_match: dict[str, str] = {}  # "<rule>@<scope>" -> incident id
        self.stood_for: dict[str, str] = {}  # "<rule>@<scope>" -> id of the incident that stands for it
        # incident -> scopes of the matches for which it stands -> how many
        self.stood_at: dict[str, dict[str, int]] = {}
        self.inhibitors: dict[Cause, dict[str, Incident]] = {}  # cause -> id -> incident that inhibits it
        self.claims = state.claims
        self.baselines: dict[str, Baseline] = {}  # `unlike` symptom -> its baseline; built on first use
        self.minutes: JobMinutes | None = None  # the GPUs of each job beside each other; built on first use
        self.paths: Any = None  # bad paths of the data network by node (faults/paths.py); built on first use
        for key, symptom in state.symptoms.items():
            self.add_part(symptom.scope)
            if symptom.active:
                self.add_symptom(key, symptom)
        self.recurred: dict[str, dict[str, None]] = {}  # node -> keys of its faults that are remembered
        for key in state.recurred:
            self.add_recurred(key)
        for scope in state.matched:
            self.add_match(scope)
        for incident in state.incidents.values():
            if incident.state not in _OVER:
                self.add_incident(incident)
        for run in state.runs.values():
            if run.claimed:
                self.claims.setdefault(run.id, run.node)

    def add_symptom(self, key: str, symptom: SymptomState) -> None:
        """A symptom became active."""
        node = node_of(symptom.scope)
        self.active.setdefault(node or symptom.scope, {})[key] = symptom
        if node:
            self.near.setdefault(whole_of(symptom.scope), {})[key] = symptom
        elif symptom.members:
            self.spread_at.setdefault(symptom.name, {})[symptom.scope] = symptom
            self.recount(symptom)

    def remove_symptom(self, key: str, symptom: SymptomState) -> None:
        """A symptom is not active any more."""
        _take(self.active, node_of(symptom.scope) or symptom.scope, key)
        _take(self.near, whole_of(symptom.scope), key)
        _take(self.spread_at, symptom.name, symptom.scope)
        self.recount(symptom)

    def recount(self, wide: SymptomState) -> None:
        """Nodes came or went at a place where a symptom is spread, or are part of its cause no more."""
        changed = self.recounted.get(wide.name)
        if changed is not None:
            changed[wide.scope] = None

    def add_part(self, scope: str) -> None:
        """A symptom is known, active or not. Those of a node as a whole are as many as the rules name, and not counted."""
        node = node_of(scope)
        if node and type_of(scope) != "node":
            self.parts[node] = self.parts.get(node, 0) + 1

    def remove_part(self, scope: str) -> None:
        """A symptom is forgotten."""
        node = node_of(scope)
        if node and type_of(scope) != "node":
            self.parts[node] -= 1
            if not self.parts[node]:
                del self.parts[node]

    def add_recurred(self, key: str) -> None:
        """A fault came up. It stands behind the others of its node now."""
        here = self.recurred.setdefault(node_of(split(key)[1]), {})
        here.pop(key, None)
        here[key] = None

    def remove_recurred(self, key: str) -> None:
        """It is not remembered any more."""
        _take(self.recurred, node_of(split(key)[1]), key)

    def add_match(self, scope: str) -> None:
        """A rule matches at a scope."""
        self.matched.setdefault(node_of(scope) or scope, {})[scope] = None

    def remove_match(self, scope: str) -> None:
        """No rule matches there any more."""
        _take(self.matched, node_of(scope) or scope, scope)

    def add_incident(self, incident: Incident) -> None:
        """An incident was opened, or inhibits more."""
        self.open_at.setdefault(incident.node, {})[incident.id] = incident
        self.by_cause.setdefault(incident.cause, {}).setdefault(incident.node, {})[incident.id] = incident
        for match in incident.matching_rules:
            self.by_match[match] = incident.id
        for cause in (*incident.inhibits, *incident.inhibits_on_node):
            self.inhibitors.setdefault(cause, {})[incident.id] = incident
        if incident.stands_for and incident.id not in self.stood_at:
            for match in incident.stands_for:
                self.add_stood_for(incident, match)
        self.stood_for |= dict.fromkeys(incident.stands_for, incident.id)

    def add_stood_for(self, incident: Incident, match: str) -> None:
        """An incident stands for one more match."""
        self.stood_for[match] = incident.id
        here, scope = self.stood_at.setdefault(incident.id, {}), split(match)[1]
        here[scope] = here.get(scope, 0) + 1

    def remove_stood_for(self, incident: Incident, match: str) -> None:
        """An incident stands for a match no more."""
        here, scope = self.stood_at.get(incident.id, {}), split(match)[1]
        if here.get(scope, 0) > 1:
            here[scope] -= 1
        else:
            _take(self.stood_at, incident.id, scope)

    def remove_incident(self, incident: Incident) -> None:
        """An incident is over."""
        _take(self.open_at, incident.node, incident.id)
        nodes = self.by_cause.get(incident.cause, {})
        here = nodes.get(incident.node, {})
        here.pop(incident.id, None)
        if not here:
            nodes.pop(incident.node, None)
        if not nodes:
            self.by_cause.pop(incident.cause, None)
        for match in incident.matching_rules:
            self.by_match.pop(match, None)
        self.stood_at.pop(incident.id, None)
        for match in incident.stands_for:
            if self.stood_for.get(match) == incident.id:
                del self.stood_for[match]
        for cause in (*incident.inhibits, *incident.inhibits_on_node):
            _take(self.inhibitors, cause, incident.id)


def _take(kept: dict[str, dict[str, Any]], place: str, key: str) -> None:
    """Takes one entry out, and the place with its last one."""
    here = kept.get(place)
    if here is not None:
        here.pop(key, None)
        if not here:
            del kept[place]
