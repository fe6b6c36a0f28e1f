"""The shape of a channel: one file, listed in `brain.notify.notifier.TYPES`."""

from typing import Protocol

from brain.notify.message import PageMessage


class Channel(Protocol):
    """One way to reach people."""

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        ...

    async def send(self, message: PageMessage) -> None:
        """Delivers one page, within the channel's own deadline.

        Refused: the receiver says no, asking again will not help. Unreachable: nobody was told.
        TimedOut: somebody may have been told; sending the same page again must be harmless.
        """
        ...

    async def close(self) -> None:
        """Gives connections back."""
        ...
