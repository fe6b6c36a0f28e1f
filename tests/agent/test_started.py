"""What the agent says of its machine when it starts."""

import logging
from pathlib import Path

import pytest

from agent.config import AgentConfig
from agent.contract import kinds
from agent.contract.messages import Severity
from agent.host import Host
from agent.started import FOUND_FILE, HOST_FILE, started


@pytest.mark.parametrize(
    ("joined", "name", "says"),
    [
        ("gpu-1", "gpu-1", False),
        ("gpu-1", "GPU-1.cluster.example.com", False),
        ("gpu-1.cluster.example.com", "gpu-1", False),
        ("gpu-1", "gpu-9", True),
        ("gpu-1", "localhost", False),  # it has none yet
        ("", "gpu-9", False),  # it has joined with an agent that did not take note: this one does
        ("", "localhost", None),
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
            AgentConfig(node="gpu-1", nats_seed_file=str(tmp_path / "node.nk"), data_dir=tmp_path),
            booted=False,
        )
    kinds.check(event)
    assert event.data.get("renamed") is says
    assert event.severity is (Severity.WARNING if says else Severity.INFO)
    assert ("is called gpu-9 and joined as gpu-1" in caplog.text) == bool(says)


def test_who_joined_before_0_2_and_is_renamed_is_told(tmp_path: Path) -> None:
    """As it is called when an agent looks first, it has joined; another name of the node begins anew, as `join` does."""
    file = tmp_path / "proc/sys/kernel/hostname"
    file.parent.mkdir(parents=True)

    def renamed(name: str, node: str = "gpu-1") -> object:
        file.write_text(f"{name}\n")
        config = AgentConfig(node=node, nats_seed_file=str(tmp_path / "node.nk"), data_dir=tmp_path)
        return started(Host(root=tmp_path), config, booted=False).data.get("renamed")

    assert [renamed(name) for name in ("localhost", "gpu-1", "gpu-1.example.com", "gpu-9", "gpu-9", "gpu-1")] == [
        None, False, False, True, True, False,
    ]  # fmt: skip
    (tmp_path / FOUND_FILE).write_bytes(b"\0" * 40)
    assert (renamed("gpu-1"), renamed("gpu-9")) == (False, True), "a damaged note is none"
    assert renamed("gpu-9", node="gpu-9") is False
    (tmp_path / HOST_FILE).write_text("gpu-8\n")
    assert (renamed("gpu-8", node="gpu-9"), renamed("gpu-9", node="gpu-9")) == (False, True)


def test_a_node_that_has_not_joined_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its log else names only a server of the default's that does not listen, which nobody has to start."""
    with caplog.at_level(logging.WARNING):
        started(Host(root=tmp_path), AgentConfig(node="gpu-1", data_dir=tmp_path), booted=False)
    assert "has not joined a cell: nobody hears it before `gpuward-agent join TOKEN`" in caplog.text
