"""Any ticket system with a JSON API: what is sent, and where the answer names the ticket, stand in the configuration.

Five requests: `find` asks for the ticket of an alert, `open` makes one, `comment` adds to it what is new, `close` ends it, `look`
asks whether the ticket of a fault that is back is open yet. Their paths and bodies are templates (brain/notify/templates.py). A
system without `find` must know a repeated `open` by the key in it, which is also its header Idempotency-Key; `Ward-Page` is the
page's id in each request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import Field

from agent.contract.errors import ConfigError, Unreachable
from agent.shared.secret_file import secret
from brain.notify import http, templates, tickets
from brain.notify.message import Language, PageMessage
from brain.notify.tickets import Gone, TicketChannel
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_STRICT: dict[str, Any] = {"extra": "forbid"}
_MAX_READ = 2**20  # bytes of an answer
_GONE = (404, 410)


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketRequest:
    """One request."""

    # behind `url`; values are escaped
    path: str = ""
    # GET sends no body
    method: Literal["GET", "POST", "PUT", "PATCH"] = "POST"
    # a JSON object
    body: Mapping[str, Any] = field(default_factory=dict)
    # of find and open: where the answer names the ticket, as keys and numbers between dots: result.0.sys_id
    ticket: str = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketLook:
    """The request by which a ticket tells whether it is open."""

    # behind `url`; values are escaped
    path: str
    # where the answer has its state, as keys and numbers between dots: result.state
    state: str
    # the states of a ticket that is over
    closed: tuple[str, ...]
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketOptions:
    """The keys of a table with `type = "ticket"`."""

    # base URL of its API
    url: str
    # makes a ticket
    open: TicketRequest
    # adds what is new to it
    comment: TicketRequest
    # asks for the ticket with $key; the answer that there is none has null, or an empty list, where a ticket would stand. Left
    # out: the system itself must know an `open` that is sent again
    find: TicketRequest | None = None
    # ends it when the incident is over; none: that is only a comment
    close: TicketRequest | None = None
    # asks whether a former ticket is open; none: it is over as soon as gpuward has closed it, and open where `close` is left out
    look: TicketLook | None = None
    # file with the value of the header Authorization: Bearer ..., or Basic ...
    authorization_file: Path | None = None
    # additional headers
    headers: Mapping[str, str] = field(default_factory=dict)
    # a name for templates -> severity -> what it stands for
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # where people open the console: $url
    console_url: str = ""
    # of the rule's knowledge
    language: Language = "both"
    # PEM file; none: the system's CAs
    ca_file: Path | None = None
    # how long `find` may not know a new ticket
    settle_s: Annotated[float, Field(ge=0, le=120)] = 10.0
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


class TemplatedTickets:
    """The tickets of one such system."""

    def __init__(
        self, want: TicketOptions, authorization: str, where: str = "channels", way: Outgoing = DIRECT
    ) -> None:
        tls = http.trust(want.ca_file, f"{where}.ca_file")
        self._want = want
        self._http = http.Poster(
            http.checked_url(want.url, f"{where}.url"), timeout_s=want.timeout_s, tls=tls, way=way
        )
        self._headers = {"Accept": "application/json", **want.headers}
        if authorization:
            self._headers["Authorization"] = authorization

    async def find(self, message: PageMessage) -> str:
        """As in TicketSystem."""
        if self._want.find is None:
            return ""
        answer = await self._send(self._want.find, message)
        # To take it for a no would open one ticket after the other.
        if isinstance(answer, bytes):
            raise Unreachable(f"{self._http.host}: whether there is a ticket cannot be read in its answer")
        if missing := _unsaid(answer, self._want.find.ticket):
            raise Unreachable(
                f"{self._http.host}: whether there is a ticket cannot be read in its answer, which has no {missing}: "
                "null there, or an empty list, would say that there is none"
            )
        return _at(answer, self._want.find.ticket)

    async def is_open(self, ticket: str, message: PageMessage) -> bool:
        """As in TicketSystem."""
        look = self._want.look
        if look is None:
            return self._want.close is None
        asked = TicketRequest(path=look.path, method="GET", ticket=look.state)
        answer = await self._send_to(asked, ticket, message)
        if not (state := _at(answer, look.state)):
            raise Unreachable(f"{self._http.host}: the answer has no state of {ticket} at {look.state}")
        return state not in look.closed

    async def open(self, message: PageMessage, former: str) -> str:
        """As in TicketSystem."""
        answer = await self._send(
            self._want.open, message, former=former, more={"Idempotency-Key": message.ticket_key}
        )
        if not (ticket := _at(answer, self._want.open.ticket)):
            raise Unreachable(f"{self._http.host}: the answer has no ticket at {self._want.open.ticket}")
        return ticket

    async def has_told(self, ticket: str, message: PageMessage) -> bool:  # noqa: ARG002 - as in TicketSystem
        """As in TicketSystem: it cannot be known."""
        return False

    async def comment(self, ticket: str, message: PageMessage) -> None:
        """As in TicketSystem."""
        await self._send_to(self._want.comment, ticket, message)

    async def end(self, ticket: str, message: PageMessage) -> None:
        """As in TicketSystem."""
        if self._want.close is not None:
            await self._send_to(self._want.close, ticket, message)

    async def reach(self) -> str:
        """As in Channel."""
        return await self._http.reach()

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()

    async def _send_to(self, request: TicketRequest, ticket: str, message: PageMessage) -> Any:
        try:
            return await self._send(request, message, ticket=ticket)
        except http.NotTaken as error:
            if error.status in _GONE and self._want.find is not None and await self.find(message) != ticket:
                raise Gone(str(error)) from error
            raise

    async def _send(
        self,
        request: TicketRequest,
        message: PageMessage,
        *,
        ticket: str = "",
        former: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Any:
        """Returns the answer's JSON; None: there is no answer; bytes: it is no JSON."""
        want = self._want
        most = tickets.MAX_COMMENT if ticket else tickets.MAX_TEXT
        known = templates.values(
            message,
            want.words,
            want.language,
            text=message.to_text(want.language, most),
            console_url=want.console_url,
            ticket=ticket,
            former=former,
        )
        body = b"" if request.method == "GET" else orjson.dumps(templates.filled(request.body, known))
        path = templates.in_url(request.path, known)
        headers = {**self._headers, "Ward-Page": message.id, **(more or {})}
        raw = await self._http.post(body, headers, path, method=request.method, most=_MAX_READ)
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            return raw if raw.strip() else None


def _unsaid(answer: Any, place: str) -> str:
    """The part of a place (`result.0.sys_id`) that an answer lacks; empty: it says whether there is a ticket, by null or an empty
    list, too. What stands before the system, and says to wait, has none of it: `{}` is not the word that there is no ticket.
    """
    parts = place.split(".")
    for number, part in enumerate(parts, 1):
        if answer is None or (part.isdigit() and isinstance(answer, list | dict)):
            return ""
        if not isinstance(answer, dict) or part not in answer:
            return ".".join(parts[:number])
        answer = answer[part]
    return ""


def _at(answer: Any, place: str) -> str:
    """What an answer has at a place; empty: nothing that names a ticket."""
    for part in place.split("."):
        if isinstance(answer, dict):
            answer = answer.get(part)
        elif isinstance(answer, list) and part.isdigit() and int(part) < len(answer):
            answer = answer[int(part)]
        else:
            return ""
    return str(answer) if isinstance(answer, str | int) and not isinstance(answer, bool) else ""


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> TicketChannel:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(TicketOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    http.check_headers(want.headers, f"{where}.headers")
    templates.check_words(want.words, f"{where}.words")
    requests = {"open": want.open, "comment": want.comment, "find": want.find, "close": want.close}
    for key, request in requests.items():
        if request is not None:
            _check(request, f"{where}.{key}", want.words, ticket=key in ("comment", "close"))
    for key in ("open", "find"):
        request = requests[key]
        if request is not None and not request.ticket:
            raise ConfigError(f"{where}.{key}.ticket: is missing: where does the answer name the ticket?")
    carries = want.find or want.open
    if "key" not in templates.names_in([carries.path, carries.body]):
        raise ConfigError(
            f"{where}.{'find' if want.find else 'open'}: $key stands nowhere in it: the ticket could not be found again"
        )
    for key in ("comment", "close"):
        request = requests[key]
        if request is not None and "ticket" not in templates.names_in([request.path, request.body]):
            raise ConfigError(f"{where}.{key}: $ticket stands nowhere in it: of which ticket?")
    if want.look is not None:
        _check_look(want.look, f"{where}.look", want.words)
    authorization = secret(want.authorization_file, f"{where}.authorization_file")
    return TicketChannel(name, TemplatedTickets(want, authorization, where, way), settle_s=want.settle_s)


def _check_look(look: TicketLook, where: str, words: templates.Words) -> None:
    _check(TicketRequest(path=look.path, method="GET"), where, words, ticket=True)
    if "ticket" not in templates.names_in(look.path):
        raise ConfigError(f"{where}.path: $ticket stands nowhere in it: of which ticket?")
    if not look.state:
        raise ConfigError(f"{where}.state: is missing: where does the answer have the ticket's state?")
    if not look.closed:
        raise ConfigError(f"{where}.closed: is empty: in which states is a ticket over?")


def _check(request: TicketRequest, where: str, words: templates.Words, *, ticket: bool) -> None:
    """`ticket`: is it known there?"""
    templates.check(request.path, f"{where}.path", words=words, ticket=ticket)
    templates.check(request.body, f"{where}.body", words=words, ticket=ticket)
    if request.path and request.path[0] not in "/?":
        raise ConfigError(f"{where}.path: begins with / or ?, behind the address in `url`")
    if request.method == "GET" and request.body:
        raise ConfigError(f"{where}.body: a GET has none: give `method`")
