"""Requests that no client of ours sends: each is refused by a problem that does nothing where it is shown, none is a 500, and
none fills the log with what it said.
"""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from brain.console import server
from brain.console.access import route
from brain.console.api import openapi
from brain.console.api.problems import PROBLEM
from brain.console_config import Role
from tests import people
from tests.real.brain_kit import Lab, lab
from tests.security.figures import Record, attacked
from tests.security.test_door import ask, console, shown
from tests.security.view import FolderView

PACKED = b"Content-Length: 7\r\nContent-Encoding: %s\r\n\r\ngarbage"
OUTSIDE = (
    b"GET /api/v1/status HTTP/1.1\r\nOrigin: http://\xff\xfe\r\n\r\n",
    b"GET /api/v1/status HTTP/1.1\r\n" + PACKED % b"gzip",
    b"GET /api/v1/nothing HTTP/1.1\r\n" + PACKED % b"deflate",
    b"GET /api/status HTTP/1.1\r\n" + PACKED % b"gzip",
    b"GET /healthz HTTP/1.1\r\n" + PACKED % b"gzip",
    b"GET /healthz HTTP/1.1\r\nExpect: \xc2\x9b31m\r\n\r\n",
    b"GET /nothing HTTP/1.1\r\nExpect: \xc2\x9b31m\r\n\r\n",
    b"GET /api/v1/nodes?%s=1&%s=1 HTTP/1.1\r\n\r\n" % (b"%1b" * 1200, b"%1b" * 1200),
)


def say(port: int, words: bytes) -> tuple[int, str, bytes]:
    """Status, media type and body of the answer."""
    line, _, rest = words.partition(b"\r\n")
    with socket.create_connection(("127.0.0.1", port), 20) as one:
        one.sendall(line + b"\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + rest)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := one.recv(65_536):
                answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    kinds = [one for one in head.split(b"\r\n") if one.lower().startswith(b"content-type: ")]
    return int(head[9:12]), kinds[0].partition(b" ")[2].decode(), body


async def test_what_no_client_sends_is_a_short_refusal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, record_property: Record
) -> None:
    """Bytes that are no text, bodies that are not what their headers say, long names: from strangers, too."""
    async with console(tmp_path) as (url, view):
        caplog.clear()
        for words in OUTSIDE:
            status, media, body = await asyncio.to_thread(say, int(url.rpartition(":")[2]), words)
            assert (400 <= status < 500, media) == (True, PROBLEM), (words, status, body)
            problem = orjson.loads(body)
            assert problem["who"]
            assert len(problem["detail"]) < 500
            assert body.decode().isprintable()
        assert "Traceback" not in caplog.text
        assert [text for kind, text in view.notes if kind == "access.refused"]
        assert all(text.encode() for _, text in view.notes)
    attacked(record_property, len(OUTSIDE))


@pytest.mark.parametrize(
    ("path", "body", "counted"),
    [
        ("command", {"verb": "ack", "args": {str(one): 1 for one in range(5000)}}, 5001),
        ("tokens", {str(one): 1 for one in range(5000)}, 5000),
        ("tokens", {"scopes": [""] * 15_000}, 1),
        ("tokens", {"runbooks": [{}] * 10_000}, 1),
        ("tokens/revoke", {"ids": [{}] * 15_000}, 1),
    ],
)
async def test_thousands_of_mistakes_cost_no_more_than_one(
    tmp_path: Path, path: str, body: Any, counted: int, record_property: Record
) -> None:
    """Each that is put into words takes its time from the nodes' events: whoever makes thousands is told how many."""
    token = shown(people.token_file(tmp_path / "brain"))
    async with console(tmp_path / "brain", **people.ANN) as (url, _):
        status, said = await ask(url, f"/api/v1/{path}", body, Authorization=token)
    assert status == 400
    assert (f"{counted} mistakes" in said["detail"]) == (counted > 1)
    assert said["detail"].count("`") <= 2
    attacked(record_property, 1)


async def test_two_origins_are_none(tmp_path: Path, record_property: Record) -> None:
    """A proxy and the brain must not choose differently, whichever comes first."""
    async with console(tmp_path) as (url, _):
        port = int(url.rpartition(":")[2])
        own, evil = b"Origin: http://127.0.0.1\r\n", b"Origin: http://elsewhere.example\r\n"
        for pair in (own + evil, evil + own):
            for line in (
                b"GET /api/v1/me HTTP/1.1\r\n",
                b"POST /api/command HTTP/1.1\r\nContent-Length: 0\r\n",
            ):
                assert (await asyncio.to_thread(say, port, line + pair + b"\r\n"))[0] == 403
    attacked(record_property, 4)


async def test_a_bug_of_ours_is_a_problem_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its traceback is in the brain's log, and says nothing to whoever asked."""
    view: Any = FolderView.of(tmp_path, console={"port": 0})

    async def broken(_: web.Request) -> web.Response:
        raise KeyError("secret")

    class Broken(server.Console):
        def routes(self) -> list[route.Route]:
            return [
                route.Route(method="GET", path="/api/v1/broken", least=Role.VIEWER, handler=broken, open=True)
            ]

    async with TestClient(TestServer(Broken(view).app())) as client, client.get("/api/v1/broken") as answer:
        assert (answer.status, answer.content_type) == (500, PROBLEM)
        problem = await answer.json()
    assert problem["who"] == "site"
    assert "secret" not in problem["detail"]
    assert "KeyError: 'secret'" in caplog.text


@pytest.mark.component("nats-server")
async def test_places_that_are_no_text_are_told_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of this very log, by whoever reads over loopback without a token."""
    async with lab(tmp_path) as whole:
        port = _port(whole)
        first = await asyncio.to_thread(_begins, port, b"", b"event: begin")
        log = first.partition(b"id: ")[2].partition(b"/")[0]
        caplog.clear()
        for place in (b"1/log/\xff", b"1/own/\xff", "\u0663/log/x".encode(), b"1/log/\xc2\x9b", b"\xff"):
            said = await asyncio.to_thread(
                _begins, port, b"Last-Event-ID: " + log + b"/" + place, b"event: begin"
            )
            assert b" 200 " in said.splitlines()[0]
            assert b"event: lost" in said
        assert "Traceback" not in caplog.text


async def test_a_query_as_long_as_the_document_allows_is_read(tmp_path: Path) -> None:
    """Of the characters that take most; what reads the line by itself would refuse it, in words that are no problem."""
    paths = openapi.document()["paths"]
    queries = {
        path: {
            one["name"]: _longest(one["schema"])
            for one in row["get"].get("parameters", ())
            if one["in"] == "query"
        }
        for path, row in paths.items()
        if "get" in row and not path.endswith(("/watch", ".ndjson"))  # it does not end; it is no JSON
    }
    assert max(sum(map(len, query.values())) for query in queries.values()) > 1500
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        for path, query in queries.items():
            long = "&".join(f"{name}={quote(text)}" for name, text in query.items() if text)
            if long:
                status, _ = await ask(
                    whole.running.console_url, f"{path}?{long}", Authorization=shown(whole.ann)
                )
                assert status in (200, 400, 404), path  # 404: no rule has such a name


def _longest(schema: dict[str, Any]) -> str:
    longest: int = max(one.get("maxLength", 0) for one in (schema, *schema.get("anyOf", ())))
    return "\U0001f60d" * longest


def _port(whole: Lab) -> int:
    assert whole.running is not None
    return int(whole.running.console_url.rpartition(":")[2])


def _begins(port: int, header: bytes, until: bytes) -> bytes:
    """How a watch begins; all of it where it is refused."""
    with socket.create_connection(("127.0.0.1", port), 20) as one:
        one.sendall(b"GET /api/v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n")
        one.sendall((header + b"\r\n" if header else b"") + b"\r\n")
        said = b""
        while until + b"\nid: " not in said or not said.endswith(b"\n\r\n"):
            if not (piece := one.recv(65_536)):
                break
            said += piece
    return said
