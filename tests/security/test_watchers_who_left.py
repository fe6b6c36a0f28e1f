"""Whoever watches hears nothing more when their login or token has ended: the stream ends with it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from brain.adapters.readmodel import ReadModel
from brain.console import watching
from brain.console.access.tokens import Tokens
from brain.console.server import Console
from brain.console_config import Role
from tests.security.figures import Record, attacked
from tests.security.test_browser_sessions import USERS, browser, post
from tests.security.test_slow_watchers import Notes
from tests.security.view import FolderView

Ends = Callable[[aiohttp.ClientSession, str, Tokens, str], Awaitable[None]]


async def logs_out(session: aiohttp.ClientSession, url: str, _: Tokens, __: str) -> None:
    assert (await post(session, url, "/logout", {}))[0] == 200


async def token_goes(_: aiohttp.ClientSession, __: str, tokens: Tokens, id_: str) -> None:
    assert tokens.revoke({id_})


async def logs_in_again(session: aiohttp.ClientSession, url: str, tokens: Tokens, _: str) -> None:
    text = tokens.make("ann", Role.VIEWER, now=0, lasts_s=1e12, by="x")[1]
    assert (await post(session, url, "/login/session", {}, Authorization=f"Bearer {text}"))[0] == 200


@pytest.mark.parametrize("quiet", [False, True], ids=["a note comes", "nothing comes"])
@pytest.mark.parametrize(
    ("by_cookie", "ends"),
    [
        (True, logs_out),
        (True, token_goes),
        (False, token_goes),
        (True, logs_in_again),
    ],
)
async def test_the_stream_ends_with_the_login(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
    by_cookie: bool,
    ends: Ends,
    quiet: bool,
) -> None:
    """At the next note, which is not told any more, or at the next sign of life."""
    monkeypatch.setattr(watching, "PING_S", 1.0)
    view = cast(
        FolderView, FolderView.of(tmp_path, console={"port": 0, "users": USERS, "open_reading": False})
    )
    view.reader = ReadModel(tmp_path / "history")
    view.reader.begin("log-1")
    notes = Notes(view)
    tokens = Tokens(view.config.data_dir / "tokens.json")
    made, text = tokens.make("ann", Role.VIEWER, now=0, lasts_s=1e12, by="x")
    token = {"Authorization": f"Bearer {text}"}
    async with Console(cast(Any, view)).serving() as url, browser() as one, asyncio.timeout(60):
        if by_cookie:
            assert (await post(one, url, "/login/session", {}, **token))[0] == 200
        async with one.get(f"{url}/api/v1/watch", headers={} if by_cookie else token) as stream:
            assert stream.status == 200
            heard = b""
            while b"event: begin" not in heard:
                heard += await stream.content.readany()
            notes.some(1)
            while notes.written[0].encode() not in heard:
                heard += await stream.content.readany()
            await ends(one, url, tokens, made.id)
            if not quiet:
                notes.some(1)
            rest = await stream.content.read()
        assert b"event: note" not in rest
        async with one.get(f"{url}/api/v1/watch", headers={} if by_cookie else token) as again:
            assert again.status == 200 if ends is logs_in_again else again.status == 401
    attacked(record_property, 1)
