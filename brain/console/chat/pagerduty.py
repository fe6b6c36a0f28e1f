"""PagerDuty's webhooks, version 3: signature, event, person. Pure.

https://developer.pagerduty.com/docs/webhooks-overview and .../verifying-webhook-signatures: `X-PagerDuty-Signature` has one or
several `v1=<hex>`, HMAC-SHA256(secret, body), one for each secret in use. `event.id` is the same when it is sent again;
`event.data.incident_key` is the `dedup_key` by which gpuward opened it. The signature has no time of its own, so the
`occurred_at` that it covers must be of the last hour.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson

from brain.console.chat.refused import Forged, Odd
from brain.core import ids
from brain.core.pack.spec import Scalar

WITHIN_S = 3600.0
ACKNOWLEDGED, RESOLVED = "incident.acknowledged", "incident.resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What became of one incident at PagerDuty."""

    id: str
    kind: str
    # seconds since 1970; NaN: not known
    at: float
    # gpuward's id of the incident or alert group; empty: it is not one of gpuward's
    about: str
    # PagerDuty's id of who did it; empty: no person
    sender: str


def sign(secret: bytes, body: bytes) -> str:
    """Returns one signature."""
    return "v1=" + hmac.new(secret, body, sha256).hexdigest()


def verify(secret: bytes, headers: Mapping[str, str], body: bytes) -> None:
    """Forged: PagerDuty has not sent it."""
    wanted = sign(secret, body).encode()
    shown = [
        one.strip().encode("utf-8", "replace") for one in headers.get("X-PagerDuty-Signature", "").split(",")
    ]
    if not any(hmac.compare_digest(wanted, one) for one in shown):
        raise Forged("its signature is wrong")


def event(body: bytes) -> Happened:
    """Returns what happened. Odd: it has not PagerDuty's form."""
    try:
        raw: Any = orjson.loads(body)["event"]
        id_, kind, data, agent = raw["id"], raw["event_type"], raw["data"], raw.get("agent")
        about, stamp = data.get("incident_key"), raw["occurred_at"]
        person = agent.get("id") if agent and agent.get("type") == "user_reference" else ""
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise Odd("it is no event") from error
    if not all(isinstance(one, str) for one in (id_, kind, stamp, person)) or not id_:
        raise Odd("it is no event")
    return Happened(
        id=f"pagerduty:{id_}",
        kind=kind,
        at=_time(stamp),
        about=about if isinstance(about, str) else "",
        sender=person,
    )


def wanted(one: Happened) -> tuple[str, dict[str, Scalar]] | None:
    """What is said here of it: an acknowledgement, or a note that it was resolved there. None: nothing.

    What somebody resolves there is not over for that: the fault decides, or a person who closes it here. What no person did
    (gpuward's own events come back this way) says nothing.
    """
    if not one.sender:
        return None
    if one.kind == ACKNOWLEDGED and one.about.startswith((f"{ids.INCIDENT}-", f"{ids.ALERT_GROUP}-")):
        return "ack", {"id": one.about}
    if one.kind == RESOLVED and one.about.startswith(f"{ids.INCIDENT}-"):
        return "note", {
            "id": one.about,
            "text": "resolved at PagerDuty: here it stays open until the fault is gone",
        }
    return None


def _time(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return found.timestamp() if found.tzinfo else float("nan")
