"""The way out of the site: which requests go by its proxy, and what is said when the proxy does not let them through.

Who opens a connection to the outside asks `Outgoing`. Libraries that only know the environment (Apprise, obstore) find the same
in theirs: `to_environment`.
"""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import aiohttp

from agent.shared import reasons
from agent.shared.secret_file import secret
from brain.outgoing_config import OutgoingConfig

_HERE = ("localhost", "127.0.0.0/8", "::1")
_PORT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """The proxy of a site, or none."""

    # http://host:port, without a password; empty: none
    proxy: str = ""
    # user:password; empty: it wants none
    credentials: str = field(default="", repr=False)
    no_proxy: tuple[str, ...] = ()

    def proxy_of(self, url: str) -> str | None:
        """The proxy by which this URL is reached; None: directly."""
        host = (urlsplit(url).hostname or "").lower().rstrip(".")
        return (
            self.proxy if self.proxy and not any(_fits(host, one) for one in _HERE + self.no_proxy) else None
        )

    def headers_of(self, url: str) -> Mapping[str, str] | None:
        """What the proxy is told besides, for this URL."""
        if not self.credentials or self.proxy_of(url) is None:
            return None
        user, _, password = self.credentials.partition(":")
        return {"Proxy-Authorization": aiohttp.encode_basic_auth(user, password)}

    def address(self) -> tuple[str, int]:
        """Host and port of the proxy."""
        parts = urlsplit(self.proxy)
        return parts.hostname or "", parts.port or _PORT

    def refusal(self, status: int) -> str:
        """What it means that the proxy answers so, and not the receiver."""
        if status in (401, 407):  # tinyproxy answers 401 to a wrong password
            return (
                f"the proxy {self.proxy} wants a user and a password, or does not take ours ({status}): "
                "outgoing.credentials_file"
            )
        if status == 403:
            return f"the proxy {self.proxy} does not let us go there (403)"
        return f"the proxy {self.proxy} cannot go there ({status})"

    def trouble(self, error: Exception) -> str:
        """In plain words, where it is the proxy's; else empty."""
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self.refusal(error.status)
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            return f"the proxy {self.proxy} cannot be reached: {reasons.what(error)}"
        return ""


DIRECT = Outgoing()


def outgoing(config: OutgoingConfig) -> Outgoing:
    """The way out of a configuration. ConfigError: the credentials cannot be read."""
    credentials = secret(config.credentials_file, "outgoing.credentials_file") if config.proxy else ""
    return Outgoing(proxy=config.proxy, credentials=credentials, no_proxy=config.no_proxy)


async def up_to(content: aiohttp.StreamReader, most: int) -> bytes:
    """An answer comes in pieces: all of them, but at most so many bytes."""
    parts: list[bytes] = []
    while most > 0 and (part := await content.read(most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def to_environment(way: Outgoing) -> None:
    """Tells libraries that have no other way to learn it. Without a proxy in the configuration nothing is changed."""
    if not way.proxy:
        return
    user, colon, password = way.credentials.partition(":")
    who = f"{quote(user, safe='')}{colon}{quote(password, safe='')}@" if way.credentials else ""
    for name, value in (
        ("HTTP_PROXY", way.proxy.replace("http://", f"http://{who}", 1)),
        ("HTTPS_PROXY", way.proxy.replace("http://", f"http://{who}", 1)),
        ("NO_PROXY", ",".join(one.lstrip("*") for one in _HERE + way.no_proxy)),
    ):
        os.environ[name] = os.environ[name.lower()] = value


def _fits(host: str, one: str) -> bool:
    """Is this host, or address, meant by one entry of no_proxy?"""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(one, strict=False)
    except (ValueError, TypeError):
        name = one.lower().lstrip("*").strip(".")
        return host == name or host.endswith(f".{name}")
