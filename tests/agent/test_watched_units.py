"""Which units are watched by default: those that are installed, where systemd runs the machine."""

from pathlib import Path

import pytest

from agent.config_file import load
from agent.host import Host
from agent.sources import sources
from agent.sources.base import SourceSetup
from agent.sources.systemd import installed

UNITS = ("nvidia-persistenced", "slurmd.service", "kubelet")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A live machine whose files lie below the folder."""
    monkeypatch.setattr(Host, "path", lambda _, absolute: tmp_path / absolute.lstrip("/"))
    for file in ("usr/lib/systemd/system/nvidia-persistenced.service", "etc/systemd/system/slurmd.service"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def test_only_installed_units_are_watched(machine: Path) -> None:
    """A unit that is not there cannot fail, and without systemd there is no state to read."""
    assert installed(Host(), UNITS) == ()
    (machine / "run/systemd/system").mkdir(parents=True)
    assert installed(Host(), UNITS) == ("nvidia-persistenced.service", "slurmd.service")
    assert installed(Host(root=Path("/recorded")), UNITS) == ()


def test_sources_follow_the_configuration() -> None:
    """What is not configured is not there: neither D-Bus nor a child for the journal."""
    host = Host(root=Path("/recorded"))
    names = {source.name for source in sources(SourceSetup(host=host, config=load(None)))}
    assert {"bond", "nic", "node", "mounts", "inventory"} <= names
    assert not names & {"systemd", "journal", "joblog"}
    asked = load(None, {"journal_units": "docker.service", "services": "slurmd"})
    assert {"systemd", "journal"} <= {one.name for one in sources(SourceSetup(host=host, config=asked))}
