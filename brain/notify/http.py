"""Posts to a receiver over HTTP, with a deadline, and turns its answers into the errors of a channel."""

import asyncio
import re
import ssl
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip
from agent.shared import reasons
from brain import reach
from brain.outgoing import DIRECT, Outgoing, up_to

MAX_QUOTED = 200  # characters of the receiver's answer in an error
MAX_ANSWER = 65_536  # bytes of the answer that are read
RETRIED = (408, 425, 429)  # 4xx answers that allow a retry


_WEB_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE
)  # none of our receivers answers so
NOT_ADMITTED = (401, 403, 404, 407)  # answers that mean who posts, or where, and not what


class NotTaken(Refused):
    """The receiver answers that it will not take it. `status`: as in HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class NotAdmitted(NotTaken):
    """The receiver takes nothing from us there: a person must correct a token, a right, or the address."""


class Poster:
    """Posts to one base URL. The session is opened for the first page."""

    def __init__(
        self, url: str, *, timeout_s: float, tls: ssl.SSLContext | None = None, way: Outgoing = DIRECT
    ) -> None:
        """`url` may contain a secret: errors name only its host. `timeout_s`: for a whole exchange. `way`: out of the site."""
        self._url = url
        self._timeout_s = timeout_s
        self._tls = tls
        self._way = way
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str],
        path: str = "",
        *,
        method: str = "POST",
        quiet: Collection[int] = (),
        most: int = MAX_ANSWER,
    ) -> bytes:
        """Returns the answer's body, at most so many bytes. Unreachable: 5xx, 408, 425, 429, no connection,
        a web page. NotTaken: any other than 2xx; NotAdmitted: 401, 403, 404, 407. TimedOut: the receiver may have accepted it.

        `quiet`: statuses whose answer is returned, too, because it says more than they do. An answer 429 with
        Retry-After is retried then, if that is within the deadline.
        """
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                while True:
                    status, answer, retry_after_s = await self._once(body, headers, path, method, most)
                    if status != 429 or retry_after_s is None:
                        break
                    left_s = (deadline.when() or 0) - asyncio.get_running_loop().time()
                    if retry_after_s >= left_s:
                        raise Unreachable(f"{self.host} answered 429: again in {retry_after_s:g} s")
                    await asyncio.sleep(retry_after_s)
        except TimeoutError as error:
            raise TimedOut(f"{self.host} did not answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            why = self._way.trouble(error) or clip(reasons.what(error), MAX_QUOTED)
            raise Unreachable(f"{self.host}: {why}") from error
        if status == 407 and self._way.proxy_of(self._url) is not None:  # of an http:// receiver
            raise Unreachable(f"{self.host}: {self._way.refusal(status)}")
        if 200 <= status < 300 and _WEB_PAGE.match(answer):
            raise Unreachable(f"{self.host} answered with a web page: a proxy or a login stands in its place")
        if 200 <= status < 300 or status in quiet:
            return answer
        text = f"{self.host} answered {status}: {clip(answer.decode(errors='replace').strip(), MAX_QUOTED)}"
        if status >= 500 or status in RETRIED:
            raise Unreachable(text)
        raise (NotAdmitted if status in NOT_ADMITTED else NotTaken)(text, status)

    async def reach(self) -> str:
        """Connects, over TLS to an https:// URL, and asks nothing; returns whom it has reached. Unreachable: it cannot."""
        await reach.connects_to(self._url, within_s=self._timeout_s, tls=self._tls, way=self._way)
        return self.host

    async def close(self) -> None:
        """Closes the HTTP session."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def host(self) -> str:
        """The receiver without path and query: these often contain a token, and errors end up in notes."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    async def _once(
        self, body: bytes, headers: Mapping[str, str], path: str, method: str, most: int
    ) -> tuple[int, bytes, float | None]:
        if self._session is None:
            # What a receiver would have us keep is not kept: it would grow with each page.
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        async with self._session.request(
            method,
            self._url + path,
            data=body,
            headers={"Content-Type": "application/json", **headers},
            allow_redirects=False,
            proxy=self._way.proxy_of(self._url),
            proxy_headers=self._way.headers_of(self._url),
            ssl=self._tls if self._tls is not None else True,
        ) as answer:
            return (
                answer.status,
                await up_to(answer.content, most),
                _seconds(answer.headers.get("Retry-After")),
            )


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; None for a date or an invalid value."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.1, seconds) if seconds < 86400 else None


def check_headers(headers: Mapping[str, str], where: str) -> None:
    """ConfigError names the header that cannot be one."""
    for name, value in headers.items():
        if not name.isascii() or not value.isprintable() or not name.isprintable() or " " in name:
            raise ConfigError(f"{where}.{name!r}: not an HTTP header")


def checked_url(url: str, where: str) -> str:
    """Returns the URL without a trailing slash. ConfigError names the key, and never the URL's secret part."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"{where}: want http://host/... or https://host/..., not {clip(url, 40)!r}")
    return url.rstrip("/")


def trust(ca_file: Path | None, where: str) -> ssl.SSLContext | None:
    """Returns a TLS context that trusts a site's own CA; None: the system's CAs."""
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{where}: {ca_file}: {error.strerror or error}") from error
