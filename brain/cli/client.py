"""The client of the API for the command line: standard library only, so that a command starts quickly."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import click

from agent.contract.inert import inert, inert_data
from agent.shared import reasons
from agent.shared.words import language, t
from brain.cli import listener, unanswered
from brain.cli.answers import NoteJson, SaidJson
from brain.cli.own_brain import DEFAULT_URL, OwnBrain
from brain.console.access import local_token

F = TypeVar("F", bound=Callable[..., Any])
LOOPBACK = ("127.0.0.1", "::1", "localhost")
API = "/api/v1"  # as in brain/console/api/endpoint.py
TIMEOUT_S = 15.0
FETCH_S = 60.0
PIECE = 256 * 1024
MOST = 256 * 1024**2  # of an answer in JSON
# What somebody between us and the brain must mend, or whoever has named its machine
_NOT_LET_IN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
WATCH_TIMEOUT_S = 45.0  # the watch sends something more often than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What a watch hears."""

    # where it is: with this it goes on elsewhere
    where: str
    # None: a sign of life
    note: NoteJson | None = None
    # what was written since it was here cannot be told any more
    lost: bool = False


class NotLetIn(click.ClickException):
    """A brain answers, and refuses this token, person or address. `status`: 401, 403 or 429, as in HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """The API of one brain. Who uses it is known by the token alone.

    What it returns is inert (agent/contract/inert.py): nodes, jobs and people have written it, and it goes to a terminal.
    Only a faithful client returns it as it is, for --json.
    """

    def __init__(
        self,
        url: str,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        *,
        faithful: bool = False,
        place: OwnBrain | None = None,
    ) -> None:
        """Empty `url`: nobody has said where, so it is asked at `place`."""
        self._place = place or OwnBrain(url=DEFAULT_URL)
        self._named = url.rstrip("/")
        self._named_ca = ca_file
        self._url = self._named or self._place.url
        self._ca_file = ca_file or (None if self._named else self._place.ca_file)
        self._token_file = token_file
        self._faithful = faithful

    @property
    def assumed(self) -> bool:
        """Has nobody said where it is?"""
        return not self._named

    @property
    def ca_file(self) -> Path | None:
        """Of whoever vouches for its certificate; None: the system knows."""
        return self._ca_file

    @property
    def url(self) -> str:
        """Where the brain is."""
        return self._url

    @property
    def local(self) -> bool:
        """Is it on this machine?"""
        return urlsplit(self._url).hostname in LOOPBACK

    def at(
        self,
        url: str = "",
        token_file: Path | None = None,
        ca_file: Path | None = None,
        faithful: bool = False,
    ) -> "Client":
        """Returns the same client with other settings; empty ones stay as they are."""
        return Client(
            url or self._named,
            token_file or self._token_file,
            ca_file or self._named_ca,
            faithful=faithful or self._faithful,
            place=self._place,
        )

    def _json(self, answer: http.client.HTTPResponse) -> Any:
        try:
            body = answer.read(MOST + 1)
        except (OSError, http.client.HTTPException) as error:
            raise click.ClickException(
                t("{url}: the answer was interrupted: {error}", url=self._url, error=error)
            ) from error
        if len(body) > MOST:
            raise click.ClickException(
                t(
                    "{url}: the answer has more than {most} MiB: no brain's has",
                    url=self._url,
                    most=MOST // 1024**2,
                )
            )
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise click.ClickException(
                t("{url}: what answers there is no brain: its answer is not JSON", url=self._url)
            ) from error

    def _read(self, body: Any) -> Any:
        return body if self._faithful else inert_data(body)

    def get(self, *path: str, query: str = "") -> Any:
        """Returns the JSON at `/api/v1/<path>`; a ClickException says what is wrong."""
        with self._open(self._request(path, query), TIMEOUT_S) as answer:
            return self._read(self._json(answer))

    def submit(self, verb: str, **args: str | float) -> SaidJson:
        """Submits an operator command; returns the answer of `/api/v1/command`."""
        said: SaidJson = self.post("command", body={"verb": verb, "args": args})
        return said

    def post(self, *path: str, body: Mapping[str, Any]) -> Any:
        """Posts a JSON body to `/api/v1/<path>` and returns the JSON answer."""
        request = self._request(path)
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
        with self._open(request, TIMEOUT_S) as answer:
            return self._read(self._json(answer))

    def beside(self, path: str, body: Mapping[str, Any]) -> Any:
        """Posts a JSON body to a path beside the API, such as /login/link, and returns the JSON answer."""
        request = self._at(path)
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
        with self._open(request, TIMEOUT_S) as answer:
            return self._read(self._json(answer))

    def fetch(self, *path: str) -> tuple[str, bytes]:
        """Fetches the file at `/api/v1/<path>`: returns the name that the brain gives it, and its content."""
        with self._open(self._request(path), FETCH_S) as answer:
            name = answer.headers.get_filename() or "download"
            try:
                return Path(name).name, answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise click.ClickException(t("the download was interrupted: {error}", error=error)) from error

    def pieces(self, *path: str, query: str = "") -> Iterator[bytes]:
        """Yields the file at `/api/v1/<path>` as it comes; a ClickException when it is interrupted."""
        with self._open(self._request(path, query), FETCH_S) as answer:
            try:
                while piece := answer.read(PIECE):
                    yield piece
            except (OSError, http.client.HTTPException) as error:
                raise click.ClickException(t("the download was interrupted: {error}", error=error)) from error

    def watch(self, last: int, after: str = "") -> Iterator[tuple[str, NoteJson | None]]:
        """Yields (where the watch is, note) as notes are written; the note is None where it begins, and when there was none for a
        while. Ends when the connection is lost. It begins after `after`, where a watch was, or with the `last` notes.
        """
        for event in self.follow(last, after):
            yield event.where, event.note

    def follow(self, last: int, after: str = "") -> Iterator[Followed]:
        """As `watch`, and says whether something was lost."""
        query = f"after={quote(after, safe='')}" if after else f"last={last}"
        with self._open(self._request(("watch",), query), WATCH_TIMEOUT_S) as answer:
            yield Followed(where=after)
            try:
                for raw in answer:
                    line = raw.decode("utf-8", "replace").rstrip("\n")
                    if line.startswith("id: "):
                        after = line[4:]
                    elif line == "event: lost":
                        yield Followed(where=after, lost=True)
                    elif line.startswith("data: {"):
                        note = json.loads(line[6:])
                        yield Followed(where=after, note=self._read(note) if note else None)
                    elif line.startswith(":"):
                        yield Followed(where=after)
            except (OSError, http.client.HTTPException):
                return

    def _request(self, path: tuple[str, ...], query: str = "") -> urllib.request.Request:
        parts = "/".join(quote(part, safe="") for part in path)
        return self._at(f"{API}/{parts}{f'?{query}' if query else ''}")

    def _at(self, path: str) -> urllib.request.Request:
        if not self._url.lower().startswith(("http://", "https://")):
            raise click.UsageError(t("--url {url} must begin with http:// or https://", url=repr(self._url)))
        try:
            request = urllib.request.Request(f"{self._url}{path}")  # noqa: S310 - http(s), checked
        except ValueError as error:
            raise click.UsageError(f"--url {self._url!r}: {error}") from error
        if language() != "en":
            request.add_header("Accept-Language", language())
        if token := self._token():
            request.add_header("Authorization", f"Bearer {token}")
        return request

    def _token(self) -> str:
        """The token in the file that was named, or the one of whoever started the brain on this machine; empty: none."""
        url, local = urlsplit(self._url), self.local
        if self._token_file is None:
            return local_token.found(url.port or (443 if url.scheme == "https" else 80)) if local else ""
        if url.scheme != "https" and not local:
            raise click.UsageError(
                t(
                    "--url {url}: a token is sent by https only: anyone on the way could read it",
                    url=repr(self._url),
                )
            )
        try:
            return self._token_file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise click.UsageError(f"--token-file {self._token_file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise click.UsageError(
                t("--token-file {token_file}: not a token", token_file=self._token_file)
            ) from error

    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self.local:  # a site's proxy leads out, and not to this machine
            handlers.append(urllib.request.ProxyHandler({}))
        if not self._url.lower().startswith("https:") and self.local:
            handlers.append(listener.Handler())
        if self._url.lower().startswith("https:"):
            import ssl  # 10 ms that plain http need not spend

            try:
                context = ssl.create_default_context(cafile=str(self._ca_file) if self._ca_file else None)
            except PermissionError as error:  # the brain's data folder is its user's alone
                raise click.UsageError(
                    t(
                        "--ca-file {ca_file}: {strerror}: it is no secret: copy it as root to where you may "
                        "read it (install -m 0644), and name that place",
                        ca_file=self._ca_file,
                        strerror=error.strerror,
                    )
                ) from error
            except OSError as error:
                raise click.UsageError(f"--ca-file {self._ca_file}: {error}") from error
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)

    def _open(self, request: urllib.request.Request, timeout_s: float) -> http.client.HTTPResponse:
        try:
            answer: http.client.HTTPResponse = self._opener().open(request, timeout=timeout_s)
            return answer
        except urllib.error.HTTPError as error:
            if error.code in _NOT_LET_IN:
                raise NotLetIn(_message(error), error.code) from error
            raise click.ClickException(_message(error)) from error
        except (TimeoutError, urllib.error.URLError, http.client.HTTPException, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            if hint := self._not_gone(reason):
                raise click.ClickException(f"{self._url}: {hint}") from error
            raise click.ClickException(unanswered.why(self._url, error, local=self.local)) from error

    def _proxy(self) -> str:
        """The proxy through which it is asked, without its password; empty: none."""
        parts = urlsplit(self._url)
        named = "" if self.local else urllib.request.getproxies().get(parts.scheme.lower(), "")
        if not named or urllib.request.proxy_bypass(parts.hostname or ""):
            return ""
        proxy = urlsplit(named if "://" in named else f"http://{named}")
        return inert(f"{proxy.scheme}://{proxy.hostname}") + (f":{proxy.port}" if proxy.port else "")

    def _not_gone(self, reason: object) -> str:
        """What is wrong where somebody answers all the same; empty: nobody does."""
        text = str(reason)
        if isinstance(reason, ssl.SSLCertVerificationError) and reasons.is_of_time(reason):
            return reasons.of_certificate(reason)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            why = getattr(reason, "verify_message", "") or t("it is not trusted")
            by = (
                t("{ca_file} does not vouch for it", ca_file=self._ca_file)
                if self._ca_file
                else t("give --ca-file or GPUWARD_CA_FILE")
            )
            return t(
                "its certificate is not good ({why}): {by}; a cell's is cell/ca.pem in the brain's data_dir",
                why=why,
                by=by,
            )
        if isinstance(reason, OSError) and "WRONG_VERSION_NUMBER" in text:
            return t(
                "what answers there speaks no TLS: set --url or GPUWARD_URL to http://, or to the port of the brain"
            )
        closed = isinstance(reason, (http.client.BadStatusLine, ConnectionResetError))
        if closed and self._url.lower().startswith("http:"):
            return t(
                "what answers there speaks no plain HTTP: if the brain has a certificate, set --url or "
                "GPUWARD_URL to https://, with --ca-file or GPUWARD_CA_FILE for a cell's own authority"
            )
        if proxy := self._proxy():
            host = urlsplit(self._url).hostname
            return t(
                "no answer by way of the proxy {proxy}, which this machine's environment names ({text}): if "
                "the brain is reached without it, set NO_PROXY={host}",
                proxy=proxy,
                text=inert(text),
                host=host,
            )
        return ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to the brain that was named, and to nobody to whom it would pass us on."""

    def redirect_request(self, *_: Any) -> None:
        """Follows none."""


def _message(error: urllib.error.HTTPError) -> str:
    """The brain's words; an earlier version (0.1) has no such path, and says `error`."""
    try:
        body = json.load(error)
        if "error" in body and error.code == http.client.NOT_FOUND:
            return t(
                "what answers there is a brain of version 0.1, whose API this gpuward does not speak: use its own"
            )
        return inert(str(body["detail"]))
    except (ValueError, TypeError, KeyError):
        return inert(t("the brain answered {code} {reason}", code=error.code, reason=error.reason))


def for_client(function: F) -> F:
    """Passes a command its client, and lets `--url`, `--token-file` and `--ca-file` also follow the command's name."""

    def changed(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None and ctx.obj is not None:  # nobody has made one while a shell completes a line
            ctx.obj = ctx.obj.at(**{str(param.name): value})

    options = (
        click.option("--url", callback=changed, expose_value=False, help="Where the brain is."),
        click.option(
            "--token-file", type=click.Path(path_type=Path), callback=changed, expose_value=False, hidden=True
        ),
        click.option(
            "--ca-file", type=click.Path(path_type=Path), callback=changed, expose_value=False, hidden=True
        ),
    )
    wrapped: Any = click.pass_obj(function)
    for option in options:
        wrapped = option(wrapped)
    result: F = wrapped
    return result
