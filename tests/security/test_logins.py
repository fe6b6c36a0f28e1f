"""Logins end with their group in brain.toml and by an administrator's word, and their cookie is this host's alone."""

import contextlib
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from brain import config
from brain.console.brain_view import BrainView
from brain.console.server import Console
from tests import people
from tests.real.nats import free_port
from tests.security.figures import Record, attacked
from tests.security.test_door import ask, certificate, shown
from tests.security.test_oidc_provider import Provider, browser_of, log_in_with, provider_at, site
from tests.security.view import FolderView


async def me(browser: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
    """Status and answer of GET /api/v1/me."""
    async with browser.get(f"{url}/api/v1/me") as answer:
        return answer.status, await answer.json()


def written(folder: Path, port: int, provider: Provider, groups: str) -> Path:
    """brain.toml, as an editor replaces it."""
    new, file = folder / "brain.toml.new", folder / "brain.toml"
    new.write_text(
        f'data_dir = "{folder / "d"}"\n[console]\nport = {port}\nopen_reading = false\n'
        '[console.users.ann]\nrole = "administrator"\n'
        f'[console.oidc]\nissuer = "{provider.url}"\nclient_id = "gpuward"\n'
        f'redirect_url = "http://127.0.0.1:{port}/login/callback"\n{groups}'
    )
    new.rename(file)
    return file


def group(name: str, role: str) -> str:
    """One table of [console.oidc.groups]."""
    return f'[console.oidc.groups.{name}]\nrole = "{role}"\n'


@contextlib.asynccontextmanager
async def own_site(folder: Path, groups: str) -> AsyncIterator[tuple[Provider, int, FolderView]]:
    """A console that was started with a brain.toml, its port and its view."""
    port = free_port()
    async with provider_at() as provider:
        (folder / "d").mkdir(exist_ok=True)
        view = FolderView(config=config.load(written(folder, port, provider, groups)))
        async with Console(cast(BrainView, view)).serving():
            yield provider, port, view


async def test_a_group_that_leaves_brain_toml_ends_its_logins(tmp_path: Path) -> None:
    """At the next request, without a restart; another role counts from then on, and a new group lets its people in."""
    async with (
        own_site(tmp_path, group("oncall", "approver")) as (provider, port, view),
        browser_of() as browser,
    ):
        url = f"http://127.0.0.1:{port}"
        assert (await log_in_with(browser, provider, url))[0] == 200
        assert (await me(browser, url))[1]["role"] == "approver"
        written(tmp_path, port, provider, group("oncall", "viewer"))
        assert (await me(browser, url))[1]["role"] == "viewer"
        written(tmp_path, port, provider, group("staff", "viewer"))
        assert (await me(browser, url))[0] == 401
        assert (await log_in_with(browser, provider, url))[0] == 403
        provider.claims = {"groups": ["staff"]}
        assert (await log_in_with(browser, provider, url))[0] == 200
        assert [text for kind, text in view.notes if kind == "access.people"] == [
            "brain.toml was read again: group oncall is viewer",
            "brain.toml was read again: group staff is new, group oncall has left",
        ]


async def test_an_administrator_ends_the_logins_of_a_person(tmp_path: Path) -> None:
    """Who has left at the provider is still logged in here: one command, no restart. Nobody else's login ends."""
    admin = shown(people.token_file(tmp_path / "d"))
    async with own_site(tmp_path, group("oncall", "viewer")) as (provider, port, view):
        url = f"http://127.0.0.1:{port}"
        async with browser_of() as bob, browser_of() as eve:
            for browser, name in ((bob, "bob"), (eve, "eve")):
                provider.claims = {"sub": name}
                assert (await log_in_with(browser, provider, url))[0] == 200
            revoke = "/api/v1/tokens/revoke"
            assert (await ask(url, revoke, {"user": "zoe"}, Authorization=admin))[0] == 404
            status, answer = await ask(url, revoke, {"user": "bob"}, Authorization=admin)
            assert (status, answer) == (200, {"revoked": [], "sessions": 1})
            assert [(await me(browser, url))[0] for browser in (bob, eve)] == [401, 200]
            assert view.notes[-1] == ("access.token", "ann ended the sessions of bob at this brain (1)")
            sent = {"Origin": url, "Content-Type": "application/json"}
            async with eve.post(f"{url}{revoke}", json={"user": "bob"}, headers=sent) as refused:
                assert refused.status == 403, "a viewer ends nobody's but their own"


@pytest.mark.parametrize("tls", [True, False])
async def test_the_cookie_is_this_hosts_alone(tmp_path: Path, tls: bool, record_property: Record) -> None:
    """With TLS browsers take it from this very host only, and one that somebody else has laid there by its bare name is none.
    On loopback without TLS, where browsers allow no such prefix, logins work as well.
    """
    console: dict[str, Any] = {}
    if tls:
        chain, key = certificate(tmp_path, "own")
        console = {"tls_cert_file": str(chain), "tls_key_file": str(key)}
    async with site(tmp_path, **console) as (provider, url), browser_of() as browser:
        assert (await log_in_with(browser, provider, url))[0] == 200
        (cookie,) = browser.cookie_jar
        assert cookie.key == ("__Host-gpuward-session" if tls else "gpuward-session")
        assert cookie["path"] == "/"
        assert (bool(cookie["secure"]), bool(cookie["httponly"]), cookie["samesite"]) == (tls, True, "Strict")
        assert (await me(browser, url))[0] == 200
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as other:
            laid = SimpleCookie({"gpuward-session": cookie.value})
            async with other.get(
                f"{url}/api/v1/me", headers={"Cookie": laid.output(header="").strip()}
            ) as answer:
                assert answer.status == (401 if tls else 200)
        attacked(record_property, int(tls))
        async with browser.post(f"{url}/logout", json={}, headers={"Origin": url}) as answer:
            assert answer.status == 200
        assert (await me(browser, url))[0] == 401
        assert not list(browser.cookie_jar), "it is taken away"
