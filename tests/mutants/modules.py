"""Which modules are mutated, and the quick tests that must notice. The one place to change when a module moves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module of the safety core."""

    name: str
    path: str
    # Test files, quick ones: each mutant is tried with those of their tests that reach its function. The recorded
    # logs (tests/replay) and the random storms are none of them: they would notice any change, and say of none why
    # it is wrong.
    tests: tuple[str, ...]


BRAIN = "tests/brain"


def core(*names: str) -> tuple[str, ...]:
    """Tests of the core by their names."""
    return tuple(f"{BRAIN}/core/test_{name}.py" for name in names)


GATES = core(
    "gates_of_operators",
    "gates_alone",
    "gates_of_evidence",
    "gates_of_counts",
    "gates_of_jobs",
    "gates_over_time",
    "gates_of_one_cause",
    "gates_together",
    "gates_of_drains",
    "gates_of_waits",
    "steps_patience",
    "lost_drains",
)

INCIDENTS = core("incidents", "incidents_over", "incidents_again", "explained")
RUNS = core(
    *("runs", "runs_trail", "runs_way_back", "runs_at_gates", "runs_ends"),
    *("explained", "steps_patience", "left_drained", "incidents_again"),
)
RUN_MODULES = ("runs", "run_states", "holding", "way_back", "blame", "observing")
STEPS = core(
    *("steps", "steps_leaving", "steps_answers", "steps_looks"),
    *("steps_patience", "steps_verified", "steps_unheard", "steps_trail"),
)
STEP_MODULES = ("steps", "patience", "senders", "drain_results")
SYMPTOMS = core("symptoms", "symptom_facts", "symptom_ends", "spreads")


def agent(*names: str) -> tuple[str, ...]:
    """Tests of the agent by their names."""
    return tuple(f"tests/agent/test_{name}.py" for name in names)


MODULES = (
    Module(
        name="gates",
        path="brain/core/healing/gates.py",
        tests=(*GATES, "tests/brain/test_closed_causes.py"),
    ),
    Module(name="budgets", path="brain/core/healing/budgets.py", tests=GATES),
    Module(name="limits", path="brain/core/healing/limits.py", tests=GATES),
    Module(name="approvals", path="brain/core/healing/approvals.py", tests=core("approvals")),
    Module(
        name="escalation",
        path="brain/core/paging/escalation.py",
        tests=core("escalation", "escalation_in_storms", "who_hears", "news", "digests"),
    ),
    Module(
        name="grouping",
        path="brain/core/paging/grouping.py",
        tests=core("grouping", "grouping_of_one_node", "grouping_ends", "digests"),
    ),
    Module(name="hours", path="brain/core/paging/hours.py", tests=core("digests")),
    Module(
        name="queue", path="brain/core/paging/queue.py", tests=core("delivery_queue", "delivery_of_groups")
    ),
    Module(name="incidents", path="brain/core/incidents.py", tests=INCIDENTS),
    Module(name="left_drained", path="brain/core/left_drained.py", tests=(*INCIDENTS, *core("left_drained"))),
    Module(name="recurrence", path="brain/core/recurrence.py", tests=INCIDENTS),
    *(Module(name=name, path=f"brain/core/healing/{name}.py", tests=RUNS) for name in RUN_MODULES),
    *(Module(name=name, path=f"brain/core/healing/{name}.py", tests=STEPS) for name in STEP_MODULES),
    Module(name="told", path="brain/core/healing/told.py", tests=core("told_words")),
    Module(name="drains", path="brain/core/healing/drains.py", tests=core("drains")),
    Module(name="verify", path="agent/commands/verify.py", tests=agent("verify")),
    Module(name="journal", path="agent/commands/journal.py", tests=agent("command_journal")),
    Module(
        name="runner",
        path="agent/commands/runner.py",
        tests=agent("runner_reports", "runner_restart", "runner"),
    ),
    Module(name="commander", path="agent/commands/commander.py", tests=agent("commander_answers")),
    Module(name="symptoms", path="brain/core/faults/symptoms.py", tests=SYMPTOMS),
    Module(name="facts", path="brain/core/faults/facts.py", tests=SYMPTOMS),
    Module(
        name="spread",
        path="brain/core/faults/spread.py",
        tests=core("spreads", "spread_counts", "symptom_ends"),
    ),
    Module(name="drift", path="brain/core/faults/drift.py", tests=core("drift")),
)
