"""Who is told by which channel, and what to do when a channel fails."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agent.contract.errors import ActionError, ConfigError, TimedOut
from brain.core import postbox
from brain.core.effects import SendPage
from brain.core.spec import Rule
from brain.core.state import Run, State
from brain.notify import alertmanager, apprise, log, pagerduty, slack, webhook
from brain.notify.base import Channel, Keeper
from brain.notify.compose import compose, compose_from
from brain.notify.log import PageLog
from brain.notify.message import PageMessage

ONCALL = "oncall"
_REMEMBERED = 10_000  # incidents

# One line for each type of channel: (name, its configuration table, "channels.<name>" for errors) -> channel.
TYPES: dict[str, Callable[[str, Mapping[str, Any], str], Channel]] = {
    "alertmanager": alertmanager.build,
    "apprise": apprise.build,
    "log": log.build,
    "pagerduty": pagerduty.build,
    "slack": slack.build,
    "webhook": webhook.build,
}


class Notifier:
    """Tries a group's channels in order. The engine repeats what could not be delivered."""

    def __init__(self, channels: Mapping[str, Channel], groups: Mapping[str, Sequence[str]]) -> None:
        self._channels = dict(channels)
        self._groups = {name: list(names) for name, names in groups.items()}
        self._unsure: dict[
            str, list[str]
        ] = {}  # "<incident> <group>" -> channels that may have an alert of it
        self._kept: dict[str, float] = {}  # channel -> when it was refreshed

    async def send(
        self, page: SendPage, *, rule: Rule | None = None, runs: Sequence[Run] = ()
    ) -> tuple[bool, str, str]:
        """(delivered, channel, why). `why` says what failed on the way, also when another channel took it.

        Alerts go to the first channel that takes them, in the group's order each time: who did not wake up by the second
        channel may by the first, now that it is back. An acknowledgement and a resolution go to all channels that
        took an alert, and count when all of these have them: an alert would stay open there.
        """
        message = compose(page, rule=rule, runs=runs)  # at once: the engine goes on changing its incident
        took = [name for name in page.incident.pages.by.get(page.to, ()) if name in self._channels]
        unsure = [name for name in self._unsure.get(_key(page), ()) if name not in took]
        names, why = self._names(page.to)
        if message.status == "trigger" or not took:
            delivered = await self._first(page, message, names, why)
        else:
            delivered = await self._all(message, took, why)
        if message.status != "trigger":
            for name in unsure:
                await self._try(message, name, why)
        if message.what == "resolve" and delivered:
            self._unsure.pop(_key(page), None)
        return bool(delivered), ", ".join(delivered), "; ".join(why)

    async def refresh(self, state: Callable[[], State], now: float) -> list[str]:
        """Tells the channels that must hear of it again what is open; `now`: monotonic seconds. What failed."""
        why: list[str] = []
        for name, channel in self._channels.items():
            if not isinstance(channel, Keeper) or now - self._kept.get(name, 0.0) < channel.refresh_s:
                continue
            self._kept[name] = now
            try:
                await channel.keep(partial(_open_at, name, state))
            except ActionError as error:
                why.append(f"{name}: {error}")
        return why

    async def close(self) -> None:
        """Closes every channel."""
        for channel in self._channels.values():
            await channel.close()

    async def _first(
        self, page: SendPage, message: PageMessage, names: Sequence[str], why: list[str]
    ) -> list[str]:
        for name in names:
            said = await self._try(message, name, why)
            if said is None:
                return [name]
            if isinstance(said, TimedOut):
                self._remember(page, name)
        if not names:
            why.append(f"group {ONCALL} has no channel")
        return []

    async def _all(self, message: PageMessage, names: Sequence[str], why: list[str]) -> list[str]:
        done = [name for name in names if await self._try(message, name, why) is None]
        return done if len(done) == len(names) else []

    async def _try(self, message: PageMessage, name: str, why: list[str]) -> ActionError | None:
        try:
            await self._channels[name].send(message)
        except ActionError as error:
            why.append(f"{name}: {error}")
            return error
        return None

    def _names(self, group: str) -> tuple[list[str], list[str]]:
        if group in self._groups:
            return self._groups[group], []
        if group == ONCALL:
            return [], []
        return self._groups.get(ONCALL, []), [f"there is no group {group!r}, {ONCALL} is told"]

    def _remember(self, page: SendPage, channel: str) -> None:
        known = self._unsure.setdefault(_key(page), [])
        if channel not in known:
            known.append(channel)
        while len(self._unsure) > _REMEMBERED:
            del self._unsure[next(iter(self._unsure))]


def _key(page: SendPage) -> str:
    return f"{page.incident.id} {page.to}"


def _open_at(channel: str, state: Callable[[], State]) -> list[PageMessage]:
    """What is open now and was told by this channel."""
    now = state()
    messages = []
    for about in postbox.everything(now):
        for group, channels in about.pages.by.items():
            if channel in channels and not about.pages.resolved:
                messages.append(compose_from(now, postbox.still_open(about, group)))
    return messages


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
