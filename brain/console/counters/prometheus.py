"""Asks a site's Prometheus, or what speaks its HTTP API, for the lines of a plot. It only reads."""

import asyncio
import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from agent.contract.errors import ConfigError, Unreachable
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.console_config import PrometheusConfig
from brain.outgoing import Outgoing, up_to

AT_ONCE = 4  # questions, of all people together
_MOST_BYTES = 8 * 1024**2  # of an answer
_MOST_QUOTED = 200
_WHERE = "console.prometheus"
# What a person must correct
_CORRECTED = (
    ((401, 403), f"{_WHERE}.token_file"),
    ((301, 302, 303, 307, 308), f"it leads elsewhere: {_WHERE}.url"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedLine:
    """One series over time."""

    labels: Mapping[str, str]
    # step -> value
    values: Mapping[int, float]


class Prometheus:
    """One of a site."""

    def __init__(self, config: PrometheusConfig, way: Outgoing) -> None:
        """`way`: out of the site. ConfigError: a file that the configuration names cannot be used."""
        self._config = config
        self._way = way
        self._token = secret(config.token_file, f"{_WHERE}.token_file")
        try:
            self._tls = ssl.create_default_context(cafile=str(config.ca_file)) if config.ca_file else None
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(f"{_WHERE}.ca_file: {config.ca_file}: {error.strerror or error}") from error
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def lines(
        self, session: aiohttp.ClientSession, query: str, since: float, until: float, step_s: float
    ) -> list[PlottedLine]:
        """Returns what a query gives, step by step. Unreachable: why it gives nothing."""
        asked = {"query": query, "start": f"{since:.0f}", "end": f"{until:.0f}", "step": f"{step_s:.0f}"}
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with (
                self._turn,
                asyncio.timeout(self._config.timeout_s),
                session.post(
                    f"{self._config.url.rstrip('/')}/api/v1/query_range",
                    data=asked,
                    headers=headers,
                    allow_redirects=False,
                    proxy=self._way.proxy_of(self._config.url),
                    proxy_headers=self._way.headers_of(self._config.url),
                    ssl=self._tls if self._tls is not None else True,
                ) as answer,
            ):
                body = await up_to(answer.content, _MOST_BYTES + 1)
                status = answer.status
        except TimeoutError as error:
            raise Unreachable(f"Prometheus did not answer within {self._config.timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            why = self._way.trouble(error) or clip(str(error) or type(error).__name__, _MOST_QUOTED)
            raise Unreachable(f"Prometheus: {why}") from error
        if len(body) > _MOST_BYTES:
            raise Unreachable(
                f"Prometheus answered more than {_MOST_BYTES // 1024**2} MiB: it is asked for a shorter time"
            )
        return _lines(status, body, since, step_s)


def _lines(status: int, body: bytes, since: float, step_s: float) -> list[PlottedLine]:
    hint = next((f": {what}" for statuses, what in _CORRECTED if status in statuses), "")
    try:
        found: Any = orjson.loads(body)
        if status != 200 or found["status"] != "success":
            raise Unreachable(
                f"Prometheus answered {status}: {clip(inert(str(found.get('error', ''))), _MOST_QUOTED)}{hint}"
            )
        return [
            PlottedLine(
                labels={str(key): str(value) for key, value in one["metric"].items()},
                values={
                    round((float(at) - since) / step_s): value
                    for at, text in one["values"]
                    if math.isfinite(value := float(text))
                },
            )
            for one in found["data"]["result"]
        ]
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise Unreachable(
            f"Prometheus answered {status}{hint or ', and nothing that can be read'}"
        ) from error
