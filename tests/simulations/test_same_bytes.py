"""The same seed gives the same bytes on Python 3.11 and 3.12: months, sweeps, logs, scenarios, trees of runbooks.

The other Python's dependencies are those that deploy/dev/components.sh has installed. In CI it is a failure if they are not there
although the machine has a Python 3.12.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.real.packages_kit import pythons

ROOT = Path(__file__).resolve().parents[2]
OTHER = "3.12"
THERE = Path(os.environ.get("GPUWARD_PREPARED", "/var/cache")) / f"gpuward-python{OTHER}"
WITHIN_S = 300.0
MONTH = ("llama3-54d", "--nodes", "64", "--days", "10", "--seed", "5")


@cache
def can_be_had() -> bool:
    return OTHER in pythons()


pytestmark = [] if can_be_had() else [pytest.mark.optional(f"a Python {OTHER}")]


def printed(python: Path, *args: str, salt: str) -> bytes:
    """What `gpuward simulate` of this tree prints on that Python."""
    env = os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-m", "brain", "simulate", *args],
        cwd=ROOT,
        env=env,
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def other() -> Path:
    """The other Python, with the pinned dependencies."""
    if not (THERE / "installed.txt").exists():
        pytest.skip(f"needs the dependencies on Python {OTHER}: deploy/dev/components.sh installs them")
    lock = (ROOT / "deploy/release/brain.lock").read_text()
    assert (THERE / "installed.txt").read_text() == lock, (
        "the pinned versions have changed: deploy/dev/components.sh"
    )
    return THERE / "bin/python"


@pytest.mark.parametrize(
    "args",
    [
        (*MONTH, "--json"),
        ("delta-a100", "--nodes", "16", "--days", "6", "--sweep", "gates=on,off", "--seeds", "2", "--json"),
        ("psu-with-four-gpus", "--json"),
        ("--runbook", "persistence-on", "--json"),
    ],
    ids=["month", "sweep", "scenario", "runbook"],
)  # fmt: skip
def test_what_is_printed_is_the_same(other: Path, args: tuple[str, ...]) -> None:
    """To the last byte, whatever the order of hashes."""
    here = printed(Path(sys.executable), *args, salt="1")
    assert len(here) > 1000
    assert printed(other, *args, salt="2") == here


def test_the_log_of_a_month_is_the_same(other: Path, tmp_path: Path) -> None:
    """Every input of the engine, at the same time."""
    logs = []
    for salt, python in enumerate((Path(sys.executable), other)):
        file = tmp_path / f"{salt}.log"
        printed(python, *MONTH, "--log", str(file), salt=str(salt))
        logs.append(file.read_bytes())
    assert len(logs[0]) > 50_000
    assert logs[0] == logs[1]
