"""One receiver over HTTP: a deadline, and what its answers mean for a page."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip

SAYS_MAX = 200  # characters of the receiver's answer that we quote
ANSWER_MAX = 65_536  # bytes of it that we read
AGAIN = (408, 425, 429)  # of the 4xx, these say "later", not "no"


class Poster:
    """Posts bodies to one base URL. The session is opened at the first page."""

    def __init__(self, url: str, *, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        """`url` may hold a secret: errors name only its host. `timeout_s`: for a whole exchange."""
        self._url = url
        self._timeout_s = timeout_s
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: bytes, headers: Mapping[str, str], path: str = "") -> bytes:
        """The answer's body. 5xx, 408, 425, 429, no connection: Unreachable. Other than 2xx: Refused.

        A receiver that says when to come again (Retry-After) is asked again within the deadline. TimedOut: it may
        have taken it.
        """
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                while True:
                    status, says, again_s = await self._once(body, headers, path)
                    if status != 429 or again_s is None:
                        break
                    left_s = (deadline.when() or 0) - asyncio.get_running_loop().time()
                    if again_s >= left_s:
                        raise Unreachable(f"{self.host} answered 429: again in {again_s:g} s")
                    await asyncio.sleep(again_s)
        except TimeoutError as error:
            raise TimedOut(f"{self.host} did not answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self.host}: {clip(str(error) or type(error).__name__, SAYS_MAX)}") from error
        if 200 <= status < 300:
            return says
        text = f"{self.host} answered {status}: {clip(says.decode(errors='replace').strip(), SAYS_MAX)}"
        raise Unreachable(text) if status >= 500 or status in AGAIN else Refused(text)

    async def close(self) -> None:
        """Closes the HTTP session."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def host(self) -> str:
        """The receiver without path and query: those often hold a token, and errors end up in notes."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    async def _once(
        self, body: bytes, headers: Mapping[str, str], path: str
    ) -> tuple[int, bytes, float | None]:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        async with self._session.post(
            self._url + path,
            data=body,
            headers={"Content-Type": "application/json", **headers},
            allow_redirects=False,
            ssl=self._tls if self._tls is not None else True,
        ) as answer:
            return (
                answer.status,
                await answer.content.read(ANSWER_MAX),
                _seconds(answer.headers.get("Retry-After")),
            )


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; a date, or nonsense, is nothing."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.1, seconds) if seconds < 86400 else None


def checked_url(url: str, where: str) -> str:
    """The URL without a slash at its end; ConfigError names the key, and never the URL's secret part."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"{where}: want http://host/... or https://host/..., not {clip(url, 40)!r}")
    return url.rstrip("/")


def trust(ca_file: Path | None, where: str) -> ssl.SSLContext | None:
    """TLS that trusts a site's own CA; None: the system's CAs."""
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{where}: {ca_file}: {error.strerror or error}") from error
