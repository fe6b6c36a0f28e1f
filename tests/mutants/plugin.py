"""A pytest plugin for mutants: the tables are tried first, and what loops for ever is ended by the time that it computes.

Not by the clock on the wall: a busy machine must not kill what a quiet one lets live.
"""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

LAST = ("test_audit_trail", "test_housekeeping")  # what goes over many stories
COMPUTES_S = 4.0  # the longest test needs a tenth of it


class TooLong(BaseException):
    """The test computes for too long. No `except Exception` holds it up."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order of all others stays."""
    items.sort(key=lambda item: any(name in item.nodeid for name in LAST))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Each test has its own time."""

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong(item.nodeid)

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, COMPUTES_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
