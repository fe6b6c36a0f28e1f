"""What the lists of `gpuward top` show, made from the API's answers. Pure: no terminal, no brain.

What needs a person stands first and in the brain's order; states have the console's words, severities the command line's colours.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from rich.cells import cell_len

from agent.shared.words import either
from brain.cli.answers import (
    FleetJson,
    IncidentJson,
    ModeJson,
    NeedJson,
    NeedsJson,
    NodeJson,
    NoteJson,
    RunJson,
    StatusJson,
)
from brain.cli.queries import COLOURS, clock, where
from brain.console.words import Words

MODES = ("observe", "approve", "auto")  # the strictest first
_RUN_COLOURS = {"approval": "yellow", "held": "yellow"}
_STATE_COLOURS = {"needs_human": "red", "healing": "cyan", "recovered": "green"}
_NODE_COLOURS = {
    "needs_human": "red",
    "healing": "cyan",
    "unreachable": "bold red",
    "drained": "yellow",
    "suspect": "yellow",
    "well": "green",
}
_MOST_CELL = 40  # columns that a list gives a column of its own choice; the last one has what is left


class Tab(StrEnum):
    """The lists, in the order of their keys 1 to 5."""

    NOW = "now"  # what needs a person, what heals by itself
    INCIDENTS = "incidents"  # what is open
    RUNS = "runs"  # runbooks that are under way
    NODES = "nodes"  # all of the cell
    NOTES = "notes"  # what happens, the newest first


class RowKind(Enum):
    """What a row is about: what is asked for when it is selected."""

    TITLE = "title"  # of a section: cannot be selected
    INCIDENT = "incident"  # its chain
    RUN = "run"  # itself, and the chain of its incident
    NODE = "node"  # what it is, and how it stands
    NOTE = "note"  # its whole text, and the chain of its incident
    OTHER = "other"  # a hold, an alert group, the breaker: its sentence


class RowField(NamedTuple):
    """One field of a row."""

    text: str
    style: str = ""
    # seconds since 1970: shown as how long ago, or how long until then; 0: the text is shown
    at: float = 0.0


class Entry(NamedTuple):
    """One row. `found`: what the filter looks in, in small letters."""

    key: str
    kind: RowKind
    fields: tuple[RowField, ...]
    found: str
    # the sentence that says what it is about, until its details are there
    text: str = ""
    # its incident; empty: none
    incident: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A list as it is shown."""

    heads: tuple[str, ...]
    entries: tuple[Entry, ...]
    # columns of each field; the last one has what is left
    widths: tuple[int, ...]
    # how many there are, listed or not
    count: int
    # what is said where nothing is listed
    empty: str


def seconds(at: str | None) -> float:
    """Seconds since 1970 of a time of the API; 0: there is none."""
    return datetime.fromisoformat(at).timestamp() if at else 0.0


def word(words: Words, prefix: str, value: str) -> str:
    """The catalogue's word for a state or kind; itself where a newer brain says one that we do not know."""
    return words.known(f"{prefix}-{value}") or value


def age(words: Words, at: float, now: float) -> str:
    """How long ago, or until then, in its largest unit."""
    span = now - at
    unit, size = next(
        ((unit, size) for unit, size in (("d", 86400), ("h", 3600), ("m", 60)) if abs(span) >= size), ("s", 1)
    )
    text = words(f"top-age-{unit}", n=int(abs(span) // size))
    return words("top-in", span=text) if span <= -1 else text


def sheet(heads: Sequence[str], entries: Iterable[Entry], *, count: int = -1, empty: str = "") -> Sheet:
    """A list with the columns that its fields need."""
    rows = tuple(entries)
    widths = [max(cell_len(head), 1) for head in heads]
    for row in rows:
        if row.kind is RowKind.TITLE:
            continue
        for n, one in enumerate(row.fields):
            if (wide := _AGE if one.at else cell_len(one.text)) > widths[n]:
                widths[n] = wide
    shown = [min(width, _MOST_CELL) for width in widths[:-1]] + widths[-1:]
    many = sum(row.kind is not RowKind.TITLE for row in rows) if count < 0 else count
    return Sheet(heads=tuple(heads), entries=rows, widths=tuple(shown), count=many, empty=empty)


_AGE = 9  # columns of an age: `in 59 min`


def entry(
    key: str, kind: RowKind, fields: Sequence[RowField], *, text: str = "", incident: str = "", more: str = ""
) -> Entry:
    """A row. `more`: what the filter finds besides what is shown."""
    found = " ".join((*(one.text for one in fields), key, more)).lower()
    return Entry(key=key, kind=kind, fields=tuple(fields), found=found, text=text, incident=incident)


def now(words: Words, found: NeedsJson, status: StatusJson) -> Sheet:
    """What needs a person, then what heals by itself: the console's first page."""
    entries: list[Entry] = []
    sure = status["connected"] and status["caught_up"]
    none = words("now-needs-none") if sure else words("now-not-known")
    entries.append(_title(words("now-needs"), found["people_count"], "" if found["people"] else none))
    entries += [_need(words, one) for one in found["people"]]
    if found["healing"]:
        entries.append(_title(words("now-heals"), found["healing_count"]))
        entries += [_need(words, one) for one in found["healing"]]
    heads = _heads(words, "severity", "state", "since", "cause", "scope", "text")
    return sheet(heads, entries, count=found["people_count"], empty=none)


def _title(text: str, count: int, none: str = "") -> Entry:
    shown = f"{text}: {none}" if none else f"{text} ({count})"
    return Entry(key="", kind=RowKind.TITLE, fields=(RowField(shown, "bold"),), found="")


def _need(words: Words, one: NeedJson) -> Entry:
    kind = one["kinds"][0] if one["kinds"] else ""
    state = word(words, "need", kind) if kind else word(words, "state", one["state"])
    text = one["approval"]["what"] if one["approval"] else one["text"]
    text = text.removeprefix(f"{one['cause']} at {one['scope']} ")  # both stand before it
    acked = f" ✓ {one['acked_by']}" if one["acked_by"] else ""
    fields = (
        RowField(one["severity"], COLOURS.get(one["severity"], "")),
        RowField(state, "bold yellow" if kind == "approval" else "bold" if kind else ""),
        RowField("", at=seconds(one["since"])),
        RowField(one["cause"] or word(words, "need", kind)),
        RowField(one["scope"]),
        RowField(f"{text}{acked}"),
    )
    whose = RowKind.INCIDENT if one["cause"] else RowKind.OTHER
    incident = one["id"] if whose is RowKind.INCIDENT else ""
    return entry(one["id"], whose, fields, text=one["text"], incident=incident, more=one["run"])


def incidents(words: Words, found: Sequence[IncidentJson], *, more: bool) -> Sheet:
    """What is open, newest first, as `gpuward incidents` lists it."""
    entries = []
    for one in found:
        fields = (
            RowField(one["severity"], COLOURS.get(one["severity"], "")),
            RowField(word(words, "state", one["state"]), _STATE_COLOURS.get(one["state"], "")),
            RowField("", at=seconds(one["opened_at"])),
            RowField(one["cause"]),
            RowField(where(one)),
            RowField(str(len(one["runs"]) or "")),
            RowField(one["pages"]["acked_by"]),
            RowField(one["id"]),
        )
        entries.append(
            entry(
                one["id"],
                RowKind.INCIDENT,
                fields,
                text=either(one["because"], one.get("because_zh", "")),
                incident=one["id"],
                more=one["state"],
            )
        )
    heads = _heads(words, "severity", "state", "since", "cause", "scope", "runs", "who", "id")
    return sheet(heads, entries, count=len(found) + more, empty=words("top-no-incidents"))


def runs(words: Words, found: Sequence[RunJson]) -> Sheet:
    """What is under way: its rung, what it waits for and until when."""
    entries = []
    for one in found:
        rung = one["rungs"][min(one["rung"], len(one["rungs"])) - 1]["name"] if one["rungs"] else ""
        step = one["steps"][-1] if one["steps"] else None
        doing = step["doing"] if step and not step["outcome"] else ""
        fields = (
            RowField(word(words, "run", one["state"]), _RUN_COLOURS.get(one["state"], "")),
            RowField(one["runbook"]),
            RowField(f"{one['rung']}/{len(one['rungs'])} {rung}"),
            RowField(one["scope"]),
            RowField("", at=seconds(one["until"])),
            RowField("", at=seconds(one["started_at"])),
            RowField(doing or one["why"]),
        )
        more = f"{one['incident']} {one['node']} {one['state']}"
        entries.append(
            entry(one["id"], RowKind.RUN, fields, text=one["why"], incident=one["incident"], more=more)
        )
    heads = _heads(words, "state", "runbook", "rung", "scope", "until", "since", "waits")
    return sheet(heads, entries, empty=words("top-no-runs"))


def nodes(words: Words, found: Sequence[NodeJson], fleet: FleetJson, status: StatusJson, at: float) -> Sheet:
    """All nodes, the most urgent first: how each stands, how far gpuward may go there, when it was heard. `at`: the time now."""
    known = {one["name"]: one for one in found}
    order = sorted(range(len(fleet["names"])), key=lambda n: (fleet["state"][n], fleet["names"][n]))
    held, modes, shown = set(fleet["held"]), status["modes"], []
    seen: dict[str, str] = {}
    for n in order:
        name, state = fleet["names"][n], fleet["words"][fleet["state"][n]]
        open_ = fleet["incident"][n]
        cause, incident = ("", "")
        if open_ >= 0:
            cause, incident = fleet["incidents"]["cause"][open_], fleet["incidents"]["id"][open_]
        one = known.get(name)
        beat = one["beat_age_s"] if one else None
        place = " ".join((_at(fleet["racks"], fleet["rack"][n]), _at(fleet["leaves"], fleet["leaf"][n])))
        mode = mode_of(modes, name)
        if mode not in seen:
            seen[mode] = _mode_word(words, mode)
        fields = (
            RowField(name),
            RowField(word(words, "node-state", state), _NODE_COLOURS.get(state, "")),
            RowField(seen[mode]),
            RowField(words("node-no-beat")) if beat is None else RowField("", at=at - beat),
            RowField(words("fleet-held") if n in held else "", "yellow"),
            RowField(cause),
            RowField(place.strip()),
            RowField(one["version"] if one else ""),
        )
        shown.append(entry(name, RowKind.NODE, fields, text=cause, incident=incident, more=state))
    heads = _heads(words, "node", "state", "mode", "heard", "hold", "cause", "place", "agent")
    return sheet(heads, shown, empty=words("fleet-empty"))


def _at(names: Sequence[str], place: int) -> str:
    return names[place] if place >= 0 else ""


def mode_of(modes: Sequence[ModeJson], node: str) -> str:
    """How far runbooks may go on a node, as `observe`, `approve` or `auto`; with `+` where some have another mode there."""
    mode, others = MODES[0], False
    for one in modes:
        if one["nodes"] != "*" and not fnmatchcase(node, one["nodes"]):
            continue
        if one["runbook"] == "*":
            mode, others = _said(one, mode), False
        else:
            others = others or one["mode"] != mode
    return f"{mode}+" if others else mode


def _said(one: ModeJson, before: str) -> str:
    """What gpuward has taken back only makes stricter what was said before it."""
    return min(one["mode"], before, key=MODES.index) if one["why"] else one["mode"]


def _mode_word(words: Words, mode: str) -> str:
    plain = mode.removesuffix("+")
    return word(words, "mode", plain) + mode[len(plain) :]


def note(one: NoteJson) -> Entry:
    """A line of the audit, as `gpuward watch` has it."""
    fields = (
        RowField(clock(one["at"])[6:14]),
        RowField(one["kind"]),
        RowField(one["incident"] or one["scope"]),
        RowField(" ".join(one["text"].split())),
    )
    return entry(one["id"], RowKind.NOTE, fields, text=one["text"], incident=one["incident"], more=one["run"])


def gap(words: Words, after: int) -> Entry:
    """Where notes are missing between others; `after`: how many came before."""
    text = words("top-gap")
    return entry(
        f"gap-{after}", RowKind.NOTE, (RowField(""), RowField("…"), RowField(""), RowField(text)), text=text
    )


def notes(words: Words, found: Iterable[Entry]) -> Sheet:
    """What happens, the newest first."""
    return sheet(_heads(words, "at", "kind", "scope", "text"), found, empty=words("audit-none"))


def needs_by_id(found: NeedsJson) -> Mapping[str, NeedJson]:
    """What a person may say about an incident, a run, a hold, an alert group, by its id."""
    every = [*found["people"], *found["healing"]]
    return {one["run"]: one for one in every if one["run"]} | {one["id"]: one for one in every}


def _heads(words: Words, *names: str) -> tuple[str, ...]:
    return tuple(words(f"top-col-{name}") for name in names)
