"""What the agent says of its machine when it starts."""

import logging
from pathlib import Path

import pytest

from agent.config import AgentConfig
from agent.contract import kinds
from agent.contract.messages import Severity
from agent.host import Host
from agent.started import HOST_FILE, started


@pytest.mark.parametrize(
    ("joined", "name", "says"),
    [
        ("gpu-1", "gpu-1", False),
        ("gpu-1", "GPU-1.cluster.example.com", False),
        ("gpu-1.cluster.example.com", "gpu-1", False),
        ("gpu-1", "gpu-9", True),
        ("gpu-1", "localhost", False),  # it has none yet
        ("", "gpu-9", None),  # it has joined with an agent that did not take note
    ],
)
def test_a_machine_that_was_renamed_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, joined: str, name: str, says: bool | None
) -> None:
    """It goes on under the name in agent.toml, by which schedulers and BMCs may mean another machine."""
    file = tmp_path / "proc/sys/kernel/hostname"
    file.parent.mkdir(parents=True)
    file.write_text(f"{name}\n")
    if joined:
        (tmp_path / HOST_FILE).write_text(f"{joined}\n")
    with caplog.at_level(logging.WARNING):
        event = started(
            Host(root=tmp_path),
            AgentConfig(node="gpu-1", nats_seed_file=str(tmp_path / "node.nk")),
            booted=False,
        )
    kinds.check(event)
    assert event.data.get("renamed") is says
    assert event.severity is (Severity.WARNING if says else Severity.INFO)
    assert ("is called gpu-9 and joined as gpu-1" in caplog.text) == bool(says)
