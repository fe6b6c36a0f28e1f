"""The shape of a channel: one file, listed in `brain.notify.notifier.TYPES`; and how its options are read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError
from brain.notify.message import PageMessage

T = TypeVar("T")


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


def options(shape: type[T], table: Mapping[str, Any], where: str) -> T:
    """`table` as the dataclass `shape` of a channel's options; ConfigError names `<where>.<key>`.

    The key `type` is not an option: it chose the channel.
    """
    try:
        return TypeAdapter(shape).validate_python(
            {key: value for key, value in table.items() if key != "type"}
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        says = {"missing": "is missing", "unexpected_keyword_argument": "is not an option of this channel"}
        raise ConfigError(f"{where}.{key}: {says.get(first['type'], first['msg'])}") from error
