"""Whatever has an id, and the whole chain of its incident: page → run → steps → rule → symptoms → their evidence."""

from pydantic import Field

from brain.console.api.base import Shape, Time, TwoLanguagesShape
from brain.console.api.incident_shapes import EvidenceShape, IncidentShape, NoteShape, RunShape
from brain.console.api.needs_shapes import VerbShape, WantedApprovalShape
from brain.console.api.status_shapes import HoldShape
from brain.console.api.why_shapes import ChangeShape, PlaceConsideredShape, SurenessShape


class AckShape(Shape):
    """Somebody has taken an incident up."""

    at: Time | None
    text: str


class PageShape(Shape):
    """A page with its deliveries, failures and acknowledgements."""

    id: str
    at: Time | None
    text: str
    delivered: str = Field(description="By which channel; empty: not yet.")
    failures: list[str]
    note: str = Field(description="The id of its note.")
    acked: list[AckShape]


class LineShape(Shape):
    """A note, in short."""

    id: str
    at: Time | None
    kind: str
    text: str
    caused_by: str


class WouldShape(Shape):
    """What a step would do, as whoever would perform it says."""

    step: str
    ok: bool
    lines: list[str]


class ExplainedRunShape(RunShape):
    """A run with its plan, its gates and its approvals."""

    plan: list[str]
    approval: WantedApprovalShape | None = Field(description="What it waits for; null: for no approval.")
    would: list[WouldShape]
    gates: list[LineShape]
    approvals: list[LineShape]
    notes: list[LineShape]


class KnowledgeShape(Shape):
    """What people should know about a fault."""

    cause: TwoLanguagesShape
    todo: TwoLanguagesShape
    links: list[str]


class RuleShape(Shape):
    """The rule that opened an incident."""

    name: str
    because: str
    because_zh: str = Field(description="The same in Chinese; empty: there is only the English.")
    version: str = Field(description="Of the rules.")
    matching_rules: list[str]
    support: list[str] = Field(description="The name of `matching_rules` in version 0.1.", deprecated=True)
    knowledge: KnowledgeShape | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Absent: the rule is not in force any more.",
    )


class SymptomShape(Shape):
    """A symptom with the notes on its start and the events that caused it."""

    name: str
    scope: str
    notes: list[LineShape]
    events: list[str] = Field(description="Ids.")


class FoundShape(Shape):
    """What an id names."""

    kind: str = Field(
        description="incident, alert group, page, run, step, command, event, note, hold or input (something else on the log)."
    )
    id: str
    incidents: list[str] = Field(description="The incidents that it is of. Of one: its chain is told here.")
    hold: HoldShape | None = Field(description="Of a hold that is in force.")
    notes: list[NoteShape] = Field(
        description="What is known of it; of an incident none: the chain has them all."
    )


class ChainShape(Shape):
    """What is known of what an id names: the whole chain of its incident. `incident` and `rule` are null, and all lists empty,
    where it is of none, or of several: `found` says what is known, and which.
    """

    found: FoundShape
    incident: IncidentShape | None
    pages: list[PageShape]
    runs: list[ExplainedRunShape]
    rule: RuleShape | None
    symptoms: list[SymptomShape]
    evidence: list[EvidenceShape]
    notes: list[NoteShape]
    out_of_service: list[str] = Field(description="The nodes that it keeps so.")
    holds: list[HoldShape] = Field(
        description="Those in force where it is: nothing disruptive is done there."
    )
    sureness: SurenessShape | None = Field(
        description="How sure it is; null: of what is over nothing is judged any more."
    )
    places: list[PlaceConsideredShape] = Field(
        description="Of a shared cause: the places that were considered, the chosen one first."
    )
    places_unknown: list[str] = Field(
        description="Kinds of places known of other nodes and not of its node: a cause shared there is not seen."
    )
    place_sure: float = Field(description="How sure it is of the place, 0 to 1; 0: that was not judged.")
    changes: list[ChangeShape] = Field(
        description="Which facts would change what it is taken for, as the rules are now."
    )
    trace_id: str = Field(description="Of its trace; empty: no traces are told.")
    verbs: list[VerbShape] = Field(
        default=[], description="What whoever asks may say about it now; of what is over, nothing."
    )
