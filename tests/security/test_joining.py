"""What people mistype or change when nodes join: they are told, and what they are told helps."""

import json
import shutil
import socket
import time
from pathlib import Path

import pytest

from agent import config_file
from agent.cli import join
from agent.contract.errors import ConfigError
from brain.cell.invitation import invitation
from tests.security.test_cell import Machine, machine

pytestmark = pytest.mark.component("nats-server")


def test_a_renamed_machine_is_told_how_to_go_on(tmp_path: Path) -> None:
    """Its key belongs to its old name: agent and `join` say so, once and truly, and what they say helps."""
    with machine(tmp_path) as whole:
        whole.join("gpu-1", whole.token())
        config = tmp_path / "gpu-1/agent.toml"
        config.write_text(config.read_text().replace('node = "gpu-1"', 'node = "gpu-9"'))
        whole.start_agent("gpu-1")
        log = tmp_path / "gpu-1.log"
        whole.until(lambda: "this node calls itself gpu-9" in log.read_text(), "it says so")
        time.sleep(5)
        said = log.read_text()
        assert said.count("calls itself gpu-9") == 1
        assert "no brain takes events" not in said
        # The configured name, although it is not this machine's.
        again = ("gpuward-agent", "join", "-", "--config", str(config))
        refused = whole.run(*again, status=1, text=whole.token() + "\n")
        assert "this key belongs to node gpu-1" in refused
        assert "join --new-key" in refused
        assert "gpuward cell revoke gpu-1" in refused
        assert "gpu-9 has joined" in whole.run(*again, "--new-key", text=whole.token() + "\n")
        whole.cell("revoke", "gpu-1")
        whole.until(lambda: whole.nodes() == ["gpu-9"], "it is heard by its new name")


def test_a_machine_with_another_host_name_is_an_incident(tmp_path: Path) -> None:
    """It goes on under the name with which it joined, as agent.toml has it: nobody refuses that, and it must not go unnoticed."""
    with machine(tmp_path) as whole:
        whole.join("gpu-1", whole.token())
        noted = tmp_path / "gpu-1/node.host"
        assert noted.read_text().strip() == socket.gethostname()
        noted.write_text("gpu-0\n")
        whole.start_agent("gpu-1")
        log = tmp_path / "gpu-1.log"
        whole.until(lambda: "joined as gpu-1 when it was called gpu-0" in log.read_text(), "it says so")


def test_a_machine_whose_name_is_no_node_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux takes 64 characters: it says how to join under another name, and neither asks the console nor makes a key."""
    monkeypatch.setattr(socket, "gethostname", lambda: "n" * 64)
    token = invitation(["https://127.0.0.1:1"], "", "id", "secret")
    with pytest.raises(ConfigError, match=r"host name 'n{64}' must be .*: give another name with --node"):
        join.main(token, config=tmp_path / "agent.toml", node="")
    assert not list(tmp_path.iterdir())
    kernel = tmp_path / "machine/proc/sys/kernel"
    kernel.mkdir(parents=True)
    (kernel / "hostname").write_text("n" * 64 + "\n")
    (tmp_path / "agent.toml").write_text(f'root = "{tmp_path / "machine"}"\n')
    with pytest.raises(ConfigError, match=r"agent.toml: host name 'n{64}' must be .*: set `node`"):
        config_file.load(tmp_path / "agent.toml")


def test_a_repaired_machine_comes_back_with_a_key_that_the_thief_does_not_have(tmp_path: Path) -> None:
    """Stolen, revoked, repaired, and joined again: a key that was copied meanwhile stays out, whatever token is shown."""
    with machine(tmp_path) as whole:
        whole.join("gpu-1", whole.token())
        shutil.copytree(tmp_path / "gpu-1", tmp_path / "thief")
        copied = tmp_path / "thief/agent.toml"
        copied.write_text(copied.read_text().replace(f"{tmp_path}/gpu-1/", f"{tmp_path}/thief/"))
        whole.cell("revoke", "gpu-1")
        time.sleep(1.1)  # a revocation counts at least a second
        token = whole.token("--replace")
        said = whole.join("gpu-1", token, status=1)
        assert "was revoked" in said
        assert "gpuward-agent join --new-key" in said
        again = ("gpuward-agent", "join", "-", "--config", str(tmp_path / "gpu-1/agent.toml"), "--new-key")
        assert "gpu-1 has joined" in whole.run(*again, text=token + "\n"), "the refusal used nothing up"
        whole.start_agent("gpu-1")
        whole.until(lambda: whole.beat_age_s("gpu-1") < 5, "the repaired machine is heard")
        whole.start_agent("thief")
        log = tmp_path / "thief.log"
        whole.until(lambda: "does not let this key in" in log.read_text(), "the copy of its old key is not")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--url", "x"), "want https://NAME:PORT"),
        (("--url", "http://brain.example:8470"), "want https://NAME:PORT"),
        (("--nodes", ""), "want a glob of names"),
        (("--for", "24"), "is not a duration such as"),
        (("--for", "1h30"), "is not a duration such as"),
    ],
)
def test_a_token_that_would_help_nobody_is_not_made(tmp_path: Path, argv: tuple[str, ...], says: str) -> None:
    """And `1h30m` is an hour and a half."""
    whole = Machine(folder=tmp_path)
    whole.init()
    assert says in whole.cell("token", *argv, status=2)
    assert json.loads(whole.cell("show", "--json"))["tokens"] == {}
    whole.cell("token", "--for", "1h30m")
    (token,) = json.loads((whole.data / "cell/registry.json").read_text())["tokens"].values()
    assert token["expires_at"] - token["made_at"] == 5400
