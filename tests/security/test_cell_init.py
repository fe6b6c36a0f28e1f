"""`gpuward cell init --write`: what brain.toml must say is written there, and nothing else is touched."""

import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.security.test_cell import BIN, Machine, machine

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


def test_a_machine_with_an_address_of_ipv6_listens_there(tmp_path: Path) -> None:
    """A node that reaches the brain by such an address is let in, and so is one by IPv4: NATS and console listen to both."""
    with machine(tmp_path) as whole:
        whole.stop_brain()
        config = tmp_path / "brain.toml"
        config.write_text(config.read_text().replace('host = "127.0.0.1"', 'host = "::"'))
        whole.start_brain()
        for node, host in (("n6", "[::1]"), ("n4", "127.0.0.1")):
            whole.join(node, whole.cell("token", "--url", f"https://{host}:{whole.port}").splitlines()[0])
            assert f"tls://{host}:{whole.nats_port}" in (tmp_path / node / "agent.toml").read_text()
            whole.start_agent(node)
        for node in ("n6", "n4"):
            whole.until(lambda node=node: whole.beat_age_s(node) < 5, f"{node} is heard")


def test_init_for_an_address_of_ipv6_says_so(tmp_path: Path) -> None:
    """What it prints, and what it writes."""
    whole = Machine(folder=tmp_path)
    (tmp_path / "brain.toml").write_text(f'data_dir = "{whole.data}"\n')
    assert whole.cell("init", "--name", "2001:db8::7").count('host = "::"') == 2


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


def test_a_brain_toml_that_cannot_be_written_makes_no_cell(tmp_path: Path) -> None:
    """/etc can only be read, say: were the authority made before, a second try would be refused, and nobody would be told
    any more what brain.toml needs. It can be said again when the file can be written, or without --write.
    """
    whole = Machine(folder=tmp_path)
    config = tmp_path / "brain.toml"
    config.write_text(f'data_dir = "{whole.data}"\n')
    in_the_way = tmp_path / "brain.toml.draft"
    in_the_way.mkdir()
    said = whole.cell("init", "--name", "brain.example", "--write", status=2)
    assert str(in_the_way) in said
    assert not (whole.data / "cell/ca.pem").exists()
    assert "[console]" in whole.cell("init", "--name", "brain.example")


def test_a_cell_that_cannot_be_made_leaves_brain_toml_as_it_was(tmp_path: Path) -> None:
    """Neither the keys of a certificate that is not there, nor a draft of them."""
    whole = Machine(folder=tmp_path)
    config = tmp_path / "brain.toml"
    config.write_text(f'data_dir = "{whole.data}"\n')
    before = config.read_text()
    whole.data.mkdir()
    (whole.data / "cell").write_text("in the way")
    assert "cell" in whole.cell("init", "--name", "brain.example", "--write", status=2)
    assert config.read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["brain", "brain.toml"]


def test_a_full_disk_is_named_with_its_file(tmp_path: Path) -> None:
    """Not as if what the command prints could not be written; and what was there stays."""
    whole = Machine(folder=tmp_path)
    whole.init()
    before = {path: path.read_bytes() for path in whole.data.rglob("*") if path.is_file()}
    for what, file in (("server", "cell/next-server.key"), ("signing", "signing.key")):
        argv = [str(BIN / "gpuward"), "cell", "rotate", what, "--config", str(tmp_path / "brain.toml")]
        # No file may have a byte, as on a disk that is full.
        full = ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', *argv]
        done = subprocess.run(full, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, done.stderr
        assert str(whole.data / file) in done.stderr
        assert "File too large" in done.stderr
        assert {path: path.read_bytes() for path in before} == before
