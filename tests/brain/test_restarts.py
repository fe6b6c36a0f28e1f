"""An agent starts again: what was there is there until something that was looked at says that it is well."""

from pathlib import Path
from typing import Any

import pytest

from brain.adapters.pack import load
from tests.brain.world import Story

ROOT = Path(__file__).parents[2]
STARTED: dict[str, Any] = {"version": "0.1.0", "kernel": "6.1.0", "gpus": 8}
OFF: dict[str, Any] = {"well": False, "synchronised": False, "offset_s": 0.0, "max_error_s": 16.0}
RIGHT = {**OFF, "well": True, "synchronised": True}
LOW: dict[str, Any] = {"low": True, "available_mb": 5, "total_mb": 1000}
HUNG: dict[str, Any] = {"call": "nvmlDeviceGetTemperature", "waited_s": 10.0, "times": 1}
VERSIONS: dict[str, Any] = {"client": "570.86.10", "module": "550.54.15"}
Fact = tuple[str, dict[str, Any]]


@pytest.mark.parametrize(
    ("symptom", "fact", "well"),
    [
        ("clock_off", ("node.clock", OFF), ("node.clock", RIGHT)),
        ("memory_short", ("node.memory", LOW), ("node.memory", {**LOW, "low": False})),
        ("module_missing", ("node.module", {"module": "nvidia", "loaded": False}),
         ("node.module", {"module": "nvidia", "loaded": True})),
        ("nvml_hung", ("nvml.hung", HUNG), ("nvml.answers", {"after_s": 0.0, "open_s": 150.0})),
        ("driver_mismatch", ("gpu.version_mismatch", VERSIONS), ("nvml.answers", {"after_s": 0.0, "open_s": 150.0})),
        ("kernel_broke", ("kernel.oops", {"message": "an oops"}), ("agent.started", {**STARTED, "booted": True})),
    ],
)  # fmt: skip
def test_a_start_ends_nothing(symptom: str, fact: Fact, well: Fact) -> None:
    """Neither a restart of the agent nor that of a machine with the same name."""
    story = Story(load(ROOT / "rules", ROOT / "runbooks"))
    story.event(1, fact[0], "node", **fact[1])
    story.event(500, "agent.started", "node", **STARTED, booted=False)
    story.run(510)
    assert story.engine.state.symptoms[f"{symptom}@node/n1"].active
    story.event(520, well[0], "node", **well[1])
    story.run(530)
    assert f"{symptom}@node/n1" not in story.engine.state.symptoms
