"""A site of several nodes: one brain, and an agent process for each node that matters.

with brain(tmp_path, AUTO) as whole, agents(whole, {"n1": "", "n2": 'allow = ["mtu.set"]'}):
    ...
"""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.e2e.stack import BIN, ROOT, Stack

NO_BUS = 'dbus_address = "unix:path=/nonexistent/bus"\n'  # a node without systemd


@contextlib.contextmanager
def brain(folder: Path, config: str = "", *, first: str = "") -> Iterator[Stack]:
    """Broker, receiver and brain; no agent yet. `first`: what stands above the tables of its configuration."""
    whole = Stack(folder)
    try:
        whole.nats.start()
        whole.start_receiver()
        path = whole.write_brain_config(config)
        path.write_text(first + path.read_text())
        whole.start_brain()
        yield whole
    finally:
        whole.end()


def command(whole: Stack, node: str, config: str = "") -> list[str]:
    """Writes the agent's configuration, with `config` in it; how it is started."""
    key_id, _, public = (whole.folder / "brain/signing.key.pub").read_text().strip().partition(" = ")
    path = whole.folder / f"agent-{node}.toml"
    whole.nats.add(node)
    bus = "" if "dbus_address" in config else NO_BUS
    path.write_text(
        f'node = "{node}"\nnats_url = "{whole.nats.node_url(node)}"\ndata_dir = "{whole.folder}/agent-{node}"\n'
        f'beat_interval_s = 0.5\n{bus}{config}\n[trusted_keys]\n"{key_id}" = "{public}"\n'
    )
    return [str(BIN / "gpuward-agent"), "run", "--config", str(path)]


def hears(whole: Stack, *nodes: str) -> None:
    """Returns when the brain has heard the agents of all of them."""
    whole.wait_for(
        lambda: (
            {node["name"] for node in whole.get("/api/v1/nodes").get("nodes", ()) if node["boot"]}
            >= set(nodes)
        ),
        f"the agents of {', '.join(nodes)} are heard",
    )


@contextlib.contextmanager
def agents(whole: Stack, configs: Mapping[str, str]) -> Iterator[None]:
    """Agents by the names of their nodes, and what their configuration has besides; heard, and gone with the block."""
    with contextlib.ExitStack() as undo:
        for node, config in configs.items():
            with (whole.folder / f"agent-{node}.log").open("ab") as sink:
                process = subprocess.Popen(
                    command(whole, node, config), stdout=sink, stderr=sink, cwd=ROOT, start_new_session=True
                )
            undo.callback(_end, process)
        hears(whole, *configs)
        yield


def causes(whole: Stack) -> dict[str, str]:
    """Scope → cause of all incidents that people ever heard of or that something was done about."""
    told = [one for one in whole.incidents(over=True) if one["runs"] or one["pages"]["sent"]]
    return {one["scope"]: one["cause"] for one in told if one["state"] != "explained"}


@contextlib.contextmanager
def agreeing(whole: Stack, *causes: str) -> Iterator[None]:
    """A person who approves each step of the runs of these causes as soon as it waits for it."""
    end = threading.Event()

    def agree() -> None:
        said: set[str] = set()
        while not end.wait(0.3):
            for one in whole.incidents():
                runs = (
                    whole.get(f"/api/v1/explain/{one['id']}").get("runs", ())
                    if one["cause"] in causes
                    else ()
                )
                if (
                    runs
                    and runs[-1]["state"] == "approval"
                    and runs[-1]["approval"]
                    and f"{one['id']} {runs[-1]['why']}" not in said
                ):
                    said.add(f"{one['id']} {runs[-1]['why']}")
                    whole.gpuward("approve", one["id"], "--rung", runs[-1]["approval"]["rung"])

    thread = threading.Thread(target=agree)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(60)
        raise
