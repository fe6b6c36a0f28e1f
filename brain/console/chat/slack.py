"""Slack's block actions: signature, sender, button. Pure.

https://docs.slack.dev/authentication/verifying-requests-from-slack: `X-Slack-Signature: v0=<hex>` is HMAC-SHA256(signing secret,
"v0:<X-Slack-Request-Timestamp>:<body>"), five minutes at most.
https://docs.slack.dev/reference/interaction-payloads/block_actions-payload: a form with the field `payload`, JSON. The answer is
an empty 200 within three seconds; what is said to the sender goes to `response_url`, which is Slack's own.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

import orjson

from brain.console.chat.once import Once, seconds
from brain.console.chat.refused import Forged, Odd

WITHIN_S = 300.0
ANSWERS = ("https://hooks.slack.com/", "https://hooks.slack-gov.com/")  # how response_url begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """One button that somebody pressed."""

    sender: str
    # Of this press: it counts once
    id: str
    value: str
    # Where the sender is answered; empty: nowhere
    response_url: str


def sign(secret: bytes, stamp: str, body: bytes) -> str:
    """Returns the value of X-Slack-Signature."""
    return "v0=" + hmac.new(secret, b"v0:" + stamp.encode() + b":" + body, sha256).hexdigest()


def verify(secret: bytes, headers: Mapping[str, str], body: bytes, once: Once, now: float) -> None:
    """Forged: Slack has not sent it now, or it was here before."""
    stamp, shown = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
    if not (stamp.isascii() and stamp.isdigit()) or once.too_old(seconds(stamp), now):
        raise Forged("its time is not now")
    if not hmac.compare_digest(sign(secret, stamp, body).encode(), shown.encode("utf-8", "replace")):
        raise Forged("its signature is wrong")
    if once.again(shown, now):
        raise Forged("it was here before")


def pressed(body: bytes) -> Pressed:
    """Returns the button that was pressed. Odd: it is no block action."""
    try:
        raw = parse_qs(body.decode(), strict_parsing=True, max_num_fields=10)["payload"][0]
        payload: Any = orjson.loads(raw)
        if payload["type"] != "block_actions":
            raise Odd(f"a payload of type {str(payload['type'])[:40]!r}")
        sender, action = payload["user"]["id"], payload["actions"][0]
        value, stamp = action["value"], action["action_ts"]
        url = payload.get("response_url", "")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise Odd("it is no block action") from error
    if not all(isinstance(one, str) for one in (sender, value, stamp, url)):
        raise Odd("it is no block action")
    ours = url.startswith(ANSWERS) and url.isascii() and url.isprintable()
    return Pressed(sender=sender, id=f"slack:{sender}:{stamp}", value=value, response_url=url if ours else "")
