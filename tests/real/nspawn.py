"""A real systemd as PID 1 of a container, over an overlay of this machine's root, which it cannot change.

    with nspawn.machine(tmp_path, {"nvidia-persistenced.service": nspawn.SLEEPER}) as box:
        box.bus_address, box.run("systemctl", "restart", "nvidia-persistenced")

Needs root, overlayfs and `apt-get install systemd-container dbus`; boots in about 0.3 s.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SLEEPER = "[Unit]\nDescription=stand-in\n[Service]\nType=simple\nExecStart=/bin/sleep infinity\nRestart=no\n"
_BOOT_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 30.0
_REBOOTED = 133  # how systemd-nspawn --keep-unit ends when the container reboots


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A running container."""

    leader: int  # pid of its systemd, as this machine sees it
    root: Path  # its file system, to write units into
    boot_again: Callable[
        [], None
    ]  # waits until it has gone down for a reboot, and starts it (`leader` is gone then)

    @property
    def bus_address(self) -> str:
        """D-Bus address of its system bus, usable from here."""
        return f"unix:path=/proc/{self.leader}/root/run/dbus/system_bus_socket"

    def run(self, *argv: str, within_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        """Runs a command inside, e.g. `systemctl`; the caller looks at its return code."""
        command = ["nsenter", "-t", str(self.leader), "-a", *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False)


def missing() -> str:
    """Why no container can be started here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    tools = {"systemd-nspawn": "systemd-container", "dbus-daemon": "dbus", "nsenter": "util-linux"}
    absent = [package for tool, package in tools.items() if shutil.which(tool) is None]
    return f"needs apt-get install {' '.join(absent)}" if absent else ""


@contextmanager
def machine(
    scratch: Path,
    units: Mapping[str, str],
    *,
    binds: Sequence[str] = (),
    host_network: bool = False,
    network: str = "",
    capabilities: Sequence[str] = (),
    name: str = "lab",
) -> Iterator[Machine]:
    """A container that runs `units` (name -> text; services are started); gone when the block ends.

    `binds`: folders that it shares with this machine, under the same path; `:ro` behind one lets it only read.
    `host_network`: it sees this machine's network. `network`: it is in the namespace of this name.
    `capabilities`: that it has besides nspawn's own. `name`: of one among several of a test.
    """
    layers, root = scratch / "layers", scratch / "root"
    layers.mkdir(parents=True)
    root.mkdir()
    container = _Container(
        _command(root, binds, name, capabilities, _network(network, host_network=host_network)),
        scratch / "nspawn.log",
    )
    try:
        _mount("-t", "tmpfs", "tmpfs", str(layers))
        (layers / "upper").mkdir()
        (layers / "work").mkdir()
        options = f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work"
        _mount("-t", "overlay", "overlay", "-o", options, str(root))
        _furnish(root, units)
        process = container.start()
        leader = _wait_for_boot(process, container.log, tuple(units))
        yield Machine(leader=leader, root=root, boot_again=container.boot_again)
    finally:
        container.stop()
        for mount in (root, layers):
            subprocess.run(["umount", "-l", str(mount)], capture_output=True, check=False)


class _Container:
    """One container over its reboots: nspawn ends with each, and whoever runs it has to start it again."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self._process

    def boot_again(self) -> None:
        assert self._process is not None
        status = self._process.wait(_BOOT_TIMEOUT_S)
        assert status == _REBOOTED, f"nspawn ended with {status}, not for a reboot: {self.log.read_text()}"
        self.start()

    def stop(self) -> None:
        if self._process is not None:
            _stop(self._process)


def _mount(*argv: str) -> None:
    subprocess.run(["mount", *argv], check=True, capture_output=True)


def _furnish(root: Path, units: Mapping[str, str]) -> None:
    folder = root / "etc/systemd/system"
    folder.mkdir(parents=True, exist_ok=True)
    (root / "etc/machine-id").write_text("")
    (root / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
    for name, text in units.items():
        (folder / name).write_text(text)
    wanted = " ".join(name for name in units if name.endswith(".service"))
    (folder / "lab.target").write_text(
        "[Unit]\nDescription=lab\nRequires=dbus.socket\nAfter=dbus.socket\nAllowIsolate=yes\n"
        f"Wants=dbus.service {wanted}\n"
    )


def _network(name: str, *, host_network: bool) -> Sequence[str]:
    if name:
        return (f"--network-namespace-path=/run/netns/{name}",)
    return () if host_network else ("--private-network",)


def _command(
    root: Path, binds: Sequence[str], name: str, capabilities: Sequence[str], network: Sequence[str]
) -> list[str]:
    shared = [f"--bind{'-ro' if bind.endswith(':ro') else ''}={bind.removesuffix(':ro')}" for bind in binds]
    # setpriv: should the test process die, so does the container.
    return [
        *("setpriv", "--pdeathsig", "TERM", "systemd-nspawn", "-q", "-D", str(root)),
        *("--register=no", "--keep-unit", f"--machine={name}{os.getpid()}", *network),
        *shared,
        *(f"--capability={one}" for one in capabilities),
        *("--console=pipe", "--boot", "systemd.unit=lab.target"),
    ]


def _wait_for_boot(process: subprocess.Popen[bytes], log: Path, units: Sequence[str]) -> int:
    """pid of the container's systemd once its bus answers and its services were started."""
    wanted = [name for name in units if name.endswith(".service")]
    deadline = time.monotonic() + _BOOT_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        for pid in _children(process.pid):
            if Path(f"/proc/{pid}/root/run/dbus/system_bus_socket").exists():
                asked = subprocess.run(
                    ["nsenter", "-t", str(pid), "-a", "systemctl", "is-active", "lab.target", *wanted],
                    capture_output=True,
                    text=True,
                    timeout=90,
                    check=False,
                ).stdout.split()
                if asked and asked[0] == "active" and "activating" not in asked:
                    return pid
        time.sleep(0.02)
    raise RuntimeError(f"systemd-nspawn did not boot: {log.read_text(errors='replace')[-2000:]}")


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_TIMEOUT_S)
