"""The routes for chats and pagers, attacked: forged, old and repeated requests, strangers, weak roles, odd bodies."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from brain.chat_words import Button
from brain.console.chat import reply, wecom
from brain.console.chat.pagerduty import ACKNOWLEDGED, RESOLVED
from brain.console.server import Console
from brain.core.healing.shown import mark as shown_mark
from brain.outgoing import Outgoing
from tests.security.chat_kit import (
    USERS,
    WECOM,
    Sent,
    by_dingtalk,
    by_feishu,
    by_pagerduty,
    by_slack,
    by_wecom,
    nonsense,
    send,
    shown,
    tables,
    waiting,
)
from tests.security.figures import Record, attacked
from tests.security.view import FolderView

ACK = Button(verb="ack", args={"id": "inc-1"})
APPROVE = Button(verb="approve", args={"id": "inc-1.r1", "rung": "bounce"})
HOLD = Button(verb="hold", args={"scope": "node/n1"})
Make = Callable[..., Sent]
EACH: dict[str, Make] = {
    "slack": lambda sender="Uann", **more: by_slack(sender, ACK, **more),
    "feishu": lambda sender="Uann", **more: by_feishu(sender, ACK, **more),
    "dingtalk": lambda sender="Uann", **more: by_dingtalk(sender, " ack inc-1 ", **more),
    "wecom": lambda sender="Uann", **more: by_wecom(sender, "ack inc-1", **more),
    "pagerduty": lambda sender="Uann", **more: by_pagerduty(sender, **more),
}
each = pytest.mark.parametrize("platform", EACH)


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> "asyncio.Queue[str]":
    """What senders in Slack are told."""
    told: asyncio.Queue[str] = asyncio.Queue()

    async def keep(_url: str, text: str, _way: Outgoing) -> None:
        await told.put(text)

    monkeypatch.setattr(reply, "to_sender", keep)
    return told


@contextlib.asynccontextmanager
async def console(folder: Path, **more: Any) -> AsyncIterator[tuple[str, Any]]:
    """A console with all platforms and a run that waits for an approval: its URL, and the view."""
    chat = tables(folder / "secrets")
    for name, extra in more.pop("chat", {}).items():
        chat[name] |= extra
    view: Any = FolderView.of(
        folder / "brain", console={"port": 0, "users": USERS} | more.pop("console", {}), chat=chat, **more
    )
    view.state = waiting()
    async with Console(view).serving() as url:
        yield url, view


@each
async def test_who_is_named_may_say_it_once(
    tmp_path: Path, platform: str, replies: "asyncio.Queue[str]"
) -> None:
    """Under the name in brain.toml, with a note of where it came from; sent again it is nothing new."""
    async with console(tmp_path) as (url, view):
        sent = EACH[platform]()
        status, body = await send(url, sent)
        assert status == (204 if platform == "pagerduty" else 200)
        if platform == "slack":
            assert await asyncio.wait_for(replies.get(), 30) == "done"
        elif platform != "pagerduty":
            assert shown(status, body) == "done"
        assert [(one.who, one.verb, one.args) for one in view.said] == [("ann", "ack", {"id": "inc-1"})]
        notes = [text for kind, text in view.notes if kind == "access.chat"]
        assert len(notes) == 1
        assert f"{platform} Uann" in notes[0]
        assert view.said[0].id in notes[0]
        status, _ = await send(url, sent)
        assert status == (204 if platform == "pagerduty" else 403)
        assert len(view.said) == 1


@each
async def test_what_is_not_signed_now_is_refused(
    tmp_path: Path, platform: str, record_property: Record
) -> None:
    """By another secret, of ten minutes (PagerDuty: two hours) ago or ahead, changed on its way: noted, and nothing is done."""
    async with console(tmp_path) as (url, view):
        far = 7200 if platform == "pagerduty" else 600
        path, body, headers = EACH[platform]()
        attacks: list[Sent] = [
            EACH[platform](secret="a guess"),
            EACH[platform](now=time.time() - far),
            EACH[platform](now=time.time() + far),
            (path.partition("?")[0], body, {"Content-Type": headers["Content-Type"]}),
        ]
        if platform != "dingtalk":  # its signature does not cover the body
            attacks.append(
                (path, body.replace(b"a", b"b", 1) if platform == "slack" else body + b" ", headers)
            )
        for attack in attacks[
            : -1 if platform == "wecom" else None
        ]:  # blanks behind XML are no part of what is signed
            assert (await send(url, attack))[0] == 403, attack
        assert not view.said
        assert [text for kind, text in view.notes if kind == "access.refused" and platform in text]
        attacked(record_property, len(attacks))


@each
async def test_who_is_not_named_may_say_nothing(
    tmp_path: Path, platform: str, replies: "asyncio.Queue[str]", record_property: Record
) -> None:
    """Nor whoever has left [console.users], and is still in the chat's table. The platform shows them why."""
    async with console(tmp_path) as (url, view):
        reasons = ("Ustranger is nobody", "gone, who is Ugone", "ann is nobody")
        for sender, why in zip(("Ustranger", "Ugone", "ann"), reasons, strict=True):
            status, body = await send(url, EACH[platform](sender))
            told = await asyncio.wait_for(replies.get(), 30) if platform == "slack" else shown(status, body)
            assert platform == "pagerduty" or (why in told and f"[chat.{platform}.users]" in told)
        assert not view.said
        assert any("is nobody of" in text for kind, text in view.notes if kind == "access.refused")
        attacked(record_property, 3)


@each
async def test_a_role_that_is_too_weak_stays_so(
    tmp_path: Path, platform: str, replies: "asyncio.Queue[str]", record_property: Record
) -> None:
    """A viewer acknowledges nothing, and nobody acts outside of their limits: as over the API, and with its words."""
    async with console(tmp_path) as (url, view):
        for sender, why in (("Uvic", "that needs the role operator"), ("Unora", "is outside node/n2")):
            status, body = await send(url, EACH[platform](sender))
            told = await asyncio.wait_for(replies.get(), 30) if platform == "slack" else shown(status, body)
            assert platform == "pagerduty" or why in told
        assert not view.said
        attacked(record_property, 2)


async def test_two_lines_of_one_millisecond_in_dingtalk(tmp_path: Path, record_property: Record) -> None:
    """They have one signature, which covers the time alone, so the second may be somebody's who has read it: it does nothing, and
    whoever wrote it reads that, and what to do. The first counts, also when it is sent again; so does the second, written anew.
    """
    async with console(tmp_path) as (url, view):
        stamp = str(int(time.time() * 1000))
        ack = by_dingtalk("Uann", "ack inc-1", stamp=stamp)
        hold = "hold node/n1 we look at the cables"
        assert shown(*await send(url, ack)) == "done"
        for _ in range(2):
            told = shown(*await send(url, by_dingtalk("Uolga", hold, stamp=stamp)))
            assert "was not taken" in told
            assert "Write it again" in told
        assert (await send(url, ack))[0] == 403
        assert [one.verb for one in view.said] == ["ack"]
        assert shown(*await send(url, by_dingtalk("Uolga", hold))) == "done"
        assert [one.verb for one in view.said] == ["ack", "hold"]
        assert [text for kind, text in view.notes if kind == "access.refused" and "with another line" in text]
        attacked(record_property, 3)


async def test_an_approval_is_for_what_the_card_showed(tmp_path: Path, record_property: Record) -> None:
    """With its run and rung; without a rung it is none; an operator may not, an approver may."""
    async with console(tmp_path) as (url, view):
        assert "role approver" in shown(*await send(url, by_feishu("Uolga", APPROVE)))
        without = Button(verb="approve", args={"id": "inc-1.r1"})
        assert "from a chat these count" in shown(*await send(url, by_feishu("Uann", without)))
        assert "say one of" in shown(*await send(url, by_dingtalk("Uann", "approve inc-1.r1")))
        assert not view.said
        assert shown(*await send(url, by_feishu("Uann", APPROVE))) == "done"
        assert shown(*await send(url, by_wecom("Uann", "approve inc-1.r1 bounce"))) == "done"
        assert [one.args for one in view.said] == 2 * [{"id": "inc-1.r1", "rung": "bounce"}]
        attacked(record_property, 3)


async def test_a_card_of_another_cell_counts_for_nothing(tmp_path: Path, record_property: Record) -> None:
    """One app may be that of several cells, and its answers come to one: a node of the same name is another machine."""
    async with console(tmp_path, cell="east") as (url, view):
        for button in (ACK, APPROVE, HOLD):
            told = shown(*await send(url, by_feishu("Uann", replace(button, cell="west"))))
            assert "of the cell west" in told, told
        assert not view.said
        assert shown(*await send(url, by_feishu("Uann", replace(HOLD, cell="east")))) == "done"
        attacked(record_property, 3)


async def test_a_hold_from_a_chat_ends_by_itself(tmp_path: Path) -> None:
    """After four hours, whatever the button says; its reason is the sender's."""
    async with console(tmp_path) as (url, view):
        assert shown(*await send(url, by_feishu("Uolga", HOLD))) == "done"
        assert (
            shown(*await send(url, by_dingtalk("Uolga", "@gpuward hold node/n1 we look at the cables")))
            == "done"
        )
        assert [one.args["for_s"] for one in view.said] == [14_400.0, 14_400.0]
        assert "Uolga" in view.said[0].args["why"]
        assert view.said[1].args["why"] == "we look at the cables"
        longer = Button(verb="hold", args={"scope": "node/n1", "for_s": 1e8})
        assert "from a chat these count" in shown(*await send(url, by_feishu("Uolga", longer)))


@pytest.mark.parametrize(
    "button",
    [
        Button(verb="mode", args={"runbook": "*", "mode": "auto"}),
        Button(verb="start", args={"runbook": "reboot", "node": "n1"}),
        Button(verb="reset"),
        Button(verb="ack", args={"id": "inc-1", "who": "bob"}),
        Button(verb="ack", args={"id": "x" * 1500}),
        Button(verb="deny", args={}),
    ],
)
async def test_nothing_else_comes_from_a_chat(
    tmp_path: Path, button: Button, record_property: Record
) -> None:
    """A button that is not on our cards does nothing, whoever presses it."""
    async with console(tmp_path, console={"users": USERS | {"ann": {"role": "administrator"}}}) as (
        url,
        view,
    ):
        assert (await send(url, by_feishu("Uann", button)))[0] == 200
        assert not view.said
        attacked(record_property, 1)


async def test_two_persons_are_two_persons_in_a_chat_too(tmp_path: Path) -> None:
    """One of them twice, or from two platforms, is one; both names stand on the log."""
    async with console(tmp_path, console={"two_persons": ["approve"]}) as (url, view):
        for sent in (by_feishu("Uann", APPROVE), by_wecom("Uann", "approve inc-1.r1 bounce")):
            assert "another person" in shown(*await send(url, sent))
        assert not view.said
        assert shown(*await send(url, by_dingtalk("Ubob", "approve inc-1.r1 bounce"))) == "done"
        assert [one.who for one in view.said] == ["ann and bob"]


async def test_two_persons_approve_one_step_however_each_has_named_it(tmp_path: Path) -> None:
    """By its incident or its run, with what a card showed or without: it is the same word, on the log as the stricter of the two.
    Two who saw different things have not said the same.
    """
    async with console(tmp_path, console={"two_persons": ["approve"]}) as (url, view):
        mark = shown_mark(view.state, view.state.runs["inc-1.r1"])
        card = Button(verb="approve", args={**APPROVE.args, "seen": mark})
        for first, second in (
            (by_dingtalk("Uann", "approve inc-1 bounce"), by_feishu("Ubob", card)),
            (by_feishu("Uann", card), by_dingtalk("Ubob", "approve inc-1.r1 bounce")),
        ):
            assert "another person" in shown(*await send(url, first))
            assert shown(*await send(url, second)) == "done"
            assert (view.said[-1].who, dict(view.said[-1].args)) == ("ann and bob", card.args)
        older = Button(verb="approve", args={**card.args, "seen": f"P3{mark[2:]}"})
        assert "another person" in shown(*await send(url, by_feishu("Uann", older)))
        assert "another person" in shown(*await send(url, by_feishu("Ubob", card)))
        assert len(view.said) == 2


async def test_what_pagerduty_resolves_stays_open_here(tmp_path: Path) -> None:
    """It is no close; and what the log does not take is asked for again."""
    async with console(tmp_path) as (url, view):
        assert (await send(url, by_pagerduty("Uann", RESOLVED)))[0] == 204
        assert not [one for one in view.said if one.verb != "note"]
        view.deaf = True
        sent = by_pagerduty("Uann", ACKNOWLEDGED)
        assert (await send(url, sent))[0] == 503
        view.deaf = False
        assert (await send(url, sent))[0] == 204
        assert [one.verb for one in view.said if one.verb != "note"] == ["ack"]


async def test_others_at_pagerduty_may_what_the_site_allows(tmp_path: Path) -> None:
    """Under the platform's id, which is no name of a person here."""
    others = {"pagerduty": {"others": {"role": "operator"}}}
    async with console(tmp_path, chat=others) as (url, view):
        assert (await send(url, by_pagerduty("PXPGF42")))[0] == 204
        assert (await send(url, by_pagerduty("Ugone")))[0] == 204
        assert [one.who for one in view.said] == ["pagerduty:PXPGF42"]


async def test_one_sender_has_a_bounded_pace(tmp_path: Path, record_property: Record) -> None:
    """Also who may do nothing: their words fill neither log nor notes, and others are heard meanwhile."""
    async with console(tmp_path) as (url, view):
        told = [shown(*await send(url, by_dingtalk("Uvic", "ack inc-1"))) for _ in range(40)]
        assert 5 < sum("too many words" in text for text in told) < 25
        assert len([kind for kind, _ in view.notes if kind == "access.chat"]) < 35
        assert shown(*await send(url, by_dingtalk("Uann", "ack inc-1"))) == "done"
        attacked(record_property, 40)


async def test_wecom_verifies_its_url(tmp_path: Path) -> None:
    """The echo comes back in plain text, once."""
    async with console(tmp_path) as (url, _), aiohttp.ClientSession() as session:
        echo, stamp = wecom.encrypt(WECOM, b"1616140317555161061"), str(int(time.time()))
        query = {"timestamp": stamp, "nonce": "n", "echostr": echo}
        good = query | {"msg_signature": wecom.sign(WECOM.token, stamp, "n", echo)}
        for params, status in ((query, 403), (good, 200), (good, 403)):
            async with session.get(f"{url}/chat/wecom", params=params) as answer:
                assert answer.status == status
                if status == 200:
                    assert await answer.read() == b"1616140317555161061"


async def test_nonsense_is_a_refusal(tmp_path: Path, record_property: Record) -> None:
    """Of every platform, of every type, and too much of it: never an error of ours."""
    async with console(tmp_path) as (url, view), aiohttp.ClientSession() as session:
        for path, kind, body in nonsense():
            for media in {kind, "application/json", "text/plain"}:
                async with session.post(url + path, data=body, headers={"Content-Type": media}) as answer:
                    assert answer.status == (403 if media == kind else 415), (path, media, body[:20])
        path, _, headers = by_slack("Uann", ACK)
        async with session.post(url + path, data=b"payload=" + b"x" * 300_000, headers=headers) as answer:
            assert answer.status == 413
        assert not view.said
        attacked(record_property, 3 * len(nonsense()))


async def test_a_platform_that_is_not_configured_has_no_route(tmp_path: Path) -> None:
    """What nobody wants is not there."""
    view: Any = FolderView.of(tmp_path / "brain", console={"port": 0, "users": USERS})
    async with Console(view).serving() as url:
        for make in EACH.values():
            assert (await send(url, make()))[0] == 404
        assert (
            await send(url, ("/alerts/alertmanager", orjson.dumps({}), {"Content-Type": "application/json"}))
        )[0] == 404
