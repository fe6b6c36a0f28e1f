"""People log in at a real identity provider; whoever plays with the way there and back does not."""

import base64
import contextlib
import hmac
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from agent.contract.errors import ConfigError, Refused
from brain.cli.checkup import counterparts
from brain.cli.checkup.lines import Health
from brain.console.access import oidc
from brain.console.server import Console
from brain.console_config import OidcConfig
from tests.brain.shell import doctor_kit
from tests.real.canaille_kit import Browser, canaille
from tests.real.nats import free_port
from tests.security.figures import Record, attacked
from tests.security.view import FolderView

pytestmark = pytest.mark.component("canaille")
GROUPS = {"oncall": {"role": "approver"}, "staff": {"role": "viewer"}}


@dataclass(slots=True, kw_only=True)
class Site:
    """A console with an identity provider."""

    url: str
    view: Any
    issuer: str

    @contextlib.asynccontextmanager
    async def browser(self) -> AsyncIterator[Browser]:
        """Somebody's browser, without cookies."""
        jar = aiohttp.CookieJar(unsafe=True)  # addresses may have cookies
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            yield Browser(session)


@contextlib.asynccontextmanager
async def site(folder: Path, **more: Any) -> AsyncIterator[Site]:
    """A console that trusts Canaille."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "secret").write_text("s3cret\n")
    with canaille(folder, f"{url}/login/callback") as issuer:
        table = {"issuer": issuer, "client_id": "gpuward", "client_secret_file": str(folder / "secret")}
        table |= {"redirect_url": f"{url}/login/callback", "groups": GROUPS} | more
        view: Any = FolderView.of(folder, console={"port": port, "open_reading": False, "oidc": table})
        async with Console(view).serving():
            yield Site(url=url, view=view, issuer=issuer)


async def get(browser: Browser, url: str, **headers: str) -> tuple[int, Any]:
    async with browser.session.get(url, headers=headers) as answer:
        return answer.status, await answer.json()


async def post(browser: Browser, url: str, body: Any, **headers: str) -> tuple[int, Any]:
    async with browser.session.post(url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_groups_become_roles(tmp_path: Path) -> None:
    """Ann is on call, bob only reads, eve may not come in; a logout ends it; a page elsewhere cannot use the cookie."""
    async with site(tmp_path) as here:
        for name, status, role in (("ann", 200, "approver"), ("bob", 200, "viewer"), ("eve", 403, "")):
            async with here.browser() as browser:
                back = await browser.log_in(f"{here.url}/login", name)
                answered = await get(browser, back)
                assert answered[0] == status, answered
                me = await get(browser, f"{here.url}/api/v1/me")
                if not role:
                    assert me[0] == 401
                    continue
                assert (me[1]["name"], me[1]["role"], me[1]["how"]) == (name, role, "session")
                body = {"verb": "ack", "args": {"id": "x"}}
                command = f"{here.url}/api/v1/command"
                assert (await post(browser, command, body))[0] == 403, "no page of ours sent it"
                assert (await post(browser, command, body, Origin="http://evil"))[0] == 403
                assert (await post(browser, f"{here.url}/logout", {}, Origin=here.url))[0] == 200
                assert (await get(browser, f"{here.url}/api/v1/me"))[0] == 401
        kinds = [kind for kind, _ in here.view.notes]
        assert kinds.count("access.login") == 2
        assert any("eve is in no group" in text for _, text in here.view.notes)


async def test_a_login_belongs_to_the_browser_that_began_it(tmp_path: Path) -> None:
    """Neither another browser, nor another state, code or issuer, nor the same answer twice lets anybody in."""
    async with site(tmp_path) as here:
        async with here.browser() as browser, here.browser() as other:
            back = await browser.log_in(f"{here.url}/login", "ann")
            assert (await get(other, back))[0] == 403, "the address in somebody else's browser (login CSRF)"
            query = {key: values[0] for key, values in parse_qs(urlsplit(back).query).items()}
            for change in ({"state": "x"}, {"state": ""}):
                changed = urlencode(query | change)
                assert (await get(browser, f"{here.url}/login/callback?{changed}"))[0] == 403, change
            assert (await get(browser, back))[0] == 200
            assert (await get(browser, back))[0] == 403, "twice"
        for change in ({"code": "stolen"}, {"iss": "http://evil"}, {"error": "access_denied", "code": ""}):
            async with here.browser() as browser:
                back = await browser.log_in(f"{here.url}/login", "ann")
                query = {key: values[0] for key, values in parse_qs(urlsplit(back).query).items()}
                changed = urlencode(query | change)
                assert (await get(browser, f"{here.url}/login/callback?{changed}"))[0] == 403, change
                assert (await get(browser, f"{here.url}/api/v1/me"))[0] == 401
        async with here.browser() as browser:
            codes = [(await get_status(browser, f"{here.url}/login")) for _ in range(30)]
            assert 429 in codes, "each login holds a place"


async def get_status(browser: Browser, url: str) -> int:
    async with browser.session.get(url, allow_redirects=False) as answer:
        return answer.status


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def test_tokens_that_are_not_for_us(tmp_path: Path, record_property: Record) -> None:
    """Signed by the provider's own key, and wrong in one thing each; unsigned; signed with what is no secret."""
    key, other = RSAKey.generate_key(2048, auto_kid=True), RSAKey.generate_key(2048, auto_kid=True)
    keys = {"keys": [key.as_dict(private=False)]}
    config = OidcConfig.model_validate(
        {
            "issuer": "https://id",
            "client_id": "gpuward",
            "redirect_url": "https://g/login/callback",
            "groups": {},
        }
    )
    provider = oidc.Provider(config, "", None, time.time, dict)
    now = int(time.time())
    good = {"iss": "https://id", "aud": "gpuward", "nonce": "n", "sub": "ann", "iat": now, "exp": now + 60}
    header = {"alg": "RS256", "kid": key.kid}

    def signed(claims: dict[str, Any], by: Any = key, head_: dict[str, Any] = header) -> str:
        return jwt.encode(head_, claims, by, algorithms=[head_["alg"]])

    assert provider._claims(signed(good), keys, "n")["sub"] == "ann"
    assert provider._claims(signed(good | {"aud": ["gpuward"]}), keys, "n")["sub"] == "ann"
    wrong: list[tuple[str, str]] = [
        (f"{name} is {value!r}", signed({**good, name: value}))
        for name, value in (
            ("iss", "https://evil"), ("aud", "another"), ("aud", ["gpuward", "another"]), ("nonce", "m"), ("exp", now - 3600),
            ("exp", "soon"), ("iat", now + 3600), ("aud", []), ("nonce", ["n", "m"]),
        )
    ] + [
        (f"no {name}", signed({key_: value for key_, value in good.items() if key_ != name}))
        for name in ("iss", "aud", "nonce", "sub", "exp", "iat")
    ]  # fmt: skip
    head, body = b64(b'{"alg":"HS256","kid":"%s"}' % str(key.kid).encode()), signed(good).split(".")[1]
    mac = hmac.digest(key.as_pem(private=False), f"{head}.{body}".encode(), "sha256")
    wrong += [
        ("another's key", signed(good, other, header)),
        ("the public key as a secret", f"{head}.{body}.{b64(mac)}"),
        ("a changed signature", signed(good)[:-6] + "AAAAAA"),
        ("unsigned", "eyJhbGciOiJub25lIn0." + signed(good).split(".")[1] + "."),
        ("nothing", ""),
        ("dots", ".."),
    ]
    attacked(record_property, len(wrong))
    for what, token in wrong:
        with pytest.raises(Refused):
            pytest.fail(f"{what}: {provider._claims(token, keys, 'n')}")


async def test_a_provider_that_is_not_what_it_was(tmp_path: Path) -> None:
    """One that does not answer, or names itself otherwise, is an error of the gateway: nobody comes in."""
    for issuer in (f"http://127.0.0.1:{free_port()}", "http://localhost"):
        table = {
            "issuer": issuer,
            "client_id": "g",
            "redirect_url": "http://127.0.0.1/login/callback",
            "groups": GROUPS,
        }
        folder = tmp_path / issuer[-5:].strip(":/")
        view: Any = FolderView.of(folder, console={"port": 0, "oidc": table})
        async with Console(view).serving() as url, aiohttp.ClientSession() as session:
            assert await get_status(Browser(session), f"{url}/login") == 502


async def test_the_doctor_knows_what_keeps_people_out(tmp_path: Path) -> None:
    """Before anybody has tried: who does not answer, another issuer, a secret that is gone, a way back to another name."""
    async with site(tmp_path) as whole:

        async def said(**more: Any) -> list[tuple[Health, str]]:
            table = whole.view.config.console.oidc.model_dump(mode="json") | more
            found = doctor_kit.site(tmp_path, console={"oidc": table})
            return [(line.health, line.text) async for line in counterparts.logins(found)]

        assert await said() == [(Health.OK, f"{whole.issuer} answers; nobody was logged in")]
        for more, says in (
            ({"issuer": f"{whole.issuer}/"}, "set console.oidc.issuer so"),
            ({"issuer": f"http://127.0.0.1:{free_port()}"}, "the identity provider does not answer"),
            ({"client_secret_file": str(tmp_path / "gone")}, "console.oidc.client_secret_file"),
        ):
            ((health, text),) = await said(**more)
            assert (health, says in text) == (Health.FAIL, True), text
        _, (health, text) = await said(redirect_url="https://gpuward.example/login/callback")
        assert (health, "gpuward.example, which is not a name" in text) == (Health.FAIL, True)


def test_a_login_without_openid_is_no_login(tmp_path: Path) -> None:
    """The provider would answer without an id_token, and each login would end in an error."""
    table = {
        "issuer": "https://id.example",
        "client_id": "g",
        "redirect_url": "https://g.example/login/callback",
    }
    with pytest.raises(ConfigError, match=r"console\.oidc\.scopes: must have 'openid'"):
        doctor_kit.site(tmp_path, console={"oidc": table | {"groups": {}, "scopes": ["profile"]}})
