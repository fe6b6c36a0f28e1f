"""Facts of one symptom that are told apart (`Symptom.apart`): what ends one of them says nothing of the others.

Two file servers do not answer, two sensors of a GPU are too hot: one symptom of one scope, which lasts until the last is over.
"""

from enum import Enum

from agent.contract.messages import Event
from brain.core.pack.feeds import field_of
from brain.core.pack.spec import Symptom
from brain.core.state import OpenFact, SymptomState

MAX_OPEN = (
    64  # facts of one symptom at one scope that are told apart; what is more is forgotten, the oldest first
)
MAX_CARRIED = 16  # values of one field that the situation carries


class Ending(Enum):
    """What an event that clears says of its symptom."""

    NONE = "none"  # it goes on
    PROVEN = "proven"  # all that was told is over
    UNPROVEN = "unproven"  # of what is left nothing was heard for its time to live, which proves nothing


def begins(symptom: Symptom, state: SymptomState, event: Event, at: float) -> bool:
    """A fact that feeds the symptom is open from now on, or still; `state` has taken it over already. Whether what the situation
    carries of it has changed.
    """
    if not symptom.apart:
        return False
    name = tag(symptom, event)
    fact = state.open_facts.get(name)
    if fact is None:
        if len(state.open_facts) >= MAX_OPEN:
            del state.open_facts[min(state.open_facts, key=lambda one: state.open_facts[one].last)]
        fact = state.open_facts[name] = OpenFact(since=at)
    fact.last, fact.arrived = max(fact.last, at), state.arrived
    fact.carried = {name: event.data[field] for name, field in symptom.carry.items() if field in event.data}
    return _carry(symptom, state, state.arrived)


def ends(symptom: Symptom, state: SymptomState, event: Event, at: float, now: float) -> Ending:
    """What an event that clears ends. If others of the symptom's facts are left, it is about those."""
    if not state.open_facts:
        return Ending.PROVEN if at >= state.last else Ending.NONE
    whole = all(match.kind != event.kind for match in symptom.on)
    about = list(state.open_facts) if whole else [tag(symptom, event)]
    # one that is not open, or is open again, ends by no older event that came late
    over = [one for one in about if one in state.open_facts and at >= state.open_facts[one].last]
    if not over:
        return Ending.NONE
    for one in over:
        del state.open_facts[one]
    if not state.open_facts:
        return Ending.PROVEN
    left = _left(symptom, state, now)
    if not left:
        return Ending.UNPROVEN
    state.carried |= max(left, key=lambda one: one.last).carried
    _carry(symptom, state, now)
    if not state.active:
        state.since = min(one.since for one in left)
    return Ending.NONE


def newest(state: SymptomState) -> float:
    """When the newest fact arrived that keeps the symptom up: one that has ended does not."""
    return max((_arrived(fact) for fact in state.open_facts.values()), default=state.arrived)


def lives_until(symptom: Symptom, fact: OpenFact) -> float:
    """When one of the facts is past its time to live, unless it is renewed."""
    return _arrived(fact) + symptom.ttl_s


def _arrived(fact: OpenFact) -> float:
    return fact.arrived or fact.last  # an earlier version kept none


def _left(symptom: Symptom, state: SymptomState, now: float) -> list[OpenFact]:
    return [one for one in state.open_facts.values() if now < lives_until(symptom, one)]


def _carry(symptom: Symptom, state: SymptomState, now: float) -> bool:
    """A text by which facts are told apart is carried of all that are open, in the order in which they began: what lacks two
    modules is not well with the newest one. Whether that has changed.
    """
    changed = False
    for field, source in symptom.carry.items():
        if source not in symptom.apart:
            continue
        values = [one.carried[field] for one in _left(symptom, state, now) if field in one.carried]
        texts = list(dict.fromkeys(value for value in values if isinstance(value, str)))[:MAX_CARRIED]
        if texts and state.carried.get(field) != " ".join(texts):
            state.carried[field] = " ".join(texts)
            changed = True
    return changed


def tag(symptom: Symptom, event: Event) -> str:
    """Equal for facts that are about the same."""
    values = (event.kind if name == "kind" else field_of(event, name) for name in symptom.apart)
    return "\n".join("" if value is None else str(value) for value in values)
