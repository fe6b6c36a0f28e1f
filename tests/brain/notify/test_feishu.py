"""Feishu: a receiver that holds cards to the documented form, and knows tokens, replies and replaced cards."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.core.paging.queue import What
from brain.core.state import Evidence, RunState
from brain.notify.compose import compose
from brain.notify.feishu import Feishu, build, card
from brain.notify.notifier import build as build_notifier
from tests.brain.notify.pages import T0, incident, page, rule, run
from tests.brain.notify.receivers import Answer, receiving

SECRET = "app secret"


def wrong_card(content: Any) -> str:
    """What Feishu would refuse: open.feishu.cn, card JSON 1.0."""
    if not isinstance(content, str) or len(content.encode()) > 30_000:
        return "content"
    shown = json.loads(content)
    if shown["config"].get("update_multi") is not True or shown["header"]["title"]["tag"] != "plain_text":
        return "config"
    for element in shown["elements"]:
        for one in element.get("actions", ()):
            if one["tag"] != "button" or not isinstance(one["value"], dict) or not one["text"]["content"]:
                return "button"
        if element["tag"] not in ("div", "action"):
            return "element"
    return ""


class Tenant:
    """Messages of one chat; each token counts once it was given out, until it is `revoked`."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}  # id -> what it answers
        self.shown: dict[str, Any] = {}
        self.uuids: set[str] = set()
        self.token = ""
        self.given = 0

    def api(self, request: web.Request, body: Any) -> Answer:
        """im/v1/messages, and the token that it wants."""
        if request.path.endswith("/tenant_access_token/internal"):
            if (body["app_id"], body["app_secret"]) != ("cli_1", SECRET):
                return 200, {"code": 10014, "msg": "app secret invalid"}
            self.given += 1
            self.token = f"t-{self.given}"
            return 200, {"code": 0, "msg": "ok", "tenant_access_token": self.token, "expire": 7200}
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return 400, {"code": 99991663, "msg": "Invalid access token for authorization."}
        if why := wrong_card(body["content"]):
            return 400, {"code": 230099, "msg": f"Failed to create card content: {why}"}
        place = request.path.removeprefix("/open-apis/im/v1/messages").strip("/")
        first = place.partition("/")[0]
        if first and first not in self.messages:
            return 400, {"code": 230011, "msg": "The message was withdrawn."}
        if request.method == "PATCH":
            self.shown[first] = json.loads(body["content"])
            return 200, {"code": 0, "data": {}}
        if not first and (request.query.get("receive_id_type"), body["receive_id"]) != ("chat_id", "oc_1"):
            return 400, {"code": 230001, "msg": "invalid receive_id"}
        if body["msg_type"] != "interactive" or not 0 < len(body["uuid"]) <= 50:
            return 400, {"code": 230001, "msg": "parameter"}
        id_ = f"om_{len(self.messages)}"
        self.uuids.add(body["uuid"])
        self.messages[id_] = first
        self.shown[id_] = json.loads(body["content"])
        return 200, {"code": 0, "data": {"message_id": id_}}


def app(url: str, folder: Path, **more: Any) -> Feishu:
    """The channel as an operator configures it."""
    file = folder / "secret"
    file.write_text(SECRET)
    table = {"app_id": "cli_1", "app_secret_file": str(file), "chat": "oc_1", "url": url} | more
    return build("f", table, "channels.f")


def values(shown: Any) -> list[str]:
    """The verbs of a card's buttons."""
    return [one["value"]["verb"] for part in shown["elements"] for one in part.get("actions", ())]


async def test_what_follows_answers_the_first_card_also_after_a_restart(tmp_path: Path) -> None:
    """That card shows how it stands; one that was taken back is sent anew; a new incident has a new card."""
    work, data = Tenant(), tmp_path / "data"
    data.mkdir()
    whats: tuple[What, ...] = ("open", "update", "ack", "resolve")
    verbs: tuple[list[str], ...] = (
        ["ack", "hold"],
        ["ack", "approve", "deny", "hold"],
        ["approve", "deny", "hold"],
        [],
    )
    async with receiving(work.api) as it:
        for what, wanted in zip(whats, verbs, strict=True):
            channel = app(it.url, tmp_path, buttons=True)
            channel.remember_in(data)
            runs = [run(RunState.APPROVAL)] if what != "open" else []
            await channel.send(compose(page(what), rule=rule(), runs=runs))
            assert values(work.shown["om_0"]) == wanted
            await channel.close()
        assert list(work.messages.values()) == ["", "om_0", "om_0", "om_0"]
        assert len(work.uuids) == 1, "all of them are one page here: its id is what Feishu knows it by"
        channel = app(it.url, tmp_path)
        channel.remember_in(data)
        await channel.send(compose(page()))
        work.messages.clear()
        await channel.send(compose(page("update")))
        assert list(work.messages.values()) == [""]
        assert values(work.shown["om_0"]) == []
        await channel.close()


async def test_feishu_says_no_by_its_code(tmp_path: Path) -> None:
    """A token that counts no more is asked for anew; a wrong secret is for people."""
    work = Tenant()
    async with receiving(work.api) as it:
        channel = app(it.url, tmp_path)
        await channel.send(compose(page()))
        work.token = "another"
        with pytest.raises(Unreachable, match="99991663"):
            await channel.send(compose(page("resolve")))
        await channel.send(compose(page("resolve")))
        assert work.given == 2
        for says, error in (
            ((200, {"code": 99991400, "msg": "too often"}, {}), Unreachable),
            ((400, {"code": 230002, "msg": "Bot is not in the chat"}, {}), Refused),
            ((200, "<html>", {}), Refused),
            ((502, "<html>", {}), Unreachable),
        ):
            it.instead = [says]
            with pytest.raises(error):
                await channel.send(compose(page()))
        await channel.close()
        (tmp_path / "secret").write_text("wrong")
        channel = build(
            "f",
            {"app_id": "cli_1", "app_secret_file": str(tmp_path / "secret"), "chat": "oc_1", "url": it.url},
            "channels.f",
        )
        with pytest.raises(Refused, match="10014"):
            await channel.send(compose(page()))
        await channel.close()


def test_a_card_full_of_odd_text_stays_within_the_limits(tmp_path: Path) -> None:
    """Chinese, quotes and control characters take more bytes than letters."""
    facts = [
        Evidence(
            id=f"e{n}", at=T0 + n, node="n1", kind=f"k{n}", component="gpu", text='断"\\\x1b<at id=all>' * 60
        )
        for n in range(12)
    ]
    message = compose(page(about=incident(evidence=facts), text="断电@all" * 900), rule=rule())
    want = app("http://127.0.0.1:1", tmp_path, buttons=True)._want
    assert wrong_card(json.dumps(card(message, want), ensure_ascii=False)) == ""


def test_it_is_a_type_of_channel(tmp_path: Path) -> None:
    """Listed, and told where to remember; a table that lacks something names its key."""
    (tmp_path / "secret").write_text(SECRET)
    table = {"type": "feishu", "app_id": "cli_1", "app_secret_file": str(tmp_path / "secret"), "chat": "oc_1"}
    assert list(build_notifier({"f": table}, {}, tmp_path).channels) == ["f"]
    with pytest.raises(ConfigError, match=r"channels\.f\.chat"):
        build_notifier({"f": table | {"chat": ""}}, {}, tmp_path)
