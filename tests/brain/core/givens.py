"""What can be the matter in a cell at peace (cell.py), in the words of the safety core's tables."""

from dataclasses import replace
from typing import Any

from brain.core.healing import approvals
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Mode, ModeSetting, Window
from brain.core.state import Disruption, Hold, ModeOverride, Node, NodeJobs, Run, RunState
from tests.brain.core.cell import GPU, LADDER, NOW, Cell, Given


def site(**settings: Any) -> Given:
    """The site's settings say so."""

    def given(cell: Cell) -> None:
        cell.settings = replace(cell.settings, **settings)

    return given


def runbook(**changes: Any) -> Given:
    """The run's runbook says so."""

    def given(cell: Cell) -> None:
        cell.run.runbook = replace(cell.run.runbook, **changes)

    return given


def on(scope: str, node: str = "n1") -> Given:
    """The run is about another place."""

    def given(cell: Cell) -> None:
        cell.run.scope = cell.incident.scope = scope
        cell.run.node = cell.incident.node = node

    return given


def started_by(who: str) -> Given:
    """No fault led to the run: a person, or the schedule."""

    def given(cell: Cell) -> None:
        cell.run.requested_by = who

    return given


def asked_for(seconds: float) -> Given:
    """For so long the scheduler has not said what runs on the node."""

    def given(cell: Cell) -> None:
        cell.run.jobs_asked_since = NOW - seconds

    return given


def under_way() -> Given:
    """The run has begun an earlier disruptive rung and holds its node."""

    def given(cell: Cell) -> None:
        cell.run.claimed = cell.run.counted = cell.run.disrupted = True

    return given


def chosen() -> Given:
    """The run's first disruptive step is chosen and has not left."""

    def given(cell: Cell) -> None:
        cell.run.claimed = True

    return given


def opened(seconds_ago: float) -> Given:
    """The incident is so old."""

    def given(cell: Cell) -> None:
        cell.incident.opened_at = NOW - seconds_ago

    return given


def stale() -> Given:
    """Every fact was old when it arrived."""

    def given(cell: Cell) -> None:
        cell.incident.stale = True

    return given


def approved(who: str = "bea", **otherwise: Any) -> Given:
    """A person has approved the run's present rung, as things are now, or otherwise."""

    def given(cell: Cell) -> None:
        agreed = approvals.give(cell.ctx(), cell.run, who)
        cell.run.approved = replace(agreed, **otherwise)

    return given


def held(scope: str, until: float = 0.0) -> Given:
    """A person holds a scope, without end or until then."""

    def given(cell: Cell) -> None:
        cell.state.holds[scope] = Hold(
            id=f"hold-{scope}", scope=scope, who="bea", why="cabling", since=NOW - 60, until=until
        )

    return given


def in_maintenance(scope: str, since: float, until: float) -> Given:
    """A maintenance window."""

    def given(cell: Cell) -> None:
        window = Window(scope=scope, since=since, until=until, why="new fans")
        cell.settings = replace(cell.settings, maintenance=(*cell.settings.maintenance, window))

    return given


def site_sets(mode: str, runbook: str = "*", nodes: str = "*") -> Given:
    """One more setting of the site's modes."""

    def given(cell: Cell) -> None:
        setting = ModeSetting(mode=Mode(mode), runbook=runbook, nodes=nodes)
        cell.settings = replace(cell.settings, modes=(*cell.settings.modes, setting))

    return given


def drained_by(whom: str) -> Given:
    """The scheduler said of our drain that the node was out of service already, for this reason of somebody else."""

    def given(cell: Cell) -> None:
        cell.run.kept_out = f"somebody else has drained n1 ({whom})"

    return given


def operator_sets(mode: str, runbook: str = "*", nodes: str = "*") -> Given:
    """A person says a mode."""

    def given(cell: Cell) -> None:
        cell.state.modes.append(ModeOverride(runbook=runbook, nodes=nodes, mode=Mode(mode), who="bea"))

    return given


def no_modes() -> Given:
    """A new site, which has set none."""
    return site(modes=())


def shadow() -> Given:
    """The whole brain only observes."""

    def given(cell: Cell) -> None:
        cell.observe_all = True

    return given


def sick(scope: str, symptom: str = "off_bus", nodes: int = 0) -> Given:
    """A symptom is active at a scope, on so many nodes of it."""

    def given(cell: Cell) -> None:
        cell.falls_ill(scope, symptom, nodes)

    return given


def at_work(node: str, runbook: str = "other", jobs: tuple[str, ...] = ()) -> Given:
    """Another run is under way there, on a node that had these jobs."""

    def given(cell: Cell) -> None:
        number = len(cell.state.runs) + 1
        cell.state.runs[f"inc-{number}.r1"] = Run(
            id=f"inc-{number}.r1", incident=f"inc-{number}", runbook=replace(LADDER, name=runbook), pack="p",
            scope=f"node/{node}", node=node, params={}, state=RunState.PERFORMING, started_at=NOW - 60, claimed=True,
            jobs=list(jobs),
        )  # fmt: skip

    return given


def scheduler_says(
    jobs: tuple[str, ...] = (), protected: str = "", why: str = "", *, known: bool = True, nodes: int = 0
) -> Given:
    """What runs on n1. `nodes`: how many each job has; 0: the scheduler does not say."""

    def given(cell: Cell) -> None:
        seen = [JobSeen(id=job, nodes=nodes) for job in jobs]
        told = NodeJobs(at=NOW, known=known, jobs=list(jobs), protected=protected, why=why, seen=seen)
        cell.state.jobs["n1"] = told

    return given


def tried(*seconds_ago: float, key: str = f"reset-gpu@gpu-lost@{GPU}") -> Given:
    """The same remedy failed so long ago."""

    def given(cell: Cell) -> None:
        cell.state.tries[key] = [NOW - ago for ago in seconds_ago]

    return given


def tripped() -> Given:
    """The breaker has tripped."""

    def given(cell: Cell) -> None:
        cell.state.tripped = NOW - 60

    return given


def healed(*days_ago: float, node: str = "n1") -> Given:
    """Remedies disturbed the whole node so long ago, whatever each was for."""

    def given(cell: Cell) -> None:
        cell.state.remedied[node] = [NOW - days * 86_400 for days in days_ago]

    return given


def treated(
    *nodes: str, cause: str = "gpu-lost", seconds_ago: float = 600, jobs: tuple[str, ...] = ()
) -> Given:
    """A disruptive run for that cause began on each of them, where these jobs ran."""

    def given(cell: Cell) -> None:
        at = NOW - seconds_ago
        cell.state.began += [Disruption(at=at, node=node, cause=cause, jobs=jobs) for node in nodes]

    return given


def waiting(
    node: str,
    gate: str = "related",
    cause: str = "gpu-lost",
    state: RunState = RunState.HELD,
    incident: str = "",
    seconds: float = 1,
) -> Given:
    """Another run has waited there for a gate; of an incident of its own, unless one is named."""

    def given(cell: Cell) -> None:
        number = len(cell.state.runs) + 1
        of = incident or f"inc-{number}"
        if of not in cell.state.incidents:
            cell.state.incidents[of] = replace(
                cell.incident, id=of, cause=cause, node=node, scope=f"node/{node}"
            )
        cell.state.runs[f"{of}.r{number}"] = replace(
            cell.run, id=f"{of}.r{number}", incident=of, node=node, scope=f"node/{node}", state=state,
            why=f"reset waits: as said (gate {gate})", related_since=NOW - seconds,
        )  # fmt: skip

    return given


def unanswered(seconds: float = 60, node: str = "n1", booted: float = 0) -> Given:
    """The node is heard, and did not answer a step so long ago; it has started anew `booted` seconds ago."""

    def given(cell: Cell) -> None:
        known = cell.state.nodes.setdefault(node, Node(name=node))
        known.unanswered_at = NOW - seconds
        known.booted_at = NOW - booted if booted else known.booted_at

    return given


def silent(cell: Cell) -> None:
    """n1 is not heard."""
    cell.state.nodes.setdefault("n1", Node(name="n1")).alive = False


def is_(**fields: Any) -> Given:
    """The run is so."""

    def given(cell: Cell) -> None:
        for name, value in fields.items():
            setattr(cell.run, name, value)

    return given
