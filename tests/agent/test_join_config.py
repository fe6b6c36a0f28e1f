"""`gpuward-agent join` writes into an agent.toml that people have edited: its keys, and nothing else."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent import config_file
from agent.cli import join
from tests.passable import passable

KEY = "A" * 43 + "="
VALUES: dict[str, Any] = {
    "cell": "c1",
    "node": "gpu-1",
    "nats_url": "tls://brain.example.com:4222",
    "nats_seed_file": "/etc/gpuward/node.nk",
    "nats_jwt_file": "",
    "trusted_keys": {"k1": KEY},
    "trust_serial": 3,
}
SHIPPED = (Path(__file__).resolve().parents[2] / "deploy/agent.toml").read_text()
COMMENTS = '# trust_serial = 0\n# allow = ["agent.look", "evidence.collect"]\n# services = []\n'
EDITED = {
    "nothing": "",
    "as it is shipped": SHIPPED,
    "joined before": 'cell = "old"\nnode = "gpu-1"\ntrusted_keys = { old = "'
    + KEY
    + '" }\ntrust_serial = 1\n',
    "keys as a table": f'beat_interval_s = 1.0\n[trusted_keys]\nold = "{KEY}"\n',
    "keys as a table, and comments behind it": f'[trusted_keys]\nold = "{KEY}"\n{COMMENTS}',
    "keys as a table between others": f'[trusted_keys]\nold = "{KEY}"\n# mine\n[evidence_tools]\nip = "/sbin/ip"\n',
    "keys with dots": f'trusted_keys.old = "{KEY}"\nallow = [\n  "agent.look",\n]\n',
    "a table before the commented defaults": f'[evidence_tools]\nip = "/sbin/ip"\n# node = ""\n# cell = ""\n{COMMENTS}',
    "the shipped file with a table on top": f'[evidence_tools]\nip = "/sbin/ip"\n\n{SHIPPED}',
    "spaces": '  node   =   "gpu-1"  # mine\n\tcell="old"\n',
    "lists over lines": 'mounts = [\n  "/a",\n  "/b", # [c]\n]\n# node = ""\n',
}


@pytest.mark.parametrize("before", EDITED.values(), ids=EDITED)
def test_only_its_keys_are_another(tmp_path: Path, before: str) -> None:
    """What the file says otherwise stays, comments of people too, and the agent can start with it; again it is the same."""
    file = tmp_path / "agent.toml"
    file.write_text(before)
    join._write(file, VALUES)
    after = file.read_text()
    assert tomllib.loads(after) == tomllib.loads(before) | VALUES
    assert config_file.load(file).node == "gpu-1"
    kept = {line for line in before.splitlines() if line.startswith("#") and "=" not in line}
    assert kept <= {*after.splitlines()}
    join._write(file, VALUES)
    assert file.read_text() == after


@pytest.mark.root
def test_who_may_not_write_there_is_told_to_be_root(tmp_path: Path) -> None:
    """Before the token is used, which is good once; and nothing of a key's owner, whom there is nobody to be."""
    passable(tmp_path)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    argv = [sys.executable, "-m", "agent", "join", "gwj_x", "--config", str(tmp_path / "gpuward/agent.toml")]
    done = subprocess.run(
        [*nobody, *argv], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2]
    )
    said = (done.returncode, done.stderr)
    assert said == (2, f"gpuward-agent: {tmp_path} is not yours to write: type it as root\n")
    assert list(tmp_path.iterdir()) == []
