"""All other services through the real library: its JSON and mail plug-ins against receivers on loopback."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from brain.core.state import RunState
from brain.notify.apprise import Apprise, build, fitted
from brain.notify.compose import compose
from tests.brain.notify.pages import LINE, page, rule, run
from tests.brain.notify.receivers import Answer, receiving
from tests.real.nats import free_port


def json_service(request: web.Request, body: Any) -> Answer:
    """What Apprise's json:// posts."""
    good = {"version", "title", "message", "type"} <= set(body) and body["message"]
    return (200, {}) if good else (400, {})


def channel(url: str, folder: Path, **more: Any) -> Apprise:
    """The channel as an operator configures it."""
    file = folder / "url"
    file.write_text(url + "\n")
    return build("a", {"url_file": str(file), **more}, "channels.a")


async def test_a_page_reaches_a_service_and_failures_are_told_apart(tmp_path: Path) -> None:
    """The whole page, and the service's own no, later, silence and absence as for every other channel."""
    message = compose(page(), rule=rule(), runs=[run(RunState.APPROVAL)])
    async with receiving(json_service) as it:
        json = it.url.replace("http://", "json://")
        it_works = channel(f"{json}/s3cret", tmp_path, language="zh")
        await it_works.send(message)
        assert it.taken[0]["title"] == message.title
        assert LINE in it.taken[0]["message"]
        assert "断电重启节点" in it.taken[0]["message"]
        assert "gpuward approve inc-1.r1" in it.taken[0]["message"]
        assert it.taken[0]["type"] == "failure"
        for status, error in ((403, Refused), (429, Unreachable), (502, Unreachable)):
            it.instead = [(status, {}, {})]
            with pytest.raises(error, match=str(status)) as caught:
                await it_works.send(message)
            assert "s3cret" not in str(caught.value)
        await it_works.close()
        # The library itself would wait for longer, and call it something else.
        silent = channel(f"{json}/?rto=30", tmp_path, timeout_s=0.3)
        it.delay_s = 60
        with pytest.raises(TimedOut):
            await silent.send(message)
        await silent.close()
    away = channel(f"json://127.0.0.1:{free_port()}/", tmp_path)
    with pytest.raises(Unreachable):
        await away.send(message)
    await away.close()


async def test_acknowledgements_are_told_or_not(tmp_path: Path) -> None:
    """Who was woken may sleep again; a site that pays for each text message leaves them out."""
    async with receiving(json_service) as it:
        for acks in (True, False):
            one = channel(it.url.replace("http://", "json://"), tmp_path, acks=acks)
            await one.send(compose(page("ack", text="acknowledged by ann")))
            await one.close()
    (body,) = it.taken
    assert body["title"].startswith("[P1] ACKNOWLEDGED: ")
    assert "acknowledged by ann" in body["message"]


async def test_a_page_by_mail(tmp_path: Path) -> None:
    """The real plug-in speaks SMTP: subject and body arrive, in UTF-8."""
    heard: list[bytes] = []

    async def smtp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        data = False
        while line := await reader.readline():
            if data:
                heard.append(line)
                data = line != b".\r\n"
                writer.write(b"" if data else b"250 taken\r\n")
                continue
            verb = line[:4].upper()
            data = verb == b"DATA"
            answer = {b"EHLO": b"250 mail.example\r\n", b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}
            writer.write(answer.get(verb, b"250 ok\r\n"))
            if verb == b"QUIT":
                break
        writer.close()

    server = await asyncio.start_server(smtp, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    mail = channel(
        f"mailto://127.0.0.1:{port}/?from=ward@example.com&to=oncall@example.com&mode=insecure", tmp_path
    )
    await mail.send(compose(page(), rule=rule()))
    await mail.close()
    server.close()
    text = b"".join(heard).decode()
    assert "oncall@example.com" in text
    assert "utf-8" in text.lower()
    assert len(text) > 1000


@pytest.mark.parametrize(
    ("title_max", "body_max"), [(0, 160), (0, 300), (250, 300), (250, 1000), (0, 2048), (250, 32768)]
)
def test_what_matters_most_fits_into_every_service(title_max: int, body_max: int) -> None:
    """A text message still says what, where and what to type; more room, more of the page."""
    message = compose(
        page(text="approval wanted: bounce (link.bounce)"),
        rule=rule(),
        runs=[run(RunState.APPROVAL, why="x" * 500)],
    )
    title, body = fitted(message, title_max, body_max, "both")
    assert len(title) <= title_max
    assert len(body) <= body_max
    both = f"{title}\n{body}"
    assert "[P1] gpu lost on gpu/n1/0000:3b:00" in both
    assert "gpuward ack inc-1" in both
    assert ("gpuward approve inc-1.r1" in both) == (body_max >= 300)
    assert (LINE[:40] in both) == (body_max >= 1000)


def test_a_url_that_the_library_does_not_know_is_refused_without_being_shown(tmp_path: Path) -> None:
    """It holds secrets."""
    with pytest.raises(ConfigError, match="not a URL that Apprise knows") as caught:
        channel("pigeon://user:s3cret@loft", tmp_path)
    assert "s3cret" not in str(caught.value)
