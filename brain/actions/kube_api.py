"""The Kubernetes API through kubernetes-asyncio: connection, credentials, and errors by who must act.

The library reads kubeconfig files with all their kinds of credentials. We send and read plain JSON through it, so that
no field of a newer server is lost. It is imported at the first request (0.3 s, 38 MB): only sites with Kubernetes pay
for it.
"""

import asyncio
import importlib
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from agent import __version__
from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Transient, Unreachable
from agent.contract.messages import clip
from agent.shared import reasons
from agent.shared.secret_file import secret
from brain import fence
from brain.actions.patience import Grants
from brain.aside import aside
from brain.glance import FileHangs, Latest

MANAGER = "gpuward"  # the field manager that owns the fields we set
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"  # merges lists of named things by their name
MAX_ANSWER_BYTES = 64 * 1024 * 1024
NOT_FOUND, CONFLICT, TOO_MANY = 404, 409, 429
_EXPIRED = 410  # of a list: where it goes on was too long ago
MAX_LISTED = 1_000_000  # things in one list
_SECONDS = re.compile(r"[0-9]{1,15}")
# What the library stumbles over in a kubeconfig that is being written
_OF_A_HALF_FILE = (TypeError, AttributeError, LookupError)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VERBS = {"GET": "get", "PATCH": "patch", "POST": "create"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the API is reached: one of kubeconfig, in_cluster and url."""

    kubeconfig: Path | None
    context: str
    in_cluster: bool
    url: str
    token_file: Path | None
    ca_file: Path | None
    # "schedulers.<name>", for errors
    where: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response with status 2xx, 404, 409 or 429."""

    status: int
    body: Mapping[str, Any]
    retry_after_s: float
    # It is not what an API server says with this status, and may come from something in between
    foreign: bool = False

    @property
    def message(self) -> str:
        """The server's message, or the status without one."""
        return clip(str(self.body.get("message") or self.status), 300)


def readable(kubeconfig: Path, key: str) -> None:
    """ConfigError, which names the key, when the file cannot be read."""
    try:
        with kubeconfig.open("rb"):
            pass
    except OSError as error:
        raise ConfigError(f"{key}: {kubeconfig} cannot be read: {error.strerror}") from error


def ok(answer: Response, what: str) -> Mapping[str, Any]:
    """What a response with a status of 2xx has. Unreachable: the server is busy. Refused: it says no."""
    if answer.status == TOO_MANY:
        raise Unreachable(f"{what}: the server is busy: {answer.message}")
    if not 200 <= answer.status < 300:
        raise Refused(f"{what}: {answer.message}")
    return answer.body


def named(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object, if it is the one of this name. Transient: something else has answered, as a proxy or a login page."""
    meta = found.get("metadata") or {}
    if meta.get("name") != name or not meta.get("uid"):
        raise Transient(f"Kubernetes was asked for {name}, and the answer is something else")
    return found


class KubeApi:
    """One API server. It connects at the first request and reads credentials again when the server refuses them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        read = partial(secret, access.token_file, f"{access.where}.token_file")
        self._latest = Latest(read, access.token_file or Path())
        self._client: Any = None  # kubernetes_asyncio.client.ApiClient: the library has no types
        self._lock = asyncio.Lock()
        self._grants = Grants()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, Any] | None = None,
        patch: str = MERGE,
    ) -> Response:
        """Sends a request; `patch`: the kind of a PATCH. 404, 409 and 429 are responses. Refused: the server rejects it.
        Transient: it fails just now, or denies what it has allowed before. Unreachable: nothing was done. TimedOut: a change may
        have been made.
        """
        kind = patch if method == "PATCH" else "application/json"
        answer = await self._once(method, path, query, body, kind)
        if answer.status == 401:  # an expired token; kubeconfig plug-ins and files have a newer one
            await self.close()
            answer = await self._once(method, path, query, body, kind)
        status, text = answer.status, f"{method} {path}: {answer.status} {answer.message}"
        if status in (401, 403):
            raise self._grants.denied(_right(method, path), text)
        if status >= 500 or status == _EXPIRED:
            raise Transient(text)
        if answer.foreign:  # nothing is known by what a proxy, or a login page in between, says
            raise (Transient if method == "GET" else TimedOut)(f"this is no answer of Kubernetes: {text}")
        self._grants.allowed(_right(method, path))
        if 200 <= status < 300 or status in (NOT_FOUND, CONFLICT, TOO_MANY):
            return answer
        raise Refused(text)

    async def pages(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most: int
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Everything in a list, asked for in pages of `most`. Refused: there is no such list. Other errors as of `request`."""
        more, left = "", MAX_LISTED
        while True:
            paged = [*query, ("limit", str(most)), *([("continue", more)] if more else [])]
            body = ok(await self.request("GET", path, query=paged), path.rpartition("/")[2])
            if not isinstance(items := body.get("items", ""), list):
                raise Transient(f"GET {path}: the answer is no list")
            for one in items:
                yield one
            before, more = more, str((body.get("metadata") or {}).get("continue") or "")
            if not more:
                return
            left -= max(1, len(items))
            if more == before or left <= 0:  # what stands between us and the server may know no pages
                raise ActionError(f"Kubernetes at {path}: its list has no end")

    async def may(self, verb: str, resource: str, subresource: str, namespace: str = "") -> bool:
        """Asks whether our account may do this (a SelfSubjectAccessReview), in every namespace where none is given. `resource`:
        with its group behind a dot, unless it is of the core. Errors as of `request`.
        """
        name, _, group = resource.partition(".")
        wanted = {
            "verb": verb,
            "group": group,
            "resource": name,
            "subresource": subresource,
            "namespace": namespace,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        with fence.around(fence.CHANGES_NOTHING):  # it is a question that is asked by POST: nothing is stored
            answer = await self.request("POST", _REVIEWS, body=body)
        if "allowed" not in (said := answer.body.get("status") or {}):
            raise Transient(f"POST {_REVIEWS}: the answer is no review")
        return bool(said["allowed"])

    async def close(self) -> None:
        """Closes the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _once(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: Mapping[str, Any] | None,
        kind: str,
    ) -> Response:
        client = await self._connected()
        try:
            async with asyncio.timeout(self._access.timeout_s):
                answer = await client.call_api(
                    path,
                    method,
                    query_params=list(query),
                    header_params={"Accept": "application/json", "Content-Type": kind},
                    body=body,
                    auth_settings=["BearerToken"],
                    _preload_content=False,
                    _request_timeout=self._access.timeout_s,
                )
                try:
                    body_bytes = await _bounded(answer.content)
                finally:
                    answer.release()
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            self._grants.away()
            if isinstance(
                error, aiohttp.ClientSSLError
            ):  # the CA may be a newer one, which stands in its file
                await self.close()
            where = (
                f"{error.host}:{error.port}" if isinstance(error, aiohttp.ClientConnectorError) else "its URL"
            )
            raise Unreachable(f"Kubernetes at {where}: {reasons.what(error)}") from error
        except ConfigError as error:
            raise Refused(str(error)) from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            self._grants.away()
            text = f"{method} {path}: {type(error).__name__} {error}"
            raise (Unreachable if method == "GET" else TimedOut)(text) from error
        return _response(answer.status, body_bytes, answer.headers.get("Retry-After", ""))

    async def _connected(self) -> Any:
        async with self._lock:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> Any:
        access = self._access
        client = await asyncio.to_thread(importlib.import_module, "kubernetes_asyncio.client")
        config = await asyncio.to_thread(importlib.import_module, "kubernetes_asyncio.config")
        wanted = client.Configuration()
        try:
            if access.in_cluster:
                config.load_incluster_config(client_configuration=wanted)
            elif access.kubeconfig is not None:
                # The library says of a file that is not there that it has no current context.
                await aside(
                    partial(readable, access.kubeconfig, f"{access.where}.kubeconfig"), access.kubeconfig
                )
                async with asyncio.timeout(access.timeout_s):  # a plug-in may fetch credentials
                    await config.load_kube_config(
                        config_file=str(access.kubeconfig),
                        context=access.context or None,
                        client_configuration=wanted,
                        persist_config=False,
                    )
            else:
                wanted.host = access.url
                wanted.ssl_ca_cert = str(access.ca_file) if access.ca_file else None
                wanted.refresh_api_key_hook = self._token
                self._token(wanted)  # the library asks the hook only where a token is set already
            made = client.ApiClient(configuration=wanted)
            made.user_agent = f"gpuward/{__version__}"  # in the server's audit log
            return _fenced(made)
        except TimeoutError as error:
            raise Unreachable(
                f"{access.where}: credentials were not ready in {access.timeout_s:g} s"
            ) from error
        except FileHangs as error:
            raise Unreachable(str(error)) from error
        except ConfigError as error:
            raise Refused(clip(str(error), 300)) from error
        except (config.ConfigException, OSError, ValueError, yaml.YAMLError, *_OF_A_HALF_FILE) as error:
            which = f"kubeconfig {access.kubeconfig}: " if access.kubeconfig else ""
            raise Refused(f"{access.where}: {which}{clip(str(error), 300)}") from error

    def _token(self, configuration: Any) -> None:
        """Sets the token, read from its file each time since it is renewed there."""
        token = self._latest()
        if token:
            configuration.api_key["BearerToken"] = f"Bearer {token}"


def _fenced(client: Any) -> Any:
    """Lets the library send its requests through the fence (brain/fence.py), on the connections that it has made."""
    made = client.rest_client.pool_manager
    client.rest_client.pool_manager = aiohttp.ClientSession(
        connector=made.connector,
        # A proxy of the environment, which is that of [outgoing], leads out of the site.
        trust_env=False,
        read_bufsize=1 << 21,
        request_class=fence.Request,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    made.detach()
    return client


def _right(method: str, path: str) -> str:
    """Returns what a role must allow for a request, in the words of RBAC: `patch nodes`, `create pods/eviction`."""
    where = path.strip("/").split("/")
    where = where[3 if where[0] == "apis" else 2 :]  # after api/v1, or apis/<group>/v1
    if where[:1] == ["namespaces"]:
        where = where[2:]
    resource = "/".join(where[::2])
    verb = "list" if method == "GET" and len(where) == 1 else _VERBS.get(method, method)
    return f"{verb} {resource}"


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    content = bytearray()
    async for part in stream.iter_chunked(1 << 16):
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise ActionError(f"Kubernetes answered more than {MAX_ANSWER_BYTES} bytes")
    return bytes(content)


def _response(status: int, content: bytes, retry_after: str) -> Response:
    try:
        body = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        body = None
    foreign = not isinstance(body, dict) or (status == NOT_FOUND and body.get("kind") != "Status")
    if not isinstance(body, dict):
        body = {"message": content[:200].decode(errors="replace")}
    foreign &= 200 <= status < 300 or status == NOT_FOUND
    wait_s = float(retry_after) if _SECONDS.fullmatch(retry_after) else 0.0
    return Response(status=status, body=body, retry_after_s=min(wait_s, 60.0), foreign=foreign)
