"""The fuzzer's targets stand: every seed, mutations of it without the fuzzer, and one second with it where it is installed."""

import importlib.util
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import SEEDS, TARGETS, attempt

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_their_mutations(name: str) -> None:
    """Bytes flipped, cut out, doubled and mixed among seeds, the same ones in every run."""
    chance = random.Random(name)
    for seed in SEEDS:
        attempt(TARGETS[name], seed)
        for _ in range(300):
            data = bytearray(seed.encode())
            for _ in range(chance.randrange(1, 6)):
                at = chance.randrange(len(data) + 1)
                match chance.randrange(4):
                    case 0:
                        data[at : at + 1] = bytes([chance.randrange(256)])
                    case 1:
                        del data[at : at + chance.randrange(1, 20)]
                    case 2:
                        data[at:at] = data[at : at + 30] * chance.randrange(1, 20)
                    case _:
                        data[at:at] = chance.choice(SEEDS).encode()[: chance.randrange(1, 40)]
            attempt(TARGETS[name], bytes(data).decode("utf-8", "replace"))


def test_make_fuzz_runs_every_target() -> None:
    """A target that the Makefile does not name is never fuzzed."""
    (named,) = re.findall(r"for target in ([a-z_ ]+);", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert named.split() == list(TARGETS), "Makefile: fuzz: for target in"


@pytest.mark.optional("atheris")
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed: make fuzz does it"
)
def test_the_fuzzer_runs(tmp_path: Path) -> None:
    """`make fuzz`, for a second."""
    command = [sys.executable, "-m", "tests.fuzz", "kernel_line", "1"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert b"number_of_executed_units" in done.stderr
