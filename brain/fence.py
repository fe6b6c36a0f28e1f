"""A brain that no longer leads changes nothing: what is about to change the world asks here, directly before it leaves.

A step begins while its brain leads, reads, waits, logs in; in between the brain may have been stopped for a minute, and
another leads. So not the step but each request is asked: first the server for the lease (a write that only its holder can
make), then, without another await, this machine's clock. Every way out goes through one of these:

| way | where |
|---|---|
| aiohttp (Slurm's REST API, Kubernetes, UFM) | `Request`, as the session's `request_class` |
| requests, in a thread (Redfish) | brain/actions/redfish_connector.py |
| programs (ipmitool, scontrol, switches) | brain/actions/tools.py |
| the bucket of evidence bundles | brain/adapters/evidence_store.py |

Commands of nodes need none of it: each carries its epoch, and a node refuses an older one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import aiohttp
from aiohttp import hdrs

SAFE = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})
ANSWER_S = 10.0  # the lease has run out long before


class Deposed(Exception):
    """This brain no longer leads, so nothing was sent. The next leader decides what becomes of the step."""


class Fence(Protocol):
    """Whether one step may still change something."""

    async def confirm(self) -> bool:
        """Asks the server whether this brain still holds the lease of the step's epoch."""
        ...

    def holds(self) -> bool:
        """The same by this machine's clock alone."""
        ...


class EpochFence:
    """Whether the brain that began something with an epoch still leads with it."""

    def __init__(
        self, may_act: Callable[[int], bool], confirm: Callable[[int], Awaitable[bool]], epoch: int
    ) -> None:
        self._may_act = may_act
        self._confirm = confirm
        self._epoch = epoch

    async def confirm(self) -> bool:
        """As in Fence."""
        return await self._confirm(self._epoch)

    def holds(self) -> bool:
        """As in Fence."""
        return self._may_act(self._epoch)


class _Nobody:
    """Outside of a step nobody may change anything."""

    async def confirm(self) -> bool:
        return False

    def holds(self) -> bool:
        return False


class _Harmless:
    """Around a request that changes nothing, whatever its method."""

    async def confirm(self) -> bool:
        return True

    def holds(self) -> bool:
        return True


CHANGES_NOTHING: Fence = _Harmless()
outside: Fence = _Nobody()
_fence: ContextVar[Fence | None] = ContextVar("fence", default=None)


@contextmanager
def around(fence: Fence) -> Iterator[None]:
    """Everything in this block, and the tasks that it starts, asks this fence."""
    token = _fence.set(fence)
    try:
        yield
    finally:
        _fence.reset(token)


def current() -> Fence:
    """The fence of the step that runs here."""
    return _fence.get() or outside


async def passed(fence: Fence | None = None) -> None:
    """Returns when the request may leave, and it must leave before anything else is awaited. Deposed: it may not."""
    fence = fence or current()
    if not await fence.confirm() or not fence.holds():
        raise Deposed


def passed_in_thread(fence: Fence, loop: asyncio.AbstractEventLoop) -> None:
    """The same for a thread, while `loop` runs."""
    try:
        asyncio.run_coroutine_threadsafe(passed(fence), loop).result(ANSWER_S)
    except (TimeoutError, asyncio.CancelledError) as error:
        raise Deposed from error
    if not fence.holds():
        raise Deposed


class Request(aiohttp.ClientRequest):
    """A request of aiohttp that asks once its connection is there, directly before it is written."""

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """As in ClientRequest. Deposed: it was not sent."""
        if self.method not in SAFE:
            await passed()
        return await super().send(conn)
