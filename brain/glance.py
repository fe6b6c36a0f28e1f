"""What the event loop wants to know of a file whose disk may hang: `stat` and `open` then block for ever (decision 111).

A thread looks, and the loop waits for it only for a moment, once for each hang: what was read last counts until the disk answers
again. Elsewhere than on an event loop (the command line, a thread) whoever looks waits as ever.
"""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

from agent.contract.errors import ConfigError
from agent.shared.tried import tried

T = TypeVar("T")
FIRST_S = 1.0  # so long the event loop waits for a file of which nothing is known yet
ONCE_S = 0.2  # for any other one, while none hangs: a loaded machine may hold up a thread for so long
MEANWHILE_S = 0.01  # for each further file while one hangs: it may be on another disk


class FileHangs(ConfigError):
    """The disk of a file does not answer."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: its disk does not answer: see `dmesg`, and the storage that it is on (a file server, a path to it)"
        )


class _Look:
    """One look, which a thread takes."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.ended = threading.Event()
        self.error: Exception | None = None
        self.late = False  # somebody has waited in vain


class _Looker(threading.Thread):
    def __init__(self, over: Callable[["_Looker", _Look], None]) -> None:
        super().__init__(name="look", daemon=True)
        self.next: SimpleQueue[_Look] = SimpleQueue()
        self._over = over

    def run(self) -> None:
        """For ever, or as long as a disk hangs."""
        while True:
            look = self.next.get()
            _, look.error = tried(look.work)
            self._over(self, look)


class _Lookers:
    """The threads of this process that look. One is enough, until a disk hangs."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """There is no thread."""
        self._lock = threading.Lock()
        self._idle: list[_Looker] = []
        self._late = 0  # looks that somebody has waited for in vain, and that are under way

    def begin(self, work: Callable[[], None]) -> _Look:
        look = _Look(work)
        with self._lock:
            looker = self._idle.pop() if self._idle else None
        if looker is None:
            looker = _Looker(self._over)
            looker.start()
        looker.next.put(look)
        return look

    def wait(self, look: _Look, within_s: float, meanwhile_s: float) -> bool:
        """Waits for a look, `meanwhile_s` while another one hangs; False: in vain."""
        if look.ended.wait(meanwhile_s if self._late else within_s):
            return True
        with self._lock:
            if not look.late and not look.ended.is_set():
                look.late = True
                self._late += 1
        return look.ended.is_set()

    def _over(self, looker: _Looker, look: _Look) -> None:
        with self._lock:
            look.ended.set()
            self._late -= look.late
            self._idle.append(looker)


# Of the whole process, as its disks and its event loop are.
_LOOKERS = _Lookers()
# A child has none of the threads.
os.register_at_fork(after_in_child=_LOOKERS.begin_anew)


class Glance:
    """Looks at one file. Its owner keeps what was seen."""

    def __init__(self, look: Callable[[], None], *, known: bool = False) -> None:
        """`look` may block, keeps what it has seen by itself, and expects no two at once but from different threads. `known`: its
        owner has something already.
        """
        self._look = look
        self._under_way: _Look | None = None
        self._known = known

    def __call__(self) -> bool:
        """Looks. False: the disk has not answered in time, and what was seen last is all that is known."""
        if not _on_event_loop():
            self._look()
            return True
        if (before := self._under_way) is not None:
            if not before.ended.is_set():
                return False
            self._under_way = None
            self._seen(before)
        look = _LOOKERS.begin(self._look)
        waits_s = (ONCE_S, MEANWHILE_S) if self._known else (FIRST_S, ONCE_S)
        if not _LOOKERS.wait(look, *waits_s):
            self._under_way = look
            return False
        self._seen(look)
        return True

    def _seen(self, look: _Look) -> None:
        if look.error is not None:
            raise look.error
        self._known = True


def _on_event_loop() -> bool:
    """Without loading asyncio: most commands need none."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


class Latest(Generic[T]):
    """What a function reads out of a file, newly each time; while the disk hangs, what it has read last."""

    def __init__(self, read: Callable[[], T], path: Path) -> None:
        """`read` raises ConfigError or OSError where it cannot. `path`: what is named when it was never read."""
        self._read = read
        self._path = path
        self._last: tuple[T | None, ConfigError | OSError | None] = (None, FileHangs(path))
        self._glance = Glance(self._look)

    def __call__(self) -> T:
        """Returns it, or raises what `read` has raised. FileHangs: it was never read."""
        self._glance()
        value, error = self._last
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # None only with an error, or where `read` returns it

    def _look(self) -> None:
        try:
            self._last = (self._read(), None)
        except (ConfigError, OSError) as error:
            self._last = (None, error)
