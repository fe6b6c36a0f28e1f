"""A cell at peace, and what can be the matter in it: the words in which the tables of the safety core are written.

The run in question is about to reset a GPU of n1, and no gate objects. Each neighbour of n1 shares one thing with it:
n2 the leaf switch, n3 the rack, n4 the pod, n5 nothing but the fabric; n6 shares leaf switch and pod. A `Given` changes that:
`Cell(held("rack/r1"), approved()).asks(gates.hold)`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from brain.core.context import Context
from brain.core.effects import Effect
from brain.core.healing import approvals, gates, runs
from brain.core.healing.verdicts import Case, Decision, Gate, Verdict
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import (
    Match,
    Mode,
    ModeSetting,
    Pack,
    Paging,
    Place,
    Priority,
    Rule,
    Runbook,
    Rung,
    Settings,
    Symptom,
    Window,
)
from brain.core.state import (
    Disruption,
    Hold,
    Incident,
    IncidentState,
    ModeOverride,
    Node,
    NodeJobs,
    Run,
    RunState,
    State,
    SymptomState,
)

NOW = 100_000.0
GPU = "gpu/n1/0000:3b:00"
PLACES = {
    "n1": Place(leaf="l1", rack="r1", pod="p1"),
    "n2": Place(leaf="l1", rack="r2", pod="p2"),
    "n3": Place(leaf="l3", rack="r1", pod="p3"),
    "n4": Place(leaf="l4", rack="r4", pod="p1"),
    "n5": Place(leaf="l5", rack="r5", pod="p5"),
    "n6": Place(leaf="l1", rack="r6", pod="p1"),
    "n7": Place(leaf="l7", rack="r7", pod="p7", chassis="c7"),
    "n8": Place(leaf="l8", rack="r7", pod="p7", chassis="c7"),
}
SYMPTOMS = (
    Symptom(name="off_bus", scope="gpu", summary="a GPU is off the bus", on=(Match(kind="gpu.off_bus"),)),
    Symptom(name="hot", scope="gpu", summary="a GPU is hot", on=(Match(kind="gpu.hot"),)),
    Symptom(name="off_bus_leaf", scope="leaf", summary="on many nodes", detect="spread", of="off_bus", at_least=4),
    Symptom(name="off_bus_cell", scope="cell", summary="on many nodes", detect="spread", of="off_bus", at_least=8),
    Symptom(name="leaf_hot", scope="leaf", summary="a switch is hot", on=(Match(kind="switch.hot"),)),
)  # fmt: skip
LADDER = Runbook(
    name="reset-gpu",
    summary="reset it, then reboot",
    rungs=(
        Rung(name="reset", do="gpu.reset", params={"gpu": "$component"}),
        Rung(name="reboot", do="node.reboot"),
    ),
    tries=2,
    tries_within_s=3600,
)


class Cell:
    """Everything that a gate looks at."""

    def __init__(self, *givens: "Given") -> None:
        self.settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),), disruptive_runs=99)
        self.observe_all = False
        self.runbooks: tuple[Runbook, ...] = (LADDER,)
        self.rules: tuple[Rule, ...] = ()
        self.state = State(now=NOW)
        self.incident = Incident(
            id="inc-1", cause="gpu-lost", state=IncidentState.HEALING, severity=Priority.P1, scope=GPU,
            node="n1", rule="gpu-lost",
            because="it is off the bus", runbook=LADDER.name, pack="p", opened_at=NOW - 600, hold_off_until=NOW - 600,
            resolve_delay_s=60, page=Paging.OPEN, symptoms=[f"off_bus@{GPU}"], matching_rules={f"gpu-lost@{GPU}": "gpu-lost"},
        )  # fmt: skip
        self.run = Run(
            id="inc-1.r1", incident="inc-1", runbook=LADDER, pack="p", scope=GPU, node="n1", params={},
            state=RunState.HELD, started_at=NOW - 600,
        )  # fmt: skip
        self.state.incidents["inc-1"], self.state.runs["inc-1.r1"] = self.incident, self.run
        sick(GPU)(self)
        for given in givens:
            given(self)

    def boots(self, at: float) -> None:
        """n1 was first heard in its present boot then."""
        self.state.nodes["n1"] = Node(name="n1", booted_at=at)

    def ctx(self) -> Context:
        """As it is now."""
        pack = Pack(
            version="p",
            symptoms=SYMPTOMS,
            rules=self.rules,
            runbooks=self.runbooks,
            settings=self.settings,
            places=PLACES,
        )
        index = Index(self.state)
        return Context(self.state, Compiled(pack), index, ACTIONS, "input-1", observe_all=self.observe_all)

    def asks(self, gate: Gate) -> Verdict | None:
        """What one gate says to the run's present rung."""
        rung = self.run.runbook.rungs[self.run.rung]
        return gate(Case(ctx=self.ctx(), run=self.run, incident=self.incident, rung=rung))

    def proceeds(self) -> list[Effect]:
        """What the run asks for when it goes on."""
        ctx = self.ctx()
        runs.proceed(ctx, self.run)
        return ctx.finish()

    def asks_all(self) -> Verdict:
        """What all of them say."""
        return gates.check(self.ctx(), self.run, self.incident, self.run.runbook.rungs[self.run.rung])


Given = Callable[[Cell], None]
Row = tuple[str, list[Given], Verdict | None]


def wait(gate: str, reason: str, retry_s: float = 15) -> Verdict:
    """Not now; it is asked again after so long."""
    return Verdict(answer=Decision.HOLD, gate=gate, reason=reason, retry_s=retry_s)


def ask_a_person(gate: str, reason: str) -> Verdict:
    """Only with an approval."""
    return Verdict(answer=Decision.APPROVAL, gate=gate, reason=reason)


def never(gate: str, reason: str) -> Verdict:
    """A person must take over."""
    return Verdict(answer=Decision.STOP, gate=gate, reason=reason)


def table(*rows: Row) -> pytest.MarkDecorator:
    """The test's table: what is the case, in words and as givens, and the gate's answer (None: it does not object)."""
    return pytest.mark.parametrize(
        ("givens", "answer"), [row[1:] for row in rows], ids=[row[0] for row in rows]
    )


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
        members = {f"m{number}": NOW for number in range(nodes)}
        cell.state.symptoms[f"{symptom}@{scope}"] = SymptomState(
            name=symptom, scope=scope, active=True, since=NOW - 600, members=members
        )

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
    jobs: tuple[str, ...] = (), protected: str = "", why: str = "", *, known: bool = True
) -> Given:
    """What runs on n1."""

    def given(cell: Cell) -> None:
        told = NodeJobs(at=NOW, known=known, jobs=list(jobs), protected=protected, why=why)
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
