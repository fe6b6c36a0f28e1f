"""A step's result has one shape, whether a node or the brain itself publishes it."""

import pytest

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Scalar, Severity
from brain.core.inputs import StepProgress, StepResult, progress_of_node, result_of_brain, result_of_node


def event(kind: str, **data: Scalar) -> Event:
    """What a node publishes."""
    return Event(
        id="n1:s:7", node="n1", kind=kind, component="node", severity=Severity.INFO, at="2026-01-01T00:00:00Z",
        age_s=0.0, boot="b", count=1, data=data, evidence="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "outcome"),
    [(one.value, one) for one in Outcome] + [("exploded", Outcome.UNKNOWN), (True, Outcome.UNKNOWN)],
)
def test_a_nodes_result_is_read_whatever_its_version_says(said: Scalar, outcome: Outcome) -> None:
    """An outcome of a newer agent counts as one that nobody knows; what else the node reports is kept."""
    found = result_of_node(
        event(
            "command.result",
            command="r1.s0.a1",
            outcome=said,
            why="did it",
            took_s=2.5,
            evidence="n1/r1.s0.a1",
        )
    )
    assert found == StepResult(
        id="n1:s:7",
        step="r1.s0.a1",
        outcome=outcome,
        why="did it",
        data={"took_s": 2.5, "evidence": "n1/r1.s0.a1"},
        node="n1",
    )


def test_a_result_without_its_fields_belongs_to_no_step() -> None:
    """It is read all the same: a broken agent must not end the brain."""
    assert result_of_node(event("command.result")) == StepResult(
        id="n1:s:7", step="", outcome=Outcome.UNKNOWN, why="", node="n1"
    )


@pytest.mark.parametrize(
    ("elapsed_s", "read_s"), [(20.0, 20.0), (20, 20.0), ("soon", 0.0)], ids=["float", "int", "text"]
)
def test_a_sign_of_life_is_read(elapsed_s: Scalar, read_s: float) -> None:
    """With what the node is doing, when it says so."""
    found = progress_of_node(
        event("command.progress", command="r1.s0.a1", elapsed_s=elapsed_s, text="starting slurmd.service")
    )
    assert found == StepProgress(
        id="n1:s:7", step="r1.s0.a1", elapsed_s=read_s, text="starting slurmd.service", node="n1"
    )


def test_other_events_are_no_answers() -> None:
    """Even with the same fields."""
    other = event("gpu.lost", command="r1.s0.a1", outcome="ok", why="x")
    assert result_of_node(other) is None
    assert progress_of_node(other) is None


def test_a_brain_publishes_one_result_for_each_step_and_epoch() -> None:
    """The log drops the second copy by its id; the next leader's answer is another one."""
    first = result_of_brain("r1.s0.a1", 3, Outcome.FAILED, "x" * 10_000, {"power": "Off"})
    assert first.id == result_of_brain("r1.s0.a1", 3, Outcome.OK, "again").id
    assert first.id != result_of_brain("r1.s0.a1", 4, Outcome.FAILED, "x").id
    assert (first.step, first.outcome, first.data) == ("r1.s0.a1", Outcome.FAILED, {"power": "Off"})
    assert len(first.why) < 10_000
