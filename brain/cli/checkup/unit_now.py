"""What systemd says of the brain's unit on this machine: was it stopped, or has it died, and of what?"""

import subprocess
from contextlib import suppress
from pathlib import Path

from agent.contract.inert import inert
from agent.shared import unit_start
from agent.shared.unit_start import UnitStart
from agent.shared.words import many, t
from brain.cli.brain_toml import DEFAULT_CONFIG

UNIT = "gpuward.service"
_WITHIN_S = 10.0
_LINES = 30  # of its log, the newest
_MOST = 400  # characters of what it said last
_OURS = "gpuward: "  # as a brain that ends says why


def runs_here() -> bool:
    """Is the brain a unit of this machine?"""
    return unit_start.at_boot(UNIT) is not UnitStart.NONE


def why_silent(file: Path | None) -> tuple[str, str] | None:
    """Why no brain answers, and who must do what; None: systemd does not run the one of this configuration, or does not say."""
    if file not in (None, DEFAULT_CONFIG) or not runs_here():
        return None
    lines = _output("systemctl", "show", "--property=ActiveState,NRestarts", UNIT)
    told = dict(line.split("=", 1) for line in lines if "=" in line)
    state, again = told.get("ActiveState", ""), told.get("NRestarts", "0")
    restarts = int(again) if again.isdecimal() else 0
    if state in ("inactive", "deactivating"):
        return t("{unit} is stopped", unit=UNIT), "`systemctl start gpuward`"
    if state == "failed":
        return (
            t(
                "{unit} has failed, and systemd does not start it again{words}",
                unit=UNIT,
                words=_last_words(),
            ),
            t("correct what it says, then `systemctl restart gpuward`"),
        )
    if restarts and state in ("active", "activating"):
        return (
            t(
                "{unit} does not stay up: systemd has started it again {times}{words}",
                unit=UNIT,
                times=many(restarts, "time"),
                words=_last_words(),
            ),
            t("mend what it says: systemd starts it again by itself; all of it: `journalctl -u gpuward`"),
        )
    return None


def _last_words() -> str:
    """What it said last, as the end of a sentence: of a brain that ends the reason; empty where nobody may read the journal."""
    asked = (
        "journalctl",
        f"--lines={_LINES}",
        "--output=cat",
        "--no-pager",
        "--quiet",
        f"_SYSTEMD_UNIT={UNIT}",
    )
    lines = [line for line in _output(*asked) if line.strip()]
    found = next((line for line in reversed(lines) if line.startswith(_OURS)), lines[-1] if lines else "")
    return t("; it said last: {words}", words=inert(found.removeprefix(_OURS))[:_MOST]) if found else ""


def _output(*argv: str) -> list[str]:
    """The lines that a command prints; none where it cannot be had."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(argv, capture_output=True, timeout=_WITHIN_S, check=False)
        return done.stdout.decode(errors="replace").splitlines()
    return []
