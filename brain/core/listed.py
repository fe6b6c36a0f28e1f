"""What an incident lists of the symptoms behind it: the first facts, as many as people read. Pure."""

from brain.core import ids
from brain.core.faults import spread
from brain.core.state import Incident, SymptomState

MAX_LISTED = 40  # facts that an incident lists


def take(incident: Incident, symptom: SymptomState) -> None:
    """Lists a symptom that began or has new facts. What stood before a shared cause began is no part of it."""
    key = ids.key(symptom.name, symptom.scope)
    if key not in incident.symptoms:
        incident.symptoms.append(key)
        incident.symptom_count = len(incident.symptoms)
    if symptom.cause_at:
        incident.evidence = [one for one in incident.evidence if not spread.stood_before(symptom, one.node)]
    known = [fact.id for fact in incident.evidence]
    for fact in symptom.evidence:
        if fact.id not in known and len(incident.evidence) < MAX_LISTED:
            incident.evidence.append(fact)
