"""The door of the console: what every request passes before a route sees it.

In this order, and the first objection decides: where it comes from (trusted proxies), for which name (Host), from which
page (Origin, Sec-Fetch-Site), how often, with whose credential, whether that person may use the route, and the type of
its body. What a client says about itself (a name, an address, a role) is never believed.
"""

import asyncio
import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from aiohttp import hdrs, web

from agent.contract.errors import ConfigError
from agent.contract.messages import clip
from agent.shared.words import later, t
from brain.console.access import body, strangers
from brain.console.access.addresses import counted
from brain.console.access.credentials import Credentials
from brain.console.access.limits import Limits
from brain.console.access.people import OWN_AFFAIR, Person, Touched
from brain.console.access.refusals import Refusals
from brain.console.access.route import JUDGED, LARGEST, LEAST, MEDIA, OPEN, PERSON, SIGNED, Handler
from brain.console.access.sessions import Sessions
from brain.console.access.tokens import taken_apart
from brain.console_config import ConsoleConfig, Role
from brain.core.pack.spec import Place

_log = logging.getLogger(__name__)
LOGINS_PER_S, LOGINS_AT_ONCE = 1.0, 20  # of one address
WRONG_JOINS_PER_S, WRONG_JOINS_AT_ONCE = 10.0, 100  # joins with no token that we know, from wherever
SESSION = "gpuward-session"  # the cookie of a browser that has logged in
# Before the names of cookies that came by TLS: browsers take such a one from this very host only (RFC 6265bis, 4.1.3.2), so that
# no neighbour in its domain, and nobody who answers for it without TLS, can lay one there
FROM_THIS_HOST = "__Host-"
_HOST = re.compile(r"(?:[^:@/\s,]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Where a request comes from."""

    # The client's address, behind trusted proxies, too
    address: str
    # Did the client come by TLS, to us or to the proxy?
    secure: bool

    @property
    def counted(self) -> str:
        """What stands for the address where somebody is counted."""
        return counted(self.address)


class Door:
    """Lets requests in, or says why not. `note(kind, text)` writes what people must be able to read later."""

    def __init__(
        self,
        config: ConsoleConfig,
        credentials: Credentials,
        sessions: Sessions,
        *,
        clock: Callable[[], float],
        note: Callable[[str, str], None],
    ) -> None:
        """`clock`: seconds that do not run backwards."""
        self._config = config
        self._credentials = credentials
        self._sessions = sessions
        self._clock = clock
        self._limits = Limits(config.requests_per_s, max(1, round(2 * config.requests_per_s)))
        self._logins = Limits(LOGINS_PER_S, LOGINS_AT_ONCE)
        self._pace_of_strangers = strangers.Strangers()
        self._wrong_joins = Limits(WRONG_JOINS_PER_S, WRONG_JOINS_AT_ONCE)
        self._refusals = Refusals(note, clock)
        self._proxies = frozenset(ipaddress.ip_address(one) for one in config.trusted_proxies)

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Puts the person into the request, or refuses it with a status and a text."""
        try:
            known = self._let_in(request)
        except web.HTTPException:
            await self.hold_back(request)
            raise
        if not known and _route(request) not in request.app[SIGNED]:
            await self.hold_back(request)
        if request.can_read_body:
            await body.read(request, request.app[LARGEST].get(_route(request), 0))
        response = await handler(request)
        if PERSON in request and request.method != hdrs.METH_GET and JUDGED not in request:
            _log.error("%s %s asks nobody whether they may", request.method, request.path)
            raise web.HTTPInternalServerError(text="this route does not ask who may: that is a bug")
        return response

    def _let_in(self, request: web.Request) -> bool:
        """False: anybody may have this answer, and nobody has said who asks."""
        peer = self._peer(request)
        self._check_host(request)
        self._check_origin(request, peer)
        if self._limits.too_many(peer.counted, self._clock()):
            raise _slow_down(1, later("too many requests"))
        if request.match_info.http_exception is not None:
            return False  # there is no such path: nothing to guard
        person = self._identified(request, peer)
        route = _route(request)
        media = request.app[MEDIA].get(route, "application/json")
        if request.method == hdrs.METH_POST and (
            request.content_type != media or hdrs.CONTENT_ENCODING in request.headers
        ):
            raise web.HTTPUnsupportedMediaType(text=f"the body must be {media}, and not packed")
        if route not in request.app[LEAST]:
            raise web.HTTPForbidden(text="nobody may use this route")
        least = request.app[LEAST][route]
        if least is None:
            return person is not None and bool(person.how)
        if person is None or (not person.how and route not in request.app[OPEN]):
            raise _needs_credential()
        self._demand(request, person, least, OWN_AFFAIR, {})
        request[PERSON] = person
        return True

    async def hold_back(self, request: web.Request) -> None:
        """Waits before the answer to a stranger: they share one pace."""
        try:
            address = self._peer(request).counted
        except web.HTTPException:
            address = counted(_address(request))
        if wait_s := self._pace_of_strangers.wait_s(address, self._clock()):
            await asyncio.sleep(wait_s)

    def demand(
        self,
        request: web.Request,
        person: Person,
        least: Role,
        touched: Touched,
        places: Mapping[str, Place] | None = None,
    ) -> None:
        """HTTPForbidden, and a note, when this person may not do it. Each route that changes something asks, and says what it
        touches: the answer of one that has not asked is an error.
        """
        request[JUDGED] = True
        self._demand(request, person, least, touched, places or {})

    def _demand(
        self,
        request: web.Request,
        person: Person,
        least: Role,
        touched: Touched,
        places: Mapping[str, Place],
    ) -> None:
        if why := person.refuses(least, touched, places):
            self._refusals.tell(
                "access.refused",
                person.name,
                f"{person.name} ({person.how or 'no credential'}) may not {request.method} {request.path}: {why}",
            )
            raise web.HTTPForbidden(text=f"{person.name}: {why}")

    def still_welcome(self, request: web.Request) -> bool:
        """May whoever sent this request still read? For answers that last: a token can expire or be revoked."""
        shown = _bearer(request)
        person = self._shown_by(shown) if shown else self._in_session(request)
        return person is not None or (not shown and self._credentials.open_reader() is not None)

    def credential(self, request: web.Request) -> Callable[[], bool]:
        """Returns what says later whether the credential of this request still counts. It keeps that credential, not the request,
        whose connection may be gone by then.
        """
        shown, cookie = _bearer(request), self.cookie(request, SESSION)

        def counts() -> bool:
            try:
                if shown:
                    return self._credentials.person(shown) is not None
                return self._sessions.person(cookie, self._clock()) is not None
            except (ConfigError, web.HTTPServiceUnavailable):
                return False  # nobody can tell whose it is

        return counts

    def count_login(self, request: web.Request) -> None:
        """HTTPTooManyRequests: each login asks the provider, and holds a place among those under way."""
        if self._logins.too_many(self._peer(request).counted, self._clock()):
            raise _slow_down(LOGINS_PER_S, later("too many logins"))

    def count_wrong_join(self) -> None:
        """HTTPTooManyRequests: beyond a pace of all together, whatever their addresses, nobody is told what is wrong."""
        if self._wrong_joins.too_many("", self._clock()):
            raise _slow_down(1 / WRONG_JOINS_PER_S, later("too many joins with wrong tokens"))

    def refused(self, about: str, text: str) -> None:
        """Notes a refusal, within what the notes hold."""
        self._refusals.tell("access.refused", about, text)

    def shown(self, request: web.Request) -> str:
        """The token that a request shows; empty: it has come in otherwise."""
        return _bearer(request)

    def owner(self, token: str) -> Person | None:
        """Returns whose token this is now; None: nobody's, any more. HTTPServiceUnavailable: nobody can tell."""
        return self._shown_by(token)

    def origin(self, request: web.Request) -> str:
        """This console as whoever asks has named it: `https://gpu.example.org:8470`."""
        return _own_origin(request, self._peer(request))

    def payer(self, request: web.Request) -> str:
        """Whom a request's cost is charged to: the person who showed a credential, else the address."""
        known = request.get(PERSON)
        return f"person {known.name}" if known and known.how else self._peer(request).counted

    def is_stranger(self, request: web.Request) -> bool:
        """Has whoever sent it shown no credential?"""
        known = request.get(PERSON)
        return known is None or not known.how

    def secure(self, request: web.Request) -> bool:
        """Did the client come by TLS?"""
        return self._peer(request).secure

    def cookie(self, request: web.Request, name: str) -> str:
        """What the browser shows of a cookie that `set_cookie` has set; empty: nothing."""
        return request.cookies.get(self._cookie_name(request, name), "")

    def set_cookie(
        self,
        request: web.Request,
        answer: web.Response,
        name: str,
        value: str,
        *,
        samesite: Literal["Lax", "Strict"],
        max_age: int | None = None,
    ) -> None:
        """Gives the browser a cookie for this host alone, with TLS only where it came by that. `max_age`: seconds; 0 removes it,
        None: until the browser ends.
        """
        answer.set_cookie(
            self._cookie_name(request, name),
            value,
            max_age=max_age,
            path="/",
            httponly=True,
            secure=self.secure(request),
            samesite=samesite,
        )

    def _cookie_name(self, request: web.Request, name: str) -> str:
        return f"{FROM_THIS_HOST}{name}" if self.secure(request) else name

    def _peer(self, request: web.Request) -> Peer:
        address = _address(request)
        secure = request.secure
        forwarded = ",".join(request.headers.getall("X-Forwarded-For", ()))
        if self._trusted(address) and (forwarded or not self._config.loopback):
            protocol = request.headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip().lower()
            if protocol != "https" or not forwarded:
                raise web.HTTPForbidden(
                    text="the proxy must take TLS and set X-Forwarded-For and X-Forwarded-Proto: https"
                )
            hops = [hop.strip() for hop in forwarded.split(",")]
            return Peer(
                address=next((hop for hop in reversed(hops) if not self._trusted(hop)), address), secure=True
            )
        if not secure and not self._config.loopback:
            raise web.HTTPForbidden(text="without TLS only the trusted proxies may connect")
        return Peer(address=address, secure=secure)

    def _trusted(self, address: str) -> bool:
        try:
            return ipaddress.ip_address(address) in self._proxies
        except ValueError:
            return False

    def _check_host(self, request: web.Request) -> None:
        given = request.headers.getall(hdrs.HOST, ())
        host = given[0].lower() if len(given) == 1 else ""
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        # All of it, as it stands in links that we make: behind `:` is a port, or nothing
        if self._config.answers_to(name) and _HOST.fullmatch(host):
            return
        raise web.HTTPMisdirectedRequest(
            text=f"{clip(name, 80)!r} is not a name of this console: list it in console.hosts"
        )

    def _check_origin(self, request: web.Request, peer: Peer) -> None:
        """A page of ours has our own origin; the command line has none; any other page has no business here."""
        own = _own_origin(request, peer)
        # A page elsewhere may lead people to ours (a link in a chat), in a whole window; it cannot read what they get there.
        leads = [request.headers.get(f"Sec-Fetch-{name}", "document") for name in ("Mode", "Dest")]
        by_link = request.method == hdrs.METH_GET and leads == ["navigate", "document"]
        site = request.headers.get("Sec-Fetch-Site", "none").lower()
        elsewhere = site not in ("none", "same-origin") and not by_link
        others = [one for one in request.headers.getall(hdrs.ORIGIN, ()) if one.lower() != own]
        if others or elsewhere:
            self._refusals.tell(
                "access.refused",
                peer.counted,
                f"a page of {clip(', '.join(others) or 'elsewhere', 80)} sent a request",
            )
            raise web.HTTPForbidden(text="requests of pages elsewhere are refused")

    def _identified(self, request: web.Request, peer: Peer) -> Person | None:
        shown = _bearer(request)
        if not shown:
            person = self._in_session(request)
            if person is not None and request.method != hdrs.METH_GET and hdrs.ORIGIN not in request.headers:
                raise web.HTTPForbidden(text="a session changes things only from a page of ours: use a token")
            return person or self._credentials.open_reader()
        known = self._credentials.tokens.known(shown)
        whose = f"{peer.counted} {taken_apart(shown)[0]}" if known else peer.counted
        now = self._clock()
        person = None
        if not known or not self._limits.locked_s(whose, now):
            person = self._shown_by(shown)
        if person is not None:
            self._limits.was_right(whose)
            return person
        if left := self._limits.locked_s(whose, now):
            raise _slow_down(left, later("too many wrong credentials"))
        if self._limits.was_wrong(whose, now):
            self._refusals.tell(
                "access.locked",
                peer.counted,
                f"too many wrong credentials from {peer.address}: locked for now",
            )
        raise _needs_credential(later("this token is wrong, revoked or expired"))

    def _shown_by(self, shown: str) -> Person | None:
        try:
            return self._credentials.person(shown)
        except ConfigError as error:  # not wrong: whoever comes now is no guesser
            raise web.HTTPServiceUnavailable(
                text="nobody can tell whose token this is, because the file of tokens cannot be read: whoever started the brain "
                "still comes in, and the people on call have its name"
            ) from error

    def _in_session(self, request: web.Request) -> Person | None:
        return self._sessions.person(self.cookie(request, SESSION), self._clock())


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Tells browsers to take nothing in an answer for more than it is (a signal handler of aiohttp)."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers[hdrs.SERVER] = "gpuward"  # not whose versions have which flaws


def _own_origin(request: web.Request, peer: Peer) -> str:
    return f"{'https' if peer.secure else 'http'}://{request.headers[hdrs.HOST].lower()}"


def _address(request: web.Request) -> str:
    peername = request.transport.get_extra_info("peername") if request.transport else None
    return str(peername[0]).partition("%")[0] if peername else ""


def _route(request: web.Request) -> tuple[str, str]:
    resource = request.match_info.route.resource
    return request.method, resource.canonical if resource else ""


def _bearer(request: web.Request) -> str:
    kind, _, shown = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    return shown.strip() if kind.lower() == "bearer" else ""


def _needs_credential(what: str = later("a token is needed")) -> web.HTTPUnauthorized:
    return web.HTTPUnauthorized(
        text=t(
            "{what}: who started the brain has one by itself, others get one from an administrator "
            "(`gpuward token create NAME`) and name its file with --token-file or GPUWARD_TOKEN_FILE",
            what=t(what),
        ),
        headers={hdrs.WWW_AUTHENTICATE: "Bearer"},
    )


def _slow_down(seconds: float, what: str) -> web.HTTPTooManyRequests:
    return web.HTTPTooManyRequests(
        text=t("{what}: try again in {s} s", what=t(what), s=f"{seconds:.0f}"),
        headers={hdrs.RETRY_AFTER: str(int(seconds) + 1)},
    )
