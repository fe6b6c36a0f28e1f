"""NVIDIA UFM's REST API, as the "UFM Enterprise REST API Guide" documents it: events, ports, actions, jobs.

    [ufm.fabric-a]
    url = "https://ufm.example.com"
    token_file = "ufm.token"             # or user and password_file
    ca_file = "ufm-ca.pem"
    nodes = {"gpu-0001" = "gpu001"}      # UFM's system name -> node; others are the name up to its first dot

With a token the paths begin with /ufmRestV3 and the header is `Authorization: Basic <token>`; with user and password
they begin with /ufmRest.
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
from brain.config import LOOPBACK
from brain.options import options, secret

MAX_BYTES = 64 * 1024 * 1024  # of one answer: all ports of a fabric of 10,000 nodes are some 30 MB
_SAYS = 200  # characters of an error's text that are quoted
_JOB_PAUSE_S = 0.5
_RUNNING = ("pending", "running", "created", "queued", "in progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class UfmOptions:
    """What a table of `[ufm]` holds."""

    url: str  # https://host[:port]
    token_file: Path | None = None  # an access token of UFM
    user: str = ""  # else user and password
    password_file: Path | None = None
    ca_file: Path | None = None  # none: the system's CAs
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0  # of one exchange
    every_s: Annotated[float, Field(ge=0, le=3600)] = 10.0  # between looks for events; 0: none
    nodes: Mapping[str, str] = field(default_factory=dict)  # UFM's system name -> node
    types: Mapping[str, str] = field(default_factory=dict)  # more event types: number -> meaning
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Ufm:
    """One UFM. The HTTP session is opened at the first question."""

    def __init__(self, name: str, found: UfmOptions) -> None:
        """ConfigError when the secrets or the CA cannot be read."""
        where = f"ufm.{name}"
        url = urlsplit(found.url)
        if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK):
            raise ConfigError(f"{where}.url: must begin with https://: the token must not be read on the way")
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
        """Our name of a system that UFM calls so."""
        return self.options.nodes.get(system) or system.partition(".")[0]

    def system(self, node: str) -> str:
        """UFM's name of a node."""
        return next((ufm for ufm, ours in self.options.nodes.items() if ours == node), node)

    async def events(self) -> list[dict[str, Any]]:
        """GET /app/events: all that UFM remembers."""
        return _list(await self._get("/app/events"))

    async def ports(self, system: str = "") -> list[dict[str, Any]]:
        """GET /resources/ports: all, or those of one system (UFM's name of it)."""
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
        """POST /actions with a port action (disable, enable), then its job to the end. ActionError when it failed."""
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
        """(status, headers, body). Of a POST without an answer nobody knows whether it was done."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=self.options.timeout_s),
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
            says = f"{about} gave no answer to {method} {path}: {str(error) or type(error).__name__}"
            raise (TimedOut if method == "POST" else Unreachable)(says) from error
        says = f"{about}: {method} {path}: {status} {body[:_SAYS].decode(errors='replace')}".rstrip()
        if status >= 500 or status in (408, 429):
            raise Unreachable(says)
        if status >= 300:
            raise Refused(
                f"{says} (look at token_file, or user and password_file)" if status in (401, 403) else says
            )
        return status, headers, body


def ufms(tables: Mapping[str, Any]) -> dict[str, Ufm]:
    """One for each table of `[ufm]`; ConfigError names the key."""
    return {name: Ufm(name, options(UfmOptions, table, f"ufm.{name}")) for name, table in tables.items()}


async def _bounded(answer: aiohttp.ClientResponse, about: str) -> bytes:
    body = bytearray()
    async for data in answer.content.iter_chunked(256 * 1024):
        body += data
        if len(body) > MAX_BYTES:
            raise Unreachable(f"{about} answers more than {MAX_BYTES} bytes")
    return bytes(body)


def _list(found: Any) -> list[dict[str, Any]]:
    """The records in an answer: a list, or (with paging) an object with the list in `data`."""
    if isinstance(found, dict):
        found = found.get("data", [])
    return [dict(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _job(location: str, text: bytes) -> str:
    """The id of a job in `.../jobs/<id>`, in the Location header or, of older versions, in the body."""
    for place in (location, text[:1000].decode(errors="replace")):
        id_ = place.partition("/jobs/")[2]
        if digits := "".join(c for c in id_[:20] if c.isdigit()):
            return digits
    return ""
