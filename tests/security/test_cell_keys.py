"""A cell's names, keys and certificates: what root changes, what makes none, and what is exchanged while it runs."""

import base64
import json
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.security.test_cell import Machine, machine

pytestmark = pytest.mark.component("nats-server")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user may enter: pytest's own let no other user through."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.root
def test_what_root_changes_stays_the_brains(open_folder: Path) -> None:
    """The brain runs as a user of its own; an operator types `sudo gpuward cell ...`."""
    whole = Machine(folder=open_folder)
    whole.data.mkdir()
    os.chown(whole.data, 65534, 65534)
    (open_folder / "brain.toml").write_text(f'data_dir = "{whole.data}"\n')
    whole.cell("init", "--name", "localhost")
    whole.cell("token", "--url", "https://localhost:1")
    for file in (whole.data / "cell").iterdir():
        assert file.stat().st_uid == 65534, file
    assert (whole.data / "cell").stat().st_uid == 65534


@pytest.mark.parametrize(
    "name",
    [
        "",
        "brain 1",
        "https://brain:8470",
        "brain:8470",
        "10.0.0.300",
        "-brain",
        "brain..example",
        "*.example",
        "b" * 64,
    ],
)
def test_what_is_no_name_makes_no_authority(tmp_path: Path, name: str) -> None:
    """Nor a folder: the certificate would fit nothing, and nodes would find out."""
    whole = Machine(folder=tmp_path)
    (tmp_path / "brain.toml").write_text(f'data_dir = "{whole.data}"\n')
    said = whole.cell("init", "--name", "brain.example", "--name", name, status=2)
    assert "is neither a name nor an address of this machine" in said
    assert not whole.data.exists()


def test_a_cell_on_loopback(tmp_path: Path) -> None:
    """To try it out: the token leads to this machine."""
    whole = Machine(folder=tmp_path)
    (tmp_path / "brain.toml").write_text(f'data_dir = "{whole.data}"\n')
    said = whole.cell("init", "--name", "127.0.0.1", "--name", "::1")
    assert "hosts = []" in said
    token = whole.cell("token").splitlines()[0]
    body = json.loads(base64.urlsafe_b64decode(token.removeprefix("gwj_") + "=="))
    assert body["u"] == ["https://127.0.0.1:8470"]


def test_a_further_name_takes_none_away(tmp_path: Path) -> None:
    """Nodes that came by the old one would be refused. It says what else must change."""
    whole = Machine(folder=tmp_path)
    whole.init()
    said = whole.cell("rotate", "server", "--name", "brain-2.example")
    assert "for brain-2.example, localhost, brain.example; ends" not in said, "localhost is in each"
    assert "for brain-2.example, brain.example; ends" in said
    assert "console.hosts" in said
    assert "nats_url" in said
    assert json.loads(whole.cell("show", "--json"))["names"] == ["brain-2.example", "brain.example"]
    said = whole.cell("rotate", "server", "--name", "brain-2.example", "--only")
    assert "Gone: brain.example." in said
    assert json.loads(whole.cell("show", "--json"))["names"] == ["brain-2.example"]
    assert "Gone" not in whole.cell("rotate", "server")
    assert "--only needs --name" in whole.cell("rotate", "server", "--only", status=2)


def test_the_brains_key_in_operator_mode_is_not_exchanged(tmp_path: Path) -> None:
    """It would be a user whom the servers do not know: whoever has the operator's key is told."""
    whole = Machine(folder=tmp_path)
    whole.init()
    (tmp_path / "brain.toml").write_text(
        f'data_dir = "{whole.data}"\n[nats]\nurl = "tls://localhost:1"\n[nats.operator]\n'
    )
    assert "your operator's tools" in whole.cell("rotate", "brain", status=2)
    assert not (whole.data / "cell/trust.json").exists()


def test_a_new_certificate_needs_no_restart(tmp_path: Path) -> None:
    """The broker and the console show it; the node stays or comes back by itself; older TLS is refused."""
    with machine(tmp_path) as whole:
        whole.join("gpu-1", whole.token())
        whole.start_agent("gpu-1")
        whole.until(lambda: whole.beat_age_s("gpu-1") < 5, "the node is heard")
        before = whole.status()["started_at"]
        assert "ends" in whole.cell("rotate", "server", "--name", "localhost", "--name", "second.example")
        file = whole.data / "cell/server.pem"
        wanted = x509.load_pem_x509_certificate(file.read_bytes()).serial_number

        def console_has_it() -> bool:
            pem = ssl.get_server_certificate(("localhost", whole.port))
            return x509.load_pem_x509_certificate(pem.encode()).serial_number == wanted

        whole.until(console_has_it, "the console shows the new one")
        log = whole.data / "nats/nats.log"
        whole.until(lambda: "Reloaded: tls" in log.read_text(), "the broker has read the new one")
        whole.until(lambda: whole.beat_age_s("gpu-1") < 2, "the node is heard")
        assert whole.status()["started_at"] == before
        old = ssl.create_default_context(cafile=str(whole.data / "cell/ca.pem"))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        import socket

        with socket.create_connection(("localhost", whole.port)) as raw, pytest.raises(ssl.SSLError):
            old.wrap_socket(raw, server_hostname="localhost")


def test_the_files_are_nobody_elses(tmp_path: Path) -> None:
    """Keys, registry and tokens; a second `init` is refused and destroys nothing."""
    whole = Machine(folder=tmp_path)
    whole.init()
    token = whole.token()
    for name in ("ca.key", "server.key", "registry.json"):
        assert (whole.data / "cell" / name).stat().st_mode & 0o077 == 0, name
    secret = json.loads(base64.urlsafe_b64decode(token.removeprefix("gwj_") + "=="))["s"]
    assert secret not in (whole.data / "cell/registry.json").read_text()
    key = (whole.data / "cell/ca.key").read_bytes()
    assert "gpuward cell rotate server --name" in whole.cell("init", "--name", "other", status=2)
    assert (whole.data / "cell/ca.key").read_bytes() == key
    (whole.data / "cell/registry.json").write_text("{")
    assert "is not the registry of a cell" in whole.cell("show", status=2)
