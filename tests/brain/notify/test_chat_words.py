"""The words and buttons of a chat, and what is answered in Slack."""

import re
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from brain.chat_words import HOLD_S, Button, label, question
from brain.console.chat import reply
from brain.console.chat.words import NotUnderstood, of_button, of_text
from tests.brain.notify.receivers import receiving


@pytest.mark.parametrize(
    ("text", "verb", "args"),
    [
        ("ack inc-1", "ack", {"id": "inc-1"}),
        ("  @gpuward   ACK   inc-1 ", "ack", {"id": "inc-1"}),
        ("@a @b deny inc-1.r1 not now, please", "deny", {"id": "inc-1.r1", "why": "not now, please"}),
        ("deny inc-1.r1", "deny", {"id": "inc-1.r1"}),
        ("approve inc-1.r1 power cycle", "approve", {"id": "inc-1.r1", "rung": "power cycle"}),
        ("hold node/n1", "hold", {"scope": "node/n1", "why": "U1 holds it from a chat", "for_s": HOLD_S}),
        ("@gpuward 我来处理 inc-1", "ack", {"id": "inc-1"}),
        ("批准 inc-1.r1 power cycle", "approve", {"id": "inc-1.r1", "rung": "power cycle"}),
        ("拒绝 inc-1.r1 换卡", "deny", {"id": "inc-1.r1", "why": "换卡"}),
        ("暂停 node/n1 换线", "hold", {"scope": "node/n1", "why": "换线", "for_s": HOLD_S}),
        ("hold node/n1 cables", "hold", {"scope": "node/n1", "why": "cables", "for_s": HOLD_S}),
    ],
)
def test_a_line_is_a_command(text: str, verb: str, args: dict[str, Any]) -> None:
    """Behind mentions, in any case; a rung and a reason may have blanks."""
    assert of_text(text, "U1") == (verb, args)


@pytest.mark.parametrize("verb", ["ack", "approve", "deny", "hold"])
def test_a_chinese_card_has_chinese_buttons(verb: str) -> None:
    """What stands on a button can be typed as well; a card in both languages has English ones."""
    args = {"id": "inc-1"} if verb == "ack" else {"id": "inc-1.r1", "rung": "bounce", "scope": "node/n1"}
    button = Button(verb=verb, args=args)
    chinese, more = label(button, "zh"), {"approve": " bounce"}.get(verb, "")
    assert not re.search("Ack|Approve|Deny|Hold|for", chinese)
    assert of_text(f"{chinese.split()[0]} inc-1.r1{more}", "U1")[0] == verb
    assert re.fullmatch(r"[\u4e00-\u9fff]+\uff1f", question(button, "zh"))
    assert label(button, "both") == label(button, "en") == label(button)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@gpuward",
        "ack",
        "ack inc-1 inc-2",
        "approve inc-1.r1",
        "hold",
        "reset",
        "close inc-1",
        "mode * auto",
        "x" * 5000,
        "deny inc-1 " + "x" * 1001,
    ],
)
def test_another_line_is_told_what_counts(text: str) -> None:
    """A chat has few words, and no close one is guessed."""
    with pytest.raises(NotUnderstood, match="ack ID"):
        of_text(text, "U1")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "{",
        "[]",
        "7",
        "null",
        7,
        None,
        [],
        {},
        {"verb": "ack"},
        {"verb": "ack", "args": []},
        {"verb": ["ack"], "args": {}},
        "x" * 3000,
    ],
)
def test_a_button_of_others_is_none_of_ours(value: object) -> None:
    """Whatever its value is."""
    with pytest.raises(NotUnderstood):
        of_button(value, "U1", "c1")


def test_a_button_comes_back_as_it_went() -> None:
    """As text (Slack, WeCom) or as an object (Feishu)."""
    button = Button(verb="approve", args={"id": "inc-1.r1", "rung": "power cycle"})
    named = replace(button, cell="c1")
    for value in (button.value, button.carried, named.value, named.carried):
        assert of_button(value, "U1", "c1") == (button.verb, button.args)


async def test_slack_shows_an_answer_to_its_sender_alone() -> None:
    """At the address that Slack gave, without markup of ours; a failure there is nobody's error."""

    def judge(_: web.Request, body: Any) -> tuple[int, Any]:
        good = body["response_type"] == "ephemeral" and body["replace_original"] is False
        return (200, "ok") if good else (400, "?")

    async with receiving(judge) as slack:
        await reply.to_sender(f"{slack.url}/actions/T1/2/3", "<!channel> is no mention")
        assert [one["text"] for one in slack.taken] == ["&lt;!channel&gt; is no mention"]
        slack.instead = [(500, "?", {})]
        await reply.to_sender(f"{slack.url}/actions/T1/2/3", "once more")
    await reply.to_sender(f"{slack.url}/actions/T1/2/3", "nobody listens")


@pytest.mark.parametrize("cell", ["c2", "C1", "", " c1", "c1 ", 1, None, ["c1"], {}])
@pytest.mark.parametrize("verb", ["ack", "approve", "deny", "hold"])
def test_a_card_of_another_cell_counts_for_nothing(cell: object, verb: str) -> None:
    """Its nodes may have the same names: what was to be held would go on, and something else would stand."""
    args = (
        {"scope": "node/n1"}
        if verb == "hold"
        else {"id": "inc-1.r1"} | ({"rung": "x"} if verb == "approve" else {})
    )
    of_button({"verb": verb, "args": args}, "U1", "c1")
    with pytest.raises(NotUnderstood, match="c1"):
        of_button({"verb": verb, "args": args, "cell": cell}, "U1", "c1")
