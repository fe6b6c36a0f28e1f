"""The answers of the API, as the command line reads them. Made by `make docs` from the models in brain/console/api: mypy checks
by it every key that the command line reads. What they mean: docs/api.md. One file however long: nobody edits it.
"""

from typing import Any, NotRequired, TypedDict


class TroubleJson(TypedDict):
    cause: str
    text: str
    since: str | None


class HoldJson(TypedDict):
    id: str
    scope: str
    who: str
    why: str
    since: str | None
    until: str | None


class ModeJson(TypedDict):
    runbook: str
    nodes: str
    mode: str
    who: str
    why: str


class ProposalJson(TypedDict):
    who: str
    text: str


class StatusJson(TypedDict):
    brain: str
    version: str
    cell: str
    config_file: str
    data_dir: str
    leads: bool
    leader: str
    epoch: int
    connected: bool
    caught_up: bool
    stopped: str
    breaker_since: str | None
    pages_failing: int
    archive_failing: str
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
    type: str
    title: str
    status: int
    detail: str
    who: str
    retry_after_s: NotRequired[int | None]


class NodeJson(TypedDict):
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
    nodes: list[NodeJson]
    next: str


class InventoryJson(TypedDict):
    told: dict[str, Any]
    since: str | None
    seen: str | None


class IncidentBriefJson(TypedDict):
    id: str
    state: str
    severity: str
    cause: str
    scope: str
    opened_at: str | None
    closed_at: str | None
    closed_why: str


class PartPlaceJson(TypedDict):
    node: str
    component: str
    since: str | None
    seen: str | None


class PartJson(TypedDict):
    component: str
    serial: str
    told: dict[str, Any]
    since: str | None
    seen: str | None
    word: str
    incidents: list[IncidentBriefJson]
    places: list[PartPlaceJson]


class RunBriefJson(TypedDict):
    id: str
    incident: str
    runbook: str
    state: str
    why: str
    scope: str
    started_at: str | None
    ended_at: str | None


class NodeDrainJson(TypedDict):
    incident: str
    since: str | None
    sure: bool


class NoteJson(TypedDict):
    id: str
    kind: str
    text: str
    incident: str
    run: str
    scope: str
    caused_by: str
    who: str
    data: dict[str, Any]
    at: str | None


class TwoLanguagesJson(TypedDict):
    en: str
    zh: str


class NodeDetailJson(TypedDict):
    node: NodeJson
    word: str
    booted_at: str | None
    fabric: str
    inventory: InventoryJson | None
    before: list[InventoryJson]
    cards: list[PartJson]
    incidents: list[IncidentBriefJson]
    past: list[IncidentBriefJson]
    runs: list[RunBriefJson]
    holds: list[HoldJson]
    drains: list[NodeDrainJson]
    jobs: list[str] | None
    jobs_at: str | None
    said: list[NoteJson]
    not_known: list[str]
    not_known_texts: list[TwoLanguagesJson]


class CardJson(TypedDict):
    serial: str
    node: str
    component: str
    there: bool
    told: dict[str, Any]
    places: list[PartPlaceJson]
    incidents: list[IncidentBriefJson]
    runs: list[RunBriefJson]


class CounterLineJson(TypedDict):
    label: str
    values: list[float | None]


class CounterPanelJson(TypedDict):
    name: str
    unit: str
    lines: list[CounterLineJson]
    more: int


class CountersJson(TypedDict):
    configured: bool
    since: str | None
    until: str | None
    step_s: float
    panels: list[CounterPanelJson]
    failed: list[str]


class FleetCardsJson(TypedDict):
    node: list[int]
    card: list[str]
    state: list[int]
    incident: list[int]


class FleetIncidentsJson(TypedDict):
    id: list[str]
    severity: list[str]
    state: list[str]
    cause: list[str]
    scope: list[str]


class FleetJson(TypedDict):
    at: str | None
    since: float | None
    words: list[str]
    names: list[str]
    state: list[int]
    incident: list[int]
    held: list[int]
    gpus: list[int]
    cards: FleetCardsJson
    incidents: FleetIncidentsJson
    racks: list[str]
    rack: list[int]
    leaves: list[str]
    leaf: list[int]
    pods: list[str]
    pod: list[int]
    agents: list[str]
    agent: list[int]
    drivers: list[str]
    driver: list[int]
    jobs: list[str]
    job: list[int]


class WantedApprovalJson(TypedDict):
    run: str
    runbook: str
    rung: str
    what: str
    seen: str
    disrupts: str
    repeat: str
    why: str
    valid_s: float
    jobs: list[str] | None


class VerbJson(TypedDict):
    verb: str
    args: dict[str, Any]
    asks: list[str]
    two_persons: bool


class NeedJson(TypedDict):
    kinds: list[str]
    id: str
    severity: str
    state: str
    cause: str
    scope: str
    node: str
    since: str | None
    until: str | None
    text: str
    run: str
    acked_by: str
    out_of_service: list[str]
    approval: WantedApprovalJson | None
    verbs: list[VerbJson]


class HealedJson(TypedDict):
    id: str
    severity: str
    cause: str
    scope: str
    node: str
    opened_at: str | None
    closed_at: str | None
    runbook: str
    text: str


class NeedsJson(TypedDict):
    people: list[NeedJson]
    people_count: int
    healing: list[NeedJson]
    healing_count: int
    healed: list[HealedJson]
    healed_more: bool


class EpisodeJson(TypedDict):
    opened_at: str | None
    closed_at: str | None
    why: str
    nodes: int


class EvidenceJson(TypedDict):
    id: str
    node: str
    component: str
    kind: str
    text: str
    at: str | None


class IncidentPagesJson(TypedDict):
    sent: int
    first_at: str | None
    acked_by: str
    resolved: bool
    undelivered: list[str]
    alert: str
    passed_to: str
    tickets: dict[str, Any]


class HitJobJson(TypedDict):
    id: str
    name: str
    user: str
    nodes: int
    here: int
    on: list[str]
    gpus: int
    since: str | None
    gone_at: str | None
    text: str


class HitJson(TypedDict):
    known: str
    why: str
    since: str | None
    at: str | None
    asked: int
    answered: int
    left_out: int
    jobs: list[HitJobJson]
    more_jobs: int


class IncidentJson(TypedDict):
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
    times: int
    episodes: list[EpisodeJson]
    rule: str
    because: str
    because_zh: str
    pack: str
    runbook: str
    runs: list[str]
    symptoms: list[str]
    symptom_count: int
    evidence: list[EvidenceJson]
    explains: int
    explained_by: str
    stale: bool
    asks: str
    waits: str
    pages: IncidentPagesJson
    hit: NotRequired[HitJson | None]


class IncidentListJson(TypedDict):
    incidents: list[IncidentJson]
    next: str
    more: bool


class FoundJson(TypedDict):
    kind: str
    id: str
    incidents: list[str]
    hold: HoldJson | None
    notes: list[NoteJson]


class AckJson(TypedDict):
    at: str | None
    text: str


class PageJson(TypedDict):
    id: str
    at: str | None
    text: str
    delivered: str
    failures: list[str]
    note: str
    acked: list[AckJson]


class RungJson(TypedDict):
    name: str
    do: str
    params: dict[str, Any]


class StepJson(TypedDict):
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
    step: str
    ok: bool
    lines: list[str]


class LineJson(TypedDict):
    id: str
    at: str | None
    kind: str
    text: str
    caused_by: str


class ExplainedRunJson(TypedDict):
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
    until: str | None
    steps: list[StepJson]
    plan: list[str]
    approval: WantedApprovalJson | None
    would: list[WouldJson]
    gates: list[LineJson]
    approvals: list[LineJson]
    notes: list[LineJson]


class KnowledgeJson(TypedDict):
    cause: TwoLanguagesJson
    todo: TwoLanguagesJson
    links: list[str]


class RuleJson(TypedDict):
    name: str
    because: str
    because_zh: str
    version: str
    matching_rules: list[str]
    support: list[str]
    knowledge: NotRequired[KnowledgeJson | None]


class SymptomJson(TypedDict):
    name: str
    scope: str
    notes: list[LineJson]
    events: list[str]


class SurenessJson(TypedDict):
    level: str
    reasons: list[TwoLanguagesJson]
    against: list[TwoLanguagesJson]
    alternatives: list[TwoLanguagesJson]


class PlaceConsideredJson(TypedDict):
    place: str
    ill: int
    of: int
    best: bool
    why: str


class ChangeJson(TypedDict):
    turn: str
    text: TwoLanguagesJson
    cause: str
    scope: str
    nodes: int
    takes: int


class ChainJson(TypedDict):
    found: FoundJson
    incident: IncidentJson | None
    pages: list[PageJson]
    runs: list[ExplainedRunJson]
    rule: RuleJson | None
    symptoms: list[SymptomJson]
    evidence: list[EvidenceJson]
    notes: list[NoteJson]
    out_of_service: list[str]
    holds: list[HoldJson]
    sureness: SurenessJson | None
    places: list[PlaceConsideredJson]
    places_unknown: list[str]
    place_sure: float
    changes: list[ChangeJson]
    trace_id: str
    verbs: list[VerbJson]


class PastJson(TypedDict):
    at: str | None
    why: str
    since: str | None


class ConditionJson(TypedDict):
    test: str
    met: bool
    in_the_way: bool
    text: str
    begins: str
    instead: list[str]
    symptom: str
    scope: str
    since: str | None
    last: str | None
    nodes: list[str]
    takes: int
    past: PastJson | None


class WhyNotJson(TypedDict):
    rule: str
    scope: str
    at: str | None
    matches: bool
    outcome: str
    text: list[str]
    conditions: list[ConditionJson]
    incident: str
    until: str | None
    runbook: str
    mode: str
    run: str
    gate: str
    gate_until: str | None
    gate_again: str | None


class NoteListJson(TypedDict):
    notes: list[NoteJson]
    next: str


class RunJson(TypedDict):
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
    until: str | None
    steps: list[StepJson]


class RunListJson(TypedDict):
    runs: list[RunJson]
    next: str


class RuleEntryJson(TypedDict):
    fired: int
    open: int
    healed: int
    healed_in_s: float | None
    last_at: str | None
    name: str
    cause: str
    scope: str
    severity: str
    because: str
    because_zh: str
    runbook: str
    page: str
    source: str


class RuleListJson(TypedDict):
    rules: list[RuleEntryJson]
    pack: str
    next: str


class AdviceJson(TypedDict):
    when: dict[str, Any]
    todo: TwoLanguagesJson


class RuleSymptomJson(TypedDict):
    name: str
    summary: str
    source: str


class RuleDetailJson(TypedDict):
    fired: int
    open: int
    healed: int
    healed_in_s: float | None
    last_at: str | None
    name: str
    cause: str
    scope: str
    severity: str
    because: str
    because_zh: str
    runbook: str
    page: str
    source: str
    pack: str
    cause_text: TwoLanguagesJson
    todo: TwoLanguagesJson
    advice: list[AdviceJson]
    links: list[str]
    when: dict[str, Any]
    symptoms: list[RuleSymptomJson]
    inhibits: list[str]
    hold_off_s: float
    resolve_delay_s: float


class RunbookEntryJson(TypedDict):
    runs: int
    under_way: int
    succeeded: int
    exhausted: int
    observed: int
    cancelled: int
    healed_in_s: float | None
    last_at: str | None
    name: str
    summary: str
    source: str
    at_most: str
    rules: list[str]
    starts_on: str


class RunbookListJson(TypedDict):
    runbooks: list[RunbookEntryJson]
    pack: str
    next: str


class LadderRungJson(TypedDict):
    name: str
    do: str
    means: str
    params: dict[str, Any]
    where: str
    disrupts: str
    repeat: str
    timeout_s: float
    retries: int
    when: dict[str, Any]
    after: list[str]
    verify: str
    on_failure: str
    on_refusal: str


class SetModeJson(TypedDict):
    runbook: str
    nodes: str
    mode: str
    who: str
    why: str
    at: str | None


class RunbookDetailJson(TypedDict):
    runs: int
    under_way: int
    succeeded: int
    exhausted: int
    observed: int
    cancelled: int
    healed_in_s: float | None
    last_at: str | None
    name: str
    summary: str
    source: str
    at_most: str
    rules: list[str]
    starts_on: str
    pack: str
    rungs: list[LadderRungJson]
    return_to_service: list[LadderRungJson]
    modes: list[SetModeJson]
    request: bool
    every_s: float
    tries: int
    tries_within_s: float
    last_resort: str
    for_several: str


class SpreadJson(TypedDict):
    count: int
    median_s: float | None
    p90_s: float | None


class ReportFiguresJson(TypedDict):
    incidents: int
    open: int
    healed: int
    without_people: float | None
    detect: SpreadJson
    decide: SpreadJson
    heal: SpreadJson
    node_hours: float
    node_hours_saved: float


class CauseFiguresJson(TypedDict):
    incidents: int
    open: int
    healed: int
    without_people: float | None
    detect: SpreadJson
    decide: SpreadJson
    heal: SpreadJson
    node_hours: float
    node_hours_saved: float
    cause: str


class NodeFiguresJson(TypedDict):
    node: str
    incidents: int
    node_hours: float


class JobFiguresJson(TypedDict):
    detect: SpreadJson
    decide: SpreadJson
    heal: SpreadJson
    node_hours: float
    node_hours_saved: float
    job: str
    incidents: int
    tenant: str


class TenantFiguresJson(TypedDict):
    detect: SpreadJson
    decide: SpreadJson
    heal: SpreadJson
    node_hours: float
    node_hours_saved: float
    tenant: str
    incidents: int
    jobs: int


class ReportJson(TypedDict):
    since: str | None
    until: str | None
    reaches: str | None
    whole: bool
    total: ReportFiguresJson
    people_begin_s: float
    causes: list[CauseFiguresJson]
    nodes: list[NodeFiguresJson]
    jobs: list[JobFiguresJson]
    tenants: list[TenantFiguresJson]
    not_known: list[str]
    not_known_texts: list[TwoLanguagesJson]


class TenantEnergyJson(TypedDict):
    tenant: str
    kwh: float
    share: float
    use: float | None
    values: list[float | None]


class EnergyJson(TypedDict):
    configured: bool
    since: str | None
    until: str | None
    step_s: float
    kwh: float
    use: float | None
    gpus: int
    measured: float | None
    split: int
    tenants: list[TenantEnergyJson]
    more: int
    failed: list[str]
    not_known_texts: list[TwoLanguagesJson]


class CameBackJson(TypedDict):
    healed: int
    back: int
    upper: float


class OfModelJson(TypedDict):
    tried: int
    helped: int
    lower: float
    upper: float
    model: str


class RemedyJson(TypedDict):
    tried: int
    helped: int
    lower: float
    upper: float
    cause: str
    runbook: str
    rung: str
    action: str
    still_there: int
    failed: int
    unknown: int
    not_tried: int
    nodes: int
    took_s: float | None
    day: CameBackJson
    week: CameBackJson
    says: str
    models: list[OfModelJson]


class TakenBackJson(TypedDict):
    runbook: str
    since: str | None
    why: str


class RemedyProposalJson(TypedDict):
    runbook: str
    cause: str
    rung: str
    text: str


class RemediesJson(TypedDict):
    since: str | None
    until: str | None
    reaches: str | None
    whole: bool
    remedies: list[RemedyJson]
    taken_back: list[TakenBackJson]
    proposals: list[RemedyProposalJson]


class PlannedJson(TypedDict):
    incident: str
    run: str
    cause: str
    node: str
    at: str | None
    rung: str
    stopped: list[str]
    how: str
    did: str
    after_s: float | None


class ReadyJson(TypedDict):
    runbook: str
    mode: str
    at_most: str
    planned: int
    nodes: int
    same: int
    people: int
    itself: int
    explained: int
    open: int
    approved: int
    healed: int
    stopped: dict[str, Any]
    lower: float
    verdict: str
    text: str
    cases: list[PlannedJson]


class ReadinessJson(TypedDict):
    since: str | None
    until: str | None
    whole: bool
    runbooks: list[ReadyJson]
    not_known: list[str]
    not_known_texts: list[TwoLanguagesJson]


class PackedFileJson(TypedDict):
    file: int
    name: str
    size: int
    at: str | None
    text: bool


class EvidenceFilesJson(TypedDict):
    bundle: str
    size: int
    files: list[PackedFileJson]
    left_out: int
    cut: str


class GrantJson(TypedDict):
    role: str
    scopes: list[str]
    runbooks: list[str]


class MeJson(TypedDict):
    name: str
    role: str
    how: str
    grants: list[GrantJson]


class ListedTokenJson(TypedDict):
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
    tokens: list[ListedTokenJson]


class MadeTokenJson(TypedDict):
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
    id: str
    seq: int
    by: str
    handled: bool
    refused: str
    waiting: str
    notes: list[NoteJson]


class TokenJson(TypedDict):
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
    revoked: list[TokenJson]
    sessions: int


class RefusedJson(TypedDict):
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


class ExplainedFaultJson(TypedDict):
    cause: str
    scope: str
    shown: list[str]


class DiagnosedJson(TypedDict):
    id: str
    state: str
    cause: str
    severity: str
    scope: str
    because: str
    because_zh: str
    symptoms: list[str]
    runs: list[str]
    opened_at: float
    sure: str
    lasted_s: float
    silent_s: float
    booted: str
    shown: list[str]
    explains: int
    explained: list[ExplainedFaultJson]
    advice: dict[str, Any]
    links: list[str]
    runbook: str
    plan: list[str]


class DiagnosisJson(TypedDict):
    ok: bool
    incidents: list[DiagnosedJson]
    lines: int
    meaningful: int
    unread: int
    foreign: int
    blind: dict[str, Any]
    aside: dict[str, Any]
    other: list[str]


class DrillJson(TypedDict):
    name: str
    summary: str
    affects: str
    ends: str
    heals: bool
    approval: bool
    breaks: bool


class DrillListJson(TypedDict):
    ok: bool
    drills: list[DrillJson]
    nodes: list[str]


class InjectedJson(TypedDict):
    name: str
    summary: str
    affects: str
    ends: str
    heals: bool
    approval: bool
    breaks: bool
    ok: bool
    nodes: list[str]
    at: str
