"""Each recorded machine leads to exactly what is in tests/fixtures/golden (regenerate: python -m tests.agent.golden)."""

import json

import pytest

from agent.contract import kinds
from agent.contract.components import check
from agent.contract.messages import Severity, UnsentEvent
from tests.agent.golden import FIXTURES, MACHINES, golden, reported

HEALTHY = (
    "h100-node",
    "a100-node",
    "cpu-node",
    "mi300x-node",
    "ascend-910b-node",
    "gb200-tray",
    "roce-storage-node",
)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_recorded_machine_reports_what_it_reported(machine: str) -> None:
    """To the letter. A difference is a bug, or a change that its commit explains."""
    assert reported(machine) == golden(machine).read_text()


def test_there_is_no_golden_file_without_a_machine() -> None:
    """A machine that was removed leaves nothing behind."""
    assert {path.stem for path in (FIXTURES / "golden").iterdir()} == set(MACHINES)


@pytest.mark.parametrize("machine", HEALTHY)
def test_a_healthy_machine_only_reports_what_it_is(machine: str) -> None:
    """Its inventory and, where it is asked for, its settings; nothing else."""
    kinds_said = {json.loads(line)["kind"] for line in reported(machine).splitlines()}
    assert "node.inventory" in kinds_said
    assert kinds_said <= {"node.inventory", "node.inventory.gpu", "node.inventory.nic", "node.settings"}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_event_keeps_the_contract(machine: str) -> None:
    """Declared kinds and fields, real components."""
    for line in golden(machine).read_text().splitlines():
        event = json.loads(line)
        check(event["component"])
        unsent = UnsentEvent(
            kind=event["kind"],
            component=event["component"],
            severity=Severity(event["severity"]),
            data=event["data"],
        )
        kinds.check(unsent)
