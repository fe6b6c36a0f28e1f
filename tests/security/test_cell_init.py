"""`gpuward cell init --write`: what brain.toml must say is written there, and nothing else is touched."""

import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.security.test_cell import BIN, Machine

ROOT = Path(__file__).resolve().parents[2]


def test_init_writes_what_it_would_have_printed(tmp_path: Path) -> None:
    """Into the file that came with gpuward, where every other line stays, and the file is read by whom it was."""
    whole = Machine(folder=tmp_path)
    config = tmp_path / "brain.toml"
    before = (ROOT / "deploy/brain.toml").read_text().replace("/var/lib/gpuward", str(whole.data))
    config.write_text(before)
    config.chmod(0o640)
    whole.cell("init", "--name", "localhost", "--name", "brain.example", "--write")
    text = config.read_text()
    assert tomllib.loads(text) == tomllib.loads(before) | {
        "nats": {"embedded": {"host": "0.0.0.0", "port": 4222, "nodes": {}}},
        "console": {
            "host": "0.0.0.0",
            "hosts": ["localhost", "brain.example"],
            "tls_cert_file": str(whole.data / "cell/server.pem"),
            "tls_key_file": str(whole.data / "cell/server.key"),
        },
    }
    pairs = zip(text.splitlines(), before.splitlines(), strict=True)
    assert sum(now != then for now, then in pairs) == 5
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "console", ['console = { host = "127.0.0.1" }', "[console]\nhosts = [\n  'old.example',\n]"]
)
def test_what_init_cannot_write_is_left_to_a_person(tmp_path: Path, console: str) -> None:
    """TOML of another form is not guessed at: it says what to write, and neither file nor folder is made."""
    whole = Machine(folder=tmp_path)
    config = tmp_path / "brain.toml"
    config.write_text(f'data_dir = "{whole.data}"\n{console}\n')
    before = config.read_text()
    said = whole.cell("init", "--name", "brain.example", "--write", status=2)
    assert 'hosts = ["brain.example"]' in said
    assert config.read_text() == before
    assert not whole.data.exists()


def test_a_full_disk_is_named_with_its_file(tmp_path: Path) -> None:
    """Not as if what the command prints could not be written; and what was there stays."""
    whole = Machine(folder=tmp_path)
    whole.init()
    before = {path: path.read_bytes() for path in whole.data.rglob("*") if path.is_file()}
    for what, file in (("server", "cell/server.key"), ("signing", "signing.key")):
        argv = [str(BIN / "gpuward"), "cell", "rotate", what, "--config", str(tmp_path / "brain.toml")]
        # No file may have a byte, as on a disk that is full.
        full = ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', *argv]
        done = subprocess.run(full, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, done.stderr
        assert str(whole.data / file) in done.stderr
        assert "File too large" in done.stderr
        assert {path: path.read_bytes() for path in before} == before
