"""Slack: one message for each incident; later pages go into its thread.

With a bot token (`chat.postMessage`, scope chat:write) the first page is a message to the channel and the later ones are
replies in its thread; repeats and the resolution are shown in the channel too. With an incoming webhook every page is a
message. The thread of an incident is kept in the brain's data folder; another brain that leads starts a new one.

With `buttons` the first message has them and is kept up to date (`chat.update`) as the incident goes on; what is pressed comes
back at /chat/slack (brain/console/chat).
https://docs.slack.dev/reference/block-kit/blocks: 50 blocks, a header of 150 characters, 3,000 in a section.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError, Refused, Unreachable
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.chat_words import MAX_VALUE, escape, label, question
from brain.notify import http
from brain.notify.first_messages import FirstMessages
from brain.notify.message import Language, PageMessage, unaddressed
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_log = logging.getLogger(__name__)
API = "https://slack.com/api"
MAX_BLOCKS, MAX_HEADER, MAX_SECTION, MAX_TEXT = 50, 150, 3000, 4000
MAX_ELEMENTS, MAX_LABEL = 25, 75  # of a block of buttons
_STYLES = {"approve": "primary", "deny": "danger"}  # these are asked about once more
_LATER = (
    "ratelimited",
    "rate_limited",
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
)
_GONE = ("thread_not_found", "message_not_found")  # the first message was deleted
_AS_CODE = ("evidence", "type", "incidents", "tried", "proposed", "证据", "命令", "故障", "已尝试", "建议")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackOptions:
    """The keys of a table with `type = "slack"`: webhook_file, or token_file and channel."""

    # file with the URL of an incoming webhook
    webhook_file: Path | None = None
    # file with a bot token (xoxb-...)
    token_file: Path | None = None
    # id of the channel for the bot (C...)
    channel: str = ""
    # for a proxy, or GovSlack
    api_url: str = API
    # for the bot: buttons to acknowledge, approve, deny and hold; they need [chat.slack]
    buttons: bool = False
    # of the rule's knowledge
    language: Language = "both"
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Slack:
    """One channel of one workspace."""

    def __init__(
        self, name: str, url: str, want: SlackOptions, token: str = "", way: Outgoing = DIRECT
    ) -> None:
        """Without a token `url` is an incoming webhook."""
        self._name = name
        self._want = want
        self._token = token
        self._http = http.Poster(url, timeout_s=want.timeout_s, way=way)
        self._first = FirstMessages()  # their time stamps

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    def remember_in(self, folder: Path) -> None:
        """As in RememberingChannel: the threads of the incidents that are open."""
        self._first.remember_in(folder, "slack", self._name)

    async def send(self, message: PageMessage) -> None:
        """As in Channel. A page that is sent twice is shown twice: Slack has no deduplication."""
        shown = {
            "text": clip(escape(message.title), MAX_TEXT),
            "blocks": blocks(message, self._want.language),
        }
        if not self._token:
            await self._http.post(orjson.dumps(shown), {})
            return
        thread = self._first.of(message)
        if self._want.buttons:
            shown["blocks"] = [*shown["blocks"][: MAX_BLOCKS - 1], *actions(message, self._want.language)]
        answer = await self._post(message, shown, thread)
        if thread and answer.get("error") in _GONE:
            thread = ""
            answer = await self._post(message, shown, thread)
        if answer.get("ok") is not True:
            code = str(answer.get("error", "an unknown answer"))
            raise Unreachable(f"slack: {code}") if code in _LATER else Refused(f"slack: {code}")
        if thread and self._want.buttons:
            await self._update(message, shown, thread)
        await self._first.keep(message, thread or str(answer.get("ts", "")))

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()

    async def _post(self, message: PageMessage, shown: dict[str, Any], thread: str) -> dict[str, Any]:
        body = shown | {"channel": self._want.channel, "unfurl_links": False, "mrkdwn": False}
        if thread:
            body |= {"thread_ts": thread, "reply_broadcast": message.what in ("repeat", "resolve")}
        return await self._call("/chat.postMessage", body)

    async def _update(self, message: PageMessage, shown: dict[str, Any], thread: str) -> None:
        """The first message shows how it stands now. The page itself is delivered, so that this fails fails nothing."""
        where = {"channel": self._want.channel, "ts": thread}
        try:
            answer = await self._call("/chat.update", shown | where)
        except ActionError as error:
            _log.warning(
                "%s: the first message of %s is not up to date: %s", self._name, message.dedup_key, error
            )
            return
        if answer.get("ok") is not True:
            _log.warning("%s: chat.update: %s", self._name, clip(str(answer.get("error")), 80))

    async def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json; charset=utf-8",
        }
        raw = await self._http.post(orjson.dumps(body), headers, method)
        try:
            answer = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{self._http.host}: the answer is not JSON") from error
        return answer if isinstance(answer, dict) else {}


def blocks(message: PageMessage, language: Language) -> list[dict[str, Any]]:
    """Returns the page as blocks within Slack's limits; commands and machine output as code."""
    title = clip(unaddressed(message.title), MAX_HEADER)
    shown: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}}
    ]
    words: list[str] = []
    for section in message.sections(language):
        if section.label not in _AS_CODE:
            words.append(f"{section.label}:  " + "\n".join(map(unaddressed, section.lines)))
            continue
        shown += _plain("\n".join(words))
        words = []
        code = "\n".join(escape(line).replace("`", "'") for line in section.lines)
        head = f"*{section.label}*"
        shown += _section(f"{head}\n```{_cut(code, MAX_SECTION - len(head) - 7)}```")
    return (shown + _plain("\n".join(words)))[:MAX_BLOCKS]


def actions(message: PageMessage, language: Language = "both") -> list[dict[str, Any]]:
    """Returns the block with the message's buttons, if it has any: each carries exactly what the page says.

    https://docs.slack.dev/reference/block-kit/block-elements/button-element: a text of 75 characters, a value of 2,000.
    """
    elements: list[dict[str, Any]] = []
    for number, button in enumerate(message.buttons):
        if len(button.value) > MAX_VALUE:
            continue
        element: dict[str, Any] = {
            "type": "button",
            "action_id": f"gpuward.{number}.{button.verb}",
            "text": _words(label(button, language), MAX_LABEL),
            "value": button.value,
        }
        if style := _STYLES.get(button.verb):
            element["style"] = style
            element["confirm"] = {
                "title": _words(question(button, language), 100),
                "text": _words(f"{label(button, language)} ({message.subject})", 300),
                "confirm": _words("是" if language == "zh" else "Yes", 30),
                "deny": _words("否" if language == "zh" else "No", 30),
            }
        elements.append(element)
    return [{"type": "actions", "elements": elements[:MAX_ELEMENTS]}] if elements else []


def _words(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": clip(inert(text), most), "emoji": False}


def _plain(text: str) -> list[dict[str, Any]]:
    """A block in which Slack looks for neither links, mentions nor markup (docs.slack.dev: text object, plain_text)."""
    if not text:
        return []
    return [
        {
            "type": "section",
            "text": {"type": "plain_text", "text": clip(text, MAX_SECTION), "emoji": False},
        }
    ]


def _section(text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text, MAX_SECTION), "verbatim": True}}
    ]


def _cut(text: str, most: int) -> str:
    """Shortens a text, not in the middle of an escape."""
    if len(text) <= most:
        return text
    kept = text[: most - 3]
    amp = kept.rfind("&", max(0, len(kept) - 5))
    return (kept[:amp] if amp >= 0 and ";" not in kept[amp:] else kept) + "..."


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> Slack:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(SlackOptions, table, where)
    if want.webhook_file is not None and want.token_file is None and not want.channel:
        url = http.checked_url(secret(want.webhook_file, f"{where}.webhook_file"), f"{where}.webhook_file")
        return Slack(name, url, want, way=way)
    if want.webhook_file is not None or want.token_file is None or not want.channel:
        raise ConfigError(f"{where}.webhook_file: give webhook_file, or token_file and channel")
    token = secret(want.token_file, f"{where}.token_file")
    return Slack(name, http.checked_url(want.api_url, f"{where}.api_url"), want, token, way)
