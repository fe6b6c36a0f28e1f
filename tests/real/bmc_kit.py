"""What the tests of BMCs share: certificates, orders, and the actions of a configuration."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from typing import Any

from agent.contract.messages import Scalar
from brain.actions.base import Action, Done, Job, Order, Scheduler, Site, Wanted, always
from brain.actions.bmc import area
from brain.actions.marks import Mark
from brain.config import parse
from brain.core.inputs import StepResult

QUICK = {"poll_s": 0.05, "settle_s": 60.0, "unseen_s": 30.0, "answer_s": 30.0, "connect_s": 30.0}


def certificate(folder: Path) -> tuple[Path, Path]:
    """A fresh self-signed certificate of 127.0.0.1 and its key."""
    cert, key = folder / "bmc.pem", folder / "bmc.key"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    argv += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=127.0.0.1"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)
    return cert, key


def server_tls(cert: Path, key: Path) -> ssl.SSLContext:
    """The server's side."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    return tls


class NoFleet:
    """Nothing here gives orders to nodes."""

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """Never called."""
        raise AssertionError(f"{action} was ordered at {node}")


class Slurm:
    """A scheduler as `node.isolate` sees it; the real ones have tests of their own."""

    name = "slurm"

    def __init__(self, drain: Callable[[], Awaitable[None]] | None = None) -> None:
        self._drain = drain
        self.drains: list[tuple[str, Mark]] = []

    async def drain(self, node: str, mark: Mark) -> None:
        """As in Scheduler."""
        self.drains.append((node, mark))
        if self._drain is not None:
            await self._drain()

    async def drained(self, node: str) -> str:
        """Not asked here."""
        raise NotImplementedError

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """Not asked here."""
        raise NotImplementedError

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Not asked here."""
        raise NotImplementedError

    async def jobs(self, node: str) -> list[Job]:
        """Not asked here."""
        raise NotImplementedError

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Not asked here."""
        raise NotImplementedError

    async def reboot(self, node: str, mark: Mark) -> None:
        """Not asked here."""
        raise NotImplementedError


def built(tables: Mapping[str, Mapping[str, Any]], scheduler: Scheduler | None = None) -> dict[str, Action]:
    """The BMC actions of a site with these tables, by name; ConfigError as at the brain's start."""
    config = parse({"bmc": tables}, "brain.toml", Path.cwd())
    site = Site(
        config=config,
        node_commands=NoFleet(),
        schedulers=lambda _: scheduler,
        on_close=AsyncExitStack().push_async_callback,
    )
    return {action.name: action for action in area(site)}


def order(
    timeout_s: float = 30.0, progress: Callable[[str], None] = lambda _: None, **params: Scalar
) -> Order:
    """An order for node gpu01."""
    return Order(
        id="run1.1",
        incident="inc1",
        node="gpu01",
        params=params,
        timeout_s=timeout_s,
        why="XID 79",
        progress=progress,
    )


async def perform(action: Action, timeout_s: float = 200.0, **params: Scalar) -> Done:
    """Runs it with a deadline, as the performer does."""
    async with asyncio.timeout(timeout_s):
        return await action.run(order(timeout_s, lambda _: None, **params))


def password_file(folder: Path, text: str = "secret") -> Path:
    """A file with a BMC's password."""
    path = folder / f"password-{text}"
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path
