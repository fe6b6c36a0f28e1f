"""What an id names, and of which incidents that is: from an incident to a hold, a note, or anything else on the log."""

import re
from collections.abc import Iterable

from agent.shared.words import later
from brain.console import shapes
from brain.console.api.chain_shapes import FoundShape
from brain.console.brain_view import History
from brain.console.shapes import Json
from brain.core import ids
from brain.core.state import State

# The parts of an incident, by what follows its id; the first that fits.
PARTS = {
    "page": r"\.p\d+",
    "run": r"\.r\d+",
    "step": r"\.r\d+\.[sb]\d+\.a\d+",  # and the command by which its node performs it
    "command": r"\.r\d+\.[sb]\d+\.a\d+\..+",  # one more that a node got for a step
}
# What there is to ask for, for whoever asked for something else.
HAVE = later(
    "an incident (inc-…, or its beginning), a page (inc-….p1), a run (inc-….r1), a step or a node's command (inc-….r1.s1.a1), "
    "an alert group (grp-…), a hold (hold-…), an operator's command (s:…), the id of an event or of a note"
)
_MOST_INCIDENTS = 1000


def find(history: History, state: State, id_: str) -> FoundShape | None:
    """Returns what an id names; None: nothing that is known. A bundle's name, `<node>/<command>`, is that of its command."""
    id_ = id_.rpartition("/")[2]
    if not id_.partition(".")[0]:
        return None  # the beginning of every id, and the cause of what nothing has caused
    if id_.startswith(f"{ids.HOLD}-"):
        return _hold(history, state, id_)
    if id_.startswith(f"{ids.ALERT_GROUP}-"):
        return _alert_group(history, state, id_)
    if (note := history.one_note(id_)) is not None:
        return _found("note", id_, [note])
    if (incident := history.incident(id_) or history.incident(id_.partition(".")[0])) is not None:
        part = id_.removeprefix(incident["id"])
        kind = next((kind for kind, form in PARTS.items() if re.fullmatch(form, part)), "incident")
        of = _alert_with(history, incident, id_) if kind == "page" else incident["id"]
        return _found(kind, id_ if kind in PARTS else incident["id"], [], [of])
    return _input(history, id_)


def about(found: FoundShape, notes: Iterable[Json]) -> list[Json]:
    """Returns those of an incident's notes that are about this part of it."""
    if found.kind == "run":
        return [note for note in notes if note["run"] == found.id]
    return [note for note in notes if found.id in (note["data"].get("page"), note["data"].get("step"))]


def _alert_with(history: History, incident: Json, page: str) -> str:
    """The incident that this page is of: that with which its alert began, or one that had it later."""
    while not any(note["data"].get("page") == page for note in history.notes_of(incident["id"])):
        heir = history.incident(incident["pages"].get("passed_to", "") or "-")
        if heir is None:
            break
        incident = heir
    return str(incident["id"])


def _input(history: History, id_: str) -> FoundShape | None:
    """An operator's command, a node's event, or anything else on the log: by what came of it."""
    notes, proves = history.notes_caused_by(id_), history.incidents_of_event(id_)
    if not notes and not proves:
        return None
    kind = "command" if id_.startswith(ids.COMMAND) else "event" if proves else "input"
    return _found(kind, id_, notes, proves or _incidents(notes))


def _hold(history: History, state: State, id_: str) -> FoundShape | None:
    notes, hold = history.notes_of_hold(id_), state.holds.get(id_)
    if not notes and hold is None:
        return None
    found = _found("hold", id_, notes, [])
    return found if hold is None else found.model_copy(update={"hold": shapes.hold(hold)})


def _alert_group(history: History, state: State, id_: str) -> FoundShape | None:
    """An alert group, or a page of it. Its incidents are those that its pages have carried, and those that the next one will."""
    group, _, page = id_.partition(".")
    live, notes = state.alert_groups.get(group), history.notes_of(group)
    if live is None and not notes:
        return None
    carried = dict.fromkeys(live.listed if live else ())
    for cause in {note["caused_by"] for note in notes if note["kind"] == "page.delivered"}:
        carried |= dict.fromkeys(_incidents(history.notes_caused_by(cause)))
    own = [note for note in notes if not page or note["data"].get("page") == id_]
    return _found("page" if page else "alert group", id_, own, list(carried))


def _incidents(notes: Iterable[Json]) -> list[str]:
    """The incidents that notes are about, in their order; a group's notes stand under its own id."""
    return list(
        dict.fromkeys(note["incident"] for note in notes if note["incident"].startswith(f"{ids.INCIDENT}-"))
    )


def _found(kind: str, id_: str, notes: list[Json], incidents: list[str] | None = None) -> FoundShape:
    of = _incidents(notes) if incidents is None else incidents
    return FoundShape(
        kind=kind,
        id=id_,
        incidents=of[:_MOST_INCIDENTS],
        hold=None,
        notes=[shapes.note(note) for note in notes],
    )
