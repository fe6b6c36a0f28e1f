"""The REST API of NVIDIA UFM, after the "UFM Enterprise REST API Guide": events, ports, actions, jobs.

    [ufm.fabric-a]
    url = "https://ufm.example.com"
    token_file = "ufm.token"             # or user and password_file
    ca_file = "ufm-ca.pem"
    nodes = {"gpu-0001" = "gpu001"}      # UFM's system name -> node; otherwise the name up to its first dot

With a token, paths begin with /ufmRestV3 and the header is `Authorization: Basic <token>`; with user and password they
begin with /ufmRest.
"""

import asyncio
import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlsplit

import aiohttp
import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Unreachable
from agent.shared.secret_file import secret
from brain import fence, reach
from brain.console_config import LOOPBACK
from brain.options import options

MAX_BYTES = 64 * 1024 * 1024  # of one answer: all ports of a fabric of 10,000 nodes take about 30 MB
_MAX_QUOTE = 200  # characters of an error's text that are quoted
_JOB_PAUSE_S = 0.5
_RUNNING = ("pending", "running", "created", "queued", "in progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class UfmOptions:
    """The keys of a table of `[ufm]`."""

    # https://host[:port] of UFM
    url: str
    # Access token of UFM
    token_file: Path | None = None
    # User name, with password_file; instead of token_file
    user: str = ""
    # File with the password
    password_file: Path | None = None
    # PEM file with UFM's CA; none: the system's CAs
    ca_file: Path | None = None
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0
    # Interval of polling for events; 0: events are not read
    every_s: Annotated[float, Field(ge=0, le=3600)] = 10.0
    # UFM's system name -> node
    nodes: Mapping[str, str] = field(default_factory=dict)
    # More event types: number -> meaning
    types: Mapping[str, str] = field(default_factory=dict)
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Ufm:
    """One UFM. The HTTP session is opened at the first request."""

    def __init__(self, name: str, found: UfmOptions) -> None:
        """ConfigError when the secrets or the CA cannot be read."""
        where = f"ufm.{name}"
        url = urlsplit(found.url)
        if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK):
            raise ConfigError(f"{where}.url: must begin with https://, since a token is sent")
        token = secret(found.token_file, f"{where}.token_file")
        password = secret(found.password_file, f"{where}.password_file")
        if bool(token) == bool(found.user):
            raise ConfigError(f"{where}: give token_file, or user and password_file")
        self.name = name
        self.options = found
        self._base = found.url.rstrip("/") + ("/ufmRestV3" if token else "/ufmRest")
        basic = token or base64.b64encode(f"{found.user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {basic}"}
        self._tls: ssl.SSLContext | bool = True
        if found.ca_file is not None:
            try:
                self._tls = ssl.create_default_context(cafile=str(found.ca_file))
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(f"{where}.ca_file: {found.ca_file}: {error}") from error
        self._session: aiohttp.ClientSession | None = None

    def node(self, system: str) -> str:
        """Returns our name of a system with this name in UFM."""
        return self.options.nodes.get(system) or system.partition(".")[0]

    def system(self, node: str) -> str:
        """Returns UFM's name of a node."""
        return next((ufm for ufm, ours in self.options.nodes.items() if ours == node), node)

    async def reach(self) -> str:
        """Connects over TLS and asks nothing; returns whom it has reached. Unreachable: it cannot."""
        tls = self._tls if isinstance(self._tls, ssl.SSLContext) else None
        await reach.connects_to(self.options.url, within_s=self.options.timeout_s, tls=tls)
        return self.options.url

    async def events(self) -> list[dict[str, Any]]:
        """GET /app/events: all events that UFM remembers."""
        return _list(await self._get("/app/events"))

    async def ports(self, system: str = "") -> list[dict[str, Any]]:
        """GET /resources/ports: all ports, or those of one system (by UFM's name of it)."""
        query = {"system_name": system} if system else None
        found = _list(await self._get("/resources/ports", query))
        return [port for port in found if not system or port.get("system_name") == system]

    async def port(self, name: str) -> dict[str, Any]:
        """GET /resources/ports/<name>. Refused when there is none."""
        found = await self._get(f"/resources/ports/{quote(name, safe='')}")
        ports = _list(found) if isinstance(found, list) else [found]
        if not ports or not isinstance(ports[0], dict):
            raise Refused(f"UFM {self.name} has no port {name}")
        return dict(ports[0])

    async def act(self, action: str, port: str, why: str) -> None:
        """POST /actions with a port action (disable, enable); waits for the end of its job. ActionError when it failed."""
        body = {
            "action": action,
            "object_type": "Port",
            "object_ids": [port],
            "identifier": "id",
            "params": {},
            "description": why[:200],
        }
        status, headers, text = await self._exchange("POST", "/actions", json=body)
        if status == 202 and (job := _job(headers.get("Location", ""), text)):
            await self._finished(job, f"{action} {port}")

    async def close(self) -> None:
        """Closes the session."""
        if self._session is not None:
            await self._session.close()

    async def _finished(self, job: str, what: str) -> None:
        while True:
            found = await self._get(f"/jobs/{quote(job, safe='')}")
            state = str(found.get("Status", "")) if isinstance(found, dict) else ""
            if state.lower() == "completed":
                return
            if state.lower() not in _RUNNING:
                summary = found.get("Summary", "") if isinstance(found, dict) else ""
                raise ActionError(
                    f"UFM {self.name}: {what}: job {job} {state or 'is unknown'} {summary}".rstrip()
                )
            await asyncio.sleep(_JOB_PAUSE_S)

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        _, _, text = await self._exchange("GET", path, params=query)
        try:
            return orjson.loads(text)
        except ValueError as error:
            raise Unreachable(f"UFM {self.name}: {path} is not JSON: {text[:80]!r}") from error

    async def _exchange(self, method: str, path: str, **more: Any) -> tuple[int, Mapping[str, str], bytes]:
        """Returns (status, headers, body). TimedOut: a POST without an answer may or may not have been carried out."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                request_class=fence.Request,
                timeout=aiohttp.ClientTimeout(total=self.options.timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        about = f"UFM {self.name}"
        try:
            async with self._session.request(
                method, self._base + path, ssl=self._tls, allow_redirects=False, **more
            ) as answer:
                body = await _bounded(answer, about)
                status, headers = answer.status, dict(answer.headers)
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"{about} cannot be reached: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            says = f"{about} did not answer {method} {path}: {str(error) or type(error).__name__}"
            raise (TimedOut if method == "POST" else Unreachable)(says) from error
        says = f"{about}: {method} {path}: {status} {body[:_MAX_QUOTE].decode(errors='replace')}".rstrip()
        if status >= 500 or status in (408, 429):
            raise Unreachable(says)
        if status >= 300:
            raise Refused(
                f"{says} (check token_file, or user and password_file)" if status in (401, 403) else says
            )
        return status, headers, body


def ufms(tables: Mapping[str, Any]) -> dict[str, Ufm]:
    """Builds one client for each table of `[ufm]`; ConfigError names the key."""
    return {name: Ufm(name, options(UfmOptions, table, f"ufm.{name}")) for name, table in tables.items()}


async def _bounded(answer: aiohttp.ClientResponse, about: str) -> bytes:
    body = bytearray()
    async for data in answer.content.iter_chunked(256 * 1024):
        body += data
        if len(body) > MAX_BYTES:
            raise Unreachable(f"{about} answers more than {MAX_BYTES} bytes")
    return bytes(body)


def _list(found: Any) -> list[dict[str, Any]]:
    """Returns the records in an answer: a list or, with paging, an object with the list in `data`."""
    if isinstance(found, dict):
        found = found.get("data", [])
    return [dict(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _job(location: str, text: bytes) -> str:
    """Returns the id of a job from `.../jobs/<id>`, in the Location header or, in older versions, in the body."""
    for place in (location, text[:1000].decode(errors="replace")):
        id_ = place.partition("/jobs/")[2]
        if digits := "".join(c for c in id_[:20] if c.isdigit()):
            return digits
    return ""
