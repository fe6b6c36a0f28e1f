"""A machine on which nobody else is, for pages that one types as root: `/etc`, `/var/lib`, `/run`, the network and the host's
name are its own. Only systemd is missing there, so what its units start the test starts.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import manual

BIN = Path(sys.executable).parent
WITHIN_S = 120.0
ALONE = ("unshare", "--mount", "--net", "--uts")
BEGIN = """
ip link set lo up
hostname gpu-1
cp -a /etc "$1/etc"
mount --bind "$1/etc" /etc
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /run
mkdir -p /etc/gpuward
cp deploy/brain.toml deploy/agent.toml /etc/gpuward/
echo '127.0.0.1 brain-1.example.com' >> /etc/hosts
touch "$1/begun"
exec sleep infinity
"""


class Alone:
    """A machine of its own, but for its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._units: dict[str, subprocess.Popen[bytes]] = {}
        argv = [*ALONE, "sh", "-ec", BEGIN, "sh", str(folder)]
        self._holder = subprocess.Popen(argv, cwd=manual.ROOT)
        self.until((folder / "begun").exists, "it has begun")
        inside = ("nsenter", "--mount", "--net", "--uts", "-t", str(self._holder.pid), f"--wdns={folder}")
        self._inside = inside

    def types(self, command: str) -> str:
        """What it prints; it must succeed."""
        argv = [*self._inside, "bash", "-ec", command]
        done = subprocess.run(argv, env=self._env(), capture_output=True, text=True, timeout=WITHIN_S)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def unit(self, *argv: str) -> None:
        """What `systemctl enable --now` of its unit starts."""
        with (self.folder / f"{argv[0]}.log").open("wb") as sink:
            command = [*self._inside, str(BIN / argv[0]), *argv[1:]]
            self._units[argv[0]] = subprocess.Popen(command, env=self._env(), stdout=sink, stderr=sink)

    def stops(self, unit: str) -> None:
        """As `systemctl stop`."""
        process = self._units.pop(unit)
        process.terminate()
        process.wait(60)

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Waits for it."""
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < deadline, f"{what}: not within {WITHIN_S:g} s{self.logs()}"
            time.sleep(0.2)

    def says(self, command: str) -> str:
        """What it prints, whatever its status."""
        return self.types(f"{command} || true")

    def logs(self) -> str:
        """The last words of what runs there."""
        return "".join(f"\n--- {one.name}\n{one.read_text()[-2000:]}" for one in self.folder.glob("*.log"))

    def ends(self) -> None:
        """All that runs there, then the machine."""
        for process in [*reversed(self._units.values()), self._holder]:
            process.terminate()
            process.wait(60)

    def _env(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARD_")}
        at = {"GPUWARD_URL": "https://127.0.0.1:8470", "GPUWARD_CA_FILE": "/var/lib/gpuward/cell/ca.pem"}
        return own | at | {"PATH": f"{BIN}:{own.get('PATH', '')}", "HOME": str(self.folder)}


@contextmanager
def alone(folder: Path) -> Iterator[Alone]:
    """With the example configurations, as the packages install them."""
    one = Alone(folder)
    try:
        yield one
    finally:
        one.ends()
