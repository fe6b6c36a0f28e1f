"""Alertmanager, by its v2 API: for sites that route and silence there.

An alert is identified by its labels: they stay the same from open to resolved, everything else is in annotations.
Alertmanager resolves an alert when its `endsAt` has passed, and forgets all alerts when it restarts. So each alert ends
`hold_s` from now, and while this brain leads, `refresh` posts all open alerts every `refresh_s`. What is open is read from
the engine each time: no alert outlives its incident, whichever brain opened it. Alertmanager tells nobody of an alert that
was resolved before it fired: what came and went while it could not be reached fires for `hold_s`, as a P3.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError
from agent.shared.secret_file import secret
from brain.core.pack.spec import Priority
from brain.notify import http
from brain.notify.message import Language, PageMessage
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_BATCH = 200  # alerts in one post


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerOptions:
    """The keys of a table with `type = "alertmanager"`."""

    # every instance of the cluster: each gets all alerts, as Prometheus sends them
    urls: tuple[str, ...]
    # additional labels, e.g. cluster
    labels: Mapping[str, str] = field(default_factory=dict)
    # bearer token
    token_file: Path | None = None
    # PEM file; none: the system's CAs
    ca_file: Path | None = None
    # where people open the console
    console_url: str = ""
    # of the rule's knowledge
    language: Language = "both"
    # Open alerts are posted again at this interval
    refresh_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    # an alert that was not refreshed for so long is resolved
    hold_s: Annotated[float, Field(gt=1)] = 1800.0
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Alertmanager:
    """One Alertmanager or its cluster: a page is delivered when one instance has accepted it."""

    def __init__(
        self, name: str, want: AlertmanagerOptions, token: str = "", where: str = "", way: Outgoing = DIRECT
    ) -> None:
        tls = http.trust(want.ca_file, f"{where}.ca_file")
        self._name = name
        self._want = want
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = [
            http.Poster(http.checked_url(url, f"{where}.urls"), timeout_s=want.timeout_s, tls=tls, way=way)
            for url in want.urls
        ]
        # A refresh that was composed before a resolution must not be posted after it.
        self._one_at_a_time = asyncio.Lock()

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    @property
    def refresh_s(self) -> float:
        """How often `refresh` is to be called."""
        return self._want.refresh_s

    async def send(self, message: PageMessage) -> None:
        """As in Channel. The same alert posted again updates it."""
        async with self._one_at_a_time:
            await self._post([message])

    async def refresh(self, open_now: Callable[[], Sequence[PageMessage]]) -> None:
        """Posts the alerts that are open at this moment again."""
        async with self._one_at_a_time:
            messages = open_now()
            for first in range(0, len(messages), _BATCH):
                await self._post(messages[first : first + _BATCH])

    async def reach(self) -> str:
        """As in Channel: every instance, since each may be the only one that is left."""
        return ", ".join([await poster.reach() for poster in self._http])

    async def close(self) -> None:
        """Closes the HTTP sessions."""
        for poster in self._http:
            await poster.close()

    async def _post(self, messages: Sequence[PageMessage]) -> None:
        now = datetime.now(UTC)
        body = orjson.dumps([one for message in messages for one in alerts(message, self._want, now)])
        posts = [poster.post(body, self._headers, "/api/v2/alerts") for poster in self._http]
        failed = [
            error for error in await asyncio.gather(*posts, return_exceptions=True) if error is not None
        ]
        errors = [error for error in failed if isinstance(error, BaseException)]
        for error in errors:
            if not isinstance(error, ActionError):
                raise error
        if len(errors) == len(posts):
            raise errors[-1]


def alerts(message: PageMessage, want: AlertmanagerOptions, now: datetime) -> list[dict[str, Any]]:
    """Returns the alert of a page, and the ends of those with the labels that it had before."""
    held = now + timedelta(seconds=want.hold_s)
    if message.untold:
        return [_alert(message, want, Priority.P3, held)]
    found = [_alert(message, want, message.severity, now if message.status == "resolve" else held)]
    for severity in dict.fromkeys(message.severities):
        if severity != message.severity:
            found.append(_alert(message, want, severity, now))
    for face in message.before:
        former = replace(message, cause=face.cause, node=face.node)
        found.append(_alert(former, want, face.severity, now))
    return found


def _alert(message: PageMessage, want: AlertmanagerOptions, severity: str, ends: datetime) -> dict[str, Any]:
    labels = {
        **want.labels,
        "alertname": message.cause,
        "incident": message.dedup_key,
        "severity": severity,
        "group": message.group,
        "node": message.node,  # Alertmanager drops an empty label
    }
    annotations = {
        section.label.replace(" ", "_"): "\n".join(section.lines) for section in message.sections("en")
    }
    annotations |= {
        "summary": message.subject,
        "description": message.to_text(want.language),
        "acknowledged_by": message.acked_by,
    }
    if message.links:
        annotations["runbook_url"] = message.links[0]
    starts = min(datetime.fromisoformat(message.since), ends)
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": starts.isoformat(),
        "endsAt": ends.isoformat(),
        **({"generatorURL": message.in_console(want.console_url)} if want.console_url else {}),
    }


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> Alertmanager:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(AlertmanagerOptions, table, where)
    if not want.urls:
        raise ConfigError(f"{where}.urls: needs at least one")
    if want.hold_s < 2 * want.refresh_s:
        raise ConfigError(
            f"{where}.hold_s: must be at least twice refresh_s, or alerts end while they are open"
        )
    token = secret(want.token_file, f"{where}.token_file")
    return Alertmanager(name, want, token, where, way)
