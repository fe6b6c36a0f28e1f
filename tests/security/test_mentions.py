"""Nobody who names a job calls a whole chat, or shows a link under another name, on any platform that pages go to."""

import itertools
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from brain.notify.dingtalk import DingTalkOptions
from brain.notify.dingtalk import card as dingtalk
from brain.notify.message import unaddressed
from brain.notify.wecom import WeComOptions, text_of
from tests.security.figures import Record, attacked
from tests.security.test_inert import a_page

# What each platform makes a mention, or a link with another text, of: from its own documentation
ACTS = {
    "discord": r"@everyone|@here|<@[!&]?\d+>|@\d{15,}",
    "slack": r"<[!@#]|<[^<>|\s]+\|",
    "mattermost, rocket.chat": r"(?<![A-Za-z0-9])@\w",
    "zulip": r"@_?\*",
    "feishu": r"<at\b",
    "teams": r"<at>[^<]*</at>",
    "wecom": r"<a\b",
    "google chat": r"<users/|<[^<>|\s]+\|",
    "markdown": r"\]\(",
}
WORDS = (
    "@everyone", "@here", "@channel", "@all", "@room", "@bob", "@所有人", "<@123456789012345678>", "@123456789012345678",
    "<!channel>",
    "<!subteam^S1|x>", "<#C1|x>", "<https://evil.example|console>", "<tel:1|console>",
    "@**all**", "@_**bob**", "@*staff*",
    '<at user_id="all">x</at>', "<at id=all></at>", "<AT>bob</AT>", '<a href="https://evil.example">console</a>',
    "<A\thref=//evil.example>x</a>", "<users/all>", "[console](https://evil.example)", "[![x](//evil.example)](//evil.example)",
)  # fmt: skip
BEFORE = ("", "x", "x.", "x-", "x+", "x_", "7", "(", "中", "'", "<", "@", "/")
BEHIND = ("", "x", ".x", " x", ">", "@", "|x>")


def names() -> list[str]:
    """What somebody calls a job."""
    return ["".join(parts) for parts in itertools.product(BEFORE, WORDS, BEHIND)]


def test_no_name_is_a_mention_or_a_link(record_property: Record) -> None:
    """On any platform, whatever stands before and behind it."""
    tried = names()
    got = {
        (of, name) for name in tried for of, acts in ACTS.items() if re.search(acts, unaddressed(name), re.I)
    }
    assert not got
    attacked(record_property, len(tried))


@pytest.mark.parametrize(
    "text",
    ["ann@example.org", "ssh root@10.0.0.1", "root@gpu-17", "pid='<unknown>', name=<unknown>", "a < b", "<kworker/u8:1:77,77>",
     "journalctl -u <unit>"],
)  # fmt: skip
def test_what_is_none_stays_as_it_is(text: str) -> None:
    """Addresses of mail, commands that people copy, and what kernels write."""
    assert unaddressed(text) == text


@pytest.fixture(scope="module")
def discord() -> Iterator[tuple[str, list[Any]]]:
    """A receiver in Discord's place, and what it has got."""
    got: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library has it
            """It says nothing."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("shape", ["text", "markdown"])
def test_the_library_pings_nobody_in_discord(
    discord: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """It looks for mentions itself, also within a word, and adds them to those whom the message pings."""
    from apprise import Apprise
    from apprise.plugins.discord import NotifyDiscord

    url, got = discord
    monkeypatch.setattr(NotifyDiscord, "notify_url", url)
    monkeypatch.setattr(NotifyDiscord, "request_rate_per_sec", 0)
    service: Any = Apprise.instantiate(f"discord://{'1' * 24}/{'a' * 64}/?format={shape}")
    for word in ("@everyone", "x@everyone", "x.@here", "x-@123456789012345678", "x@123456789012345678"):
        got.clear()
        assert service.notify(title="t", body=unaddressed(f"job {word} is hit"), body_format="text")
        (body,) = got
        assert not body.get("allow_mentions"), word
        assert not re.search(ACTS["discord"], str(body.get("content", ""))), word


def test_a_page_in_wecom_has_no_link_of_others() -> None:
    """The text of an app may have links: `<a href="...">`."""
    want: Any = WeComOptions(corp="c", agent=1, secret_file="/x", to_users=("ann",))  # type: ignore[arg-type]  # read from no file
    for name in names():
        assert not re.search(ACTS["wecom"], text_of(a_page(name), want), re.I), name


def test_a_card_of_dingtalk_is_plain_in_its_title_too() -> None:
    """Its first line is Markdown as the rest is."""
    want: Any = DingTalkOptions(token_file="/x")  # type: ignore[arg-type]  # read from no file
    for name in (
        "**x**",
        "![x](//evil.example/x.png)",
        "[x]: //evil.example",
        "`x`",
        "<b>x</b>",
        "~~x~~",
        "a_b_c",
    ):
        text = dingtalk(a_page(name), want)["markdown"]["text"]
        assert not re.search(r"(?<!\\)[*_`>~|!\[\]]", text.removeprefix("#### ")), name
