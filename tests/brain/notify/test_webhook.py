"""The webhook against a real HTTP receiver on loopback."""

import asyncio
import hmac
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp import web

from agent.contract.errors import Refused, TimedOut, Unreachable
from brain.notify.compose import compose
from brain.notify.notifier import build
from brain.notify.webhook import Webhook
from tests.brain.notify.pages import incident, page
from tests.real.nats import free_port

SECRET = b"correct horse"


class Receiver:
    """Keeps what was posted and answers with `status`, after `delay_s`."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.status = 202
        self.delay_s = 0.0
        self.text = "no such routing key"
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.sleep(self.delay_s)
        self.posts.append((dict(request.headers), body))
        headers = {"Location": self.url} if self.status in (301, 302) else {}
        return web.Response(status=self.status, text=self.text, headers=headers)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on a free port."""
    it = Receiver()
    app = web.Application()
    app.router.add_post("/hook/{token}", it.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    it.url = f"http://127.0.0.1:{port}/hook/s3cret-token"
    yield it
    await runner.cleanup()


async def test_a_receiver_can_check_that_the_page_is_ours(receiver: Receiver) -> None:
    """The signature is HMAC-SHA256 over time stamp and the exact body; another body or time does not fit."""
    hook = Webhook(
        "pager", receiver.url, secret=SECRET, headers={"X-Team": "gpu"}, clock=lambda: 1_700_000_000.9
    )
    await hook.send(compose(page()))
    await hook.close()
    ((headers, body),) = receiver.posts
    want = "v1=" + hmac.new(SECRET, b"1700000000." + body, sha256).hexdigest()
    assert headers["Ward-Timestamp"] == "1700000000"
    assert hmac.compare_digest(headers["Ward-Signature"], want)
    assert (
        headers["Ward-Signature"]
        != "v1=" + hmac.new(SECRET, b"1700000000." + body + b" ", sha256).hexdigest()
    )
    assert (headers["Ward-Page"], headers["X-Team"]) == ("inc-1.p1", "gpu")
    assert headers["Content-Type"] == "application/json"
    assert body == compose(page()).to_json()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, Refused),
        (404, Refused),
        (302, Refused),
        (429, Unreachable),
        (500, Unreachable),
        (503, Unreachable),
    ],
)
async def test_a_no_is_told_from_a_later(receiver: Receiver, status: int, error: type[Exception]) -> None:
    """The error says whether asking again helps, quotes the receiver, and hides the URL's secret part."""
    receiver.status = status
    hook = Webhook("pager", receiver.url, secret=SECRET)
    with pytest.raises(error, match=f"answered {status}: no such routing key") as caught:
        await hook.send(compose(page()))
    await hook.close()
    assert "s3cret" not in str(caught.value)
    assert len(receiver.posts) == 1, "a redirect is not followed"


async def test_a_receiver_that_hangs_costs_the_deadline_and_no_more(receiver: Receiver) -> None:
    """TimedOut: somebody may have been told."""
    receiver.delay_s = 60
    hook = Webhook("pager", receiver.url, timeout_s=0.2)
    async with asyncio.timeout(30):
        with pytest.raises(TimedOut, match=r"within 0\.2 s"):
            await hook.send(compose(page()))
    await hook.close()


async def test_a_receiver_that_is_away_is_unreachable() -> None:
    """Nobody listens: nobody was told, and the channel works again afterwards."""
    hook = Webhook("pager", f"http://127.0.0.1:{free_port()}/hook/s3cret-token")
    with pytest.raises(Unreachable) as caught:
        await hook.send(compose(page()))
    await hook.close()
    assert "s3cret" not in str(caught.value)


async def test_a_failing_receiver_does_not_lose_the_page(receiver: Receiver, tmp_path: Path) -> None:
    """The next channel takes it and the answer says why; the first one is used when it is back."""
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET + b"\n")
    notifier = build(
        {
            "pager": {"type": "webhook", "url": receiver.url, "secret_file": str(secret)},
            "file": {"type": "log", "path": str(tmp_path / "pages.log")},
        },
        {"oncall": ["pager", "file"]},
        tmp_path,
    )
    receiver.status = 500
    delivered, channel, why, _ = await notifier.send(compose(page()))
    assert (delivered, channel) == (True, "file")
    assert why.startswith("pager: http://127.0.0.1:")
    assert "inc-1.p1 for oncall" in (tmp_path / "pages.log").read_text()
    receiver.status = 200
    other = incident()
    other.id = "inc-2"
    assert (await notifier.send(compose(page(about=other))))[:3] == (True, "pager", "")
    await notifier.close()
    headers, body = receiver.posts[-1]
    stamp = headers["Ward-Timestamp"].encode()
    assert headers["Ward-Signature"] == "v1=" + hmac.new(SECRET, stamp + b"." + body, sha256).hexdigest()


@pytest.mark.parametrize(
    ("text", "delivered"),
    [
        ("<!DOCTYPE html><title>Log in</title>", False),
        ("\ufeff\r\n <HTML lang=en><body>The proxy wants to know who you are", False),
        ("<?xml version='1.0'?><ok/>", True),
        ("ok", True),
        ("", True),
        ('{"text": "<html>"}', True),
    ],
)
async def test_a_web_page_is_no_answer_of_a_receiver(receiver: Receiver, text: str, delivered: bool) -> None:
    """A proxy or a page to log in stands there, with 200: nobody has got the page, so it is retried, and goes elsewhere."""
    hook = Webhook("pager", receiver.url)
    receiver.status, receiver.text = 200, text
    if delivered:
        await hook.send(compose(page()))
    else:
        with pytest.raises(Unreachable, match="a web page"):
            await hook.send(compose(page()))
    await hook.close()
