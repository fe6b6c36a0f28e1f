"""A simulated InfiniBand fabric (ibsim) with real subnet managers (opensm) and a mirror of a host's port as a tree.

    with fabric(tmp_path) as net:
        master = net.subnet_manager("H1", priority=10)
        net.mirror("H3")           # what /sys/class/infiniband of H3 would read, as perfquery and smpquery tell it

Needs `apt-get install ibsim-utils opensm infiniband-diags`. The simulator's own /sys has no counters and does not
change, so the mirror asks over the (simulated) wire.
"""

import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

FILES = Path(__file__).resolve().parent / "ibsim"
_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so",
    "/usr/lib/aarch64-linux-gnu/umad2sim/libumad2sim.so",
)
_STATES = {"Down": "1: DOWN", "Initialize": "2: INIT", "Armed": "3: ARMED", "Active": "4: ACTIVE"}
_PHYS = {"Polling": "2: Polling", "Disabled": "3: Disabled", "LinkUp": "5: LinkUp"}
_COUNTERS = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortXmitDiscards": "port_xmit_discards",
}


def missing() -> str:
    """Why there can be no fabric here; empty when there can."""
    tools = {"ibsim": "ibsim-utils", "opensm": "opensm", "perfquery": "infiniband-diags"}
    absent = [package for tool, package in tools.items() if shutil.which(tool) is None]
    return f"needs apt-get install {' '.join(absent)}" if absent else ""


class Fabric:
    """A running simulator and its clients."""

    def __init__(self, folder: Path, topology: str = "net.topo") -> None:
        self.folder = folder
        self._topology = FILES / topology
        self._name = f"gw{uuid.uuid4().hex[:12]}"  # of the simulator's abstract sockets
        self._processes: list[subprocess.Popen[bytes]] = []
        library = next((path for path in _LIBRARIES if Path(path).exists()), _LIBRARIES[0])
        self._env = {**os.environ, "IBSIM_SOCKNAME": self._name}
        self._client = {**self._env, "LD_PRELOAD": library}
        os.mkfifo(folder / "console")
        self._console = os.open(folder / "console", os.O_RDWR)  # never at its end: the simulator lives on

    def start(self) -> None:
        """The simulator; returns when a client is answered."""
        with (self.folder / "ibsim.log").open("wb") as log:
            self._spawn(["ibsim", "-s", str(self._topology)], self._env, log=log, stdin=self._console)
        self.until(lambda: self.ask("H4", "smpquery", "nodeinfo", "-D", "0") != "", "ibsim did not answer")

    def subnet_manager(self, host: str, *, priority: int) -> subprocess.Popen[bytes]:
        """A subnet manager on `host`."""
        folder = self.folder / f"sm-{host}"
        folder.mkdir(exist_ok=True)
        env = {**self._client, "SIM_HOST": host, "OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}
        argv = [
            "opensm",
            "-F",
            str(FILES / "opensm.conf"),
            "-p",
            str(priority),
            "-f",
            str(folder / "osm.log"),
        ]
        with (folder / "out.txt").open("wb") as log:
            return self._spawn(argv, env, log=log, cwd=folder)

    def said(self, host: str) -> str:
        """The last lines of the log of a host's subnet manager."""
        return "".join((self.folder / f"sm-{host}/osm.log").read_text().splitlines(keepends=True)[-20:])

    def environment(self, host: str) -> dict[str, str]:
        """With it, a program that uses umad runs on `host`."""
        return {name: self._client[name] for name in ("LD_PRELOAD", "IBSIM_SOCKNAME")} | {"SIM_HOST": host}

    def console(self, command: str) -> None:
        """A line to the simulator, e.g. `Unlink "H2"`."""
        os.write(self._console, command.encode() + b"\n")

    def ask(self, host: str, *argv: str) -> str:
        """Output of a diagnostic tool that runs on `host`; empty when it failed."""
        env = {**self._client, "SIM_HOST": host}
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                argv, env=env, cwd=self.folder, capture_output=True, text=True, timeout=20, check=False
            )
            return done.stdout if done.returncode == 0 else ""
        return ""

    def mirror(self, host: str) -> Path:
        """Writes the tree of `host`'s port again; the machine's root. A file is replaced, never half written."""
        # smpquery wants a port that is not disabled.
        port = _fields(
            self.ask(host, "smpquery", "portinfo", "-D", "0", "1")
            or self.ask(host, "ibportstate", "-C", "ibsim0", "-P", "1", "-D", "0", "1")
        )
        counters = _fields(self.ask(host, "perfquery"))
        root = self.folder / "mirror" / host
        base = root / "sys/class/infiniband/ibsim0"
        if not port and base.exists():
            return root  # its packets are lost (Error ... 100): a kernel's files would not change
        folder = base / "ports/1"
        state = _STATES.get(port.get("LinkState", "Down"), "1: DOWN")
        if port.get("PhysLinkState") != "LinkUp":
            state = "1: DOWN"  # so it is by the specification; the simulator leaves it at INIT
        _write(folder / "state", state)
        _write(folder / "phys_state", _PHYS.get(port.get("PhysLinkState", ""), "2: Polling"))
        _write(folder / "lid", hex(int(port.get("Lid", "0"))))
        _write(folder / "sm_lid", hex(int(port.get("SMLid", "0"))))
        _write(folder / "sm_sl", port.get("SMSL", "0"))
        _write(folder / "rate", "10 Gb/sec (4X SDR)")
        _write(folder / "link_layer", "InfiniBand")
        for name, file in _COUNTERS.items():
            if name in counters:
                _write(folder / "counters" / file, counters[name])
        return root

    def tools(self, host: str) -> Path:
        """A folder with the tools of infiniband-diags as they are on `host`."""
        folder = self.folder / f"tools-{host}"
        if not folder.exists():
            folder.mkdir()
            for name in ("sminfo", "saquery", "ibportstate", "ibqueryerrors", "iblinkinfo"):
                script = folder / name
                words = " ".join(f"{name}={value}" for name, value in self.environment(host).items())
                # The tools leave a folder of their simulated sysfs where they run.
                script.write_text(
                    f'#!/bin/sh\ncd {self.folder} && exec env {words} {shutil.which(name)} "$@"\n'
                )
                script.chmod(0o755)
        return folder

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        """Waits for `condition()`; fails when it does not come, or when a process ended by itself."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, what
            assert self._processes[0].poll() is None, (
                f"ibsim ended: {(self.folder / 'ibsim.log').read_text()[-2000:]}"
            )
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends every process."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(self._console)

    def _spawn(
        self,
        argv: list[str],
        env: dict[str, str],
        *,
        log: IO[bytes],
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            argv,
            env=env,
            cwd=cwd or self.folder,
            stdin=stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._processes.append(process)
        return process


@contextmanager
def fabric(folder: Path, topology: str = "net.topo") -> Iterator[Fabric]:
    """A fabric of one switch and four hosts, or another of tests/real/ibsim; gone when the block ends."""
    net = Fabric(folder, topology)
    try:
        net.start()
        yield net
    finally:
        net.stop()


def _fields(text: str) -> dict[str, str]:
    """`SMLid:...........................1`"""
    return dict(re.findall(r"^(\w+):\.+(\S+)", text, re.MULTILINE))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # In place: the source keeps its files open, as it does in /sys.
    with path.open("r+" if path.exists() else "w") as file:
        file.write(text + "\n")
        file.truncate()
