# ruff: noqa: E501  # lines are as they are printed
"""The fabric manager's log on a recorded machine: its errors are events, its chatter is not."""

import asyncio
from pathlib import Path

import pytest

from agent import config_file
from agent.cli import once

LOG = """\
[Nov 20 2026 10:00:00] [INFO] [tid 1200] Connected to 1 node.
[Nov 20 2026 10:00:01] [WARNING] [tid 1200] log file rotated
[Nov 20 2026 10:03:07] [ERROR] [tid 1201] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:C1:00.0 physical id 3 port 33
[Nov 20 2026 10:03:08] [ERROR] [tid 1201] failed to train NVLink connections
"""


@pytest.mark.parametrize("switches", [True, False])
def test_errors_of_the_fabric_manager_are_events(tmp_path: Path, switches: bool) -> None:
    """Read where there are switches, and not where there is neither a switch nor a log."""
    (tmp_path / "proc").mkdir()
    if switches:
        (tmp_path / "var/log").mkdir(parents=True)
        (tmp_path / "var/log/fabricmanager.log").write_text(LOG)
    unsent_events = asyncio.run(once.once(config_file.load(None, {"root": str(tmp_path)})))
    reported = [
        (one.component, one.severity.value, one.data["what"])
        for one in unsent_events
        if one.kind == "fabricmanager.error"
    ]
    assert reported == (
        [("nvswitch/0000:c1:00", "fatal", "nvswitch_fatal"), ("node", "error", "error")] if switches else []
    )
