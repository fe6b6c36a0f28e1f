"""How an action gets the driver to itself: the agent's NVML source ends its child while an action asks for a pause."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from agent.contract.errors import Unreachable
from agent.shared.tasks import end

LET_GO_S = 5.0  # for the child to be killed; one that hangs in the driver is left behind sooner


class NvmlPause:
    """Shared by the NVML source, which works through `run_between_pauses`, and the actions, which use `paused`."""

    def __init__(self) -> None:
        self._pauses = 0
        self._running = 0
        self._none_wanted = asyncio.Event()
        self._none_wanted.set()
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Inside the block no child of the source runs. Unreachable when the source does not let go of the driver."""
        self._pauses += 1
        self._none_wanted.clear()
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(LET_GO_S):
                    await self._idle.wait()
            except TimeoutError:
                raise Unreachable("the agent's own NVML source did not let go of the driver") from None
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._wanted.clear()
                self._none_wanted.set()

    async def run_between_pauses(self, work: Callable[[], Awaitable[None]]) -> None:
        """Runs `work` while no pause is wanted: it is cancelled for a pause and started again afterwards. Returns when
        `work` returns, and raises what it raises.
        """
        while True:
            await self._none_wanted.wait()
            self._running += 1
            self._idle.clear()
            try:
                if await self._until_wanted(work):
                    return
            finally:
                self._running -= 1
                if not self._running:
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
