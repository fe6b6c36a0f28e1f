"""A browser that has come in by a token: it may what the token may, as long as the token may, and from our own pages only."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from yarl import URL

from brain.console.access import links
from brain.console.access.tokens import Tokens
from brain.console.server import Console
from brain.console_config import Role
from tests import people
from tests.security.view import FolderView

USERS = {"ann": {"role": "administrator"}, "bo": {"role": "operator"}}


@contextlib.asynccontextmanager
async def site(folder: Path, **more: Any) -> AsyncIterator[tuple[str, FolderView]]:
    """A console where nobody reads without a credential."""
    view = FolderView.of(folder / "d", console={"port": 0, "users": USERS, "open_reading": False} | more)
    async with Console(view).serving() as url:
        yield url, cast(FolderView, view)


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    """Keeps cookies of addresses, too, as a browser does."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def post(
    session: aiohttp.ClientSession, url: str, path: str, body: Any, **headers: str
) -> tuple[int, Any]:
    """Status and answer; from a page of ours."""
    async with session.post(url + path, json=body, headers={"Origin": url} | headers) as answer:
        return answer.status, await answer.json()


async def me(session: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
    async with session.get(f"{url}/api/v1/me") as answer:
        return answer.status, await answer.json()


async def test_a_session_ends_with_its_token(tmp_path: Path) -> None:
    """It has the token's own limits, and is nobody's when the token is revoked, or its user leaves brain.toml."""
    async with site(tmp_path) as (url, view), browser() as one:
        tokens = Tokens(view.config.data_dir / "tokens.json")
        made, text = tokens.make("ann", Role.OPERATOR, now=0, lasts_s=1e12, by="x", scopes=("node/n1",))
        status, said = await post(one, url, "/login/session", {}, Authorization=f"Bearer {text}")
        assert (status, said) == (200, {"name": "ann", "role": "operator"})
        status, who = await me(one, url)
        assert (status, who["name"], who["role"]) == (200, "ann", "operator")
        assert who["how"] == f"token {made.id}"
        assert (await post(one, url, "/api/v1/tokens", {"user": "bo"}))[0] == 403, (
            "the token's role, not ann's"
        )
        tokens.revoke({made.id})
        assert (await me(one, url))[0] == 401
        assert ("access.login", f"ann logged in with a browser (operator, token {made.id})") in view.notes


async def test_a_cookie_changes_things_only_from_a_page_of_ours(tmp_path: Path) -> None:
    """Nor does it open further sessions or links: only the token does."""
    async with site(tmp_path) as (url, view), browser() as one:
        ann = people.bearer(people.token_file(view.config.data_dir))
        assert (await post(one, url, "/login/session", {}, **ann))[0] == 200
        body = {"lasts_s": 60}
        for origin in ("http://evil.example", "null", url.replace("127.0.0.1", "localhost")):
            assert (await post(one, url, "/api/v1/tokens", body, Origin=origin))[0] == 403, origin
        async with one.post(f"{url}/api/v1/tokens", json=body) as answer:
            assert answer.status == 403, "no Origin at all"
        for path in ("/login/session", "/login/link"):
            assert (await post(one, url, path, {}))[0] == 403, path
        assert (await post(one, url, "/logout", {}))[0] == 200
        assert (await me(one, url))[0] == 401


async def test_a_link_is_worth_one_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Used twice, too late, guessed, or after its token was revoked: it is worth nothing."""
    async with site(tmp_path) as (url, view), browser() as one, browser() as thief:
        bo = people.token_file(view.config.data_dir, "bo", Role.OPERATOR)
        status, made = await post(thief, url, "/login/link", {}, **people.bearer(bo))
        assert status == 200
        assert (await post(one, url, "/login/once", {"code": made["code"]}))[0] == 200
        assert (await me(one, url))[1]["name"] == "bo"
        assert (await post(thief, url, "/login/once", {"code": made["code"]}))[0] == 403
        for code in ("x", made["code"][:-1], "A" * 43):
            assert (await post(thief, url, "/login/once", {"code": code}))[0] == 403
        for body in ({}, {"code": ""}, {"code": 1}, {"code": "x" * 200}, {"code": "x", "more": 1}):
            assert (await post(thief, url, "/login/once", body))[0] == 400, body
        monkeypatch.setattr(links, "LASTS_S", -1.0)
        _, made = await post(thief, url, "/login/link", {}, **people.bearer(bo))
        assert (await post(thief, url, "/login/once", {"code": made["code"]}))[0] == 403, "too late"
        monkeypatch.undo()
        _, made = await post(thief, url, "/login/link", {}, **people.bearer(bo))
        Tokens(view.config.data_dir / "tokens.json").revoke({bo.read_text().split("_")[1]})
        assert (await post(thief, url, "/login/once", {"code": made["code"]}))[0] == 403, "revoked"
        assert (await me(thief, url))[0] == 401


async def test_a_browser_that_logs_in_again_has_one_session(tmp_path: Path) -> None:
    """The cookie before it, and one that somebody has laid there, are nobody's."""
    async with site(tmp_path) as (url, view), browser() as one:
        ann = people.bearer(people.token_file(view.config.data_dir))
        one.cookie_jar.update_cookies({"gpuward-session": "laid"}, URL(url))
        shown: list[str] = ["laid"]
        for _ in range(2):
            assert (await post(one, url, "/login/session", {}, **ann))[0] == 200
            assert (await me(one, url))[1]["name"] == "ann"
            shown.append(one.cookie_jar.filter_cookies(URL(url))["gpuward-session"].value)
        assert len(set(shown)) == 3
        for old in shown[:2]:
            one.cookie_jar.update_cookies({"gpuward-session": old}, URL(url))
            assert (await me(one, url))[0] == 401


async def test_a_link_of_somebody_else_makes_nobody_another_one(tmp_path: Path) -> None:
    """Whoever is led to it goes on under their own name; their own link is as good as ever."""
    async with site(tmp_path) as (url, view), browser() as ann, browser() as bo:
        tokens = {
            "ann": people.bearer(people.token_file(view.config.data_dir)),
            "bo": people.bearer(people.token_file(view.config.data_dir, "bo", Role.OPERATOR)),
        }
        assert (await post(ann, url, "/login/session", {}, **tokens["ann"]))[0] == 200
        for name, status in (("bo", 409), ("ann", 200)):
            _, made = await post(bo, url, "/login/link", {}, **tokens[name])
            got, said = await post(ann, url, "/login/once", {"code": made["code"]})
            assert got == status, said
            assert (await me(ann, url))[1]["name"] == "ann"
        assert (await post(ann, url, "/logout", {}))[0] == 200
        _, made = await post(bo, url, "/login/link", {}, **tokens["bo"])
        assert (await post(ann, url, "/login/once", {"code": made["code"]}))[0] == 200
        assert (await me(ann, url))[1]["name"] == "bo"


async def test_wrong_tokens_at_the_login_count_as_everywhere(tmp_path: Path) -> None:
    """Whoever guesses is locked out: by the same count as at every other route."""
    async with site(tmp_path) as (url, view), browser() as one:
        statuses = [
            (await post(one, url, "/login/session", {}, Authorization=f"Bearer gw_{n}_x"))[0]
            for n in range(40)
        ]
        assert set(statuses) == {401, 429}
        assert any(kind == "access.locked" for kind, _ in view.notes)


async def test_the_pages_are_the_same_for_everybody_and_run_only_their_own_scripts(tmp_path: Path) -> None:
    """Whoever asks: no cookie, no name, no script from elsewhere; they are not framed."""
    async with site(tmp_path) as (url, _), browser() as one:
        for path in ("/", "/incidents/inc-1", "/nodes/%3Cscript%3E", "/web/app.js"):
            async with one.get(url + path) as answer:
                body = await answer.read()
                assert answer.status == 200, path
                policy = answer.headers["Content-Security-Policy"]
                assert "'unsafe" not in policy
                assert "script-src 'self';" in policy
                assert "frame-ancestors 'none'" in policy
                assert "Set-Cookie" not in answer.headers
                assert b"<script>" not in body
                tag = answer.headers["ETag"]
            async with one.get(url + path, headers={"If-None-Match": tag}) as answer:
                assert answer.status == 304
        for path in ("/web/../server.py", "/web/%2e%2e/server.py", "/web/pages", "/web/nothing.js"):
            async with one.get(URL(url + path, encoded=True)) as answer:
                assert answer.status in (403, 404), path


def test_links_are_few() -> None:
    """A hundred wait at once; then the oldest makes room."""
    kept = links.Links()
    codes = [kept.make(f"t{n}", 0.0) for n in range(links.MOST + 5)]
    assert kept.token(codes[-1], 1.0) == f"t{links.MOST + 4}"
    assert sum(bool(kept.token(code, 1.0)) for code in codes) <= links.MOST
