"""Logging in at an identity provider: OpenID Connect, authorization code with PKCE; groups become roles.

https://openid.net/specs/openid-connect-core-1_0.html, RFC 7636 (PKCE), RFC 9207 (`iss` in the answer). What the provider
publishes (addresses, keys) is asked for at each login: people log in seldom, and nothing is out of date. Tokens are
checked by joserfc. A login is bound to the browser that began it by a cookie, so nobody can be logged in as another.
"""

import base64
import hashlib
import hmac
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import aiohttp
import orjson
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from agent.contract.errors import Refused, Unreachable
from agent.contract.messages import clip
from agent.shared import reasons
from agent.shared.secret_file import secret
from brain.console.access.sessions import LoggedIn
from brain.console.access.tls import client_context
from brain.console_config import LOOPBACK, GrantConfig, OidcConfig, is_name
from brain.outgoing import DIRECT, Outgoing

LOGIN_WITHIN_S = 600.0  # from the beginning of a login to its end
MOST_LOGINS = 1000  # under way at once
TIMEOUT_S = 10.0  # of one request to the provider
LEEWAY_S = 60  # by which its clock may differ from ours
MAX_ANSWER = 1_000_000
# Only signatures that need the provider's private key: neither `none` nor a secret that we share with it.
ALGORITHMS = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One login under way."""

    verifier: str
    nonce: str
    # Hash of the cookie of the browser that began it
    browser: str
    until: float


class Provider:
    """One identity provider, and the logins that are under way there."""

    def __init__(
        self,
        config: OidcConfig,
        client_secret: str,
        tls: ssl.SSLContext | None,
        now: Callable[[], float],
        groups: Callable[[], Mapping[str, GrantConfig]],
        way: Outgoing = DIRECT,
    ) -> None:
        """`client_secret`: empty for a public client. `tls`: None trusts the system's CAs. `now`: seconds since 1970. `groups`:
        [console.oidc.groups] as it stands now.
        """
        self._config = config
        self._secret = client_secret
        self._tls = tls
        self._now = now
        self._groups = groups
        self._way = way
        self._logins: dict[str, Login] = {}

    async def reach(self) -> str:
        """Asks what a login needs to know, and returns whom it has asked. Unreachable, Refused: nobody can log in now."""
        async with self._session() as session:
            metadata = await self._metadata(session)
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _checked(metadata.get(name))
        return self._config.issuer

    async def begin(self) -> tuple[str, str]:
        """Returns (where the browser is sent, its cookie). Unreachable, Refused: the provider cannot be used now."""
        async with self._session() as session:
            endpoint = _checked((await self._metadata(session)).get("authorization_endpoint"))
        state, cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        login = Login(
            verifier=secrets.token_urlsafe(48),
            nonce=secrets.token_urlsafe(32),
            browser=_hashed(cookie),
            until=self._now() + LOGIN_WITHIN_S,
        )
        self._forget()
        self._logins[state] = login
        challenge = hashlib.sha256(login.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._config.client_id,
            "redirect_uri": self._config.redirect_url,
            "scope": " ".join(self._config.scopes),
            "state": state,
            "nonce": login.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}", cookie

    async def end(self, query: Mapping[str, str], cookie: str) -> LoggedIn:
        """Returns who has logged in. Refused: nobody; the text says why. Unreachable: the provider does not answer."""
        self._forget()
        login = self._logins.get(query.get("state", ""))
        if login is None or not hmac.compare_digest(login.browser, _hashed(cookie)):
            raise Refused(
                "this login was not begun in this browser, or has taken too long: begin again at /login"
            )
        del self._logins[query["state"]]
        if query.get("iss", self._config.issuer) != self._config.issuer:
            raise Refused("another provider has answered")
        if "code" not in query:
            raise Refused(f"the provider says {clip(query.get('error', 'nothing'), 80)!r}")
        async with self._session() as session:
            metadata = await self._metadata(session)
            if metadata.get("authorization_response_iss_parameter_supported") and "iss" not in query:
                raise Refused("the answer does not say which provider it is of")
            answer = await self._redeem(session, metadata, query["code"], login)
            keys = await self._get(session, _checked(metadata.get("jwks_uri")))
            claims = self._claims(str(answer.get("id_token", "")), keys, login.nonce)
            if self._config.groups_claim not in claims and metadata.get("userinfo_endpoint"):
                more = await self._get(
                    session, _checked(metadata["userinfo_endpoint"]), str(answer.get("access_token", ""))
                )
                if more.get("sub") != claims["sub"]:
                    raise Refused("the provider's userinfo is about somebody else")
                claims = more | claims
        return self._named(claims)

    def _named(self, claims: Mapping[str, Any]) -> LoggedIn:
        name = claims.get(self._config.name_claim)
        if not isinstance(name, str) or not is_name(name):
            raise Refused(
                f"{self._config.name_claim} of the provider is {clip(str(name), 80)!r}, which cannot be a name in the log: "
                f"set console.oidc.name_claim to another claim"
            )
        groups = claims.get(self._config.groups_claim, [])
        groups = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        ours = tuple(group for group in self._groups() if group in groups)
        if not ours:
            raise Refused(f"{name} is in no group of console.oidc.groups")
        return LoggedIn(name=name, groups=ours)

    def _claims(self, token: str, keys: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        want = jwt.JWTClaimsRegistry(
            now=lambda: int(self._now()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._config.issuer},
            aud={"essential": True, "value": self._config.client_id},
            nonce={"essential": True, "value": nonce},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        try:
            decoded = jwt.decode(token, KeySet.import_key_set(dict(keys)), algorithms=ALGORITHMS)  # type: ignore[arg-type]  # checked inside
            want.validate(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise Refused(f"the provider's id_token is not valid: {error}") from error
        if decoded.claims["nonce"] != nonce or decoded.claims["iss"] != self._config.issuer:
            raise Refused(
                "the provider's id_token names several"
            )  # the registry takes a list that holds the value
        audience, ours = decoded.claims["aud"], self._config.client_id
        several = not isinstance(audience, str) and len(audience) > 1
        if decoded.claims.get("azp", None if several else ours) != ours:
            raise Refused("the provider's id_token is for somebody else, too")
        return dict(decoded.claims)

    async def _redeem(
        self, session: aiohttp.ClientSession, metadata: Mapping[str, Any], code: str, login: Login
    ) -> dict[str, Any]:
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._config.redirect_url,
            "client_id": self._config.client_id,
            "code_verifier": login.verifier,
        }
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not isinstance(methods, list):
            raise Refused("the provider's token_endpoint_auth_methods_supported is not a list")
        headers = {}
        if self._secret and "client_secret_basic" in methods:
            # RFC 6749, 2.3.1: both are encoded as in a form first.
            pair = quote_plus(self._config.client_id), quote_plus(self._secret)
            headers["Authorization"] = aiohttp.encode_basic_auth(*pair)
        elif self._secret:
            body["client_secret"] = self._secret
        url = _checked(metadata.get("token_endpoint"))
        return await self._answer(
            session.post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=self._way.proxy_of(url),
                proxy_headers=self._way.headers_of(url),
            )
        )

    async def _metadata(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        found = await self._get(
            session, f"{self._config.issuer.rstrip('/')}/.well-known/openid-configuration"
        )
        if found.get("issuer") != self._config.issuer:
            raise Refused(
                f"the provider calls itself {clip(str(found.get('issuer')), 200)!r}: set console.oidc.issuer so"
            )
        return found

    async def _get(self, session: aiohttp.ClientSession, url: str, bearer: str = "") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return await self._answer(
            session.get(
                url,
                headers=headers,
                allow_redirects=False,
                proxy=self._way.proxy_of(url),
                proxy_headers=self._way.headers_of(url),
            )
        )

    async def _answer(self, request: Any) -> dict[str, Any]:
        """The JSON object that the provider answers. Wherever it sends us on to, codes and secrets do not go."""
        body = bytearray()
        try:
            async with request as answer:
                if answer.status != 200:
                    raise Refused(f"the provider answered {answer.status} at {answer.url.path}")
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > MAX_ANSWER:
                        raise Refused(f"the provider's answer is longer than {MAX_ANSWER} bytes")
                found = _object(bytes(body))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = self._way.trouble(error) or reasons.what(error)
            raise Unreachable(f"the identity provider does not answer: {why}") from error
        return found

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self._tls) if self._tls else None
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))

    def _forget(self) -> None:
        now = self._now()
        for state, login in list(self._logins.items()):
            if now >= login.until or len(self._logins) >= MOST_LOGINS:
                del self._logins[state]


def provider(
    config: OidcConfig, groups: Callable[[], Mapping[str, GrantConfig]], way: Outgoing = DIRECT
) -> Provider:
    """Returns the provider of brain.toml; `groups` as of Provider. ConfigError: its secret or its CA cannot be read."""
    return Provider(
        config,
        secret(config.client_secret_file, "console.oidc.client_secret_file"),
        client_context(config.ca_file) if config.ca_file else None,
        time.time,
        groups,
        way,
    )


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body. Refused: there is none."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused("the provider's answer is not JSON") from error
    if not isinstance(found, dict):
        raise Refused("the provider's answer is not an object")
    return found


def _checked(url: Any) -> str:
    """An address from the provider's metadata; Refused: it is none, or would send codes and secrets in the open."""
    found = str(url or "")
    try:
        parts = urlsplit(found)
    except ValueError as error:
        raise Refused(f"the provider names {clip(found, 200)!r}, which is no address") from error
    if not (found.isascii() and found.isprintable()) or " " in found:
        raise Refused(f"the provider names {clip(found, 200)!r}, which is no address")
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return found
    raise Refused(f"the provider names {clip(found, 200)!r}, which is not https")


def _hashed(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).hexdigest()
