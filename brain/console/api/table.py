"""The table of the API: each row is one method of one path, with its models. What has no row is no part of the API.

Registration, the checks of requests, the OpenAPI document (openapi.py) and docs/api.md come from it. Beside it, without a
version, stand what older agents and monitoring systems use: /api/join, /metrics, /healthz and /readyz, and the pages by which a
browser logs in (decision 50).
"""

from typing import Any

from brain.console.api.access_shapes import (
    MadeTokenShape,
    MeShape,
    RevokedShape,
    RevokedTokens,
    TokenListShape,
    WantedToken,
)
from brain.console.api.base import Nothing
from brain.console.api.chain_shapes import ChainShape
from brain.console.api.command_shapes import RefusedShape, SaidShape
from brain.console.api.counter_shapes import CountersQuery, CountersShape
from brain.console.api.diagnosis_shapes import LARGEST_BODY, DiagnosisShape, WantedDiagnosis
from brain.console.api.drill_shapes import DrillListShape, InjectedShape, WantedDrill
from brain.console.api.endpoint import Endpoint, reads, sends
from brain.console.api.energy_shapes import EnergyQuery, EnergyShape
from brain.console.api.evidence_shapes import EvidenceFileQuery, EvidenceFilesShape
from brain.console.api.fleet_shapes import FleetQuery, FleetShape
from brain.console.api.incident_shapes import (
    IncidentListShape,
    IncidentShape,
    IncidentsQuery,
    NoteListShape,
    NotesFileQuery,
    NotesQuery,
    RunListShape,
    RunShape,
    RunsQuery,
)
from brain.console.api.log_shapes import LogQuery, WatchQuery
from brain.console.api.needs_shapes import NeedsQuery, NeedsShape
from brain.console.api.node_shapes import CardShape, NodeDetailShape
from brain.console.api.outcome_shapes import (
    ReadinessQuery,
    ReadinessShape,
    RemediesQuery,
    RemediesShape,
)
from brain.console.api.pack_shapes import (
    RuleDetailShape,
    RuleListShape,
    RulesQuery,
    RunbookDetailShape,
    RunbookListShape,
    RunbooksQuery,
)
from brain.console.api.report_shapes import ReportQuery, ReportShape
from brain.console.api.status_shapes import NodeListShape, NodesQuery, StatusShape
from brain.console.api.verbs import CommandBody
from brain.console.api.why_shapes import WhyNotQuery, WhyNotShape
from brain.console_config import Role

NDJSON = "application/x-ndjson"
_INCIDENT = {"id": "An incident, or the beginning of its id."}
_BUNDLE = {"id": "A bundle (`<node>/<command>`), or an incident, run or step: its newest bundle."}
STATUS = reads(
    "status",
    "/status",
    "The state of the brain, and the holds and modes in force.",
    StatusShape,
    query=Nothing,
)
NODES = reads("nodes", "/nodes", "The nodes and their newest heartbeats.", NodeListShape, query=NodesQuery)
NODE = reads(
    "node",
    "/nodes/{name}",
    "One node: what it is made of, how it stands, and what became of it and its cards.",
    NodeDetailShape,
    query=Nothing,
    parts={"name": "Of a node that is, or was."},
)
CARD = reads(
    "card",
    "/cards/{serial}",
    "One card by its serial number: where it was, its incidents, and what was done about them.",
    CardShape,
    query=Nothing,
    parts={"serial": "Of a GPU its serial number, of a network card its GUID."},
)
COUNTERS = reads(
    "counters",
    "/nodes/{name}/counters",
    "Counters of a node and its GPUs over time, as the site's Prometheus has them.",
    CountersShape,
    query=CountersQuery,
    parts={"name": "Of a node."},
)
FLEET = reads(
    "fleet",
    "/fleet",
    "The whole fleet in columns, for a map of it: now, or at a past time.",
    FleetShape,
    query=FleetQuery,
)
NEEDS = reads(
    "needs",
    "/needs",
    "What needs a person now, what heals by itself, and what was healed.",
    NeedsShape,
    query=NeedsQuery,
)
INCIDENTS = reads(
    "incidents", "/incidents", "Incidents, newest first.", IncidentListShape, query=IncidentsQuery
)
NOTES = reads(
    "notes",
    "/notes",
    "The audit: what was decided, done and said, newest first.",
    NoteListShape,
    query=NotesQuery,
)
NOTES_FILE = reads(
    "notes_file",
    "/notes.ndjson",
    "The audit as a file: a note on each line, newest first.",
    query=NotesFileQuery,
    media=NDJSON,
)
INCIDENT = reads(
    "incident", "/incidents/{id}", "One incident.", IncidentShape, query=Nothing, parts=_INCIDENT
)
EXPLAIN = reads(
    "explain",
    "/explain/{id}",
    "What is known of whatever has an id: the whole chain of its incident, from the page to the kernel line.",
    ChainShape,
    query=Nothing,
    parts={
        "id": "An incident (or the beginning of its id), page, run, step, alert group, hold, command, event or note."
    },
)
WHY_NOT = reads(
    "why_not",
    "/why-not",
    "Why a rule does not match at a scope now, or what became of its match. 404: there is no such rule or scope; `detail` says "
    "which could be meant.",
    WhyNotShape,
    query=WhyNotQuery,
    problems=(404,),
)
RUNS = reads("runs", "/runs", "Runs of runbooks, newest first.", RunListShape, query=RunsQuery)
RUN = reads(
    "run", "/runs/{id}", "One run of a runbook.", RunShape, query=Nothing, parts={"id": "The id of a run."}
)
RULES = reads("rules", "/rules", "The rules in force.", RuleListShape, query=RulesQuery)
RULE = reads(
    "rule",
    "/rules/{name}",
    "One rule: what it means, and how often it fired.",
    RuleDetailShape,
    query=Nothing,
    parts={"name": "Of a rule in force, or of one that gpuward makes for a shared cause."},
)
RUNBOOKS = reads("runbooks", "/runbooks", "The runbooks in force.", RunbookListShape, query=RunbooksQuery)
RUNBOOK = reads(
    "runbook",
    "/runbooks/{name}",
    "One runbook: its ladder, and how far it may go here.",
    RunbookDetailShape,
    query=Nothing,
    parts={"name": "Of a runbook in force."},
)
REPORTS = reads(
    "reports",
    "/reports",
    "What happened in a time: incidents by cause, how fast they were found, decided and healed, and what they cost.",
    ReportShape,
    query=ReportQuery,
    media="text/csv, text/html",
)
ENERGY = reads(
    "energy",
    "/reports/energy",
    "What the GPUs have used in a time, by tenant, and how much of it is known.",
    EnergyShape,
    query=EnergyQuery,
    media="text/csv",
)
REMEDIES = reads(
    "remedies",
    "/remedies",
    "What helped against which fault, how long it took, and how often it came back; and what gpuward proposes.",
    RemediesShape,
    query=RemediesQuery,
)
READINESS = reads(
    "readiness",
    "/readiness",
    "What the runbooks that may not act by themselves would have done, and what people did instead.",
    ReadinessShape,
    query=ReadinessQuery,
)
WATCH = reads(
    "watch",
    "/watch",
    "Notes as they are written, as server-sent events: `note`, with a note as its data. `begin` says where you are; `lost`: what "
    "came since your last one cannot be told any more, so read anew what you show. With the `id` of the last event in "
    "Last-Event-ID nothing is missed and nothing told twice, also at another brain of the cell.",
    query=WatchQuery,
    media="text/event-stream",
)
EVIDENCE = reads(
    "evidence",
    "/evidence/{id:.+}",
    "An evidence bundle, a .tar.gz.",
    query=Nothing,
    named=True,
    media="application/gzip",
    parts=_BUNDLE,
)
EVIDENCE_FILES = reads(
    "evidence_files",
    "/evidence-files/{id:.+}",
    "What is in an evidence bundle.",
    EvidenceFilesShape,
    query=Nothing,
    named=True,
    parts=_BUNDLE,
)
EVIDENCE_FILE = reads(
    "evidence_file",
    "/evidence-file/{id:.+}",
    "One file of an evidence bundle, as its node has packed it.",
    query=EvidenceFileQuery,
    named=True,
    media="application/octet-stream",
    parts=_BUNDLE,
)
LOG = reads(
    "log",
    "/log",
    "The log as one compressed file (reference.md, The log as a file).",
    query=LogQuery,
    least=Role.ADMINISTRATOR,
    named=True,
    media="application/gzip",
)
ME = reads("me", "/me", "Who you are, and what you may do.", MeShape, query=Nothing)
TOKENS = reads(
    "tokens",
    "/tokens",
    "Your tokens; for administrators: everybody's.",
    TokenListShape,
    query=Nothing,
    named=True,
)
MAKE_TOKEN = sends(
    "make_token",
    "/tokens",
    "Makes a token; everybody may make their own. 202: a second person must say the same.",
    {200: MadeTokenShape, 202: SaidShape},
    body=WantedToken,
    least=Role.VIEWER,
)
REVOKE_TOKENS = sends(
    "revoke_tokens",
    "/tokens/revoke",
    "Takes tokens away, at once; everybody may take away their own.",
    {200: RevokedShape},
    body=RevokedTokens,
    least=Role.VIEWER,
    problems=(404,),
)
COMMAND = sends(
    "command",
    "/command",
    "An operator command; its role: reference.md, Operator commands. 202: a second person must say the same. "
    "409: it stands on the log, and has no effect.",
    {200: SaidShape, 202: SaidShape, 409: RefusedShape},
    body=CommandBody,
    least=Role.OPERATOR,
)
DIAGNOSE = sends(
    "diagnose",
    "/diagnose",
    "Says what a kernel log means, as `gpuward diagnose` does, by this brain's rules. Nothing of it is kept.",
    {200: DiagnosisShape},
    body=WantedDiagnosis,
    least=Role.VIEWER,
    largest=LARGEST_BODY,
)
DRILLS = reads(
    "drills",
    "/drill",
    "The drills, and the simulated nodes. 404: `drill` is not set in brain.toml.",
    DrillListShape,
    query=Nothing,
    problems=(404, 409, 502),
)
INJECT = sends(
    "inject",
    "/drill",
    "Injects a drill into a simulated node. 404: `drill` is not set in brain.toml.",
    {200: InjectedShape},
    body=WantedDrill,
    least=Role.OPERATOR,
    problems=(404, 409, 502),
)
OPENAPI = reads(
    "openapi",
    "/openapi.json",
    "This API as an OpenAPI 3.1 document.",
    query=Nothing,
    media="application/json",
)
TABLE: tuple[Endpoint[Any, Any], ...] = (
    STATUS,
    NODES,
    NODE,
    CARD,
    COUNTERS,
    FLEET,
    NEEDS,
    INCIDENTS,
    INCIDENT,
    EXPLAIN,
    WHY_NOT,
    NOTES,
    NOTES_FILE,
    RUNS,
    RUN,
    RULES,
    RULE,
    RUNBOOKS,
    RUNBOOK,
    REPORTS,
    ENERGY,
    REMEDIES,
    READINESS,
    WATCH,
    EVIDENCE,
    EVIDENCE_FILES,
    EVIDENCE_FILE,
    LOG,
    ME,
    TOKENS,
    MAKE_TOKEN,
    REVOKE_TOKENS,
    COMMAND,
    DIAGNOSE,
    DRILLS,
    INJECT,
    OPENAPI,
)
