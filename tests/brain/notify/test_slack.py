"""Slack: a receiver that holds messages to the documented limits of blocks, and knows threads."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.chat_words import Button
from brain.core.state import Evidence, RunState
from brain.notify.compose import compose
from brain.notify.slack import Slack, actions, blocks, build
from tests.brain.notify.pages import LINE, T0, incident, page, rule, run
from tests.brain.notify.receivers import Answer, receiving

TOKEN = "xoxb-1-2-three"


def wrong_blocks(body: Any) -> str:
    """Why Slack would say invalid_blocks: docs.slack.dev/reference/block-kit/blocks."""
    shown = body.get("blocks", [])
    if not 0 < len(shown) <= 50:
        return "number of blocks"
    for block in shown:
        if block["type"] == "actions":
            if why := wrong_buttons(block["elements"]):
                return why
            continue
        text = block["text"]
        if block["type"] == "header" and (text["type"] != "plain_text" or not 0 < len(text["text"]) <= 150):
            return "header"
        if block["type"] == "section" and not 0 < len(text["text"]) <= 3000:
            return "section"
        if text["type"] not in ("plain_text", "mrkdwn") or ("verbatim" in text) != (text["type"] == "mrkdwn"):
            return "text object"
        if block["type"] not in ("header", "section"):
            return "block type"
    return "" if 0 < len(body.get("text", "")) <= 4000 else "text"


def wrong_buttons(elements: Any) -> str:
    """docs.slack.dev/reference/block-kit: actions block, button element, confirmation dialog."""
    if not 0 < len(elements) <= 25 or len({one["action_id"] for one in elements}) != len(elements):
        return "elements"
    for one in elements:
        texts = [(one["text"], 75)]
        if confirm := one.get("confirm"):
            texts += [
                (confirm["title"], 100),
                (confirm["text"], 300),
                (confirm["confirm"], 30),
                (confirm["deny"], 30),
            ]
        if any(text["type"] != "plain_text" or not 0 < len(text["text"]) <= most for text, most in texts):
            return "text of a button"
        if (
            one["type"] != "button"
            or len(one["value"]) > 2000
            or one.get("style", "primary") not in ("primary", "danger")
        ):
            return "button"
    return ""


class Workspace:
    """Messages of one channel, each with the thread that it stands in."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}  # ts -> its thread
        self.shown: dict[str, Any] = {}  # ts -> the blocks that it has now

    def api(self, request: web.Request, body: Any) -> Answer:
        """chat.postMessage."""
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 200, {"ok": False, "error": "invalid_auth"}
        if request.path not in ("/api/chat.postMessage", "/api/chat.update") or body.get("channel") != "C1":
            return 200, {"ok": False, "error": "channel_not_found"}
        if why := wrong_blocks(body):
            return 200, {"ok": False, "error": f"invalid_blocks: {why}"}
        if request.path == "/api/chat.update":
            if body["ts"] not in self.messages or "thread_ts" in body:
                return 200, {"ok": False, "error": "message_not_found"}
            self.shown[body["ts"]] = body["blocks"]
            return 200, {"ok": True, "channel": "C1", "ts": body["ts"]}
        thread = body.get("thread_ts", "")
        if thread and thread not in self.messages:
            return 200, {"ok": False, "error": "thread_not_found"}
        ts = f"17000000{len(self.messages)}.0"
        self.messages[ts] = thread
        self.shown[ts] = body["blocks"]
        return 200, {"ok": True, "channel": "C1", "ts": ts}


def webhook(request: web.Request, body: Any) -> Answer:
    """An incoming webhook."""
    if request.path != "/services/T1/B1/s3cret":
        return 404, "no_service"
    return (400, "invalid_blocks") if wrong_blocks(body) else (200, "ok")


def bot(url: str, folder: Path, **more: Any) -> Slack:
    """The channel as an operator configures it."""
    token = folder / "token"
    token.write_text(TOKEN)
    return build(
        "s", {"token_file": str(token), "channel": "C1", "api_url": f"{url}/api", **more}, "channels.s"
    )


async def test_what_follows_stands_in_the_thread(tmp_path: Path) -> None:
    """One message for the incident; its repeat and its end are shown in the channel too. A deleted one is sent again."""
    work = Workspace()
    async with receiving(work.api) as it:
        channel = bot(it.url, tmp_path)
        for what in ("open", "update", "repeat", "ack"):
            await channel.send(compose(page(what), rule=rule(), runs=[run(RunState.APPROVAL)]))
        assert list(work.messages.values()) == ["", *["170000000.0"] * 3]
        assert [bool(body.get("reply_broadcast")) for body in it.taken] == [False, False, True, False]
        work.messages.clear()
        await channel.send(compose(page("resolve")))
        await channel.send(compose(page("open")))
        assert list(work.messages.values()) == ["", ""], "the end of an incident ends its thread"
        await channel.close()


@pytest.mark.parametrize(("says", "error"), [("ratelimited", Unreachable), ("is_archived", Refused)])
async def test_slack_says_no_with_status_200(says: str, error: type[Exception], tmp_path: Path) -> None:
    """The body counts; and what is no JSON is not taken for success."""
    async with receiving(Workspace().api) as it:
        channel = bot(it.url, tmp_path)
        it.instead = [(200, {"ok": False, "error": says}, {})]
        with pytest.raises(error, match=says):
            await channel.send(compose(page()))
        it.instead = [(200, "<html>", {})]
        with pytest.raises(Refused, match="an unknown answer"):
            await channel.send(compose(page()))
        await channel.close()


async def test_an_incoming_webhook_needs_only_its_url(tmp_path: Path) -> None:
    """The URL is the secret: it stands in a file and never in an error."""
    async with receiving(webhook) as it:
        url = tmp_path / "url"
        url.write_text(f"{it.url}/services/T1/B1/s3cret\n")
        channel = build("s", {"webhook_file": str(url)}, "channels.s")
        await channel.send(compose(page(), rule=rule()))
        it.instead = [(403, "action_prohibited", {})]
        with pytest.raises(Refused, match="action_prohibited") as caught:
            await channel.send(compose(page()))
        await channel.close()
    assert "s3cret" not in str(caught.value)
    assert len(it.taken) == 1
    with pytest.raises(ConfigError, match="give webhook_file, or token_file and channel"):
        build("s", {"webhook_file": str(url), "channel": "C1"}, "channels.s")


def test_a_page_full_of_odd_text_stays_within_the_limits() -> None:
    """Thousands of escapes, fences and mentions: nobody is mentioned by a kernel line, and no block is refused."""
    facts = [
        Evidence(id=f"e{n}", at=T0 + n, node="n1", kind=f"k{n}", component="gpu", text="```<!channel>&" * 60)
        for n in range(12)
    ]
    message = compose(page(about=incident(evidence=facts), text="<@U1> & <!here>" * 300), rule=rule())
    shown = blocks(message, "both")
    assert wrong_blocks({"blocks": shown, "text": "x"}) == ""
    said = "".join(block["text"]["text"] for block in shown)
    assert "<!" not in said.removeprefix(shown[0]["text"]["text"])
    assert "<@" not in said
    assert all(block["text"]["text"].count("```") in (0, 2) for block in shown)
    assert LINE.replace("<", "&lt;").replace(">", "&gt;") in str(blocks(compose(page()), "en"))


def values(shown: Any) -> list[str]:
    """What the buttons of a message carry."""
    return [one["value"] for block in shown if block["type"] == "actions" for one in block["elements"]]


async def test_the_first_message_has_buttons_and_shows_how_it_stands(tmp_path: Path) -> None:
    """An approval names run and rung; after an acknowledgement nobody is asked for one, after the end there are none."""
    work = Workspace()
    first = "170000000.0"
    async with receiving(work.api) as it:
        channel = bot(it.url, tmp_path, buttons=True)
        await channel.send(compose(page(), rule=rule()))
        assert [one.partition(",")[0] for one in values(work.shown[first])] == [
            '{"verb":"ack"',
            '{"verb":"hold"',
        ]
        await channel.send(compose(page("update"), rule=rule(), runs=[run(RunState.APPROVAL)]))
        assert '{"verb":"approve","args":{"id":"inc-1.r1","rung":"bounce"}}' in values(work.shown[first])
        await channel.send(compose(page("ack"), rule=rule(), runs=[run(RunState.APPROVAL)]))
        assert not [one for one in values(work.shown[first]) if "ack" in one]
        it.instead = [(200, {"ok": True, "ts": "9.9"}, {}), (500, "?", {})]
        await channel.send(compose(page("repeat"), rule=rule()))
        await channel.send(compose(page("resolve"), rule=rule()))
        assert values(work.shown[first]) == []
        await channel.close()
    assert it.refused == []


async def test_threads_outlive_a_restart(tmp_path: Path) -> None:
    """The next page of an open incident stands in its thread; the file of a channel that was damaged is none."""
    work, data = Workspace(), tmp_path / "data"
    data.mkdir()
    async with receiving(work.api) as it:
        for what in ("open", "update", "resolve"):
            channel = bot(it.url, tmp_path)
            channel.remember_in(data)
            await channel.send(compose(page(what)))
            await channel.close()
        assert list(work.messages.values()) == ["", "170000000.0", "170000000.0"]
        (kept,) = data.iterdir()
        assert kept.read_bytes() == b"{}"
        for damaged in (b"", b"[7]", b'{"inc-1": 7}'):
            kept.write_bytes(damaged)
            channel = bot(it.url, tmp_path)
            channel.remember_in(data)
            await channel.send(compose(page()))
            await channel.close()
        assert list(work.messages.values())[3:] == ["", "", ""]


def test_a_button_too_long_for_slack_is_left_out() -> None:
    """The page is shown all the same, with the command to type."""
    long = replace(
        compose(page()),
        buttons=(Button(verb="hold", args={"scope": "x" * 3000}), Button(verb="ack", args={"id": "a"})),
    )
    (block,) = actions(long)
    assert wrong_buttons(block["elements"]) == ""
    assert len(block["elements"]) == 1
    assert actions(replace(long, buttons=())) == []
