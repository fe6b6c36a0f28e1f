"""DingTalk: pages to a group by its robot, as cards whose buttons open the console.

https://open.dingtalk.com/document/orgapp/custom-robot-access and .../custom-bot-send-message-type: `POST /robot/send` with the
robot's `access_token`; where the robot is set to sign, `timestamp` in ms and `sign`, the base64 of HMAC-SHA256(secret,
"<timestamp>\\n<secret>"). An `actionCard` has a title, Markdown, and buttons of which each opens an address; nothing comes back
when one is pressed. The answer's `errcode` is 0; 20 messages a minute, 20 KB each.

So a button leads to the incident in the console, with its question open, and whoever presses it says it there under their own
name. The address gives nobody a right: a group's messages are read by all of it, and passed on.
"""

import base64
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import orjson
from pydantic import Field

from agent.contract.errors import Refused, Unreachable
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.chat_words import Button, label
from brain.notify import http
from brain.notify.message import Language, PageMessage, unaddressed
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

URL = "https://oapi.dingtalk.com"
MAX_TEXT, MAX_TITLE, MAX_LABEL, MAX_BUTTONS = 5000, 100, 60, 6
_LATER = (-1, 130101, 410100)  # busy; more than 20 messages within a minute
# In the browser, where whoever reads it may be logged in, and not in a window of the chat beside it
_BROWSER = "dingtalk://dingtalkclient/page/link?"
_OPEN = {"zh": "打开控制台"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DingTalkOptions:
    """The keys of a table with `type = "dingtalk"`."""

    # file with the access_token of the robot's webhook
    token_file: Path
    # file with the robot's secret (SEC...), where it is set to sign; left out: it is set to keywords or addresses
    secret_file: Path | None = None
    # for a proxy
    url: str = URL
    # of the console, to which the buttons lead; empty: there are none
    console_url: str = ""
    # of the rule's knowledge, and of the buttons
    language: Language = "both"
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class DingTalk:
    """One robot of one group."""

    def __init__(
        self,
        name: str,
        token: str,
        secret_: str,
        want: DingTalkOptions,
        clock: Callable[[], float] = time.time,
        way: Outgoing = DIRECT,
    ) -> None:
        """`secret_`: empty: the robot does not sign. `clock`: seconds since 1970."""
        self._name = name
        self._token = token
        self._secret = secret_
        self._want = want
        self._clock = clock
        self._http = http.Poster(want.url.rstrip("/"), timeout_s=want.timeout_s, way=way)

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> None:
        """As in Channel. DingTalk knows no message again: a page that is sent twice is shown twice."""
        given = {"access_token": self._token}
        if self._secret:
            stamp = f"{self._clock() * 1000:.0f}"
            given |= {"timestamp": stamp, "sign": sign(self._secret, stamp)}
        raw = await self._http.post(
            orjson.dumps(card(message, self._want)), {}, f"/robot/send?{urlencode(given)}"
        )
        try:
            answer: Any = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{self._http.host}: the answer is not JSON") from error
        code = answer.get("errcode") if isinstance(answer, dict) else None
        if code == 0:
            return
        says = f"dingtalk: {code}: {clip(str(answer.get('errmsg', '')) if isinstance(answer, dict) else '', 100)}"
        raise Unreachable(says) if code in _LATER else Refused(says)

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()


def sign(secret_: str, stamp: str) -> str:
    """The value of `sign`. `stamp`: ms since 1970."""
    made = hmac.new(secret_.encode(), f"{stamp}\n{secret_}".encode(), sha256).digest()
    return base64.b64encode(made).decode()


def card(message: PageMessage, want: DingTalkOptions) -> dict[str, Any]:
    """The page as a message: a card with buttons, or, where they would lead nowhere, its text alone."""
    title = clip(unaddressed(message.title), MAX_TITLE)
    text = f"#### {_markdown(title)}\n\n{_markdown(message.body(want.language, MAX_TEXT))}"
    if not want.console_url:
        return {"msgtype": "markdown", "markdown": {"title": title, "text": text}}
    where = message.in_console(want.console_url)
    buttons = [{"title": _OPEN.get(want.language, "Open the console"), "actionURL": _opened(where)}]
    buttons += [
        {
            "title": clip(inert(label(one, want.language)), MAX_LABEL),
            "actionURL": _opened(question_at(where, one)),
        }
        for one in message.buttons[: MAX_BUTTONS - 1]
    ]
    return {
        "msgtype": "actionCard",
        "actionCard": {"title": title, "text": text, "btnOrientation": "0", "btns": buttons},
    }


def question_at(where: str, button: Button) -> str:
    """The address of the page that asks what a button is about. `rung`: of an approval, so that none is given for another one."""
    asked = {"say": button.verb} | ({"rung": str(button.args["rung"])} if "rung" in button.args else {})
    return f"{where}?{urlencode(asked)}"


def _opened(address: str) -> str:
    return f"{_BROWSER}url={quote(address, safe='')}&pc_slide=false"


def _markdown(text: str) -> str:
    """Plain text, in which nothing is markup: each line one of its own."""
    plain = unaddressed(text)
    for sign_ in "\\*_`#>~|![]":
        plain = plain.replace(sign_, f"\\{sign_}")
    return "  \n".join(line.strip() for line in plain.splitlines())


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> DingTalk:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(DingTalkOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    if want.console_url:
        http.checked_url(want.console_url, f"{where}.console_url")
    shared = secret(want.secret_file, f"{where}.secret_file") if want.secret_file is not None else ""
    return DingTalk(name, secret(want.token_file, f"{where}.token_file"), shared, want, way=way)
