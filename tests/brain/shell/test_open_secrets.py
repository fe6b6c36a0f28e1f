"""A key that every user of the machine can read is used, and somebody is told which file it is and what to say."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.shared.secret_file import nkey_seed
from agent.uplink.connection import node_connection
from brain.adapters import keys, nkey
from brain.adapters.nkey import NkeyKind
from brain.cell.authority import Authority


def authority(folder: Path) -> Authority:
    """Made once."""
    found = Authority(folder)
    if not found.exists():
        found.make("default", ["brain.example"], time.time())
    return found


READERS: dict[str, Callable[[Path], object]] = {
    "signing.key": keys.load_signer,
    "brain.nk": keys.load_nkey,
    "node.nk": lambda path: (nkey.load_or_make(path, NkeyKind.USER), nkey_seed(path, "nats_seed_file")),
    "operator.nk": lambda path: nkey.load_or_make(path, NkeyKind.OPERATOR),
    "ca.key": lambda path: authority(path.parent).warn_of_open_keys(),
    "server.key": lambda path: authority(path.parent).warn_of_open_keys(),
}


@pytest.mark.parametrize("name", READERS)
def test_an_open_key_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """As it is made it is nobody else's; a restored one may be."""
    file, read = tmp_path / name, READERS[name]
    read(file)
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)  # root's, for the service's group
    read(file)
    assert not caplog.records
    file.chmod(0o644)
    for _ in range(3):
        read(file)
    (told,) = caplog.messages
    assert told.startswith(f"{file} has mode 0644")
    assert f"`chmod 600 {file}`" in told


def test_a_node_s_jwt_is_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`gpuward-agent join` writes it for everybody: it is worth nothing without the seed, and nobody is told of it."""
    seed, jwt = tmp_path / "node.nk", tmp_path / "node.jwt"
    nkey.load_or_make(seed, NkeyKind.USER)
    jwt.write_text("eyJ0eXAi.of.a-node\n")
    jwt.chmod(0o644)
    node_connection(["nats://127.0.0.1:4222"], "n1", seed_file=str(seed), jwt_file=str(jwt))
    assert not caplog.records
