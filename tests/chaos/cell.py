"""One cell: a broker, two brains, a fleet of simulated nodes, one stolen credential; each a process that can be hurt."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brain.adapters import keys
from brain.console.drill import RECIPIENT
from simulations import events, local_site
from tests import people
from tests.chaos.outside import Outside
from tests.chaos.proxy import Proxy
from tests.real.nats import NatsServer, free_port

ROOT = Path(__file__).parents[2]
HEALTH = ROOT / "deploy/nats/health.sh"
BRAINS = ("a", "b")
LIAR = "liar"
PACE = 5.0  # as in `gpuward up`
DISK_MB = 160  # of the broker's file system


def _clock_library(folder: Path) -> Path:
    """The library that gives a process another wall clock, built there."""
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(source)], check=True)
    return library


@dataclass(slots=True, kw_only=True)
class Part:
    """One process; `more` is added to its environment."""

    argv: list[str]
    log: Path
    more: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it runs, stopped ones included."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Starts it, unless it runs."""
        if not self.runs:
            with self.log.open("ab") as sink:
                self.process = subprocess.Popen(
                    self.argv, stdout=sink, stderr=sink, cwd=ROOT, env=os.environ | self.more
                )

    def send(self, number: signal.Signals) -> None:
        """A signal to it."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that is not enough."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()


class Cell:
    """See the module's docstring. All files are in `folder`."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.nodes = tuple(f"{events.SIMULATED}{number:02}" for number in range(1, nodes + 1))
        self.outside = Outside()
        self.record = folder / "performed"
        self.broker = NatsServer(folder / "nats", nodes={"fleet": (*self.nodes, RECIPIENT), LIAR: (LIAR,)})
        self.proxies = {name: Proxy(self.broker.port) for name in (*BRAINS, "fleet")}
        self.ports = {name: free_port() for name in BRAINS}
        self.ann = people.token_file(folder / "people")
        self.parts: dict[str, Part] = {}
        self._undo = contextlib.ExitStack()
        self.began = time.monotonic()

    def start(self) -> None:
        """Everything, until a brain leads and has heard all nodes."""
        self._undo.callback(self.outside.stop)
        self._mount()
        self._write()
        self.broker.start()
        self._undo.callback(self.broker.kill)
        self.parts["health"].start()
        self._undo.callback(self.parts["health"].stop)
        for proxy in self.proxies.values():
            proxy.start()
            self._undo.callback(proxy.stop)
        for name in (*BRAINS, "fleet"):
            self.parts[name].start()
            self._undo.callback(self.parts[name].stop)
        self.wait_for(self.leader, 60, "a brain leads")
        self.wait_for(lambda: len(self.heard()) >= len(self.nodes), 60, "all nodes are heard")

    def end(self) -> None:
        """Everything that runs; a test's own processes only."""
        self._undo.close()

    def status(self, brain: str) -> dict[str, Any]:
        """Of /api/v1/status; empty while it does not answer."""
        return self.get(brain, "/api/v1/status", 1.0)

    def get(self, brain: str, path: str, timeout_s: float = 20.0) -> dict[str, Any]:
        """A JSON answer; empty while there is none."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.ports[brain]}{path}", timeout=timeout_s
            ) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return {}

    def leader(self) -> str:
        """The brain that says that it leads and has its rules; empty: none does."""
        for name in BRAINS:
            status = self.status(name)
            if status.get("leads") and status.get("pack") and status.get("caught_up"):
                return name
        return ""

    def heard(self) -> set[str]:
        """The simulated nodes that the leader hears."""
        nodes = self.get(self.leader() or BRAINS[0], "/api/v1/nodes").get("nodes", [])
        return {node["name"] for node in nodes if node["alive"] and node["name"] in self.nodes}

    def inject(self, drill: str, node: str) -> str:
        """Begins a drill; why not, or empty."""
        leader = self.leader()
        if not leader:
            return "nobody leads"
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[leader]}/api/v1/drill",
            data=json.dumps({"name": drill, "node": node}).encode(),
            headers={"Content-Type": "application/json"} | people.bearer(self.ann),
        )
        try:
            with urllib.request.urlopen(request, timeout=8):  # noqa: S310  our own loopback URL
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode(errors="replace")[:200]
        except OSError as error:
            return str(error)

    def set_clock(self, brain: str, off_s: int) -> None:
        """The brain's wall clock is off by so much from now on."""
        with self._clock(brain).open("r+b" if self._clock(brain).exists() else "wb") as file:
            file.write(off_s.to_bytes(8, sys.byteorder, signed=True))

    def _clock(self, brain: str) -> Path:
        return self.folder / f"clock-{brain}"

    def wait_for(self, look: Any, within_s: float, what: str) -> Any:
        """The first true answer; AssertionError with the ends of the logs."""
        deadline = time.monotonic() + within_s
        while not (found := look()):
            assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}\n{self.last_words()}"
            time.sleep(0.2)
        return found

    def last_words(self) -> str:
        """The ends of all logs."""
        return "".join(
            f"\n--- {name}\n{part.log.read_text(errors='replace')[-2500:] if part.log.exists() else ''}"
            for name, part in self.parts.items()
        )

    def _mount(self) -> None:
        """The broker's own small file system, so that it can be filled."""
        store = self.folder / "nats"
        store.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(store)], check=True)
        self._undo.callback(subprocess.run, ["umount", "-l", str(store)], check=False)

    def _write(self) -> None:
        """The configuration of all parts, with shortened verifications as in `gpuward up`."""
        for name in ("config", "keys", "fleet"):
            (self.folder / name).mkdir()
        library = _clock_library(self.folder)
        watched = (f"http://127.0.0.1:{self.broker.monitor}", str(self.folder / "nats"))
        self.parts["health"] = Part(
            argv=[str(HEALTH), *watched, "pkill", "-KILL", "-F", str(self.broker.pid_file)],
            log=self.folder / "health.log",
            more={"EVERY_S": "1", "PAUSE_S": "5"},
        )
        signer = keys.load_signer(self.folder / "keys" / "signing.key")
        config_folder = self.folder / "config"
        pack = local_site.write_shortened_pack(config_folder, PACE)
        local_site.write_topology(config_folder / "topology.yaml", self.nodes)
        for name in BRAINS:
            checks = {"type": "url", "url": f"{self.outside.url}/alive/{name}", "every_s": 1}
            config: dict[str, object] = {
                "brain": name,
                "data_dir": str(self.folder / f"brain-{name}"),
                "topology": str(config_folder / "topology.yaml"),
                "signing_key_file": str(self.folder / "keys" / "signing.key"),
                "drill": True,
                "modes": [{"mode": "auto"}],
                "settings": {"remedies_per_day": 1000, "remedies_per_week": 1000, "remedies_per_month": 1000},
                "nats": {"url": f"nats://127.0.0.1:{self.proxies[name].port}"},
                "log": {"max_bytes": 64 * 1024**2},
                "console": {
                    "port": self.ports[name],
                    "users": {"ann": {"role": "administrator"}},
                    "tokens_file": str(self.folder / "people" / "tokens.json"),
                },
                "channels": {"hook": {"type": "webhook", "url": f"{self.outside.url}/page"}},
                "groups": {"oncall": ["hook"], "scheduler": ["hook"]},
                "dead_mans_switches": {"outside": checks},
                **pack,
            }
            self.set_clock(name, 0)
            clock = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(self._clock(name))}
            self._part(name, "brain", config, clock)
        self._part(
            "fleet",
            "fleet",
            {
                "nats_url": self.broker.node_url("fleet").replace(
                    str(self.broker.port), str(self.proxies["fleet"].port)
                ),
                "data_dir": str(self.folder / "fleet"),
                "nodes": list(self.nodes),
                "beat_interval_s": 1.0,
                "trusted_keys": {signer.key_id: signer.public},
            },
            {},
        )

    def _part(self, name: str, kind: str, config: Mapping[str, object], more: Mapping[str, str]) -> None:
        path = self.folder / "config" / f"{name}.toml"
        path.write_text(local_site.toml(config), encoding="utf-8")
        argv = [sys.executable, "-m", "tests.chaos.recorder", kind]
        argv += ["--config", str(path), "--record", str(self.record)]
        self.parts[name] = Part(argv=argv, log=self.folder / f"{name}.log", more=more)
