"""Feishu (Lark): one card for each incident, with buttons, by an app of the site; later pages are replies to it.

https://open.feishu.cn/document/server-docs/im-v1/message/create: `POST /open-apis/im/v1/messages?receive_id_type=chat_id`, with a
`uuid` by which the same page within an hour is shown once; `/reply` answers a message, PATCH replaces a card (`update_multi`).
The answer's `code` is 0. https://open.feishu.cn/document/server-docs/authentication-management/access-token/tenant_access_token_internal:
a token lasts two hours at most. A card has at most 30 KB. What is pressed comes back at /chat/feishu (brain/console/chat).
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError, Refused
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.chat_words import Button, label, question
from brain.notify import http
from brain.notify.app_answers import AppToken, Codes
from brain.notify.first_messages import FirstMessages
from brain.notify.message import Language, PageMessage, unaddressed
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_log = logging.getLogger(__name__)
URL = "https://open.feishu.cn"
MAX_TEXT = 6000  # characters of a card: 30 KB, where one of Chinese takes three bytes
MAX_TITLE, MAX_LABEL = 150, 75
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CODES = Codes(
    platform="feishu",
    code="code",
    text="msg",
    no_token=(99991661, 99991663, 99991664, 99991668),
    later=(99991400, 11232, 230020),  # the app, or the chat, is asked too often
)
_COLOURS = {"P0": "red", "P1": "red", "P2": "orange", "P3": "blue"}
_TYPES = {"approve": "primary", "deny": "danger"}  # these are asked about once more


@dataclass(frozen=True, slots=True, kw_only=True)
class FeishuOptions:
    """The keys of a table with `type = "feishu"`."""

    # of the app (cli_...)
    app_id: str
    # file with its App Secret
    app_secret_file: Path
    # id of the chat that the app is in (oc_...)
    chat: str
    # Lark: https://open.larksuite.com
    url: str = URL
    # buttons to acknowledge, approve, deny and hold; they need [chat.feishu]
    buttons: bool = False
    # of the rule's knowledge
    language: Language = "both"
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Feishu:
    """One chat of one app."""

    def __init__(
        self,
        name: str,
        secret_: str,
        want: FeishuOptions,
        clock: Callable[[], float] = time.monotonic,
        way: Outgoing = DIRECT,
    ) -> None:
        """`clock`: seconds that do not run backwards."""
        self._name = name
        self._secret = secret_
        self._want = want
        self._http = http.Poster(want.url.rstrip("/"), timeout_s=want.timeout_s, way=way)
        self._first = FirstMessages()
        self._token = AppToken(self._new_token, clock)

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    def remember_in(self, folder: Path) -> None:
        """As in RememberingChannel: the cards of the incidents that are open."""
        self._first.remember_in(folder, "feishu", self._name)

    async def send(self, message: PageMessage) -> None:
        """As in Channel. A page that is sent twice within an hour is shown once."""
        content = orjson.dumps(card(message, self._want)).decode()
        body = {
            "msg_type": "interactive",
            "content": content,
            "uuid": sha256(message.id.encode()).hexdigest()[:40],
        }
        first = self._first.of(message)
        if first and _ID.fullmatch(first):
            try:
                await self._call(f"/{first}/reply", body)
            except Refused as error:  # e.g. the first one was taken back: a new one must not be refused, too
                _log.warning("%s: no reply to the card of %s: %s", self._name, message.dedup_key, error)
                first = ""
        else:
            first = ""
        if first:
            await self._update(message, first, content)
        else:
            new = {"receive_id": self._want.chat, **body}
            first = str((await self._call("?receive_id_type=chat_id", new)).get("message_id", ""))
        await self._first.keep(message, first)

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()

    async def _update(self, message: PageMessage, first: str, content: str) -> None:
        """The first card shows how it stands now. The page itself is delivered, so that this fails fails nothing."""
        try:
            await self._call(f"/{first}", {"content": content}, method="PATCH")
        except ActionError as error:
            _log.warning("%s: the card of %s is not up to date: %s", self._name, message.dedup_key, error)

    async def _call(self, path: str, body: dict[str, Any], method: str = "POST") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {await self._token.get()}"}
        answer = await self._post(f"/open-apis/im/v1/messages{path}", body, headers, method)
        data = answer.get("data")
        return data if isinstance(data, dict) else {}

    async def _new_token(self) -> tuple[str, Any]:
        asked = {"app_id": self._want.app_id, "app_secret": self._secret}
        answer = await self._post("/open-apis/auth/v3/tenant_access_token/internal", asked, {}, "POST")
        return str(answer.get("tenant_access_token", "")), answer.get("expire")

    async def _post(
        self, path: str, body: dict[str, Any], headers: Mapping[str, str], method: str
    ) -> dict[str, Any]:
        raw = await self._http.post(orjson.dumps(body), headers, path, method=method, quiet=(400, 401))
        return _CODES.read(raw, self._http.host, self._token)


def card(message: PageMessage, want: FeishuOptions) -> dict[str, Any]:
    """Returns the page as a card. All of it is plain text: no markup, no mention.

    https://open.feishu.cn/document/feishu-cards/card-json-v1-structure, and its interactive-components/button.
    """
    body = unaddressed(message.body(want.language, MAX_TEXT))
    elements: list[dict[str, Any]] = [{"tag": "div", "text": _words(body, MAX_TEXT)}]
    if want.buttons and message.buttons:
        elements.append(
            {"tag": "action", "actions": [_button(one, message, want.language) for one in message.buttons]}
        )
    over = message.status == "resolve"
    return {
        "config": {"wide_screen_mode": True, "update_multi": True},
        "header": {
            "title": _words(unaddressed(message.title), MAX_TITLE),
            "template": "green" if over else _COLOURS.get(message.severity, "blue"),
        },
        "elements": elements,
    }


def _button(button: Button, message: PageMessage, language: Language) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "tag": "button",
        "text": _words(inert(label(button, language)), MAX_LABEL),
        "type": _TYPES.get(button.verb, "default"),
        "value": button.carried,
    }
    if button.verb in _TYPES:
        asked = inert(f"{label(button, language)} ({message.subject})")
        shown["confirm"] = {"title": _words(question(button, language), 100), "text": _words(asked, 300)}
    return shown


def _words(text: str, most: int) -> dict[str, Any]:
    return {"tag": "plain_text", "content": text if len(text) <= most else clip(text, most)}


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> Feishu:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(FeishuOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    if not want.app_id or not want.chat:
        raise ConfigError(f"{where}.chat: give app_id and chat")
    return Feishu(name, secret(want.app_secret_file, f"{where}.app_secret_file"), want, way=way)
