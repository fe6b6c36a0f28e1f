"""A secret that a process may not read: it says as whom it runs, whose the file is, and what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.passable import passable

READ = """
from pathlib import Path
from agent.contract.errors import ConfigError
from agent.shared.secret_file import secret
try:
    secret(Path({path!r}), "nats_seed_file")
except ConfigError as error:
    print(error)
"""


@pytest.mark.root
@pytest.mark.parametrize("locked", ["node.nk", "."])
def test_who_may_not_read_it_is_told_who_may(tmp_path: Path, locked: str) -> None:
    """The agent was started as another user than the one for whom the node has joined."""
    passable(tmp_path)
    key = tmp_path / "node.nk"
    key.write_text("SU...\n")
    key.chmod(0o644)
    (tmp_path / locked).chmod(0o600)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    said = subprocess.run(
        [*nobody, sys.executable, "-c", READ.format(path=str(key))],
        capture_output=True, text=True, check=True, timeout=60, cwd=Path(__file__).parents[2],
    ).stdout  # fmt: skip
    assert f"nats_seed_file: {key} cannot be read: Permission denied: this runs as nobody, " in said
    if locked == ".":
        assert "who may not enter its folder" in said
    else:
        assert "the file is root's (mode 0600): start it as root, or `chown` the file" in said
