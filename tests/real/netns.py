"""Network namespaces made for a test; nothing outside of them is touched. Needs root and iproute2."""

import ctypes
import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A network namespace; gone when the block of `namespace()` ends."""

    name: str

    def ip(self, *argv: str) -> str:
        """What `ip -n <this> ...` prints; fails when it does."""
        argv = ("ip", "-n", self.name, *argv)
        return subprocess.run(argv, check=True, capture_output=True, timeout=60, text=True).stdout

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread is in the namespace: sockets that it opens belong to it for ever."""
        libc = ctypes.CDLL(None, use_errno=True)
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        try:
            if libc.setns(there, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            yield
        finally:
            libc.setns(home, _CLONE_NEWNET)
            os.close(home)
            os.close(there)


def missing() -> str:
    """Why no namespace can be made here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    return "" if shutil.which("ip") else "needs apt-get install iproute2"


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A fresh namespace with only `lo` in it."""
    name = f"gpuward-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True, timeout=60)
    try:
        yield Namespace(name=name)
    finally:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=60)


def is_up(space: Namespace, name: str) -> bool:
    """Whether the interface is set up."""
    return "UP" in space.ip("link", "show", name).partition("<")[2].partition(">")[0].split(",")


@contextmanager
def hung_port(lab: Namespace, switch: Namespace) -> Iterator[None]:
    """The switch's end of va is dead until va itself goes down, as a port that has hung."""
    switch.ip("link", "set", "vb", "down")
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            if not is_up(lab, "va"):
                switch.ip("link", "set", "vb", "up")
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
