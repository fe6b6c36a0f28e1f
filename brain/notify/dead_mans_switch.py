"""Dead man's switches: something outside raises the alarm when this cell no longer calls it.

Pages of our own cannot tell that every brain, its machine or its network is gone. The leader calls each switch every few
seconds while faults are seen and healed (brain/leader/leader_watch.py); who stops calling is missed there.

| type | what is called |
|---|---|
| `url` | a POST to an address of its own, as healthchecks.io (https://healthchecks.io/docs/http_api/) and its like give one |
| `alertmanager` | an alert that always fires, as Prometheus' own Watchdog: route it to a receiver that misses it |
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError
from agent.shared.secret_file import secret
from brain.notify import http
from brain.options import options, plug_in
from brain.outgoing import DIRECT, Outgoing

ALERT = "GpuwardWatchdog"  # its name in Alertmanager
MISSED = 3  # calls that may be lost before the alert ends

TYPES: Mapping[str, str] = {
    "url": "brain.notify.dead_mans_switch:build_url",
    "alertmanager": "brain.notify.dead_mans_switch:build_alertmanager",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOptions:
    """The keys of a table with `type = "url"`."""

    # the address
    url: str = ""
    # instead: a file with it, as who knows it can call it
    url_file: Path | None = None
    # PEM file; none: the system's CAs
    ca_file: Path | None = None
    # Pause between calls; the other side should wait for some times as long before it raises the alarm
    every_s: Annotated[float, Field(ge=1, le=3600)] = 30.0
    # Timeout of one call
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogOptions:
    """The keys of a table with `type = "alertmanager"`."""

    # every instance of the cluster
    urls: tuple[str, ...]
    # additional labels of the alert
    labels: Mapping[str, str] = field(default_factory=dict)
    # bearer token
    token_file: Path | None = None
    # PEM file; none: the system's CAs
    ca_file: Path | None = None
    # Pause between calls; the alert ends after three times as long
    every_s: Annotated[float, Field(ge=1, le=3600)] = 30.0
    # Timeout of one call
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How a switch is called: `body` is made anew each time. One of `posters` that takes it is enough."""

    posters: tuple[http.Poster, ...]
    path: str
    headers: Mapping[str, str]
    body: Callable[[], Any]
    every_s: float


class DeadMansSwitch:
    """Calls one switch for as long as `works` says so."""

    def __init__(
        self, name: str, call: Call, *, works: Callable[[], bool], note: Callable[[str, str], None]
    ) -> None:
        """`note(kind, text)` writes what people must be able to read later."""
        self._name = name
        self._call = call
        self._works = works
        self._note = note
        self._failing = False

    async def serve(self) -> None:
        """Calls, until cancelled. A switch that does not answer is noted once, and called again."""
        while True:
            if self._works():
                self._tell(await self._called())
            await asyncio.sleep(self._call.every_s)

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def reach(self) -> str:
        """Connects and does not call it; returns whom it has reached. Unreachable: it cannot."""
        return ", ".join([await poster.reach() for poster in self._call.posters])

    async def close(self) -> None:
        """Closes the HTTP sessions."""
        for poster in self._call.posters:
            await poster.close()

    async def _called(self) -> str:
        """Empty: at least one took it; else why none did."""
        body = orjson.dumps(self._call.body())
        posts = [poster.post(body, self._call.headers, self._call.path) for poster in self._call.posters]
        found = await asyncio.gather(*posts, return_exceptions=True)
        errors = [error for error in found if isinstance(error, BaseException)]
        for error in errors:
            if not isinstance(error, ActionError):
                raise error
        return "; ".join(map(str, errors)) if len(errors) == len(found) else ""

    def _tell(self, why: str) -> None:
        if bool(why) == self._failing:
            return
        self._failing = bool(why)
        text = (
            f"dead_mans_switches.{self._name}: {why}"
            if why
            else f"dead_mans_switches.{self._name} answers again"
        )
        self._note("switch.unreachable" if why else "switch.answers", text)


def dead_mans_switches(
    tables: Mapping[str, Any],
    *,
    cell: str,
    works: Callable[[], bool],
    note: Callable[[str, str], None],
    way: Outgoing = DIRECT,
) -> list[DeadMansSwitch]:
    """Builds the switches of a configuration; ConfigError names `dead_mans_switches.<name>.<key>`."""
    found = []
    for name, table in tables.items():
        where = f"dead_mans_switches.{name}"
        call: Call = plug_in(table, where, TYPES)(table, where, cell, way)
        found.append(DeadMansSwitch(name, call, works=works, note=note))
    return found


def build_url(table: Mapping[str, Any], where: str, cell: str, way: Outgoing = DIRECT) -> Call:
    """The call of an address of its own."""
    want = options(UrlOptions, table, where)
    if bool(want.url) == (want.url_file is not None):
        raise ConfigError(f"{where}: give `url` or `url_file`")
    url = http.checked_url(want.url or secret(want.url_file, f"{where}.url_file"), f"{where}.url")
    poster = http.Poster(
        url, timeout_s=want.timeout_s, tls=http.trust(want.ca_file, f"{where}.ca_file"), way=way
    )
    return Call(posters=(poster,), path="", headers={}, body=lambda: {"gpuward": cell}, every_s=want.every_s)


def build_alertmanager(table: Mapping[str, Any], where: str, cell: str, way: Outgoing = DIRECT) -> Call:
    """The call that keeps an alert firing."""
    want = options(WatchdogOptions, table, where)
    if not want.urls:
        raise ConfigError(f"{where}.urls: needs at least one")
    tls = http.trust(want.ca_file, f"{where}.ca_file")
    token = secret(want.token_file, f"{where}.token_file")
    began = datetime.now(UTC).isoformat()

    def alert() -> list[dict[str, Any]]:
        ends = datetime.now(UTC) + timedelta(seconds=MISSED * want.every_s)
        summary = f"gpuward watches and heals cell {cell}: the alarm is that this alert ends"
        return [
            {
                "labels": {**want.labels, "alertname": ALERT, "cell": cell},
                "annotations": {"summary": summary},
                "startsAt": began,
                "endsAt": ends.isoformat(),
            }
        ]

    return Call(
        posters=tuple(
            http.Poster(http.checked_url(url, f"{where}.urls"), timeout_s=want.timeout_s, tls=tls, way=way)
            for url in want.urls
        ),
        path="/api/v2/alerts",
        headers={"Authorization": f"Bearer {token}"} if token else {},
        body=alert,
        every_s=want.every_s,
    )
