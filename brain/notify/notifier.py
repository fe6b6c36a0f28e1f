"""Chooses the channels of a page, and goes on to the next when one fails."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agent.contract.errors import ActionError, TimedOut
from brain.all_wrong import AllWrong
from brain.core.paging import queue
from brain.core.state import State
from brain.notify.base import Channel, RefreshedChannel, RememberingChannel
from brain.notify.compose import compose_from
from brain.notify.log import PageLog
from brain.notify.message import PageMessage
from brain.options import plug_in
from brain.outgoing import DIRECT, Outgoing
from brain.traces.ids import trace_id
from brain.unreadable import answered_by

ONCALL = "oncall"
LOG = "log"  # the channel of a site that has configured none
_REMEMBERED = 10_000  # alerts

# One line for each type of channel: a function (name, its table, "channels.<name>" for errors, the way out) -> Channel.
TYPES: Mapping[str, str] = {
    "alertmanager": "brain.notify.alertmanager:build",
    "apprise": "brain.notify.apprise:build",
    "dingtalk": "brain.notify.dingtalk:build",
    "feishu": "brain.notify.feishu:build",
    "jira": "brain.notify.jira:build",
    "log": "brain.notify.log:build",
    "pagerduty": "brain.notify.pagerduty:build",
    "slack": "brain.notify.slack:build",
    "ticket": "brain.notify.ticket:build",
    "webhook": "brain.notify.webhook:build",
    "wecom": "brain.notify.wecom:build",
}


class Sent(NamedTuple):
    """What became of a page."""

    delivered: bool
    # that took it, with ", " between them
    channels: str
    # what failed on the way, also when another channel accepted it
    why: str
    # channel -> by what its receiver knows the alert
    tickets: Mapping[str, str]


class Notifier:
    """Tries a group's channels in order. The engine repeats a page that was not delivered."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        groups: Mapping[str, Sequence[str]],
        *,
        traced: bool = False,
        cell: str = "",
    ) -> None:
        """`traced`: does each incident have a trace, whose id its pages show? `cell`: whose pages they are."""
        self._traced = traced
        self._cell = cell
        self._channels = dict(channels)
        self._groups = {name: list(names) for name, names in groups.items()}
        # "<subject> <group>" -> channels that may have an alert of it
        self._unsure: dict[str, list[str]] = {}
        self._refreshed: dict[str, float] = {}  # channel -> when

    async def send(self, message: PageMessage, alerted: Sequence[str] = ()) -> Sent:
        """Returns what became of it.

        An alert goes to the first channel that accepts it, in the group's order each time: people whom the second channel
        did not wake may wake by the first, now that it works again. An acknowledgement or a resolution goes to all
        channels that accepted an alert (`alerted`), and is delivered when all of them have it: elsewhere the alert would
        stay open.
        """
        accepted = [name for name in alerted if name in self._channels]
        unsure = [name for name in self._unsure.get(_key(message), ()) if name not in accepted]
        names, why = self._names(message.group)
        tickets: dict[str, str] = {}
        if message.status == "trigger" or not accepted:
            delivered = await self._first(message, names, why, tickets)
        else:
            delivered = await self._all(message, accepted, why, tickets)
        if message.status != "trigger":
            for name in unsure:
                await self._try(message, name, why, tickets)
        if message.what == "resolve" and delivered:
            self._unsure.pop(_key(message), None)
        return Sent(bool(delivered), ", ".join(delivered), "; ".join(why), tickets)

    async def refresh(self, state: Callable[[], State], now: float) -> list[str]:
        """Sends the open alerts again by the channels that need it; `now`: monotonic seconds. Returns what failed."""
        why: list[str] = []
        for name, channel in self._channels.items():
            if (
                not isinstance(channel, RefreshedChannel)
                or now - self._refreshed.get(name, 0.0) < channel.refresh_s
            ):
                continue
            self._refreshed[name] = now
            try:
                with answered_by():
                    await channel.refresh(partial(self._open_at, name, state))
            except ActionError as error:
                why.append(f"{name}: {error}")
        return why

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Name → channel."""
        return self._channels

    async def close(self) -> None:
        """Closes every channel."""
        for channel in self._channels.values():
            await channel.close()

    async def _first(
        self, message: PageMessage, names: Sequence[str], why: list[str], tickets: dict[str, str]
    ) -> list[str]:
        for name in names:
            error = await self._try(message, name, why, tickets)
            if error is None:
                return [name]
            if isinstance(error, TimedOut):
                self._remember(message, name)
        if not names:
            why.append(f"group {ONCALL} has no channel")
        return []

    async def _all(
        self, message: PageMessage, names: Sequence[str], why: list[str], tickets: dict[str, str]
    ) -> list[str]:
        done = [name for name in names if await self._try(message, name, why, tickets) is None]
        return done if len(done) == len(names) else []

    async def _try(
        self, message: PageMessage, name: str, why: list[str], tickets: dict[str, str]
    ) -> ActionError | None:
        try:
            with answered_by(error_kind=TimedOut):
                ticket = await self._channels[name].send(self._ours(message))
            if ticket:
                tickets[name] = ticket
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

    def _ours(self, message: PageMessage) -> PageMessage:
        """With its trace, and buttons that say whose they are."""
        buttons = tuple(replace(one, cell=self._cell) for one in message.buttons)
        trace = trace_id(message.about) if self._traced else message.trace_id
        return replace(message, buttons=buttons, trace_id=trace)

    def _open_at(self, channel: str, state: Callable[[], State]) -> list[PageMessage]:
        """The alerts that are open now and were sent by this channel."""
        now = state()
        messages = []
        for about in queue.everything(now):
            for group, channels in about.pages.by.items():
                if channel in channels and not about.pages.resolved:
                    message = compose_from(now, queue.still_open(now, about, group))
                    messages.append(self._ours(message))
        return messages

    def _remember(self, message: PageMessage, channel: str) -> None:
        known = self._unsure.setdefault(_key(message), [])
        if channel not in known:
            known.append(channel)
        while len(self._unsure) > _REMEMBERED:
            del self._unsure[next(iter(self._unsure))]


def _key(message: PageMessage) -> str:
    return f"{message.dedup_key} {message.group}"


def build(
    channels: Mapping[str, Any],
    groups: Mapping[str, Sequence[str]],
    data_dir: Path,
    *,
    traced: bool = False,
    cell: str = "",
    way: Outgoing = DIRECT,
) -> Notifier:
    """Builds the notifier of a configuration. `traced`, `cell`: as of Notifier. `way`: out of the site.

    `channels`: name → table with `type` and that type's options. `groups`: name → channels, in the order in which they are
    tried; the group `oncall` is all of them when it is not given. Without any channel there is one named `log`, which
    appends to `pages.log` in `data_dir`. ConfigError names `channels.<name>.<key>` or `groups.<name>`.
    """
    built = {name: _channel(name, table, way) for name, table in channels.items()}
    for channel in built.values():
        if isinstance(channel, RememberingChannel):
            channel.remember_in(data_dir)
    if not built:
        built = {LOG: PageLog(LOG, data_dir / "pages.log")}
    check_groups(groups, built)
    named = {ONCALL: list(built)} | {name: list(names) for name, names in groups.items()}
    return Notifier(built, named, traced=traced, cell=cell)


def check_groups(groups: Mapping[str, Sequence[str]], channels: Collection[str]) -> None:
    """ConfigError: a line for each channel that a group names and that is none of `channels`."""
    wrong = AllWrong()
    for group, names in groups.items():
        for name in names:
            if name not in channels:
                wrong.add(f"groups.{group}: there is no channel {name!r} (have: {', '.join(channels)})")
        if not names:
            wrong.add(f"groups.{group}: needs at least one channel")
    wrong.end()


def _channel(name: str, table: Any, way: Outgoing) -> Channel:
    where = f"channels.{name}"
    channel: Channel = plug_in(table, where, TYPES)(name, table, where, way)
    return channel
