"""The shape of a channel: one file, listed in `brain.notify.notifier.TYPES`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from brain.notify.message import PageMessage


class Channel(Protocol):
    """One way to reach people."""

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        ...

    async def send(self, message: PageMessage) -> str | None:
        """Delivers one page, within the channel's own deadline. Returns by what its receiver knows the alert, such as the
        key of a ticket, where later pages need that; the log keeps it for every brain.

        Refused: the receiver rejects the page, a retry will not help. Unreachable: the page was not delivered.
        TimedOut: it may have been delivered; sending the same page again must be harmless.
        """
        ...

    async def reach(self) -> str:
        """Looks whether its receiver can be reached, and tells it nothing. Returns whom it has reached; empty: that cannot be
        known without sending a page. Unreachable: it cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Closes connections."""
        ...


@runtime_checkable
class RememberingChannel(Protocol):
    """A channel that keeps something over a restart."""

    def remember_in(self, folder: Path) -> None:
        """Says where, before the first page, and reads what is there."""
        ...


@runtime_checkable
class RefreshedChannel(Protocol):
    """A channel whose receiver resolves an alert that is not refreshed."""

    @property
    def refresh_s(self) -> float:
        """How often."""
        ...

    async def refresh(self, open_now: Callable[[], Sequence[PageMessage]]) -> None:
        """Sends the open alerts again. `open_now` is called at the moment of sending. Errors as in `Channel.send`."""
        ...
