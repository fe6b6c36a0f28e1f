"""A command that people type loads no more than it needs: what stands here takes tenths of a second each."""

import subprocess
import sys

import pytest

RUN = """
import sys
from brain.__main__ import main
try: main()
finally: sys.stderr.write('\\n'.join(sys.modules))
"""
HEAVY = {
    "aiohttp",
    "asyncio",
    "brain.core.engine",
    "cryptography",
    "durable_rules_engine",
    "nats",
    "pydantic",
}


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ((), set()),
        (("incidents",), set()),
        (("cell",), {"cryptography", "pydantic"}),  # it makes certificates, and reads brain.toml
        (("cell", "rotate"), {"cryptography", "pydantic"}),
    ],
    ids=["gpuward", "incidents", "cell", "cell rotate"],
)
def test_a_command_loads_what_it_needs(command: tuple[str, ...], needs: set[str]) -> None:
    """No more than that of what is heavy; and that, so that the list stays true."""
    argv = [sys.executable, "-c", RUN, *command, "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert HEAVY & set(done.stderr.split()) == needs
