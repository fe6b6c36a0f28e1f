"""What the API refuses is told in the language of whoever asks; the log, and scripts, have it in English."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from agent.shared.words import speaking
from brain.cli.client import Client
from brain.cli.main import FOLDERS
from brain.core.said import Sentence, said
from tests.brain.top.kit import Served, link_down, served

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# What is asked; what is said in English, and in Chinese.
REFUSED: dict[str, tuple[Callable[[Client], Any], str, str]] = {
    "an unknown id": (
        lambda client: client.get("explain", "inc-none"),
        "no incident 'inc-none', and nothing else of that id: explain takes an incident (inc-…",
        "没有故障 'inc-none'，也没有其他东西使用该编号：explain 接受故障（inc-…",
    ),
    "a node for an id": (
        lambda client: client.get("explain", "n1"),
        "'n1' is a place, and explain takes an id. Open there: inc-",
        "'n1' 是一个位置，而 explain 需要编号。那里未结束的：inc-",
    ),
    "an unknown run": (lambda client: client.get("runs", "x.r1"), "no run 'x.r1'", "没有运行 'x.r1'"),
    "an unknown node": (lambda client: client.get("nodes", "n99"), "no node 'n99'", "没有节点 'n99'"),
    "an unknown card": (lambda client: client.get("cards", "c99"), "no card 'c99'", "没有卡 'c99'"),
    "an evidence bundle": (
        lambda client: client.get("evidence", "nothing"),
        "'nothing' has no evidence bundle",
        "'nothing' 没有证据包",
    ),
    "a misspelt node to hold": (
        lambda client: client.submit("hold", scope="node/n99", why="x"),
        "no node 'n99' (have: n1, n2)",
        "没有节点 'n99'（可选：n1, n2）",
    ),
    "no scope to hold": (
        lambda client: client.submit("hold", scope="n1", why="x"),
        "no scope 'n1': did you mean node/n1?",
        "没有范围 'n1'：您是指 node/n1 吗？",
    ),
    "an unknown runbook": (
        lambda client: client.submit("mode", runbook="zzz", mode="auto"),
        "no runbook 'zzz' (have: ",
        "没有修复手册 'zzz'（可选：",
    ),
    "an incident to take": (
        lambda client: client.submit("ack", id="inc-none"),
        "ann: ack id=inc-none: no such open incident or alert group",
        "ann: ack id=inc-none: 没有这样的未结故障或告警组",
    ),
    "a run to approve": (
        lambda client: client.submit("approve", id="inc-none", rung="reset"),
        "ann: approve id=inc-none rung=reset: no run of that id waits for an approval",
        "ann: approve id=inc-none rung=reset: 没有该编号的运行在等待批准",
    ),
    "a node to return": (
        lambda client: client.submit("return", node="n99"),
        "ann: return node=n99: no such node: 'n99'",
        "ann: return node=n99: 没有这样的 node：'n99'",
    ),
    "a hold to release": (
        lambda client: client.submit("release", scope="hold-x"),
        "ann: release scope=hold-x: there is no hold on 'hold-x'",
        "ann: release scope=hold-x: 'hold-x' 上没有暂停",
    ),
    "a breaker to reset": (
        lambda client: client.submit("reset"),
        "ann: reset: the breaker has not tripped",
        "ann: reset: 熔断器没有跳闸",
    ),
    "a runbook to start": (
        lambda client: client.submit("start", runbook="zzz", node="n1"),
        "runbook 'zzz' cannot be started by request",
        "修复手册 'zzz' 不能由人启动",
    ),
}


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A real server, with two nodes."""
    with served(tmp_path_factory.mktemp("served"), link_down()) as whole:
        yield whole


def refusal(client: Client, ask: Callable[[Client], Any], language: str) -> str:
    """What somebody who speaks it reads."""
    with speaking(language, FOLDERS), pytest.raises(click.ClickException) as found:
        ask(client)
    return found.value.message


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_told_in_both(brain: Served, what: str) -> None:
    """The same facts in each."""
    ask, english, chinese = REFUSED[what]
    assert english in refusal(brain.client(), ask, "en")
    assert chinese in refusal(brain.client(), ask, "zh")


def test_whose_token_is_wrong(brain: Served, tmp_path: Path) -> None:
    """Before anything is known of them."""
    file = tmp_path / "wrong.token"
    file.write_text("gpw_0000000000_wrong", encoding="utf-8")
    text = refusal(Client(brain.url, file), lambda client: client.get("notes"), "zh")
    assert "该令牌错误、已吊销或已过期：启动 brain 的人自动拥有令牌" in text


@pytest.mark.parametrize(
    ("accepted", "is_chinese"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", True),
        ("zh", True),
        ("en-GB,zh;q=0.5", False),
        ("*", False),
        ("", False),
        ("\u00e9", False),
    ],
)
def test_what_a_browser_asks_for(brain: Served, accepted: str, is_chinese: bool) -> None:
    """The language that stands first; and it is that request's alone."""
    for wanted, expected in ((accepted, is_chinese), ("", False)):
        request = urllib.request.Request(f"{brain.url}/api/v1/runs/none.r1")  # noqa: S310 - ours
        request.add_header("Authorization", f"Bearer {brain.tokens['ann'].read_text().strip()}")
        if wanted:
            request.add_header("Accept-Language", wanted)
        with pytest.raises(urllib.error.HTTPError) as found:
            urllib.request.urlopen(request, timeout=60)  # noqa: S310 - ours
        problem = json.loads(found.value.read())
        assert bool(CHINESE.search(problem["detail"])) is expected
        assert (problem["status"], problem["title"]) == (404, "Not Found")


def test_the_log_has_it_in_english(brain: Served) -> None:
    """Whoever said it in Chinese: the note is everybody's."""
    with speaking("zh", FOLDERS), pytest.raises(click.ClickException):
        brain.client().submit("ack", id="inc-of-nobody")
    found = brain.client().get("notes", query="kind=operator.refused")["notes"][0]
    assert found["text"] == "ann: ack id=inc-of-nobody: no such open incident or alert group"


def test_what_a_sentence_was_made_of() -> None:
    """It is the English text, whatever is done with it, and knows its parts, of which some have their own."""
    text = said("no node {name}{have}", name="'n9'", have=said(": did you mean {names}?", names="n1"))
    assert (text, type(text)) == ("no node 'n9': did you mean n1?", Sentence)
    assert text.parts() == {
        "template": "no node {name}{have}",
        "values": {
            "name": "'n9'",
            "have": {"template": ": did you mean {names}?", "values": {"names": "n1"}},
        },
    }
    assert said("{n} holds", n=2).parts()["values"] == {"n": "2"}
    assert said("a {name} in braces", name="{x}") == "a {x} in braces"
