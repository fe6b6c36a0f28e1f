"""A BMC (OpenIPMI's ipmi_sim) whose chassis script starts and kills a real process that stands for the node.

Needs `apt-get install openipmi ipmitool`. The simulator knows cipher suite 3 only and refuses `diag`.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILES = Path(__file__).resolve().parent / "ipmi"
_CONF = """name "gpu01"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  {chassis}
  user 1 true  ""      "test" user 10 none md2 md5 straight
  user 2 true  "admin" "secret" admin 10 none md2 md5 straight
"""


def missing() -> str:
    """Why there can be no BMC here; empty when there can."""
    tools = {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"}
    absent = [package for tool, package in tools.items() if shutil.which(tool) is None]
    return f"needs apt-get install {' '.join(absent)}" if absent else ""


def free_udp_port() -> int:
    """One that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Host:
    """A running BMC and its node."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_udp_port()
        self.password = folder / "password"
        self.password.write_text("secret\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, chassis: str = "") -> None:
        """The BMC; returns when it answers."""
        (self.folder / "state").mkdir()
        conf = self.folder / "lan.conf"
        control = chassis or f'chassis_control "{FILES / "chassis.sh"} {self.folder}"'
        conf.write_text(_CONF.format(port=self.port, chassis=control))
        argv = ["ipmi_sim", "-c", str(conf), "-f", str(FILES / "sim.emu"), "-s", str(self.folder / "state")]
        with (self.folder / "sim.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*argv, "-n", "-p"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.until(lambda: self.ask("status") != "", "ipmi_sim did not answer")

    def ask(self, command: str) -> str:
        """What ipmitool prints; empty when there is no answer."""
        argv = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", str(self.port), "-U", "admin"]
        argv += ["-f", str(self.password), "-C", "3", "-R", "1", "-N", "1", "chassis", "power", command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout

    @property
    def node(self) -> int:
        """The process id of the node; 0 when its power is off."""
        with suppress(OSError, ValueError):
            pid = int((self.folder / "node.pid").read_text())
            os.kill(pid, 0)
            return pid
        return 0

    def asked(self) -> list[str]:
        """What the chassis was told to do, without the readings."""
        lines = (self.folder / "chassis.log").read_text().splitlines()
        return [line for line in lines if line.startswith("set")]

    def fresh(self) -> int:
        """A node that is on and whose operating system obeys; nothing was asked yet. Its process id."""
        for name in ("hangs", "freezes"):
            (self.folder / name).unlink(missing_ok=True)
        self.ask("on")
        self.until(lambda: self.node != 0, "the node did not start")
        (self.folder / "chassis.log").write_text("")
        return self.node

    def set(self, name: str) -> None:
        """`hangs` or `freezes`."""
        (self.folder / name).touch()

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        """Waits for `condition()`."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {(self.folder / 'sim.log').read_text()[-2000:]}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the BMC, its scripts and the node."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self.node:
            os.kill(self.node, signal.SIGKILL)


@contextmanager
def ipmi_host(folder: Path, chassis: str = "") -> Iterator[Host]:
    """A BMC of its own; gone when the block ends."""
    host = Host(folder)
    try:
        host.start(chassis)
        yield host
    finally:
        host.stop()
