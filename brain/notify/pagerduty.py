"""PagerDuty, by its Events API v2: one alert for each incident, with one deduplication key from open to resolved.

https://developer.pagerduty.com/docs/send-alert-event: 202 is success; 400 an event that will never be accepted; 429
and 5xx allow a retry. The routing key is a secret. A repeat is a `trigger` with the same key: it adds to the alert's log,
and PagerDuty's own escalation goes on.

A trigger for an alert that was acknowledged calls nobody there. So an incident that people are called for anew, because it is
more urgent than what they have acknowledged, is resolved first. A `resolve` of an alert that PagerDuty does not have is
dropped there: what came and went while PagerDuty could not be reached becomes an alert of severity info that is resolved at
once, so that it stands in the list and wakes nobody who goes by severity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import Field

from agent.contract.errors import ConfigError
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.notify import http
from brain.notify.message import Language, PageMessage
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

EU = "https://events.eu.pagerduty.com"
MAX_SUMMARY = 1024  # characters
MAX_BODY = 512 * 1024  # bytes
_SEVERITY = {"P0": "critical", "P1": "error", "P2": "warning", "P3": "info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerDutyOptions:
    """The keys of a table with `type = "pagerduty"`."""

    # file with the integration key of an Events API v2 integration
    routing_key_file: Path
    # EU accounts: https://events.eu.pagerduty.com
    url: str = "https://events.pagerduty.com"
    # where people open the console; a link in the alert
    console_url: str = ""
    # of the rule's knowledge
    language: Language = "both"
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class PagerDuty:
    """One integration of one PagerDuty service."""

    def __init__(self, name: str, routing_key: str, want: PagerDutyOptions, way: Outgoing = DIRECT) -> None:
        self._name = name
        self._key = routing_key
        self._want = want
        self._http = http.Poster(http.checked_url(want.url, "url"), timeout_s=want.timeout_s, way=way)

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> None:
        """As in Channel. The same event sent twice is harmless: the key is the same."""
        sent = event(message, self._key, self._want)
        if message.untold:
            await self._http.post(_body(trigger(message, self._key, self._want, "info")), {}, "/v2/enqueue")
        if message.what == "open" and message.severities:
            former = {name: sent[name] for name in ("routing_key", "dedup_key")} | {"event_action": "resolve"}
            await self._http.post(_body(former), {}, "/v2/enqueue")
        await self._http.post(_body(sent), {}, "/v2/enqueue")

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()


def event(message: PageMessage, routing_key: str, want: PagerDutyOptions) -> dict[str, Any]:
    """Returns the event. The parts of the page are in `custom_details`, in reading order."""
    base = {"routing_key": routing_key, "event_action": message.status, "dedup_key": message.dedup_key}
    if message.status != "trigger":
        return base
    return trigger(message, routing_key, want, _SEVERITY[message.severity])


def trigger(message: PageMessage, routing_key: str, want: PagerDutyOptions, severity: str) -> dict[str, Any]:
    """Returns the event that opens or updates an alert. `severity`: PagerDuty's."""
    links = [{"href": link, "text": link} for link in message.links if link.startswith("http")]
    if want.console_url:
        links.insert(0, {"href": message.in_console(want.console_url), "text": "gpuward's console"})
    details = {
        section.label: list(section.lines) if len(section.lines) > 1 else section.lines[0]
        for section in message.sections(want.language)
    }
    return {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": message.dedup_key,
        "client": "gpuward",
        "links": links,
        "payload": {
            "summary": clip(f"{message.subject}: {message.why_now}", MAX_SUMMARY),
            "source": message.node or message.scope,
            "severity": severity,
            "timestamp": message.since,
            "component": message.scope,
            "group": message.group,
            "class": message.cause,
            "custom_details": details,
        },
    }


def _body(content: dict[str, Any]) -> bytes:
    body = orjson.dumps(content)
    if len(body) > MAX_BODY:  # should not happen, as messages are bounded; the page must not be lost for it
        content["payload"]["custom_details"] = {"cut": "the page was too large: see gpuward explain"}
        body = orjson.dumps(content)
    return body


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> PagerDuty:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(PagerDutyOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    key = secret(want.routing_key_file, f"{where}.routing_key_file")
    if len(key) != 32 or not key.isalnum():
        raise ConfigError(
            f"{where}.routing_key_file: {want.routing_key_file}: an integration key has 32 letters and digits"
        )
    return PagerDuty(name, key, want, way)
