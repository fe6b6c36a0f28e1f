"""From nothing to a node that is heard, by the commands that an operator types; and everything that must not let anybody in."""

import base64
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import nkeys
import pytest

from brain.cli.client import Client
from tests import forked, people
from tests.real.nats import free_port
from tests.security.figures import Record, attacked

pytestmark = pytest.mark.component("nats-server")
BIN = Path(sys.executable).parent
WITHIN_S = 60.0


@dataclass(kw_only=True)
class Machine:
    """The brain's machine and its nodes, each with a folder, and what runs on them."""

    folder: Path
    port: int = field(default_factory=free_port)
    nats_port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The brain's data folder."""
        return self.folder / "brain"

    @property
    def url(self) -> str:
        """Of its console."""
        return f"https://localhost:{self.port}"

    def run(self, *argv: str, status: int = 0, text: str = "") -> str:
        """What a command prints, stderr too."""
        done = subprocess.run(
            [str(BIN / argv[0]), *argv[1:]],
            input=text, capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"SSL_CERT_FILE": os.devnull},
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == status, said
        return said

    def cell(self, *argv: str, status: int = 0) -> str:
        """`gpuward cell ...`."""
        return self.run("gpuward", "cell", *argv, "--config", str(self.folder / "brain.toml"), status=status)

    def token(self, *argv: str) -> str:
        """A new join token."""
        config = str(self.folder / "brain.toml")
        status, said = forked.gpuward("cell", "token", "--url", self.url, *argv, "--config", config)
        assert status == 0, said
        return said.splitlines()[0]

    def join(self, node: str, token: str, status: int = 0) -> str:
        """`gpuward-agent join` on a node."""
        config = self.folder / node / "agent.toml"
        return self.run(
            "gpuward-agent",
            "join",
            "-",
            "--config",
            str(config),
            "--node",
            node,
            status=status,
            text=token + "\n",
        )

    def init(self) -> None:
        """The configuration, and `gpuward cell init`, whose lines go into it."""
        config = self.folder / "brain.toml"
        config.write_text(f'data_dir = "{self.data}"\n[log]\nmax_bytes = 268435456\n')
        said = self.cell("init", "--name", "localhost", "--name", "brain.example")
        nats, _, console = said.partition("[console]")
        console = console.partition("\n\nThen")[0]
        config.write_text(
            f'data_dir = "{self.data}"\nlease_ttl_s = 2\n[log]\nmax_bytes = 268435456\n'
            f'[nats.embedded]\nhost = "127.0.0.1"\nport = {self.nats_port}\n[console]\nport = {self.port}\n'
            + console.replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
            + '\nusers.ann.role = "administrator"\n'
        )
        assert "[nats.embedded]" in nats
        people.token_file(self.data)

    def start_brain(self) -> None:
        """Until it leads."""
        self.spawn("brain", "gpuward", "run", "--config", str(self.folder / "brain.toml"))
        self.until(lambda: self.status().get("leads"), "the brain leads")

    def start_agent(self, node: str) -> None:
        """The agent with what `join` has written."""
        config = self.folder / node / "agent.toml"
        data = f"data_dir={self.folder / node / 'data'}"
        self.spawn(
            node,
            "gpuward-agent",
            "run",
            "--config",
            str(config),
            "--set",
            data,
            "--set",
            "beat_interval_s=0.5",
        )

    def spawn(self, name: str, *argv: str) -> None:
        """A process that ends with the test."""
        with (self.folder / f"{name}.log").open("ab") as sink:
            self.processes[name] = subprocess.Popen([str(BIN / argv[0]), *argv[1:]], stdout=sink, stderr=sink)

    def get(self, *path: str, query: str = "") -> Any:
        """JSON of the API by the client of the commands; nothing while it does not answer. Who waits asks again and again, and
        each `gpuward` would compute for half a second.
        """
        token = self.folder / "brain-ann.token"
        client = Client(self.url, token, self.data / "cell/ca.pem", faithful=True)
        try:
            return client.get(*path, query=query)
        except click.ClickException:
            return {}

    def status(self) -> dict[str, Any]:
        """The state of the brain; nothing while it does not answer."""
        found: dict[str, Any] = self.get("status")
        return found

    def incidents(self, *, over: bool = False) -> list[dict[str, Any]]:
        """The incidents; `over`: closed ones too."""
        found: list[dict[str, Any]] = self.get("incidents", query="all=1" if over else "").get(
            "incidents", []
        )
        return found

    def ask(self, *argv: str) -> Any:
        """JSON of a command of ann's."""
        options = ["--url", self.url, "--ca-file", str(self.data / "cell/ca.pem")]
        options += ["--token-file", str(self.folder / "brain-ann.token")]
        done = subprocess.run(
            [str(BIN / "gpuward"), *options, *argv, "--json"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def ann(self, *argv: str) -> str:
        """What a command of ann's prints."""
        options = ["--url", self.url, "--ca-file", str(self.data / "cell/ca.pem")]
        return self.run("gpuward", *options, "--token-file", str(self.folder / "brain-ann.token"), *argv)

    def nodes(self) -> list[str]:
        """The names of the nodes that the brain knows."""
        return [one["name"] for one in self.get("nodes").get("nodes", ())]

    def notes(self) -> str:
        """What the read model has of all notes."""
        with contextlib.closing(sqlite3.connect(self.data / "history.sqlite")) as database:
            return " ".join(str(row) for row in database.execute("SELECT * FROM notes"))

    def stop_brain(self) -> None:
        """As systemd does."""
        self.processes["brain"].terminate()
        self.processes["brain"].wait(60)

    def restart_brain(self) -> None:
        """With what is on disk."""
        self.stop_brain()
        self.start_brain()

    def beat_age_s(self, node: str) -> float:
        """How old its newest beat is."""
        ages = [one["beat_age_s"] for one in self.get("nodes").get("nodes", ()) if one["name"] == node]
        return float("inf") if not ages or ages[0] is None else float(ages[0])

    def until(self, look: Any, what: str) -> None:
        """Waits for a condition."""
        deadline = time.monotonic() + WITHIN_S
        while not look():
            logs = "".join(
                f"\n--- {one}\n{(self.folder / f'{one}.log').read_text()[-1500:]}" for one in self.processes
            )
            assert time.monotonic() < deadline, f"not within {WITHIN_S} s: {what}{logs}"
            time.sleep(0.1)


@contextlib.contextmanager
def machine(folder: Path, settings: str = "") -> Iterator[Machine]:
    """With a cell and a running brain. `settings`: lines of brain.toml before its tables."""
    whole = Machine(folder=folder)
    try:
        whole.init()
        config = folder / "brain.toml"
        config.write_text(settings + config.read_text())
        whole.start_brain()
        yield whole
    finally:
        for process in reversed(whole.processes.values()):
            process.terminate()
            process.wait(60)


def changed(token: str, **what: Any) -> str:
    """A token that says something else."""
    body = token.removeprefix("gwj_")
    raw = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return "gwj_" + base64.urlsafe_b64encode(json.dumps(raw | what).encode()).decode().rstrip("=")


def test_a_node_joins_is_heard_and_is_revoked(tmp_path: Path) -> None:
    """With TLS 1.3 all the way; the seed never leaves the node; a revocation closes its connection at once."""
    with machine(tmp_path) as whole:
        token = whole.token("--nodes", "gpu-*", "--count", "2")
        assert "gpu-1 has joined cell default" in whole.join("gpu-1", token)
        seed = tmp_path / "gpu-1/node.nk"
        assert seed.stat().st_mode & 0o777 == 0o600
        written = (tmp_path / "gpu-1/agent.toml").read_text()
        assert f'nats_url = "tls://localhost:{whole.nats_port}"' in written
        assert seed.read_text().strip() not in (whole.data / "cell/registry.json").read_text()
        whole.start_agent("gpu-1")
        whole.until(lambda: whole.beat_age_s("gpu-1") < 5, "the node is heard")
        whole.join("gpu-1", token)  # again: nothing is used up, nothing changes
        assert (tmp_path / "gpu-1/agent.toml").read_text() == written
        whole.join("gpu-2", token)
        assert "used up" in whole.join("gpu-3", token, status=1)

        log = whole.data / "nats/nats.log"
        assert whole.cell("revoke", "gpu-1") == "revoked: node gpu-1\n"
        whole.until(lambda: not whole.nodes(), "the node is forgotten")
        refused = tmp_path / "gpu-1.log"
        whole.until(lambda: "uthorization" in refused.read_text(), "its next connection is refused")
        assert log.exists()
        notes = whole.notes()
        for deed in ("made join token", "revoked node gpu-1"):
            assert "on the brain's machine" in notes.partition(deed)[0][-80:], "by whom"
        whole.restart_brain()
        time.sleep(3)  # what it had on its way is refused too
        assert whole.nodes() == []
        assert "has revoked it" in whole.notes()
        assert sorted(json.loads(whole.cell("show", "--json"))["nodes"]) == ["gpu-2"]


def test_who_was_turned_out_does_not_come_back_by_what_he_had(
    tmp_path: Path, record_property: Record
) -> None:
    """The token by which the node came goes with it, and an older one does not take its name or key; a newer one does."""
    with machine(tmp_path) as whole:
        older = whole.token("--nodes", "gpu-*", "--count", "5")
        token = whole.token("--nodes", "gpu-*", "--count", "5")
        whole.join("gpu-1", token)
        whole.join("gpu-2", token)
        said = whole.cell("revoke", "gpu-1")
        assert "3 nodes could still have joined by it" in said
        tries = [("gpu-1", token), ("gpu-3", token), ("gpu-1", older)]
        refused = [whole.join(node, given, status=1) for node, given in tries]
        assert "wrong or was revoked" in refused[0]
        assert "wrong or was revoked" in refused[1]
        assert "was revoked after this join token was made" in refused[2]
        (tmp_path / "gpu-4").mkdir()
        shutil.copy(tmp_path / "gpu-1/node.nk", tmp_path / "gpu-4/node.nk")  # under another name
        assert "is that of node gpu-1, which was revoked" in whole.join("gpu-4", older, status=1)
        (tmp_path / "gpu-1/node.nk").unlink()  # with another key
        assert "was revoked after this join token was made" in whole.join("gpu-1", older, status=1)
        assert sorted(json.loads(whole.cell("show", "--json"))["nodes"]) == ["gpu-2"]
        time.sleep(1.1)  # a revocation counts at least a second
        whole.join("gpu-1", whole.token())
        attacked(record_property, len(tries) + 2, refused=len(tries) + 2)


def test_a_revoked_node_that_was_lost_pages_nobody_any_more(tmp_path: Path) -> None:
    """Its incident is closed with the operator's name; revoked while no brain runs, it is forgotten by the next one."""
    with machine(tmp_path) as whole:
        token = whole.token("--nodes", "gpu-*", "--count", "2")
        for node in ("gpu-1", "gpu-2"):
            whole.join(node, token)
            whole.start_agent(node)
        whole.until(lambda: len(whole.nodes()) == 2, "both are heard")
        for node in ("gpu-1", "gpu-2"):
            whole.processes[node].kill()
        whole.until(lambda: len(whole.incidents()) == 2, "both are lost")
        assert "is heard" not in whole.ann("forget", "gpu-1", "--why", "sold")
        whole.until(lambda: whole.nodes() == ["gpu-2"], "one is forgotten")
        whole.stop_brain()
        whole.cell("revoke", "gpu-2")
        whole.start_brain()
        whole.until(lambda: whole.nodes() == [], "the other is forgotten")
        ended = {one["node"]: one for one in whole.ask("incidents", "--all")}
        assert {one["state"] for one in ended.values()} == {"closed"}
        assert ended["gpu-1"]["closed_why"] == "ann says that it is gone: sold"
        assert ended["gpu-2"]["closed_why"].endswith("has revoked it")


def test_who_may_not_join(tmp_path: Path, record_property: Record) -> None:
    """Wrong, expired, revoked, changed or used-up tokens, other names, other keys; each is told why, and nothing is written."""
    with machine(tmp_path) as whole:
        token = whole.token("--nodes", "gpu-*", "--count", "5")
        cases = [
            ("wrong", changed(token, s="x" * 43), "wrong or was revoked"),
            ("unknown", changed(token, i="abcdefabcdef"), "wrong or was revoked"),
            ("cpu-1", token, "not for 'cpu-1'"),
            ("gpu-x", changed(token, f="0" * 64), "its authority is not the one"),
            ("gpu-x", changed(token, f=""), "certificate"),
            ("gpu-x", changed(token, u=[f"https://127.0.0.2:{whole.port}"]), ""),
        ]
        for node, given, why in cases:
            said = whole.join(node, given, status=1)
            assert why in said, (node, said)
            assert not (tmp_path / node / "agent.toml").exists()
        spoilt = (
            "",
            "gwj_",
            "gwj_AAAA",
            "nonsense",
            token[:-20],
            changed(token, u=[]),
            changed(token, u=["http://evil/"]),
        )
        for given in spoilt:
            assert whole.join("gpu-x", given, status=2)
        short = whole.token("--nodes", "gpu-*", "--for", "1s")
        time.sleep(1.5)
        assert "has expired" in whole.join("gpu-x", short, status=1)
        whole.join("gpu-1", token)
        (tmp_path / "gpu-1/node.nk").unlink()  # somebody else, who says that it is gpu-1
        assert "is there with another key" in whole.join("gpu-1", token, status=1)
        whole.join("gpu-1", whole.token("--replace"))
        shown = json.loads(whole.cell("show", "--json"))
        (id_,) = shown["tokens"]
        assert shown["tokens"][id_]["left"] == 4
        whole.cell("revoke", id_)
        assert "wrong or was revoked" in whole.join("gpu-2", token, status=1)
        assert "no node and no join token" in whole.cell("revoke", "nobody", status=1)
        assert "not a public NKEY" in whole.cell("add-node", "gpu-9", "UABC", status=2)
        stranger = nkeys.from_seed(bytearray(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)))
        whole.cell("add-node", "gpu-9", stranger.public_key.decode())
        assert "belongs to node gpu-9" in whole.cell(
            "add-node", "gpu-8", stranger.public_key.decode(), status=1
        )
    # Besides: an expired token, another machine of a known name, a revoked token, two wrong keys.
    attacked(record_property, len(cases) + len(spoilt) + 5)


def test_a_rack_joins_at_once(tmp_path: Path) -> None:
    """Forty nodes behind one address: the console holds them to its pace, and each of them waits for its turn."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "40")
        one = f"{BIN}/gpuward-agent join {token} --config {tmp_path}/n$n/agent.toml --node n$n"
        script = f"for n in $(seq 40); do {one} & done; wait"
        said = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, text=True, timeout=300, check=True
        )
        assert said.stdout.count("has joined cell") == 40, said.stderr
        assert len(json.loads(whole.cell("show", "--json"))["nodes"]) == 40
