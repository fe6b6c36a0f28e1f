"""WeCom: pages to people of an app of the site, each followed by a card with buttons.

https://developer.work.weixin.qq.com/document/path/90236: `POST /cgi-bin/message/send`, a text of 2,048 bytes, a template card
`button_interaction` of six buttons with keys of 1,024 bytes; `enable_duplicate_check` drops what is sent twice within half an
hour. https://developer.work.weixin.qq.com/document/path/94888: `update_template_card` takes a card's buttons away, once, by the
`response_code` that its sending returned. https://developer.work.weixin.qq.com/document/path/91039: a token lasts two hours. The
answer's `errcode` is 0. What is pressed comes back at /chat/wecom (brain/console/chat).
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.chat_words import label
from brain.notify import http
from brain.notify.app_answers import AppToken, Codes
from brain.notify.first_messages import FirstMessages
from brain.notify.message import Language, PageMessage, unaddressed
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_log = logging.getLogger(__name__)
URL = "https://qyapi.weixin.qq.com"
MAX_BYTES, MAX_BUTTONS, MAX_KEY = 2048, 6, 1024
MAX_TITLE, MAX_SUB, MAX_LABEL = 36, 160, 32  # characters of a card: more is not shown
_CODES = Codes(
    platform="wecom",
    code="errcode",
    text="errmsg",
    no_token=(40001, 40014, 42001),
    later=(-1, 45009, 45033),  # busy; asked too often; too many at once
)
_GONE = (
    ("see below", "over"),
    ("见下方", "已结束"),
)  # what stands where the buttons of an older card were: English, Chinese
_STYLES = {"approve": 1, "deny": 3}  # blue, red; 4: grey


@dataclass(frozen=True, slots=True, kw_only=True)
class WeComOptions:
    """The keys of a table with `type = "wecom"`: to_users, to_parties or both."""

    # the CorpID (ww...)
    corp: str
    # of the app
    agent: int
    # file with its Secret
    secret_file: Path
    # UserIDs
    to_users: tuple[str, ...] = ()
    # ids of departments
    to_parties: tuple[str, ...] = ()
    # for a proxy
    url: str = URL
    # a card with buttons to acknowledge, approve, deny and hold behind each page; they need [chat.wecom]
    buttons: bool = False
    # of the rule's knowledge
    language: Language = "both"
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class WeCom:
    """One app of one company."""

    def __init__(
        self,
        name: str,
        secret_: str,
        want: WeComOptions,
        clock: Callable[[], float] = time.monotonic,
        way: Outgoing = DIRECT,
    ) -> None:
        """`clock`: seconds that do not run backwards."""
        self._name = name
        self._secret = secret_
        self._want = want
        self._http = http.Poster(want.url.rstrip("/"), timeout_s=want.timeout_s, way=way)
        self._cards = FirstMessages()  # the response_code of the newest card of each
        self._token = AppToken(self._new_token, clock)

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    def remember_in(self, folder: Path) -> None:
        """As in RememberingChannel: the cards of the incidents that are open."""
        self._cards.remember_in(folder, "wecom", self._name)

    async def send(self, message: PageMessage) -> None:
        """As in Channel. A page that is sent twice within half an hour is shown once."""
        await self._call(
            "message/send", self._to({"msgtype": "text", "text": {"content": text_of(message, self._want)}})
        )
        if self._want.buttons:
            await self._exchange_card(message)

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()

    async def _exchange_card(self, message: PageMessage) -> None:
        """Takes the buttons of the card before away, and sends those of now. That this fails fails no page."""
        code = ""
        try:
            if before := self._cards.of(message):
                gone = {"replace_name": _GONE[self._want.language == "zh"][message.status == "resolve"]}
                atall = {"atall": 1, "agentid": self._want.agent, "response_code": before, "button": gone}
                await self._call("message/update_template_card", atall)
        except ActionError as error:
            _log.warning("%s: the card of %s keeps its buttons: %s", self._name, message.dedup_key, error)
        try:
            if shown := card(message, self._want.language):
                new = self._to({"msgtype": "template_card", "template_card": shown})
                code = str((await self._call("message/send", new)).get("response_code", ""))
        except ActionError as error:
            _log.warning("%s: there is no card of %s: %s", self._name, message.dedup_key, error)
        await self._cards.keep(message, code)

    def _to(self, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "touser": "|".join(self._want.to_users),
            "toparty": "|".join(self._want.to_parties),
            "agentid": self._want.agent,
            "enable_duplicate_check": 1,
            "duplicate_check_interval": 1800,
            **body,
        }

    async def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        token = await self._token.get()
        return await self._ask(f"/cgi-bin/{method}?access_token={quote(token)}", orjson.dumps(body), "POST")

    async def _new_token(self) -> tuple[str, Any]:
        query = f"corpid={quote(self._want.corp)}&corpsecret={quote(self._secret)}"
        answer = await self._ask(f"/cgi-bin/gettoken?{query}", b"", "GET")
        return str(answer.get("access_token", "")), answer.get("expires_in")

    async def _ask(self, path: str, body: bytes, method: str) -> dict[str, Any]:
        raw = await self._http.post(body, {}, path, method=method)  # its status is 200 whatever happens
        return _CODES.read(raw, self._http.host, self._token)


def text_of(message: PageMessage, want: WeComOptions) -> str:
    """Returns the page as text of at most 2,048 bytes."""
    limit = MAX_BYTES
    while len((text := unaddressed(message.to_text(want.language, limit))).encode()) > MAX_BYTES:
        limit = limit * MAX_BYTES // len(text.encode())
    return text


def card(message: PageMessage, language: Language = "both") -> dict[str, Any]:
    """Returns the card with the page's buttons; empty: it has none."""
    buttons = [one for one in message.buttons if len(one.value.encode()) <= MAX_KEY][:MAX_BUTTONS]
    if not buttons:
        return {}
    return {
        "card_type": "button_interaction",
        "main_title": {"title": clip(unaddressed(message.subject), MAX_TITLE)},
        "sub_title_text": clip(unaddressed(message.why_now), MAX_SUB),
        "task_id": sha256(message.id.encode()).hexdigest()[:32],
        "button_list": [
            {
                "text": clip(inert(label(one, language)), MAX_LABEL),
                "style": _STYLES.get(one.verb, 4),
                "key": one.value,
            }
            for one in buttons
        ],
    }


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> WeCom:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(WeComOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    if not (want.to_users or want.to_parties):
        raise ConfigError(f"{where}.to_users: give to_users, to_parties or both")
    return WeCom(name, secret(want.secret_file, f"{where}.secret_file"), want, way=way)
