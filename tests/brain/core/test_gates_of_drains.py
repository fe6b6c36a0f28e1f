"""The gate that respects what others did to the service of a node: their drain, or its return by hand after our drain."""

from dataclasses import replace

from brain.core.healing import gates
from brain.core.healing.verdicts import Verdict
from brain.core.pack.spec import Rung
from brain.core.state import OwnedDrain, StepRecord
from tests.brain.core.cell import NOW, Cell, Given, ask_a_person, table
from tests.brain.core.givens import approved, drained_by, scheduler_says, site, started_by

WORK = "somebody may be at work on n1"
THEIRS = ask_a_person("kept_out", f"somebody else has drained n1 (ann: new DIMMs): {WORK}")
BACK = ask_a_person(
    "kept_out", f"somebody has given n1 back since it was drained, and jobs may start there: {WORK}"
)


def ours(outcome: str = "ok", seconds_ago: float = 60, *, owned: bool = True) -> Given:
    """Our drain of n1 began so long ago, and ended so."""

    def given(cell: Cell) -> None:
        step = StepRecord(
            id="s1", rung="drain", action="scheduler.drain", params={}, at=NOW - seconds_ago, outcome=outcome
        )
        cell.run.steps.append(step)
        if owned:
            cell.state.drains["n1"] = {cell.incident.id: OwnedDrain(since=step.at, marks=[cell.incident.id])}

    return given


def collected() -> Given:
    """The newest step of the run is over just now, and drained nothing."""

    def given(cell: Cell) -> None:
        step = StepRecord(id="s2", rung="e", action="evidence.collect", params={}, at=NOW, outcome="ok")
        cell.run.steps.append(step)

    return given


def service(drained: str, *, mine: bool | None, known: bool = True) -> Given:
    """What the scheduler says now."""

    def given(cell: Cell) -> None:
        site(ask_jobs=True)(cell)
        scheduler_says(known=known)(cell)
        cell.state.jobs["n1"] = replace(cell.state.jobs["n1"], drained=drained, ours=mine)

    return given


def drains_next() -> Given:
    """The run's present rung drains the node."""

    def given(cell: Cell) -> None:
        cell.run.runbook = replace(cell.run.runbook, rungs=(Rung(name="drain", do="scheduler.drain"),))

    return given


IN_SERVICE = service("", mine=False)


@table(
    ("nobody has drained it", [], None),
    ("somebody else had drained it", [drained_by("ann: new DIMMs")], THEIRS),
    ("and a person approved", [drained_by("ann: new DIMMs"), approved()], None),
    ("and the approval is void", [drained_by("ann: new DIMMs"), approved(until=NOW - 1)], THEIRS),
    ("and a person has started the run", [drained_by("ann: new DIMMs"), started_by("bea")], None),
    ("somebody else has drained it, and the run has not", [service("ann: new DIMMs", mine=False)], THEIRS),
    ("and is about to, which tells whose drain it is", [service("ann: new DIMMs", mine=False), drains_next()], None),
    ("and a person approved it", [service("ann: new DIMMs", mine=False), approved()], None),
    ("a prolog of ours has drained it", [service("nvidia-smi failed", mine=True)], None),
    ("our drain stands", [ours(), service("gpuward: gpu-lost", mine=True)], None),
    ("our drain is gone", [ours(), IN_SERVICE], BACK),
    ("our drain is gone, and evidence was collected since", [ours(), IN_SERVICE, collected(), ], BACK),
    ("our drain is gone, and a person approved", [ours(), IN_SERVICE, approved()], None),
    ("the scheduler said so before we drained it", [ours(seconds_ago=0), IN_SERVICE], None),
    ("our drain had failed", [ours("failed"), IN_SERVICE], None),
    ("we have given it back ourselves", [ours(owned=False), IN_SERVICE], None),
    ("it was not asked whose drain it is", [ours(), service("", mine=None)], None),
    (
        "somebody has put a reason of their own in place of ours",
        [ours(), service("ann: new DIMMs", mine=False)],
        ask_a_person("kept_out", f"n1 has a drain of somebody else now (ann: new DIMMs): {WORK}"),
    ),
)  # fmt: skip
def test_kept_out(givens: list[Given], answer: Verdict | None) -> None:
    """Law 3: not under the hands of somebody, nor over the jobs that they have let in, without an approval."""
    assert Cell(*givens).asks(gates.kept_out) == answer
