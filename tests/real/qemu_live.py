"""A guest of qemu_guest.py that stays: a network to this machine's loopback, and a shell that the host types at.

    with live_guest(tmp_path / "gpu1", cards=3) as guest:
        guest.sh("ip link set card0 up")            # its output; the test fails when the command does

The host's 127.0.0.1 is 10.0.2.2 there, over the interface eth0 (virtio). Take times on the
host: the guest has a clock of its own. The machine's root is read-only there; what is written stays in its memory.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.real import qemu_guest

HOST = "10.0.2.2"  # this machine's loopback, as the guest reaches it
START_S = 200.0  # 4 s on two cores
_SERVES, _SAID = "GUEST-SERVES", "\nGUEST-SAID "


class LiveGuest:
    """See the module's docstring. `folder`: its console and its sockets."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self._process = process
        self._line = socket.socket(socket.AF_UNIX)
        self._rest = ""

    def connect(self) -> None:
        """To its serial port, at once: what it says while nobody listens is lost."""
        end_s = time.monotonic() + START_S
        while self._line.connect_ex(str(self.folder / "line")) != 0:
            assert self._process.poll() is None, self.console()
            assert time.monotonic() < end_s, self.console()
            time.sleep(0.02)

    def booted(self) -> None:
        """Waits until it serves, and gives it its network and its cards."""
        self._until(f"{_SERVES}\n", START_S)
        self.sh("modprobe virtio_net && ip link set eth0 up && ip addr add 10.0.2.15/24 dev eth0")
        self.sh("modprobe gwcard")

    def sh(self, command: str, within_s: float = 60.0) -> str:
        """What the command printed, on both of its outputs."""
        self._line.sendall(f"{command}\n".encode())
        said = self._until(_SAID, within_s)
        status = self._until("\n", within_s)
        assert status == "0", f"{command}: {status}\n{said}"
        return said

    def console(self) -> str:
        """The end of what its kernel said."""
        return (self.folder / "console.log").read_text(errors="replace")[-4000:]

    def end(self) -> None:
        """Switches it off, as a power cut does."""
        self._line.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)

    def _until(self, mark: str, within_s: float) -> str:
        end_s = time.monotonic() + within_s
        while mark not in self._rest:
            left_s = end_s - time.monotonic()
            assert left_s > 0, f"the guest said nothing for {within_s} s:\n{self._rest}\n{self.console()}"
            self._line.settimeout(left_s)
            with contextlib.suppress(TimeoutError):
                data = self._line.recv(65536)
                assert data, f"the guest has ended:\n{self.console()}"
                self._rest += data.decode(errors="replace")
        said, _, self._rest = self._rest.partition(mark)
        return said


@contextlib.contextmanager
def live_guest(folder: Path, *, cards: int) -> Iterator[LiveGuest]:
    """A guest that boots: call `booted` before anything else. `cards`: card0 at 0000:00:10.0, card1 at 0000:00:11.0, ..."""
    folder.mkdir()
    devices = [word for card in range(cards) for word in ("-device", f"edu,addr={0x10 + card:x}.0")]
    argv = [
        # One processor: a second costs as much again in emulated locks and ticks, and the other guests need it.
        *qemu_guest.machine({"serve": "ttyS1"}, cpus=1),
        *("-serial", f"unix:{folder}/line,server=on,wait=off", "-nic", "user,model=virtio-net-pci"),
        *devices,
    ]
    with (folder / "console.log").open("wb") as sink:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
        )
    guest = LiveGuest(folder, process)
    try:
        qemu_guest.first(process)
        guest.connect()
        yield guest
    finally:
        guest.end()
