"""What no backtest may do: act (law 9), look at the clock, or depend on chance."""

import os
import subprocess
import sys
from pathlib import Path

from tests.brain.backtest.kit import DOWN, HELLO, LOST, UP, folder, syslog

ACTUATORS = (
    "nats",
    "aiohttp",
    "dbus_fast",
    "apprise",
    "obstore",
    "brain.adapters.nodes",
    "brain.notify",
    "brain.actions",
    "brain.leader",
    "brain.ufm",
    "agent.actions",
    "agent.commands",
    "agent.sources",
)
RUN = "import sys; from brain.cli.backtest_command import backtest; backtest(sys.argv[1:], standalone_mode=False)"


def ran(code: str, *args: str, seed: str = "0") -> str:
    env = os.environ | {
        "PYTHONHASHSEED": seed,
        "TZ": "Asia/Shanghai" if seed == "1" else "UTC",
        "COLUMNS": "100",
    }
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, env=env
    ).stdout


def test_nothing_that_acts_is_even_imported(tmp_path: Path) -> None:
    """Law 9, by construction: of a folder and of a log, with everything that the command loads on its way."""
    logs = folder(tmp_path, {"n1.log": syslog("n1", ("03:12:00", LOST))})
    loaded = ran(f"{RUN}; print('LOADED', *sys.modules)", str(logs)).partition("LOADED")[2].split()
    assert "brain.core.engine" in loaded
    assert "brain.cli.backtest.recorded" in loaded
    assert [name for name in loaded if name.startswith(ACTUATORS)] == []


def test_the_same_bytes_whatever_hashes_and_zone_are(tmp_path: Path) -> None:
    """As on another machine, in another process, and with another Python."""
    logs = {
        f"n{n}.log": syslog(
            f"n{n}", ("03:11:00", UP), (f"03:12:0{n}", DOWN), ("03:20:00", LOST), ("05:00:00", HELLO)
        )
        for n in range(1, 6)
    }
    where = str(folder(tmp_path, logs))
    assert ran(RUN, where, seed="1") == ran(RUN, where, seed="2")
    assert ran(RUN, where, "--json", seed="1") == ran(RUN, where, "--json", seed="2")
