"""Who is told by which channel, and what to do when a channel fails."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.contract.errors import ActionError, ConfigError
from brain.core.effects import SendPage
from brain.core.spec import Rule
from brain.core.state import Run
from brain.notify import log, webhook
from brain.notify.base import Channel
from brain.notify.log import PageLog
from brain.notify.message import compose

ONCALL = "oncall"
_REMEMBERED = 10_000  # incidents of which we know where their page went

# One line for each type of channel: (name, its configuration table, "channels.<name>" for errors) -> channel.
TYPES: dict[str, Callable[[str, Mapping[str, Any], str], Channel]] = {
    "log": log.build,
    "webhook": webhook.build,
}


class Notifier:
    """Tries a group's channels in order. The engine repeats what could not be delivered."""

    def __init__(self, channels: Mapping[str, Channel], groups: Mapping[str, Sequence[str]]) -> None:
        self._channels = dict(channels)
        self._groups = {name: list(names) for name, names in groups.items()}
        self._told: dict[str, str] = {}  # incident -> channel that took its last page

    async def send(
        self, page: SendPage, *, rule: Rule | None = None, runs: Sequence[Run] = ()
    ) -> tuple[bool, str, str]:
        """(delivered, channel, why). `why` says what failed on the way, also when another channel took it.

        A resolution goes to the channel that took the page and to no other: the alert there would stay open.
        """
        message = compose(page, rule=rule, runs=runs)  # at once: the engine goes on changing its incident
        names, why = self._names(page.to)
        told = self._told.get(message.dedup_key)
        if told in names:
            names = [told] if page.what == "resolve" else [told, *(name for name in names if name != told)]
        for name in names:
            try:
                await self._channels[name].send(message)
            except ActionError as error:
                why.append(f"{name}: {error}")
                continue
            self._remember(message.dedup_key, name, resolved=page.what == "resolve")
            return True, name, "; ".join(why)
        if not names:
            why.append(f"group {ONCALL} has no channel")
        return False, "", "; ".join(why)

    async def close(self) -> None:
        """Closes every channel."""
        for channel in self._channels.values():
            await channel.close()

    def _names(self, group: str) -> tuple[list[str], list[str]]:
        if group in self._groups:
            return self._groups[group], []
        if group == ONCALL:
            return [], []
        return self._groups.get(ONCALL, []), [f"there is no group {group!r}, {ONCALL} is told"]

    def _remember(self, incident: str, channel: str, *, resolved: bool) -> None:
        self._told.pop(incident, None)
        if not resolved:
            self._told[incident] = channel
            while len(self._told) > _REMEMBERED:
                del self._told[next(iter(self._told))]


def build(channels: Mapping[str, Any], groups: Mapping[str, Sequence[str]], data_dir: Path) -> Notifier:
    """The notifier of a configuration.

    `channels`: name → table with `type` and that type's options. `groups`: name → channels, in the order in
    which they are tried; group `oncall` is all of them when it is not given. Without any channel there is one
    of the name `log`, which appends to `pages.log` in `data_dir`. ConfigError names `channels.<name>.<key>` or `groups.<name>`.
    """
    built = {name: _channel(name, table) for name, table in channels.items()}
    if not built:
        built = {"log": PageLog("log", data_dir / "pages.log")}
    for group, names in groups.items():
        for name in names:
            if name not in built:
                raise ConfigError(f"groups.{group}: there is no channel {name!r} (have: {', '.join(built)})")
        if not names:
            raise ConfigError(f"groups.{group}: needs at least one channel")
    return Notifier(built, {ONCALL: list(built)} | {name: list(names) for name, names in groups.items()})


def _channel(name: str, table: Any) -> Channel:
    where = f"channels.{name}"
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: must be a table with a type and its options")
    kind = table.get("type")
    make = TYPES.get(kind) if isinstance(kind, str) else None
    if make is None:
        says = "is missing" if kind is None else f"unknown channel type {kind!r}"
        raise ConfigError(f"{where}.type: {says} (have: {', '.join(TYPES)})")
    return make(name, table, where)
