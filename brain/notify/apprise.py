"""Everything else (e-mail, WeCom, DingTalk, Feishu, Teams, text messages, ...) through the library Apprise.

The receiver is one URL of https://appriseit.com/services/ in a file of its own, since it holds secrets. The library
is loaded only when such a channel is configured. It blocks, and reads whatever it is answered, so each page goes by a process of
its own (brain/notify/apprise_process.py).
"""

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.core.pack.spec import Priority
from brain.notify import apprise_process, http
from brain.notify.message import Language, PageMessage, unaddressed
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_AT_ONCE = 2  # pages of one channel
_TYPES = {"resolve": "success", "ack": "info"}


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

    def __init__(
        self, name: str, service: Any, url: str, want: AppriseOptions, way: Outgoing = DIRECT
    ) -> None:
        """`service` is the library's object for the URL (apprise.NotifyBase)."""
        self._name = name
        self._url = url
        self._service = service
        self._want = want
        self._way = way
        self._turn = asyncio.Semaphore(_AT_ONCE)

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
        try:
            async with asyncio.timeout(self._want.timeout_s), self._turn:
                accepted, status = await apprise_process.notify(self._url, title, body, kind)
        except TimeoutError as error:
            raise TimedOut(f"{self._what()} did not answer within {self._want.timeout_s:g} s") from error
        except Unreachable as error:
            raise Unreachable(f"{self._what()}: {error}") from error
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
        """Nothing is left: a page that is cancelled ends its process."""

    def _what(self) -> str:
        return f"apprise ({self._service.service_name})"


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
    return Apprise(name, service, url, want, way)
