"""For short reads that may never end: of another process' memory (its command line, its environment), while that process is
stuck on a file system, or makes the kernel wait on purpose.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 0.1
MOST_STUCK = 8  # at a time; then nobody waits any more
_NAME = "may be stuck"


def within(work: Callable[[], T], otherwise: T, wait_s: float = WAIT_S) -> T:
    """What `work` returns, or `otherwise` when it takes longer than `wait_s`: its thread is left behind then. `work` must not
    raise.
    """
    if sum(thread.name == _NAME for thread in threading.enumerate()) >= MOST_STUCK:
        return otherwise
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(work()), name=_NAME, daemon=True)
    thread.start()
    thread.join(wait_s)
    return results[0] if results else otherwise
