"""An identity provider that answers in an unusual way, or that somebody has got into: over real HTTP, with the console before it.

The real one, and tokens that are wrong in one thing each: tests/real/test_oidc.py.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import orjson
import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import RSAKey

from brain.console.access import oidc
from brain.console.access.refusals import NOTES_AT_ONCE
from brain.console.server import Console
from tests.real.nats import free_port
from tests.security.figures import Record, attacked
from tests.security.view import FolderView

KEY = RSAKey.generate_key(2048, auto_kid=True)
METADATA, TOKEN, KEYS = "/.well-known/openid-configuration", "/token", "/keys"


@dataclass(kw_only=True)
class Provider:
    """Answers each path with one object, which a test changes."""

    url: str = ""
    nonce: str = ""
    # path -> what stands in place of these fields of its answer
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    in_pieces: bool = False
    # path -> where it sends whoever asks
    passes_on: dict[str, str] = field(default_factory=dict)
    # of the console
    notes: list[tuple[str, str]] = field(default_factory=list)
    # what came to where it sent somebody
    caught: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request of the console's."""
        if request.path == "/elsewhere":
            self.caught.append(await request.text())
            return web.json_response({})
        if request.path in self.passes_on:
            raise web.HTTPTemporaryRedirect(self.passes_on[request.path])
        body = orjson.dumps(self._said(request.path) | self.changes.get(request.path, {}))
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (body[:9], body[9:]) if self.in_pieces else (body,):
            await response.write(piece)
            await asyncio.sleep(0.05 * self.in_pieces)
        return response

    def _said(self, path: str) -> dict[str, Any]:
        if path == METADATA:
            places = {name: f"{self.url}/{name}" for name in ("authorization_endpoint", "userinfo_endpoint")}
            places |= {"token_endpoint": self.url + TOKEN, "jwks_uri": self.url + KEYS}
            return {"issuer": self.url} | places
        if path == KEYS:
            return {"keys": [KEY.as_dict(private=False)]}
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": "gpuward",
            "nonce": self.nonce,
            "sub": "ann",
            "iat": now,
            "exp": now + 60,
        }
        claims |= {"groups": ["oncall"]} | self.claims
        token = jwt.encode({"alg": "RS256", "kid": KEY.kid}, claims, KEY)
        return {"access_token": "a", "id_token": token}


@contextlib.asynccontextmanager
async def provider_at() -> AsyncIterator[Provider]:
    """The provider, at a port of its own."""
    provider, port = Provider(), free_port()
    provider.url = f"http://127.0.0.1:{port}"
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", provider.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield provider
    await runner.cleanup()


@contextlib.asynccontextmanager
async def site(folder: Path, **console: Any) -> AsyncIterator[tuple[Provider, str]]:
    """The provider, and the URL of a console that trusts it. `console`: more of its table."""
    own = free_port()
    url = f"{'https' if 'tls_cert_file' in console else 'http'}://127.0.0.1:{own}"
    async with provider_at() as provider:
        oidc_table: dict[str, Any] = {
            "issuer": provider.url,
            "client_id": "gpuward",
            "redirect_url": f"{url}/login/callback",
            "groups": {"oncall": {"role": "approver"}},
        }
        table = {"port": own, "open_reading": False, "oidc": oidc_table} | console
        view: Any = FolderView.of(folder / "d", console=table)
        provider.notes = view.notes
        async with Console(view).serving():
            yield provider, url


async def log_in(provider: Provider, url: str, **more: str) -> tuple[int, str]:
    """Status and text of the end of a login, or of its beginning where that is refused."""
    async with browser_of() as browser:
        return await log_in_with(browser, provider, url, **more)


def browser_of() -> aiohttp.ClientSession:
    """Somebody's browser, without cookies. It believes every certificate."""
    jar = aiohttp.CookieJar(unsafe=True)  # addresses may have cookies
    return aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(ssl=False))


async def log_in_with(
    browser: aiohttp.ClientSession, provider: Provider, url: str, **more: str
) -> tuple[int, str]:
    """As `log_in`; afterwards the browser has its cookies."""
    async with browser.get(f"{url}/login", allow_redirects=False) as answer:
        if answer.status != 303:
            return answer.status, await answer.text()
        asked = parse_qs(urlsplit(answer.headers["Location"]).query)
    provider.nonce = asked["nonce"][0]
    back = {"state": asked["state"][0], "code": "c"} | more
    async with browser.get(f"{url}/login/callback", params=back) as answer:
        return answer.status, await answer.text()


async def test_an_answer_that_comes_in_pieces_is_one(tmp_path: Path) -> None:
    """As each that is longer than a packet does; one without end is none."""
    async with site(tmp_path) as (provider, url):
        assert (await log_in(provider, url))[0] == 200
        provider.in_pieces = True
        assert await log_in(provider, url) == (200, '{"name":"ann","role":"approver"}')
        provider.changes[METADATA] = {"long": "x" * (oidc.MAX_ANSWER // 2)}
        assert (await log_in(provider, url))[0] == 200
        provider.changes[METADATA] = {"long": "x" * oidc.MAX_ANSWER}
        assert (await log_in(provider, url))[0] == 502


@pytest.mark.parametrize("path", [METADATA, TOKEN, KEYS])
async def test_code_and_verifier_go_nowhere_else(tmp_path: Path, path: str, record_property: Record) -> None:
    """An open redirect at the provider leads neither them nor the client's secret away, nor does another's word come by it."""
    async with site(tmp_path) as (provider, url):
        provider.passes_on[path] = f"{provider.url}/elsewhere"
        status, text = await log_in(provider, url)
        assert status in (403, 502)
        assert "answered 307" in text
        assert provider.caught == []
        attacked(record_property, 1)


STRANGE: dict[str, tuple[str, dict[str, Any]]] = {
    "an address with a line break": (METADATA, {"authorization_endpoint": "https://id/\r\nSet-Cookie: a=b"}),
    "an address that is none": (METADATA, {"authorization_endpoint": "https://[::1"}),
    "another scheme": (METADATA, {"authorization_endpoint": "javascript:alert(1)"}),
    "keys at an address that is none": (METADATA, {"jwks_uri": "https://[id"}),
    "keys in the open": (METADATA, {"jwks_uri": "http://id.example/keys"}),
    "no address for codes": (METADATA, {"token_endpoint": None}),
    "no list of methods": (METADATA, {"token_endpoint_auth_methods_supported": 5}),
    "keys that are none": (KEYS, {"keys": [5, None]}),
    "a token that is none": (TOKEN, {"id_token": {"a": 1}}),
}


async def test_what_is_no_answer_lets_nobody_in(tmp_path: Path, record_property: Record) -> None:
    """It is refused with a reason, and is no error of ours."""
    (tmp_path / "d").mkdir()
    async with site(tmp_path) as (provider, url):
        for what, (path, change) in STRANGE.items():
            provider.changes = {path: change}
            status, text = await log_in(provider, url)
            assert (status, '"detail":' in text) in ((403, True), (502, True)), f"{what}: {status} {text}"
        attacked(record_property, len(STRANGE))


async def test_the_answer_says_whose_it_is_and_for_whom(tmp_path: Path, record_property: Record) -> None:
    """A provider that says who answers (RFC 9207) always does; a token that was made for another client is not ours."""
    async with site(tmp_path) as (provider, url):
        provider.changes[METADATA] = {"authorization_response_iss_parameter_supported": True}
        assert (await log_in(provider, url))[0] == 403
        assert (await log_in(provider, url, iss="https://evil"))[0] == 403
        assert (await log_in(provider, url, iss=provider.url))[0] == 200
        provider.claims = {"azp": "another"}
        assert (await log_in(provider, url, iss=provider.url))[0] == 403
        provider.claims = {"azp": "gpuward"}
        assert (await log_in(provider, url, iss=provider.url))[0] == 200
        attacked(record_property, 3)


async def test_ends_of_logins_that_nobody_began_fill_no_notes(
    tmp_path: Path, record_property: Record
) -> None:
    """From many addresses, each within its own limit: what else was noted stays to be seen."""
    async with site(tmp_path) as (provider, url):
        for number in range(3 * NOTES_AT_ONCE):
            connector = aiohttp.TCPConnector(local_addr=(f"127.0.2.{number + 1}", 0))
            async with (
                aiohttp.ClientSession(connector=connector) as stranger,
                stranger.get(f"{url}/login/callback?state=x&code=y") as answer,
            ):
                assert answer.status == 403
        assert 0 < len(provider.notes) <= NOTES_AT_ONCE
        attacked(record_property, 3 * NOTES_AT_ONCE)
