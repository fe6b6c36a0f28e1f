"""What `gpuward up` writes and refuses, and how it runs its child processes."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.config_file import load as load_agent
from agent.contract.errors import ConfigError
from brain.adapters import keys
from brain.adapters.nats_server import NatsServer
from brain.config import load as load_brain
from brain.core.pack.spec import Mode
from simulations import children, events, local_site
from simulations.children import ChildProcess
from simulations.fleet import load as load_fleet


@pytest.mark.parametrize(
    ("hostname", "node"),
    [
        ("gpu7.example.org", "gpu7"),
        ("sim-01", "real-sim-01"),
        ("drill", "real-drill"),
        ("", "localhost"),
        ("näme", "localhost"),
    ],
)
def test_this_machine_is_never_taken_for_a_simulated_one(hostname: str, node: str) -> None:
    """Simulated nodes may be changed; a real one whose name looks like theirs gets another name."""
    assert local_site.this_node(hostname) == node


def test_every_part_can_read_its_configuration(tmp_path: Path) -> None:
    """Brain, agent and fleet load what was written; only simulated nodes are in mode auto; the keys match."""
    made = local_site.prepare(tmp_path / "data", console_port=18999, nodes=3)
    server = NatsServer(made.data / "nats", cell=local_site.CELL, port=14999)
    keys.load_nkey(server.brain_seed_file)  # as the server does at its start
    local_site.write_configs(made, server)
    brain, agent, fleet = (
        load_brain(made.config("brain")),
        load_agent(made.config("agent")),
        load_fleet(made.config("fleet")),
    )
    assert [(one.nodes, one.mode) for one in brain.site_settings().modes] == [
        ("*", Mode.OBSERVE),
        ("sim-*", Mode.AUTO),
        ("", Mode.AUTO),
    ]
    assert agent.allow == ("agent.look", "evidence.collect"), "nothing that changes this machine"
    assert not agent.node.startswith(events.SIMULATED)
    assert dict(agent.trusted_keys) == dict(fleet.trusted_keys) != {}
    assert fleet.nodes == ("sim-01", "sim-02", "sim-03")
    assert {place.leaf for place in brain.places().values()} == {"leaf-1", "leaf-2"}
    for secret in (
        brain.signing_key_file,
        brain.nats.seed_file,
        Path(agent.nats_seed_file),
        Path(fleet.nats_seed_file),
    ):
        assert secret is not None
        assert secret.stat().st_mode & 0o777 == 0o600
    key = (made.data / "keys" / "signing.key").read_bytes()
    local_site.write_configs(made, server)
    assert (made.data / "keys" / "signing.key").read_bytes() == key, "keys outlive a restart"


def test_without_simulated_nodes_nothing_acts(tmp_path: Path) -> None:
    """This machine alone is observed: no inspection is due of a fabric that no node can look at."""
    made = local_site.prepare(tmp_path / "data", console_port=18999, nodes=0)
    server = NatsServer(made.data / "nats", cell=local_site.CELL, port=14999)
    keys.load_nkey(server.brain_seed_file)
    local_site.write_configs(made, server)
    assert {one.mode for one in load_brain(made.config("brain")).site_settings().modes} == {Mode.OBSERVE}


def test_toml_is_read_back_as_it_was() -> None:
    """Texts with special characters, nested tables, lists of tables."""
    table = {
        "a": 'q"\\\n\té',
        "b": [1, 2.5, True],
        "c": {"d": {"e f": "g"}},
        "h": [{"i": 1}, {"i": 2}],
        "j": [],
    }
    assert tomllib.loads(local_site.toml(table)) == table


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    """The message names the folder and the option."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file: .*--data"):
        local_site.prepare(tmp_path / "file", console_port=1, nodes=0)


def test_a_taken_port_is_an_error() -> None:
    """The message names the port and the option; 0 finds a free one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf"port {port} of 127\.0\.0\.1: Address already in use: .*--port"
        ):
            local_site.free_port(port, "--port")
    assert local_site.free_port(port, "--port") == port
    assert local_site.free_port(0, "--port") > 0


def test_two_ups_cannot_share_a_folder(tmp_path: Path) -> None:
    """The message for the second one names the first; afterwards the folder is free."""
    with (
        local_site.locked(tmp_path),
        pytest.raises(ConfigError, match=rf"in use by another `gpuward up` \(pid {os.getpid()}\)"),
        local_site.locked(tmp_path),
    ):
        pass
    with local_site.locked(tmp_path):
        pass


def test_what_a_killed_up_has_left_is_waited_for(tmp_path: Path) -> None:
    """Its parts hold the folder until they have ended; one that runs is not waited for."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with local_site.locked(tmp_path) as lock:
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"], pass_fds=(lock,))
    (tmp_path / "up.lock").write_text(f"{gone.pid}\n")
    with local_site.locked(tmp_path, patience_s=60.0):
        assert left.poll() is not None or not Path(f"/proc/{left.pid}/fd/{lock}").exists()
    left.wait()


def python(code: str, log: Path) -> ChildProcess:
    return ChildProcess("child", [sys.executable, "-c", code], log)


async def until_logged(child: ChildProcess, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in child.last_lines():
            await asyncio.sleep(0.02)


async def test_a_child_is_stopped_in_order_and_its_output_is_kept(tmp_path: Path) -> None:
    """SIGTERM reaches it; the lines of an older run are left out."""
    log = tmp_path / "log"
    log.write_text("an older run\n")
    child = python(
        "import signal,time; print('here', flush=True); signal.sigwait([signal.SIGTERM]); print('bye')", log
    )
    await child.start()
    await until_logged(child, "here")
    await child.stop()
    assert child.last_lines() == ["here", "bye"] or child.returncode == -signal.SIGTERM
    assert child.returncode is not None
    await child.stop()


async def test_a_stubborn_child_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ignores SIGTERM gets SIGKILL when its time is over."""
    monkeypatch.setattr(children, "STOP_WITHIN_S", 0.3)
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(60)"
    child = python(code, tmp_path / "log")
    await child.start()
    await until_logged(child, "here")
    await child.stop()
    assert child.describe_end() == f"child (pid {child.pid}) was ended by SIGKILL"


async def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    """When `up` is killed with SIGKILL, the kernel ends its children."""
    log = tmp_path / "inner"
    code = f"""
import asyncio, pathlib, sys
from simulations.children import ChildProcess
async def main():
    child = ChildProcess('inner', [sys.executable, '-c', 'import time; time.sleep(60)'], pathlib.Path({str(log)!r}))
    await child.start()
    print(child.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    parent = python(code, tmp_path / "log")
    await parent.start()
    async with asyncio.timeout(60):
        while not parent.last_lines():
            await asyncio.sleep(0.02)
    inner = int(parent.last_lines()[0])
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(60):
        while _lives(inner):
            await asyncio.sleep(0.02)


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
