"""WeCom: a receiver that holds messages and cards to the documented limits, and knows tokens and the codes of cards."""

import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.core.paging.queue import What
from brain.core.state import Evidence, RunState
from brain.notify.compose import compose
from brain.notify.wecom import WeCom, build, text_of
from tests.brain.notify.pages import T0, incident, page, rule, run
from tests.brain.notify.receivers import Answer, receiving

SECRET = "app+secret/="


def wrong_card(shown: Any) -> str:
    """developer.work.weixin.qq.com, path 90236: button_interaction."""
    buttons = shown["button_list"]
    if shown["card_type"] != "button_interaction" or not re.fullmatch(
        r"[0-9A-Za-z_@-]{1,128}", shown["task_id"]
    ):
        return "card"
    if not 0 < len(buttons) <= 6 or any(
        len(one["key"].encode()) > 1024 or one["style"] not in (1, 2, 3, 4) for one in buttons
    ):
        return "buttons"
    return "" if shown["main_title"]["title"] and all(one["text"] for one in buttons) else "text"


class Company:
    """What an app has sent; a response_code counts once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.cards: list[Any] = []
        self.codes: dict[str, int] = {}  # response_code -> its card
        self.gone: list[int] = []  # cards without buttons
        self.token = ""
        self.given = 0

    def api(self, request: web.Request, body: Any) -> Answer:
        """gettoken, message/send and message/update_template_card."""
        if request.path == "/cgi-bin/gettoken":
            if (request.method, request.query["corpid"], request.query["corpsecret"]) != (
                "GET",
                "ww1",
                SECRET,
            ):
                return 200, {"errcode": 40001, "errmsg": "invalid credential"}
            self.given += 1
            self.token = f"t+{self.given}"
            return 200, {"errcode": 0, "errmsg": "ok", "access_token": self.token, "expires_in": 7200}
        if request.query.get("access_token") != self.token:
            return 200, {"errcode": 42001, "errmsg": "access_token expired"}
        if body["agentid"] != 7:
            return 200, {"errcode": 40056, "errmsg": "invalid agentid"}
        if request.path == "/cgi-bin/message/update_template_card":
            number = self.codes.pop(body["response_code"], None)
            if number is None or not body["button"]["replace_name"]:
                return 200, {"errcode": 42045, "errmsg": "response_code expired"}
            self.gone.append(number)
            return 200, {"errcode": 0, "errmsg": "ok"}
        if body["touser"] != "ann|bob":
            return 200, {"errcode": 81013, "errmsg": "user & party & tag all invalid"}
        if body["msgtype"] == "text":
            if not 0 < len(body["text"]["content"].encode()) <= 2048:
                return 200, {"errcode": 45002, "errmsg": "content size out of limit"}
            self.texts.append(body["text"]["content"])
            return 200, {"errcode": 0, "errmsg": "ok", "msgid": "m"}
        if why := wrong_card(body["template_card"]):
            return 200, {"errcode": 40000, "errmsg": why}
        self.cards.append(body["template_card"])
        self.codes[code := f"code{len(self.cards)}"] = len(self.cards) - 1
        return 200, {"errcode": 0, "errmsg": "ok", "msgid": "m", "response_code": code}


def app(url: str, folder: Path, **more: Any) -> WeCom:
    """The channel as an operator configures it."""
    file = folder / "secret"
    file.write_text(SECRET)
    table: dict[str, Any] = {
        "corp": "ww1",
        "agent": 7,
        "secret_file": str(file),
        "to_users": ["ann", "bob"],
        "url": url,
    }
    return build("w", table | more, "channels.w")


async def test_the_newest_card_alone_has_buttons(tmp_path: Path) -> None:
    """Also over restarts; after the end none has any."""
    work, data = Company(), tmp_path / "data"
    data.mkdir()
    whats: tuple[What, ...] = ("open", "update", "ack", "resolve")
    async with receiving(work.api) as it:
        for number, what in enumerate(whats):
            channel = app(it.url, tmp_path, buttons=True)
            channel.remember_in(data)
            await channel.send(compose(page(what), rule=rule(), runs=[run(RunState.APPROVAL)]))
            await channel.close()
            assert work.gone == list(range(number))
            assert len(work.codes) == (what != "resolve")
        assert '{"verb":"approve","args":{"id":"inc-1.r1","rung":"bounce"}}' in [
            one["key"] for one in work.cards[1]["button_list"]
        ]
        channel = app(it.url, tmp_path)
        await channel.send(compose(page()))
        assert (len(work.texts), len(work.cards)) == (5, 3)
        await channel.close()
    assert it.refused == []


async def test_wecom_says_no_by_its_code(tmp_path: Path) -> None:
    """A token that counts no more is asked for anew; a card that fails fails no page; the secret is in no error."""
    work = Company()
    async with receiving(work.api) as it:
        channel = app(it.url, tmp_path, buttons=True)
        await channel.send(compose(page()))
        work.token = "another"
        with pytest.raises(Unreachable, match="42001"):
            await channel.send(compose(page("update")))
        work.codes.clear()
        await channel.send(compose(page("update")))
        assert (work.given, len(work.texts), len(work.cards)) == (2, 2, 2)
        for says, error in (
            ((200, {"errcode": 45009, "errmsg": "api freq out of limit"}, {}), Unreachable),
            ((200, {"errcode": 60011, "errmsg": "no privilege"}, {}), Refused),
            ((200, "<html>", {}), Refused),
            ((502, "<html>", {}), Unreachable),
        ):
            it.instead = [says]
            with pytest.raises(error) as caught:
                await channel.send(compose(page()))
            assert "secret" not in str(caught.value)
        await channel.close()
    with pytest.raises(ConfigError, match=r"channels\.w\.to_users"):
        app(it.url, tmp_path, to_users=[])


def test_a_text_of_chinese_stays_within_the_bytes(tmp_path: Path) -> None:
    """2,048 bytes are 682 characters of Chinese: the command to type is among them."""
    facts = [
        Evidence(id=f"e{n}", at=T0 + n, node="n1", kind=f"k{n}", component="gpu", text="断电@all" * 60)
        for n in range(12)
    ]
    message = compose(page(about=incident(evidence=facts), text="断电" * 900), rule=rule())
    text = text_of(message, app("http://127.0.0.1:1", tmp_path)._want)
    assert len(text.encode()) <= 2048
    assert "gpuward ack inc-1" in text
