"""A whole gpuward as a user runs it: a real broker, a real brain process, a real agent process, a webhook receiver.

Everything is started by the calling thread; inside a network namespace (`Namespace.inside()`) it all runs there.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests import people
from tests.real.nats import NatsServer, free_port

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


class Stack:
    """See the module's docstring. `folder` holds all of its files; `programs`: where gpuward is installed."""

    def __init__(self, folder: Path, node: str = "lab-1", programs: Path = BIN) -> None:
        self.folder = folder
        self.programs = programs
        self._any_version = programs != BIN
        self.node = node
        self.nats = NatsServer(folder / "nats", nodes=[node])
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._urls = {"brain": self.url}
        self.pages_file = folder / "pages.jsonl"
        self.page_port = free_port()  # where the brain posts its pages
        self.ann = people.token_file(folder / "people")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        shutil.copytree(ROOT / "rules", folder / "rules", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "runbooks", folder / "runbooks", ignore=shutil.ignore_patterns("__pycache__"))

    def write_brain_config(self, more: str = "") -> Path:
        """brain.toml, with `more` at its end."""
        path = self.folder / "brain.toml"
        path.write_text(
            f'data_dir = "{self.folder}/brain"\nrules = "{self.folder}/rules"\nrunbooks = "{self.folder}/runbooks"\n'
            f'[log]\nmax_bytes = 268435456\n[nats]\nurl = "{self.nats.url}"\n[console]\nport = {self.port}\n'
            f'users.ann.role = "administrator"\ntokens_file = "{self.folder}/people/tokens.json"\n'
            f'[channels.hook]\ntype = "webhook"\nurl = "http://127.0.0.1:{self.page_port}/page"\n'
            f'[groups]\noncall = ["hook"]\nscheduler = ["hook"]\n{more}\n'
        )
        return path

    def start_standby(self, key: Path | None = None) -> str:
        """A second brain of this Python on the same log, with the same signing key; the URL of its API once it has read
        everything. `key`: where its signing key lies, if not in the folder of the other one.
        """
        port = free_port()
        text = (self.folder / "brain.toml").read_text()
        text = text.replace(f"port = {self.port}", f"port = {port}").replace(
            f"{self.folder}/brain", f"{self.folder}/standby"
        )
        names = f'brain = "standby"\nsigning_key_file = "{key or self.folder / "brain/signing.key"}"\n'
        (self.folder / "standby.toml").write_text(names + text)
        self._urls["standby"] = f"http://127.0.0.1:{port}"
        self._spawn("standby", [str(BIN / "gpuward"), "run", "--config", str(self.folder / "standby.toml")])
        url = self.url_of("standby")
        self.wait_for(
            lambda: self.get("/api/v1/status", url).get("caught_up"), "the standby has read the log"
        )
        return url

    def url_of(self, brain: str) -> str:
        """The URL of a brain's API."""
        return self._urls[brain]

    def pid(self, name: str) -> int:
        """Process id of a part that runs."""
        return self._processes[name].pid

    def write_agent_config(self, more: str = "") -> Path:
        """agent.toml that trusts this stack's brain, with `more` at its end."""
        key_id, _, public = (self.folder / "brain/signing.key.pub").read_text().strip().partition(" = ")
        path = self.folder / "agent.toml"
        path.write_text(
            f'node = "{self.node}"\nnats_url = "{self.nats.node_url(self.node)}"\ndata_dir = "{self.folder}/agent"\n'
            f'beat_interval_s = 0.5\n{more}\n[trusted_keys]\n"{key_id}" = "{public}"\n'
        )
        return path

    def start_receiver(self) -> None:
        """The webhook receiver."""
        self._spawn(
            "receiver",
            [sys.executable, "-m", "tests.e2e.receiver", str(self.page_port), str(self.pages_file)],
        )
        self.wait_for(lambda: _listens(self.page_port), "the receiver listens")

    def start_brain(self, *, leads: bool = True, caught_up: bool = True, says: str = "") -> None:
        """The brain, until its API answers and it leads; not `leads`: until it has read everything; not `caught_up` either: until
        it has begun to. `says`: until that stands in its log, where it cannot start.
        """
        self._spawn(
            "brain", [str(self.programs / "gpuward"), "run", "--config", str(self.folder / "brain.toml")]
        )
        if says:
            self.wait_for(lambda: says in self.log("brain"), says)
        elif leads:
            self.wait_for(self._ready, "the brain leads and has its rules")
        elif caught_up:
            self.wait_for(lambda: self.get("/api/v1/status").get("caught_up"), "the brain has read the log")
        else:
            self.wait_for(lambda: self.get("/api/v1/status").get("inputs"), "the brain reads the log")

    def _ready(self) -> bool:
        status = self.get("/api/v1/status")
        return bool(status.get("leads") and status.get("pack"))

    def start_agent(self) -> None:
        """The agent, until the brain has heard it."""
        program = str(self.programs / "gpuward-agent")
        self._spawn("agent", [program, "run", "--config", str(self.folder / "agent.toml")])
        self.wait_for(
            lambda: any(
                node["name"] == self.node and node["boot"]
                for node in self.get("/api/v1/nodes").get("nodes", ())
            ),
            "the agent is heard",
        )

    def kill(self, name: str) -> None:
        """SIGKILL."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(60)

    def stop(self, name: str) -> int:
        """SIGTERM; the exit status. One that does not stop in time is killed, and the test fails."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60)
            raise AssertionError(f"{name} did not stop on SIGTERM:\n{self.log(name)}") from None

    def end(self) -> None:
        """Everything that still runs."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.nats.stop)
            for name in ("receiver", "standby", "brain", "agent"):  # the last one first
                if name in self._processes:
                    undo.callback(self.stop, name)

    def get(self, path: str, url: str = "") -> Any:
        """A JSON answer of the API; an empty object while it does not answer. Where another version has a part, at the paths of
        version 0.1, which all have.
        """
        path = path.replace("/api/v1/", "/api/") if self._any_version else path
        try:
            with urllib.request.urlopen((url or self.url) + path, timeout=20) as answer:  # noqa: S310 - our own loopback URL
                return json.load(answer)
        except (OSError, ValueError):
            return {}

    def get_bytes(self, path: str) -> bytes:
        """A file of the API; empty while there is none."""
        try:
            asked = urllib.request.Request(self.url + path, headers=people.bearer(self.ann))  # noqa: S310  our own child on loopback
            with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310 - our own loopback URL
                return bytes(answer.read())
        except OSError:
            return b""

    def gpuward(self, *args: str) -> str:
        """What the command prints; the test fails when it fails."""
        done = subprocess.run(
            [str(self.programs / "gpuward"), *args],
            env=os.environ | {"GPUWARD_URL": self.url, "GPUWARD_TOKEN_FILE": str(self.ann)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"gpuward {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout

    def incidents(self, cause: str = "", *, over: bool = False) -> list[dict[str, Any]]:
        """Incidents as the API gives them; `over`: closed ones too."""
        found = self.get("/api/v1/incidents" + ("?all=1" if over else "")).get("incidents", [])
        return [incident for incident in found if not cause or incident["cause"] == cause]

    def pages(self) -> list[dict[str, Any]]:
        """What the webhook received."""
        return (
            [json.loads(line) for line in self.pages_file.read_text().splitlines()]
            if self.pages_file.exists()
            else []
        )

    def wait_for(self, look: Callable[[], T], what: str, within_s: float = 60.0) -> T:
        """The first true answer of `look`; the test fails with the last lines of every log when there is none in time."""
        began = time.monotonic()
        deadline = began + within_s
        while not (found := look()):
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} died while waiting until {what}:\n{self.log(name)}"
            assert time.monotonic() < deadline, f"not within {within_s} s: {what}\n{self.last_words()}"
            # Who waits for long looks seldom: each look costs the brain as much as us.
            time.sleep(min(max(0.02, (time.monotonic() - began) / 20), 0.3))
        return found

    def log(self, name: str) -> str:
        """The end of a process' output."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def last_words(self) -> str:
        """Incidents and the ends of all logs."""
        return json.dumps(self.incidents(over=True), indent=1)[:6000] + "".join(
            f"\n--- {name}\n{self.log(name)}" for name in ("brain", "agent")
        )

    def _spawn(self, name: str, argv: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as sink:
            self._processes[name] = subprocess.Popen(
                argv, stdout=sink, stderr=sink, cwd=ROOT, start_new_session=True
            )


@contextlib.contextmanager
def stack(
    folder: Path, *, brain: str = "", agent: str = "", node: str = "lab-1", programs: Path = BIN
) -> Iterator[Stack]:
    """A running stack: broker, receiver, brain, agent."""
    whole = Stack(folder, node, programs)
    try:
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config(brain)
        whole.start_brain()
        whole.write_agent_config(agent)
        whole.start_agent()
        yield whole
    finally:
        whole.end()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
