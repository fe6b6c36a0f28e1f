"""Posts the page as JSON to one URL, signed so that the receiver can tell that it is ours and fresh.

    Ward-Timestamp: 1700000000            seconds since 1970
    Ward-Signature: v1=<hex>              HMAC-SHA256(secret, "<timestamp>." + body)

The body's `dedup_key` is the incident's id and its `status` trigger or resolve, so that a page which is sent
again updates the receiver's alert instead of making a second one. `Ward-Page` is the page's id.
"""

import asyncio
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

import aiohttp
from pydantic import Field

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip
from brain.notify.message import PageMessage
from brain.options import options

_SAYS_MAX = 200  # characters of the receiver's answer that we quote
_AGAIN = (408, 425, 429)  # of the 4xx, these say "later", not "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """What a table of `type = "webhook"` holds."""

    url: str  # http:// or https://; redirects are not followed
    secret_file: Path | None = None  # file with the shared secret; none: the page is not signed
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0  # for the whole exchange
    headers: Mapping[str, str] = field(default_factory=dict)  # more headers, e.g. Authorization
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Webhook:
    """One receiver. The HTTP session is opened at the first page."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: bytes = b"",
        timeout_s: float = 10.0,
        headers: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._url = url
        self._secret = secret
        self._timeout_s = timeout_s
        self._headers = dict(headers or {})
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> None:
        """As in Channel. 2xx: delivered. 5xx, 408, 425, 429, no connection: Unreachable. Else: Refused."""
        body = message.to_json()
        stamp = str(int(self._clock()))
        headers = self._headers | {
            "Content-Type": "application/json",
            "Ward-Page": message.id,
            "Ward-Timestamp": stamp,
        }
        if self._secret:
            headers["Ward-Signature"] = "v1=" + sign(self._secret, stamp, body)
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status, says = answer.status, await answer.content.read(_SAYS_MAX)
        except TimeoutError as error:
            raise TimedOut(f"{self._host()} did not answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(
                f"{self._host()}: {clip(str(error) or type(error).__name__, _SAYS_MAX)}"
            ) from error
        if 200 <= status < 300:
            return
        text = f"{self._host()} answered {status}: {says.decode(errors='replace').strip()}"
        raise Unreachable(text) if status >= 500 or status in _AGAIN else Refused(text)

    async def close(self) -> None:
        """Closes the HTTP session."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _host(self) -> str:
        """The receiver without path and query: those often hold a token, and errors end up in notes."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def sign(secret: bytes, stamp: str, body: bytes) -> str:
    """The signature of a body, hexadecimal; `stamp` is the text of the header Ward-Timestamp."""
    return hmac.new(secret, stamp.encode() + b"." + body, sha256).hexdigest()


def build(name: str, table: Mapping[str, Any], where: str) -> Webhook:
    """The channel of a configuration table; ConfigError names the key."""
    want = options(WebhookOptions, table, where)
    try:
        parts = urlsplit(want.url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"{where}.url: want http://host/... or https://host/..., not {want.url!r}")
    for header, value in want.headers.items():
        if not header.isascii() or not value.isprintable() or not header.isprintable() or " " in header:
            raise ConfigError(f"{where}.headers.{header!r}: not an HTTP header")
    secret = b""
    if want.secret_file is not None:
        try:
            secret = want.secret_file.read_bytes().strip()
        except OSError as error:
            raise ConfigError(f"{where}.secret_file: {want.secret_file}: {error.strerror}") from error
        if not secret:
            raise ConfigError(f"{where}.secret_file: {want.secret_file} is empty")
    return Webhook(name, want.url, secret=secret, timeout_s=want.timeout_s, headers=want.headers)
