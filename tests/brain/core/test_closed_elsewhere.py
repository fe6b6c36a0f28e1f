"""What an operator has closed somewhere else costs a storm nothing."""

from typing import Any

import pytest

from brain.core import incidents
from tests.benchmarks.engine import FAULTS, event_of, leading_engine, pack

NODES = 300


@pytest.fixture
def renewed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The symptoms that incidents took over anew."""
    found: list[Any] = []
    real = incidents.renewed

    def counted(ctx: Any, incident: Any, symptom: Any) -> None:
        found.append(symptom)
        real(ctx, incident, symptom)

    monkeypatch.setattr(incidents, "renewed", counted)
    return found


def _storm(dismissed: dict[str, float]) -> None:
    """So many nodes lose a link within a second."""
    engine = leading_engine(pack(), NODES)
    engine.state.dismissed |= dismissed
    for number in range(NODES):
        engine.handle(event_of(number, 2, FAULTS[1]), 10 + number / NODES)
    engine.close()


def test_a_closed_incident_of_another_fault_leaves_a_storm_as_cheap_as_it_was(renewed: list[Any]) -> None:
    """The shared cause is judged twice for each doubling, not with each of its nodes, although somebody closed the incident of
    a GPU that lasts.
    """
    _storm({"gpu-memory-replace@gpu/n1/0000:3b:00": 9.0})
    assert 0 < len(renewed) < NODES / 5


def test_one_that_counts_the_same_symptom_is_looked_at_with_each_node(renewed: list[Any]) -> None:
    """A closed place of the same fault is open again with the next node that shows it."""
    _storm({"shared-link-down-rack@rack/r1": 9.0})
    assert len(renewed) > NODES / 2
