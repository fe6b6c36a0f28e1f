"""Signals end `gpuward top` as `q` does: whoever sat before the terminal goes on typing."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial

# Of an administrator or a service manager; of a connection that is lost, as ssh's; of whoever interrupts.
ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def by_signals(end: Callable[[int], None]) -> None:
    """Has `end` called with the exit status at the first of them; the second one ends the process at once."""
    loop = asyncio.get_running_loop()
    for one in ENDS:
        loop.add_signal_handler(one, partial(_told, loop, one, end))


def _told(loop: asyncio.AbstractEventLoop, by: signal.Signals, end: Callable[[int], None]) -> None:
    for one in ENDS:
        loop.remove_signal_handler(one)
        signal.signal(one, signal.SIG_DFL)
    end(128 + by)
