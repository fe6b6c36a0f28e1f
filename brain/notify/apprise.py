"""Everything else (e-mail, WeCom, DingTalk, Feishu, Teams, text messages, ...) through the library Apprise.

The receiver is one URL of https://appriseit.com/services/ in a file of its own, since it holds secrets. The library
is loaded only when such a channel is configured. It blocks, so it runs in threads of the channel's own.
"""

import asyncio
import importlib
import logging
import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.core.pack.spec import Priority
from brain.notify import http
from brain.notify.message import Language, PageMessage, unaddressed
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_THREADS = 2  # a service that hangs occupies one until its own deadline
_TYPES = {"resolve": "success", "ack": "info"}
_STATUS = re.compile(r"error[=: ]+(\d{3})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseOptions:
    """The keys of a table with `type = "apprise"`."""

    # file with one Apprise URL
    url_file: Path
    # of the rule's knowledge
    language: Language = "both"
    # send acknowledgements too
    acks: bool = True
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Apprise:
    """One receiver."""

    def __init__(self, name: str, service: Any, want: AppriseOptions, way: Outgoing = DIRECT) -> None:
        """`service` is the library's object for the URL (apprise.NotifyBase)."""
        self._name = name
        self._service = service
        self._want = want
        self._way = way
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"page-{name}")

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> None:
        """As in Channel. A 4xx answer is Refused, any other failure Unreachable."""
        if message.what == "ack" and not self._want.acks:
            return
        title, body = fitted(
            message, self._service.title_maxlen, self._service.body_maxlen, self._want.language
        )
        title, body = unaddressed(title), unaddressed(body)
        kind = _TYPES.get(
            message.what, "failure" if message.severity in (Priority.P0, Priority.P1) else "warning"
        )
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._want.timeout_s):
                accepted, status = await loop.run_in_executor(self._threads, self._notify, title, body, kind)
        except TimeoutError as error:
            raise TimedOut(f"{self._what()} did not answer within {self._want.timeout_s:g} s") from error
        if accepted:
            return
        text = f"{self._what()} did not take it" + (f" ({status})" if status else "")
        if (
            self._way.proxy and not status
        ):  # the library found it in the environment, and keeps for itself why
            raise Unreachable(f"{text}: was it the proxy {self._way.proxy}? `gpuward doctor` looks")
        raise Refused(text) if 400 <= status < 500 and status not in http.RETRIED else Unreachable(text)

    async def reach(self) -> str:
        """As in Channel: the library has no way to look."""
        return ""

    async def close(self) -> None:
        """Does not wait for threads that hang: they end at their own deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _what(self) -> str:
        return f"apprise ({self._service.service_name})"

    def _notify(self, title: str, body: str, kind: str) -> tuple[bool, int]:
        """Returns (accepted, HTTP status in the library's log or 0). The log may hold the URL: only the number is kept."""
        seen = _StatusInLog()
        log = logging.getLogger("apprise")
        log.addHandler(seen)
        try:
            accepted = bool(
                self._service.notify(title=title, body=body, notify_type=kind, body_format="text")
            )
        except OSError:
            return False, 0
        finally:
            log.removeHandler(seen)
        return accepted, seen.status


class _StatusInLog(logging.Handler):
    """Finds the HTTP status in what the library logs in this thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.status = 0
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the number."""
        found = _STATUS.search(record.getMessage()) if record.thread == self._thread else None
        if found:
            self.status = int(found.group(1))


def fitted(message: PageMessage, title_max: int, body_max: int, language: Language) -> tuple[str, str]:
    """Returns title and body within a service's limits (characters). Limit 0 of the title: it is the body's first line."""
    if title_max <= 0:
        title = clip(message.title, max(20, body_max - 60))
        return "", f"{title}\n{message.body(language, body_max - len(title) - 1)}"[:body_max]
    return clip(message.title, title_max), message.body(language, body_max)


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> Apprise:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(AppriseOptions, table, where)
    url = secret(want.url_file, f"{where}.url_file")
    library = importlib.import_module("apprise")
    service = library.Apprise.instantiate(url, suppress_exceptions=True)
    if service is None:
        raise ConfigError(
            f"{where}.url_file: {want.url_file}: not a URL that Apprise knows (its services: appriseit.com)"
        )
    return Apprise(name, service, want, way)
