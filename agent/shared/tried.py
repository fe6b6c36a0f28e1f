"""What a thread has met, for whoever has sent it."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def tried(work: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """What `work` returns, or raises: whoever has sent a thread to do it raises that."""
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - not handled here: raised in the caller
        return None, error
