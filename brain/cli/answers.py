"""The answers of the API, as the command line reads them. Made by `make docs` from the models in brain/console/api: mypy checks
by it every key that the command line reads.
"""

from typing import Any, NotRequired, TypedDict


class TroubleJson(TypedDict):
    """An open alert about the brain itself."""

    cause: str
    text: str
    since: str | None


class HoldJson(TypedDict):
    """An operator's stop on a scope."""

    id: str
    scope: str
    who: str
    why: str
    since: str | None
    until: str | None


class ModeJson(TypedDict):
    """How far runbooks may go by themselves."""

    runbook: str
    nodes: str
    mode: str
    who: str


class ProposalJson(TypedDict):
    """What one person has said, and which counts when a second one says the same."""

    who: str
    text: str


class StatusJson(TypedDict):
    """The state of a brain, and the holds and modes in force."""

    brain: str
    version: str
    cell: str
    leads: bool
    leader: str
    epoch: int
    connected: bool
    caught_up: bool
    stopped: str
    troubles: list[TroubleJson]
    seq: int
    log_time: str | None
    started_at: str | None
    pack: str
    rules: int
    runbooks: int
    matcher: str
    nodes: int
    nodes_unreachable: int
    nodes_silent: int
    incidents_open: int
    inputs: int
    malformed: int
    busy_s: float
    holds: list[HoldJson]
    modes: list[ModeJson]
    proposals: list[ProposalJson]


class ProblemJson(TypedDict):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    who: str
    retry_after_s: NotRequired[int | None]


class NodeJson(TypedDict):
    """A node and its newest heartbeat; only the leading brain hears those (null: none)."""

    name: str
    alive: bool
    boot: str
    beat_age_s: float | None
    version: str
    spooled: int | None
    dropped: int | None
    clock_ahead_s: float | None
    chassis: str
    leaf: str
    rack: str
    pod: str


class NodeListJson(TypedDict):
    """The nodes, by name."""

    nodes: list[NodeJson]
    next: str


class EvidenceJson(TypedDict):
    """One event behind an incident."""

    id: str
    node: str
    component: str
    kind: str
    text: str
    at: str | None


class IncidentPagesJson(TypedDict):
    """Who was told of an incident."""

    sent: int
    first_at: str | None
    acked_by: str
    resolved: bool
    undelivered: list[str]


class IncidentJson(TypedDict):
    """One fault."""

    id: str
    state: str
    severity: str
    cause: str
    scope: str
    node: str
    nodes: int
    opened_at: str | None
    closed_at: str | None
    closed_why: str
    rule: str
    because: str
    pack: str
    runbook: str
    runs: list[str]
    symptoms: list[str]
    symptom_count: int
    evidence: list[EvidenceJson]
    explains: int
    explained_by: str
    stale: bool
    waits: str
    pages: IncidentPagesJson


class IncidentListJson(TypedDict):
    """Incidents, newest first. Where nothing in particular is asked for: of more than 1000 those that hide no other node's (at
    most 20 open ones of each node come before any others).
    """

    incidents: list[IncidentJson]
    next: str
    more: bool


class AckJson(TypedDict):
    """Somebody has taken an incident up."""

    at: str | None
    text: str


class PageJson(TypedDict):
    """A page with its deliveries, failures and acknowledgements."""

    id: str
    at: str | None
    text: str
    delivered: str
    failures: list[str]
    note: str
    acked: list[AckJson]


class RungJson(TypedDict):
    """A rung of a runbook's ladder."""

    name: str
    do: str
    params: dict[str, Any]


class StepJson(TypedDict):
    """One attempt of one rung."""

    id: str
    rung: str
    action: str
    params: dict[str, Any]
    outcome: str
    why: str
    verified: bool | None
    doing: str
    at: str | None
    evidence: str


class WouldJson(TypedDict):
    """What a step would do, as whoever would perform it says."""

    step: str
    ok: bool
    lines: list[str]


class LineJson(TypedDict):
    """A note, in short."""

    id: str
    at: str | None
    kind: str
    text: str
    caused_by: str


class ExplainedRunJson(TypedDict):
    """A run with its plan, its gates and its approvals."""

    id: str
    incident: str
    runbook: str
    summary: str
    pack: str
    state: str
    why: str
    scope: str
    node: str
    started_at: str | None
    ended_at: str | None
    rung: int
    rungs: list[RungJson]
    approved_by: str
    steps: list[StepJson]
    plan: list[str]
    would: list[WouldJson]
    gates: list[LineJson]
    approvals: list[LineJson]
    notes: list[LineJson]


class TwoLanguagesJson(TypedDict):
    """A text for people."""

    en: str
    zh: str


class KnowledgeJson(TypedDict):
    """What people should know about a fault."""

    cause: TwoLanguagesJson
    todo: TwoLanguagesJson
    links: list[str]


class RuleJson(TypedDict):
    """The rule that opened an incident."""

    name: str
    because: str
    version: str
    matching_rules: list[str]
    support: list[str]
    knowledge: NotRequired[KnowledgeJson | None]


class SymptomJson(TypedDict):
    """A symptom with the notes on its start and the events that caused it."""

    name: str
    scope: str
    notes: list[LineJson]
    events: list[str]


class NoteJson(TypedDict):
    """One line of the audit: what was decided, done or said."""

    id: str
    kind: str
    text: str
    incident: str
    run: str
    scope: str
    caused_by: str
    data: dict[str, Any]
    at: str | None


class ChainJson(TypedDict):
    """All that is known of one incident."""

    incident: IncidentJson
    pages: list[PageJson]
    runs: list[ExplainedRunJson]
    rule: RuleJson
    symptoms: list[SymptomJson]
    evidence: list[EvidenceJson]
    notes: list[NoteJson]
    out_of_service: list[str]
    trace_id: str


class NoteListJson(TypedDict):
    """Notes, newest first."""

    notes: list[NoteJson]
    next: str


class RunJson(TypedDict):
    """A run of a runbook."""

    id: str
    incident: str
    runbook: str
    summary: str
    pack: str
    state: str
    why: str
    scope: str
    node: str
    started_at: str | None
    ended_at: str | None
    rung: int
    rungs: list[RungJson]
    approved_by: str
    steps: list[StepJson]


class GrantJson(TypedDict):
    """A role and its limits (globs; empty: none)."""

    role: str
    scopes: list[str]
    runbooks: list[str]


class MeJson(TypedDict):
    """Who you are, and what you may do."""

    name: str
    role: str
    how: str
    grants: list[GrantJson]


class ListedTokenJson(TypedDict):
    """A token in the list."""

    id: str
    user: str
    role: str
    scopes: list[str]
    runbooks: list[str]
    made_at: str | None
    made_by: str
    made_with: str
    expires_at: str | None
    void: str


class TokenListJson(TypedDict):
    """Your tokens; for administrators: everybody's."""

    tokens: list[ListedTokenJson]


class MadeTokenJson(TypedDict):
    """A token that was made."""

    id: str
    user: str
    role: str
    scopes: list[str]
    runbooks: list[str]
    made_at: str | None
    made_by: str
    made_with: str
    expires_at: str | None
    token: str
    said: NotRequired[str | None]


class SaidJson(TypedDict):
    """What came of a command."""

    id: str
    seq: int
    by: str
    handled: bool
    refused: str
    waiting: str
    notes: list[NoteJson]


class TokenJson(TypedDict):
    """A token, without its secret."""

    id: str
    user: str
    role: str
    scopes: list[str]
    runbooks: list[str]
    made_at: str | None
    made_by: str
    made_with: str
    expires_at: str | None


class RevokedJson(TypedDict):
    """What was taken away."""

    revoked: list[TokenJson]
    sessions: int


class RefusedJson(TypedDict):
    """A command that stands on the log, and has no effect."""

    type: str
    title: str
    status: int
    detail: str
    who: str
    retry_after_s: NotRequired[int | None]
    id: str
    seq: int
    by: str
    handled: bool
    refused: str
    waiting: str
    notes: list[NoteJson]


class DrillJson(TypedDict):
    """One drill."""

    name: str
    summary: str
    affects: str
    ends: str
    heals: bool
    approval: bool
    breaks: bool


class DrillListJson(TypedDict):
    """What can be injected, and where."""

    ok: bool
    drills: list[DrillJson]
    nodes: list[str]


class InjectedJson(TypedDict):
    """A drill that was injected."""

    name: str
    summary: str
    affects: str
    ends: str
    heals: bool
    approval: bool
    breaks: bool
    ok: bool
    nodes: list[str]
