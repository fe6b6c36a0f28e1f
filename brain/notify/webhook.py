"""Posts the page as JSON to one URL, signed, so that the receiver can verify that it is ours and recent.

    Ward-Timestamp: 1700000000            seconds since 1970
    Ward-Signature: v1=<hex>              HMAC-SHA256(secret, "<timestamp>." + body)

The body's `dedup_key` is the same for all pages of an alert and its `status` is trigger, acknowledge or resolve, so that a
page that is sent again updates the receiver's alert and does not open a second one. `Ward-Page` is the page's id.
"""

import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.shared.secret_file import secret
from brain.notify import http
from brain.notify.message import PageMessage
from brain.options import options
from brain.outgoing import DIRECT, Outgoing


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The keys of a table with `type = "webhook"`."""

    # http:// or https://; redirects are not followed
    url: str
    # file with the shared secret; none: the page is not signed
    secret_file: Path | None = None
    # for the whole exchange
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    # additional headers, e.g. Authorization
    headers: Mapping[str, str] = field(default_factory=dict)
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Webhook:
    """One receiver."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: bytes = b"",
        timeout_s: float = 10.0,
        headers: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        way: Outgoing = DIRECT,
    ) -> None:
        self._name = name
        self._http = http.Poster(url, timeout_s=timeout_s, way=way)
        self._secret = secret
        self._headers = dict(headers or {})
        self._clock = clock

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> None:
        """As in Channel; errors as of `http.Poster.post`."""
        body = message.to_json()
        stamp = str(int(self._clock()))
        headers = self._headers | {"Ward-Page": message.id, "Ward-Timestamp": stamp}
        if self._secret:
            headers["Ward-Signature"] = "v1=" + sign(self._secret, stamp, body)
        await self._http.post(body, headers)

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()


def sign(secret: bytes, stamp: str, body: bytes) -> str:
    """Returns the signature of a body in hexadecimal; `stamp` is the text of the header Ward-Timestamp."""
    return hmac.new(secret, stamp.encode() + b"." + body, sha256).hexdigest()


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> Webhook:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(WebhookOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    http.check_headers(want.headers, f"{where}.headers")
    shared = secret(want.secret_file, f"{where}.secret_file").encode()
    return Webhook(name, want.url, secret=shared, timeout_s=want.timeout_s, headers=want.headers, way=way)
