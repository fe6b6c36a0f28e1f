"""The part `[outgoing]` of the brain's configuration: the way out of the site."""

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, field_validator

_HOST = re.compile(r"\*?\.?[\w-]+(\.[\w-]+)*\.?")


class OutgoingConfig(BaseModel):
    """By what proxy the brain reaches channels, dead man's switches, identity provider, collector, Prometheus and S3. Never BMCs,
    schedulers, UFM, switches, NATS, and what is on this machine (docs/operations.md).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # http://host:port of a proxy that knows CONNECT; empty: none. The environment's HTTPS_PROXY is not read
    proxy: str = ""
    # file with `user:password` for it; none: it wants none
    credentials_file: Path | None = None
    # Hosts, domains with all below them, addresses and networks (10.0.0.0/8) that are reached without it
    no_proxy: tuple[str, ...] = ()

    @field_validator("proxy")
    @classmethod
    def _is_one(cls, url: str) -> str:
        """What is said never shows a password that stands in it."""
        try:
            parts = urlsplit(url)
            good = url.startswith("http://") and bool(parts.hostname) and parts.port != 0
            good = good and not re.search(r"\s", url)
        except ValueError:
            good = False
        if url and "@" in url:
            raise ValueError("user and password do not stand here: put `user:password` into credentials_file")
        if url and (not good or parts.path.strip("/") or parts.query or parts.fragment):
            raise ValueError("want http://host:port")
        return url.rstrip("/")

    @field_validator("no_proxy")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """A URL, a port, a network that is none, or several hosts in one, would fit nothing, silently."""
        for host in hosts:
            if not _HOST.fullmatch(host) and not _is_network(host):
                raise ValueError(f"{host!r}: want a host, a domain, an address or a network, without a port")
        return hosts


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
