"""The shape of a channel: one file, listed in `brain.notify.notifier.TYPES`."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class Keeper(Protocol):
    """A channel whose receiver takes an alert for over when nobody tells it again."""

    @property
    def refresh_s(self) -> float:
        """How often."""
        ...

    async def keep(self, open_now: Callable[[], Sequence[PageMessage]]) -> None:
        """Tells what is open. `open_now` is asked at the moment of telling. Errors as in `Channel.send`."""
        ...
