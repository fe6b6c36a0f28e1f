"""What the tests install for themselves, where two runs of them begin at about the same time."""

import subprocess
import threading
from pathlib import Path

import pytest

PREPARE = Path(__file__).parent / "older_nats/prepare.sh"
RUNS, APART_S = 4, 0.4


@pytest.mark.root
@pytest.mark.timeout(300)
def test_each_run_finds_what_it_has_waited_for(tmp_path: Path) -> None:
    """None removes what another one is making, or has made."""
    folder, statuses = tmp_path / "nats", [1] * RUNS

    def run(number: int) -> None:
        if subprocess.run([PREPARE, folder], capture_output=True, check=False, timeout=240).returncode == 0:
            statuses[number] = subprocess.run(
                [folder / "bin/nats-server", "--version"], check=False
            ).returncode

    runs = [threading.Timer(number * APART_S, run, (number,)) for number in range(RUNS)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert statuses == [0] * RUNS
