"""The text about a selected row: as `gpuward explain` has it; of a node what it is, and how it stands."""

from collections.abc import Iterator, Mapping, Sequence

from agent.contract.inert import inert
from brain.cli import explain
from brain.cli.answers import HoldJson, IncidentBriefJson, ModeJson, NodeDetailJson
from brain.cli.queries import clock
from brain.cli.terminal import hanging, title
from brain.cli.top.heard import RowKnown
from brain.cli.top.rows import Entry, RowKind, word
from brain.console.words import Words

_MOST = 20  # of each sort that a node's text lists


def text(words: Words, entry: Entry, found: RowKnown | None, modes: Sequence[ModeJson], width: int) -> str:
    """The lines, with the colours of a terminal; all foreign text in them is inert."""
    return "\n".join(_lines(words, entry, found, modes, width))


def asked_for(entry: Entry) -> bool:
    """Does the brain know more of a row than stands there?"""
    match entry.kind:
        case RowKind.TITLE:
            return False
        case RowKind.NOTE:
            return bool(entry.incident)
        case RowKind.OTHER:
            return entry.key != "breaker"
    return True


def _lines(
    words: Words, entry: Entry, found: RowKnown | None, modes: Sequence[ModeJson], width: int
) -> Iterator[str]:
    if entry.kind is RowKind.NOTE:
        yield title(inert(" ".join(one.text for one in entry.fields[:3])))
        yield from hanging("  ", entry.text, width)
        yield ""
    if found is not None and found.node is not None:
        yield from _node(words, found.node, modes, width)
    elif found is not None and found.chain is not None:
        yield from explain.render(found.chain, notes=False, width=width)
    elif entry.kind is not RowKind.NOTE:
        yield title(inert(entry.key))
        yield from hanging("  ", entry.text, width)
    if found is not None and found.why:
        yield from hanging("", found.why, width)
    elif found is None and asked_for(entry):
        yield words("loading")


def _node(words: Words, found: NodeDetailJson, said: Sequence[ModeJson], width: int) -> Iterator[str]:
    node = found["node"]
    yield title(f"{node['name']}  {word(words, 'node-state', found['word'])}")
    beat = node["beat_age_s"]
    heard = words("node-no-beat") if beat is None else words("node-beat", span=words.span(beat))
    if not node["alive"]:
        heard = f"{words('node-not-heard')} {heard}"
    yield from hanging("  ", heard, width)
    if found["booted_at"]:
        yield from hanging("  ", f"{words('node-booted')} {clock(found['booted_at'])}", width)
    if node["version"]:
        yield from hanging("  ", words("node-agent", version=node["version"]), width)
    place = " ".join(
        filter(None, (node["pod"], node["rack"], node["leaf"], node["chassis"], found["fabric"]))
    )
    if place:
        yield from hanging("  ", place, width)
    for n, told in ((node["spooled"], "node-spooled"), (node["dropped"], "node-dropped")):
        if n:
            yield from hanging("  ", words(told, n=n), width)
    yield from _section(words("mode"), modes(words, said), width)
    yield from _section(words("node-holds"), (_hold(words, one) for one in found["holds"]), width)
    drains = (
        f"{clock(one['since'])} {one['incident']}{'' if one['sure'] else ': ' + words('node-drain-unsure')}"
        for one in found["drains"]
    )
    yield from _section(words("node-drains"), drains, width)
    jobs = found["jobs"]
    if jobs is not None:
        yield from _section(words("node-jobs"), jobs or (words("node-no-jobs"),), width)
    now = [_incident(words, one) for one in found["incidents"]]
    yield from _section(words("node-open"), now or (words("node-none-open"),), width)
    runs = (
        f"{clock(one['started_at'])} {word(words, 'run', one['state'])}: {one['runbook']} {one['scope']} {one['why']}"
        for one in found["runs"]
    )
    yield from _section(words("node-runs"), runs, width)
    yield from _section(words("node-past"), (_incident(words, one) for one in found["past"]), width)
    yield from _section(words("node-inventory"), _told(found["inventory"]), width)
    cards = (" ".join((one["component"], one["serial"], *_told(one))) for one in found["cards"])
    yield from _section(words("node-cards"), cards, width)
    yield from _section(words("node-not-known"), found["not_known"], width)


def _section(name: str, lines: Iterator[str] | Sequence[str], width: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield ""
            yield title(name.upper())
        if number == _MOST:
            yield "  …"
            return
        yield from hanging("  ", line, width, below="    ")


def modes(words: Words, said: Sequence[ModeJson]) -> list[str]:
    """How far gpuward may go, as people have said, a line for each."""
    return [_mode(words, one) for one in said]


def _mode(words: Words, one: ModeJson) -> str:
    who = f" ({one['who']}{': ' + one['why'] if one['why'] else ''})" if one["who"] else ""
    return f"{word(words, 'mode', one['mode'])} {words('mode-for')} {one['runbook']} {words('mode-on')} {one['nodes']}{who}"


def _hold(words: Words, one: HoldJson) -> str:
    until = f"{words('until')} {clock(one['until'])}" if one["until"] else words("until-released")
    return f"{one['scope']}: {one['why']} ({one['who']}, {one['id']}), {until}"


def _incident(words: Words, one: IncidentBriefJson) -> str:
    ended = f", {clock(one['closed_at'])} {one['closed_why']}" if one["closed_at"] else ""
    state = word(words, "state", one["state"])
    return f"{clock(one['opened_at'])} {one['severity']} {one['cause']} {one['scope']}: {state}{ended} [{one['id']}]"


def _told(found: Mapping[str, object] | None) -> list[str]:
    """What something told of itself."""
    told = found["told"] if found is not None else None
    return [f"{key}={value}" for key, value in told.items()] if isinstance(told, dict) else []
