"""Gives memory back that the process does not use: what it takes beside a job is a promise to the user."""

import contextlib
import ctypes

_M_ARENA_MAX = -8


def one_arena() -> None:
    """From now on threads share one arena of malloc. Of Python's threads only one runs at a time: more arenas cost memory
    and save nothing. To be called before there are threads.
    """
    with contextlib.suppress(AttributeError):  # a C library other than glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Returns free pages to the kernel."""
    with contextlib.suppress(AttributeError):  # as above
        ctypes.CDLL(None).malloc_trim(0)
