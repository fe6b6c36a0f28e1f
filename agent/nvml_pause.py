"""How an action gets the driver to itself: the NVML source ends its child while one asks for that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from agent.contract.errors import Unreachable
from agent.tasks import end

LET_GO_S = 5.0  # for the child to be killed; one that hangs in the driver is left behind sooner


class NvmlPause:
    """Shared by the NVML source, which works through `between`, and the actions, which ask by `asked`."""

    def __init__(self) -> None:
        self._asking = 0
        self._working = 0
        self._free = asyncio.Event()
        self._free.set()
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.asynccontextmanager
    async def asked(self) -> AsyncIterator[None]:
        """Inside, no child of the source runs. Unreachable when the source does not let go."""
        self._asking += 1
        self._free.clear()
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(LET_GO_S):
                    await self._idle.wait()
            except TimeoutError:
                raise Unreachable("the agent's own NVML source did not let go of the driver") from None
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._wanted.clear()
                self._free.set()

    async def between(self, work: Callable[[], Awaitable[None]]) -> None:
        """Runs `work` whenever nobody asks for a pause: cancelled for one, begun anew after it. What it raises, this
        raises; returns when it does.
        """
        while True:
            await self._free.wait()
            self._working += 1
            self._idle.clear()
            try:
                if await self._until_wanted(work):
                    return
            finally:
                self._working -= 1
                if not self._working:
                    self._idle.set()

    async def _until_wanted(self, work: Callable[[], Awaitable[None]]) -> bool:
        """True when the work ended by itself."""
        task = asyncio.ensure_future(work())
        wanted = asyncio.ensure_future(self._wanted.wait())
        try:
            await asyncio.wait((task, wanted), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return False
            task.result()
            return True
        finally:
            await end(task, wanted)
