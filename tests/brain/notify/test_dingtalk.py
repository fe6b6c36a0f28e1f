"""DingTalk: a receiver that holds messages to the documented form and signature."""

import base64
import hmac
import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.chat_words import Button
from brain.core.state import RunState
from brain.notify.compose import compose
from brain.notify.dingtalk import DingTalk, DingTalkOptions, build, card, question_at, sign
from tests.brain.notify.pages import page, rule, run
from tests.brain.notify.receivers import Answer, receiving

TOKEN, SECRET, CONSOLE = "robot token", "SECabc", "https://gpuward.example.org"


def wrong(body: Any) -> str:
    """What DingTalk would refuse: open.dingtalk.com, the message types of a robot."""
    match body["msgtype"]:
        case "markdown":
            return "" if body["markdown"]["title"] and body["markdown"]["text"] else "markdown"
        case "actionCard":
            shown = body["actionCard"]
            fine = all(one["title"] and one["actionURL"] for one in shown["btns"])
            return (
                ""
                if fine and shown["title"] and shown["text"] and shown["btnOrientation"] in "01"
                else "card"
            )
    return "msgtype"


class Robot:
    """One robot, which wants a signature of now."""

    def __init__(self, answer: dict[str, Any] | None = None) -> None:
        self.said: list[Any] = []
        self.answer = answer

    def api(self, request: web.Request, body: Any) -> Answer:
        """robot/send."""
        if self.answer is not None:
            return 200, self.answer
        stamp = request.query.get("timestamp", "")
        text = f"{stamp}\n{SECRET}".encode()
        own = base64.b64encode(hmac.new(SECRET.encode(), text, sha256).digest()).decode()
        if request.path != "/robot/send" or request.query.get("access_token") != TOKEN:
            return 200, {"errcode": 300001, "errmsg": "token is not exist"}
        if request.query.get("sign") != own:
            return 200, {"errcode": 310000, "errmsg": "sign not match"}
        if why := wrong(body):
            return 200, {"errcode": 40035, "errmsg": why}
        self.said.append(body)
        return 200, {"errcode": 0, "errmsg": "ok"}


def robot(url: str, folder: Path, **more: Any) -> DingTalk:
    """The channel as an operator configures it."""
    (folder / "token").write_text(TOKEN)
    (folder / "secret").write_text(SECRET)
    table = {"token_file": str(folder / "token"), "secret_file": str(folder / "secret"), "url": url}
    return build("d", table | more, "channels.d")


def opened(button: dict[str, str]) -> str:
    """The address that a button opens in the browser."""
    parts = urlsplit(button["actionURL"])
    assert (parts.scheme, parts.netloc, parts.path) == ("dingtalk", "dingtalkclient", "/page/link")
    given = parse_qs(parts.query)
    assert given["pc_slide"] == ["false"]
    return given["url"][0]


async def test_a_page_with_buttons_that_open_its_questions(tmp_path: Path) -> None:
    """Signed; the first button is the incident, the others its questions; none carries a right or a secret."""
    there = Robot()
    message = compose(page(), rule=rule(), runs=[run(RunState.APPROVAL)])
    assert message.buttons
    async with receiving(there.api) as it:
        channel = robot(it.url, tmp_path, console_url=CONSOLE, language="zh")
        await channel.send(message)
        await channel.close()
    (said,) = there.said
    first, *rest = said["actionCard"]["btns"]
    where = f"{CONSOLE}/incidents/{'inc-1'}"
    assert (first["title"], opened(first)) == ("打开控制台", where)
    assert [opened(one) for one in rest] == [question_at(where, one) for one in message.buttons]
    assert all(opened(one).startswith(f"{where}?say=") for one in rest)
    assert any("批准" in one["title"] for one in rest)
    assert TOKEN not in json.dumps(said)
    assert SECRET not in json.dumps(said)


async def test_without_a_console_it_is_text(tmp_path: Path) -> None:
    """A button that leads nowhere is none."""
    there = Robot()
    async with receiving(there.api) as it:
        channel = robot(it.url, tmp_path)
        await channel.send(compose(page(), rule=rule()))
        await channel.close()
    (said,) = there.said
    assert said["msgtype"] == "markdown"
    assert "inc-1" in unquote(said["markdown"]["text"]).replace("\\", "")


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        ({"errcode": 130101, "errmsg": "send too fast"}, Unreachable),
        ({"errcode": -1, "errmsg": "busy"}, Unreachable),
        ({"errcode": 310000, "errmsg": "keywords not in content"}, Refused),
    ],
)
async def test_its_answers_say_whether_it_may_go_well_later(
    tmp_path: Path, answer: dict[str, Any], raised: type[Exception]
) -> None:
    """The status is 200 whatever happens."""
    async with receiving(Robot(answer).api) as it:
        channel = robot(it.url, tmp_path)
        with pytest.raises(raised, match=str(answer["errcode"])):
            await channel.send(compose(page(), rule=rule()))
        await channel.close()


def test_no_text_becomes_markup(tmp_path: Path) -> None:
    """A name or a kernel line is no link, no heading, no mention."""
    message = compose(page(text="![x](https://evil.example/p) @all # head [a](b)"), rule=rule())
    text = card(message, DingTalkOptions(token_file=tmp_path))["markdown"]["text"]
    assert "](" not in text.replace("\\", "")
    assert "@all" not in text
    assert "\n#" not in text.partition("\n")[2]


def test_a_question_is_about_one_step() -> None:
    """An approval names its rung: of another one the page asks nothing."""
    asked = Button(verb="approve", args={"id": "inc-1.r1", "rung": "power cycle"})
    assert (
        question_at(f"{CONSOLE}/incidents/inc-1", asked)
        == f"{CONSOLE}/incidents/inc-1?say=approve&rung=power+cycle"
    )


def test_what_is_configured_wrong(tmp_path: Path) -> None:
    """The key is named."""
    with pytest.raises(ConfigError, match=r"channels\.d\.console_url"):
        robot("https://oapi.dingtalk.com", tmp_path, console_url="gpuward")
    with pytest.raises(ConfigError, match=r"channels\.d\.token_file"):
        build("d", {"token_file": str(tmp_path / "none")}, "channels.d")
    (tmp_path / "token").write_text(TOKEN)
    table = {"type": "dingtalk", "token_file": str(tmp_path / "token")}
    assert isinstance(build("d", {"token_file": table["token_file"]}, "channels.d"), DingTalk)
    assert sign(SECRET, "1") == sign(SECRET, "1") != sign(SECRET, "2")


async def test_two_pages_of_one_millisecond_both_arrive(tmp_path: Path) -> None:
    """They have the same signature; it is good for an hour, and DingTalk takes it as often as it comes. Their order stays."""
    there = Robot()
    async with receiving(there.api) as it:
        want = DingTalkOptions(token_file=tmp_path, url=it.url)
        channel = DingTalk("d", TOKEN, SECRET, want, clock=lambda: 1_785_000_000.0)
        for text in ("the first", "the second"):
            await channel.send(compose(page(text=text), rule=rule()))
        await channel.close()
    assert [
        ("the first" in said["markdown"]["text"], "the second" in said["markdown"]["text"])
        for said in there.said
    ] == [(True, False), (False, True)]
