"""A site gives hands to an agent that may have been taken over: as root it takes nothing over from its folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent import config_file
from tests.security.units import AGENT, HANDS, settings

OBSERVER = 65_533


@pytest.mark.root
def test_root_starts_in_no_folder_of_another_user() -> None:
    """Links where its files would be, and keys to obey: it says what to do, touches nothing, and does not try again."""
    site = Path(tempfile.mkdtemp(prefix="given-hands-"))
    try:
        data, victim = site / "data", site / "victim"
        data.mkdir()
        victim.write_text("root's alone")
        for name in ("lock", "trusted.json", "journal.jsonl.part", "spool.db", "last_known.json.part"):
            (data / name).symlink_to(victim)
        os.chown(data, OBSERVER, OBSERVER)
        command = [sys.executable, "-m", "agent", "run", "--set", f"data_dir={data}", "--set", "node=n1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, done.stderr
        assert "belongs to user 65533" in done.stderr
        assert victim.read_text() == "root's alone"
        assert victim.stat().st_uid == 0
    finally:
        shutil.rmtree(site)


def test_hands_have_a_data_folder_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit's folder is where the agent keeps its data, unless agent.toml says otherwise; with hands it is another one."""
    *_, with_hands = settings(HANDS)["StateDirectory"].split()
    assert with_hands != settings(AGENT)["StateDirectory"]
    assert "chown" not in HANDS.read_text()
    monkeypatch.setenv("STATE_DIRECTORY", f"/var/lib/{with_hands}")
    assert config_file.load(None, {"node": "n1"}).data_dir == Path("/var/lib/gpuward-agent-hands")
    assert config_file.load(None, {"node": "n1", "data_dir": "/srv/x"}).data_dir == Path("/srv/x")
    monkeypatch.delenv("STATE_DIRECTORY")
    assert config_file.load(None, {"node": "n1"}).data_dir == Path("/var/lib/gpuward-agent")
