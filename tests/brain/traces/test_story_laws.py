"""Random storms, crashes and people, as in tests/laws: what is told of their incidents is told once, and fits together."""

import itertools
from collections import defaultdict
from dataclasses import replace
from typing import Any

import orjson

from brain.adapters.readmodel import _plain
from brain.core.effects import Effect, Note, ShowIncident, ShowRun
from brain.core.inputs import Input
from brain.core.pack.compiled import CompiledCache
from brain.traces import otlp
from brain.traces.spans import MAX_SPANS, Span
from brain.traces.story import Told, root_of, spans
from tests.brain.traces.kit import look_over, seen
from tests.laws.cell import Cell
from tests.laws.moment import moment
from tests.laws.story import Teller
from tests.laws.truth import observed, shown

STORIES = 12
MOST_LOOKS = 60  # at one incident while it goes on: each makes its spans anew


class Watcher:
    """What a leader would tell, after each input."""

    def __init__(self) -> None:
        self.incidents: dict[str, Any] = {}
        self.runs: dict[str, dict[str, Any]] = defaultdict(dict)
        self.notes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.symptom_notes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.told: dict[str, dict[str, Span]] = defaultdict(dict)
        self.looks: dict[str, int] = defaultdict(int)
        self.complete = 0

    def see(self, cell: Cell, given: Input, now: float, effects: list[Effect]) -> None:
        cell.now = now
        made = moment(given, now, effects)
        shown(cell, made)
        observed(cell, made)
        touched: dict[str, None] = {}
        for effect in effects:
            match effect:
                case Note(kind=kind, incident=incident, caused_by=cause):
                    note = orjson.loads(orjson.dumps(effect))
                    if incident:
                        self.notes[incident].append(note)
                        touched[incident] = None
                    elif kind.startswith("symptom."):
                        self.symptom_notes[cause].append(note)
                case ShowIncident(incident=incident):
                    self.incidents[incident.id] = orjson.loads(orjson.dumps(incident))
                case ShowRun(run=run):
                    self.runs[run.incident][run.id] = orjson.loads(orjson.dumps(run, default=_plain))
        for incident in touched:
            if incident in self.incidents:
                self.look(incident)

    def look(self, incident: str) -> None:
        """What was told stands as it was; what is complete fits together."""
        raw = self.incidents[incident]
        self.looks[incident] += 1
        over = raw["state"] in ("closed", "explained")
        if self.looks[incident] > MOST_LOOKS and not over:
            return
        found = spans(
            Told(
                incident=raw,
                runs=list(self.runs[incident].values()),
                notes=self.notes[incident],
                symptom_notes=[  # each once, whatever stands twice in the evidence: the read model asks by ids
                    note
                    for event in dict.fromkeys(fact["id"] for fact in raw["evidence"])
                    for note in self.symptom_notes.get(event, ())
                ],
            )
        )
        now = {span.id: span for span in found}
        assert len(found) <= MAX_SPANS
        assert len(now) == len(found), [one for one in found if found.count(one) > 1]
        known = self.told[incident]
        for id_, span in known.items():
            assert stands(now.get(id_, span)) == stands(span)
        known |= now
        if root_of(raw) in now:
            look_over(seen(otlp.request([(incident, span) for span in found], {}, "1")))
            self.complete += 1


def stands(span: Span) -> Span:
    """What of a span stands for good. The facts of a symptom leave the evidence when their nodes are well again, and with them
    what is known of when it began.
    """
    return replace(span, start=0.0, events=()) if span.name.startswith(("symptom ", "decide")) else span


def test_what_was_told_of_random_stories_stands_and_fits() -> None:
    """Dozens of incidents each, with restarts, failing steps and pages, gates, and people who change their minds."""
    cache, complete, told = CompiledCache(), 0, 0
    for seed in itertools.islice(itertools.count(1), STORIES):
        watcher = Watcher()
        Teller(seed, 30, cache, watcher.see).play()
        complete += watcher.complete
        told += sum(map(len, watcher.told.values()))
    print(f"{complete} complete traces, {told} spans")
    assert complete > STORIES
