"""Slurm through slurmrestd, for a brain without munge: it reads nodes and jobs, and from v0.0.39 (Slurm 23.02) on sets the
state of a node. 22.05 answers POST /node with 405. No version can requeue or reboot: that needs scontrol.

The token is read from its file for each request, since it expires (`scontrol token`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Transient, Unreachable
from agent.contract.messages import clip
from agent.shared import reasons
from agent.shared.secret_file import secret
from brain import fence
from brain.actions.patience import Grants
from brain.actions.slurm_rows import (
    ON_NODE,
    SILENT,
    JobRow,
    NodeRow,
    PendingRow,
    fixed,
    gave_up,
    indices,
    number,
    suspended,
    written,
)
from brain.glance import FileHangs, Latest
from brain.hostlist import expand

SETS_NODES = 39  # v0.0.39 is the first in which POST /node exists
MAX_ANSWER_BYTES = 256 * 1024 * 1024  # all jobs of a large cluster
_VERSION = re.compile(r"v0\.0\.([0-9]{2})")


def version(text: str, where: str) -> int:
    """Returns the last number of e.g. v0.0.40; ConfigError when the text is not a version of the API."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ConfigError(f"{where}: must be like v0.0.40, not {text!r}")
    return int(found[1])


@dataclass(slots=True, kw_only=True)
class Rest:
    """One slurmrestd. The HTTP session is opened at the first request."""

    url: str
    # e.g. v0.0.38
    api: str
    user: str
    token_file: Path
    # Key of the token in the configuration, for errors
    where: str
    timeout_s: float
    _session: aiohttp.ClientSession | None = None
    _grants: Grants = field(default_factory=Grants)
    _token: Latest[str] = field(init=False)

    def __post_init__(self) -> None:
        self._token = Latest(lambda: secret(self.token_file, self.where), self.token_file)

    @property
    def sets_nodes(self) -> bool:
        """Can it set a node's state?"""
        return version(self.api, "") >= SETS_NODES

    async def node(self, node: str) -> NodeRow:
        """As in SlurmAccess."""
        found = (await self._request("GET", f"node/{node}")).get("nodes") or []
        if not found:
            raise Refused(f"Slurm has no node {node}")
        return _node(found[0])

    async def all_nodes(self) -> dict[str, NodeRow]:
        """As in SlurmAccess."""
        rows = (await self._request("GET", "nodes")).get("nodes") or []
        return {str(row.get("name") or ""): _node(row) for row in rows}

    async def pending(self) -> list[PendingRow]:
        """As in SlurmAccess."""
        rows = (await self._request("GET", "jobs")).get("jobs") or []
        return [
            PendingRow(
                id=str(job.get("job_id")),
                user=str(job.get("user_name") or ""),
                submitted=number(_number(job.get("submit_time"))),
                reason=str(job.get("state_reason") or ""),
            )
            for job in rows
            if "PENDING" in _names(job.get("job_state"))
        ]

    async def jobs(self, node: str) -> list[JobRow]:
        """As in SlurmAccess. The API has no filter, so this reads every job that slurmctld remembers."""
        rows = []
        for job in (await self._request("GET", "jobs")).get("jobs") or []:
            states = frozenset(_names(job.get("job_state")))
            if states.isdisjoint(ON_NODE):
                continue
            try:
                nodes = expand(str(job.get("nodes") or ""))
            except ValueError:
                continue
            if node in nodes:
                rows.append(_job(job, states, nodes.index(node), len(nodes)))
        return rows

    async def set_state(self, node: str, state: str, reason: str) -> None:
        """As in SlurmAccess. Only for a version that `sets_nodes`."""
        body = {"state": [state]} | ({"reason": reason} if reason else {})
        await self._request("POST", f"node/{node}", body)

    async def answers(self) -> None:
        """Returns when slurmctld has answered through it. Errors as in `Action`."""
        await self._request("GET", "ping")

    async def close(self) -> None:
        """Closes the HTTP session."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the answer's JSON object; errors as in `Action`."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                request_class=fence.Request,
                timeout=aiohttp.ClientTimeout(total=self.timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        try:
            token = self._token()
        except FileHangs as error:
            raise Unreachable(str(error)) from error
        except ConfigError as error:
            raise Refused(str(error)) from error
        sent = False
        try:
            async with self._session.request(
                method,
                f"{self.url}/slurm/{self.api}/{path}",
                json=body,
                headers={"X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": token},
                allow_redirects=False,
            ) as answer:
                sent = True
                content = bytearray()
                async for part in answer.content.iter_chunked(1 << 16):
                    content += part
                    if len(content) > MAX_ANSWER_BYTES:
                        raise ActionError(f"slurmrestd: more than {MAX_ANSWER_BYTES} bytes")
                status = answer.status
        except aiohttp.ClientConnectorError as error:
            self._grants.away()
            raise Unreachable(f"slurmrestd {self.url}: {reasons.what(error)}") from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            self._grants.away()
            text = (
                f"slurmrestd {self.url}: {type(error).__name__} {'while answering' if sent else ''}".rstrip()
            )
            raise (Unreachable(text) if method == "GET" else TimedOut(text)) from error
        what = f"slurmrestd {method} {path}"
        right = "read nodes and jobs" if method == "GET" else "change nodes (AdminLevel operator)"
        if status in (401, 403):
            raise self._grants.denied(right, _answer(status, bytes(content), what)[1])
        found = _checked(status, bytes(content), what)
        self._grants.allowed(right)
        return found


def _answer(status: int, content: bytes, what: str) -> tuple[dict[str, Any], str, str]:
    """Returns the JSON object of an answer, what to tell people, and its errors."""
    try:
        found = json.loads(content)
        if not isinstance(found, dict):
            raise TypeError("not an object")  # noqa: TRY301  # handled like invalid JSON
    except (ValueError, TypeError, RecursionError):
        found = {}
    errors = "; ".join(
        str(error.get("error") or error.get("description") or error)
        for error in found.get("errors") or []
        if isinstance(error, dict)
    )
    text = clip(f"{what}: {status} {errors or content[:200].decode(errors='replace')}", 300)
    return found, text, errors


def _checked(status: int, content: bytes, what: str) -> dict[str, Any]:
    found, text, errors = _answer(status, content, what)
    if status < 300 and not errors and found:
        return found
    if "Invalid node name" in errors or 400 <= status < 500:
        raise Refused(text)
    if "Unable to contact" in errors or "connect" in errors.lower():
        raise Unreachable(text)
    raise Transient(text)


def _names(value: Any) -> list[str]:
    """Returns the states of `"idle"`, `["IDLE", "DRAIN"]` or `"MIXED+DRAIN"` (it depends on the version) in capitals."""
    values = value if isinstance(value, list) else [value] if value else []
    return [
        found
        for text in values
        for name in str(text).upper().split("+")
        for found in ([name.rstrip("*"), SILENT] if name.endswith("*") else [name])
        if found
    ]


def _number(found: Any) -> str:
    """A number, which newer versions give as an object."""
    return str(found.get("number") if isinstance(found, dict) else found)


_HARMLESS = frozenset(("IDLE", "RESERVED", "CLOUD", "DYNAMIC_NORM"))  # beside IDLE: jobs may have the node


def _node(row: Mapping[str, Any]) -> NodeRow:
    names = [*_names(row.get("state")), *_names(row.get("state_flags"))]
    return NodeRow(
        flags=frozenset(names),
        reason=written(str(row.get("reason") or "")),
        by=str(row.get("reason_set_by_user") or ""),
        gave_up=gave_up(str(row.get("reason") or "")),
        free="IDLE" in names and _HARMLESS.issuperset(names),
    )


def _job(job: Mapping[str, Any], states: frozenset[str], at: int, nodes: int) -> JobRow:
    gres = job.get("gres_detail") or []
    return JobRow(
        id=str(job.get("job_id")),
        user=str(job.get("user_name") or ""),
        account=str(job.get("account") or ""),
        partition=str(job.get("partition") or ""),
        states=states,
        name=str(job.get("name") or ""),
        started=_number(job.get("start_time")),
        gpus=indices(str(gres[at]) if at < len(gres) else ""),
        nodes=nodes,
        leader=leader if (leader := _number(job.get("het_job_id"))) not in ("0", "None", "") else "",
        fixed=fixed(requeue=job.get("requeue") is not False, batch=job.get("batch_flag") is not False)
        or suspended(states, _number(job.get("priority"))),
    )
