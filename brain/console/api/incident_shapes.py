"""Incidents, the notes about them, and their runs."""

from typing import Annotated, Any

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time
from brain.console.api.hit_shapes import HitShape
from brain.console.api.pages import Paged
from brain.core.pack.spec import Priority
from brain.core.state import IncidentState, RunState

Pattern = Annotated[str, Field(max_length=300)]
Since = Annotated[float | None, Field(ge=0, lt=1e11, description="Not before, in seconds since 1970.")]
Until = Annotated[float | None, Field(ge=0, lt=1e11, description="Before, in seconds since 1970.")]


class EvidenceShape(Shape):
    """One event behind an incident."""

    id: str
    node: str
    component: str
    kind: str
    text: str = Field(description="The kernel line or the sample.")
    at: Time | None = Field(description="When the fact occurred.")


class EpisodeShape(Shape):
    """One time that an incident was open which was opened again later."""

    opened_at: Time | None
    closed_at: Time | None
    why: str = Field(description="Why it was over.")
    nodes: int = Field(description="How many nodes it was about.")


class IncidentPagesShape(Shape):
    """Who was told of an incident."""

    sent: int
    first_at: Time | None
    acked_by: str = Field(description="Empty: nobody has.")
    resolved: bool
    undelivered: list[str] = Field(description="The ids of pages that no channel has taken yet.")
    alert: str = Field(
        description="By which channels know its alert: its id, or that of an incident that it explains."
    )
    passed_to: str = Field(description="The incident whose alert it is by now; empty: it is this one's.")
    tickets: dict[str, str] = Field(description="Channel → the key of its ticket there.")


class IncidentShape(Shape):
    """One fault."""

    id: str
    state: str = Field(description='One of "States of an incident" in reference.md.')
    severity: str = Field(description="P0 to P3.")
    cause: str
    scope: str = Field(description="`<kind>/<name>`, such as `node/gpu-01`.")
    node: str = Field(description="Empty: the scope is wider than a node.")
    nodes: int = Field(description="How many nodes it is about.")
    opened_at: Time | None = Field(description="Of one that was opened again: the last time.")
    closed_at: Time | None
    closed_why: str
    times: int = Field(
        description="How often it has been opened: its fault came back soon after it was over."
    )
    episodes: list[EpisodeShape] = Field(
        description="When it was open before, in order; of many the last ones."
    )
    rule: str
    because: str
    because_zh: str = Field(description="The same in Chinese; empty: there is only the English.")
    pack: str = Field(description="The version of the rules that opened it.")
    runbook: str = Field(description="Empty: none leads on from its rule.")
    runs: list[str] = Field(description="Ids, in order.")
    symptoms: list[str] = Field(description="`<name>@<scope>`; of many the first ones.")
    symptom_count: int
    evidence: list[EvidenceShape]
    explains: int = Field(description="How many other findings it explains.")
    explained_by: str = Field(description="The id of the incident that explains it; empty: none.")
    stale: bool = Field(description="Every fact was old when it arrived.")
    asks: str = Field(
        description="The id of its run that waits for a person's approval: nothing heals it before. Empty: none."
    )
    waits: str = Field(description="What it waits for while it settles.")
    pages: IncidentPagesShape
    hit: HitShape | None = Field(
        default=None, exclude_if=lambda value: value is None, description="Who is hit by it. Absent in lists."
    )


class IncidentListShape(Shape):
    """Incidents, newest first. Where nothing in particular is asked for: of more than 1000 those that hide no other node's (at
    most 20 open ones of each node come before any others).
    """

    incidents: list[IncidentShape]
    next: str = Field(description="The cursor of the next page; empty: there is none.")
    more: bool = Field(description="Are there more than these? `limit` and `cursor` lead through all.")


class IncidentsQuery(Paged):
    """Which incidents."""

    all: bool = Field(default=False, description="Closed ones too, and those that another incident explains.")
    state: IncidentState | None = Field(default=None, description="Only those in this state.")
    severity: Priority | None = Field(default=None, description="Only those of this severity.")
    cause: Pattern = Field(default="", description="Only those of these causes (glob).")
    scope: Pattern = Field(default="", description="Only those at these scopes (glob).")
    node: Pattern = Field(
        default="", description="Only those at these nodes (glob); not those of wider scopes."
    )
    since: Since = None
    until: Until = None


class NoteShape(Shape):
    """One line of the audit: what was decided, done or said."""

    id: str
    kind: str
    text: str
    incident: str = Field(description="Empty: it is about none.")
    run: str = Field(description="Empty: it is about none.")
    scope: str
    caused_by: str = Field(description="The id of the input that caused it.")
    who: str = Field(description="Who gave the command that caused it, `ann and ben` of two; empty: nobody.")
    data: dict[str, Any]
    at: Time | None


class NoteListShape(Shape):
    """Notes, newest first."""

    notes: list[NoteShape]
    next: str = Field(description="The cursor of the next page; empty: this is the last one.")


class NotesFileQuery(Asked):
    """Which notes."""

    kind: Pattern = Field(
        default="",
        description="Only these kinds (glob): `page.*` are pages, `operator.*` is what people said.",
    )
    incident: str = Field(default="", max_length=300, description="Only those about this incident.")
    run: str = Field(default="", max_length=300, description="Only those about this run.")
    scope: Pattern = Field(default="", description="Only those at these scopes (glob).")
    who: str = Field(
        default="", max_length=300, description="Only what these people did (glob), alone or with a second."
    )
    since: Since = None
    until: Until = None


class NotesQuery(Paged, NotesFileQuery):
    """Which notes. `limit`: 100 where it is left out."""


class RungShape(Shape):
    """A rung of a runbook's ladder."""

    name: str
    do: str = Field(description="An action of actions.md.")
    params: dict[str, Any]


class StepShape(Shape):
    """One attempt of one rung."""

    id: str
    rung: str
    action: str
    params: dict[str, Any]
    outcome: str = Field(description="Empty while it is under way.")
    why: str
    verified: bool | None = Field(description="Did it help? null: no verification has ended.")
    doing: str = Field(description="Its newest progress.")
    at: Time | None
    evidence: str = Field(description="The name of the evidence bundle that it made; empty: none.")


class RunShape(Shape):
    """A run of a runbook."""

    id: str
    incident: str
    runbook: str
    summary: str
    pack: str
    state: str = Field(description='One of "States of a run" in reference.md.')
    why: str
    scope: str
    node: str
    started_at: Time | None
    ended_at: Time | None
    rung: int = Field(description="The number of the rung that it has come to, from 1.")
    rungs: list[RungShape]
    approved_by: str
    until: Time | None = Field(
        description="When its step is given up, or its symptoms must be gone; null: neither is waited for."
    )
    steps: list[StepShape]


class RunListShape(Shape):
    """Runs, newest first."""

    runs: list[RunShape]
    next: str = Field(description="The cursor of the next page; empty: this is the last one.")


class RunsQuery(Paged):
    """Which runs. `limit`: 100 where it is left out."""

    state: RunState | None = Field(default=None, description="Only those in this state.")
    under_way: bool = Field(default=False, description="Only those that are not over.")
    runbook: Pattern = Field(default="", description="Only those of these runbooks (glob).")
    node: Pattern = Field(default="", description="Only those at these nodes (glob).")
    incident: str = Field(default="", max_length=300, description="Only those of this incident.")
    since: Since = None
    until: Until = None
