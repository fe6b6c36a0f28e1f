"""A cell on NATS servers of a site's own, with the file of `gpuward cell show --nats-accounts` (docs/cell.md)."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import people
from tests.real.nats import NatsServer
from tests.security.test_cell import Machine

pytestmark = pytest.mark.component("nats-server")


@dataclass(kw_only=True)
class Site(Machine):
    """The brain's machine, its nodes, and the server."""

    server: NatsServer

    def accounts(self) -> None:
        """The administrator writes them again and reloads the server."""
        (self.folder / "own/accounts.conf").write_text(self.cell("show", "--nats-accounts"))
        self.server.reload()


@contextlib.contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A brain that leads on a server of the site's own."""
    own = folder / "own"
    own.mkdir()
    found = Site(folder=folder, server=NatsServer(own, 'include "accounts.conf"'))
    try:
        config = folder / "brain.toml"
        nats = f'[nats]\nurl = "{found.server.url}"\nseed_file = "brain.nk"\n'
        head = f'data_dir = "{found.data}"\n[log]\nmax_bytes = 67108864\n[evidence]\nmax_bytes = 16777216\n{nats}'
        config.write_text(head)
        said = found.cell("init", "--name", "localhost")
        assert "[nats.embedded]" not in said, "this brain starts no server"
        console = said.partition("[console]")[2].partition("\n\nThen")[0].replace("0.0.0.0", "127.0.0.1")
        config.write_text(
            f'{head}[console]\nport = {found.port}{console}\nusers.ann.role = "administrator"\n'
        )
        people.token_file(found.data)
        (own / "accounts.conf").write_text(found.cell("show", "--nats-accounts"))
        found.server.start()
        found.start_brain()
        yield found
    finally:
        for process in found.processes.values():
            process.kill()
            process.wait()
        found.server.kill()


def test_a_node_joins_and_is_revoked_where_the_servers_are_told_by_hand(tmp_path: Path) -> None:
    """Whoever joins or revokes it reads what is still to be done; the brain takes nothing from it at once."""
    with site(tmp_path) as whole:
        again = "gpuward cell show --nats-accounts"
        said = whole.join("gpu-1", whole.token("--nodes", "gpu-*"))
        assert "Not done yet: the NATS servers do not let it in until you write the accounts again" in said
        assert again in said
        whole.until(lambda: "node gpu-1 has joined: the NATS servers" in whole.notes(), "it is noted")
        whole.accounts()
        whole.start_agent("gpu-1")
        whole.until(lambda: whole.nodes() == ["gpu-1"], "it is heard")

        said = whole.cell("revoke", "gpu-1")
        assert "Not done yet: the NATS servers let it in until you write the accounts again" in said
        assert again in said
        whole.until(lambda: whole.nodes() == [], "it is forgotten, although its connection stands")
        whole.until(lambda: "node gpu-1 was revoked: the NATS servers" in whole.notes(), "it is noted")
        log = tmp_path / "gpu-1.log"
        assert "does not let this key in" not in log.read_text()
        whole.accounts()
        whole.until(lambda: "does not let this key in" in log.read_text(), "now the server refuses it")
        assert whole.nodes() == []


def test_the_brains_key_is_rotated_as_the_documents_say(tmp_path: Path) -> None:
    """It ends while the brain runs: the old key is in nobody's file any more, and the server refuses it."""
    with site(tmp_path) as whole:
        seed = tmp_path / "brain.nk"
        before = seed.read_text()
        started = whole.status()["started_at"]
        assert "reload" in whole.cell("rotate", "brain")
        shown = whole.cell("show")
        assert "until you say `gpuward cell rotate brain --now`" in shown
        assert "at the latest" not in shown
        whole.accounts()
        whole.cell("rotate", "brain", "--now")
        whole.until(lambda: "its rotation is over" in whole.notes(), "the old key is taken out")
        assert seed.read_text() != before
        assert [file.name for file in tmp_path.glob("brain.nk.*")] == []
        whole.accounts()
        whole.until(lambda: whole.status().get("leads"), "the brain leads")
        assert "rotation of" not in whole.cell("show")
        assert whole.status()["started_at"] == started
