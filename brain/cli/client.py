"""The client of the API for the command line: standard library only, so that a command starts quickly."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_URL = "http://127.0.0.1:8470"
TIMEOUT_S = 15.0
FETCH_S = 60.0
WATCH_TIMEOUT_S = 45.0  # the watch sends something more often than this


class Client:
    """The API of one brain, and the name of the operator who uses it."""

    def __init__(self, url: str, token_file: Path | None, who: str) -> None:
        self._url = url.rstrip("/")
        self._token_file = token_file
        self.who = who

    def at(self, url: str = "", token_file: Path | None = None, who: str = "") -> "Client":
        """Returns the same client with other settings; empty ones stay as they are."""
        return Client(url or self._url, token_file or self._token_file, who or self.who)

    def get(self, *path: str, query: str = "") -> Any:
        """Returns the JSON at `/api/<path>`; a ClickException says what is wrong."""
        with self._open(self._request(path, query), TIMEOUT_S) as answer:
            return json.load(answer)

    def submit(self, verb: str, **args: str | float) -> Any:
        """Submits an operator command; returns the answer of `/api/command`."""
        request = self._request(("command",))
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps({"verb": verb, "args": args, "who": self.who}).encode()
        with self._open(request, TIMEOUT_S) as answer:
            return json.load(answer)

    def post(self, *path: str, body: Mapping[str, str]) -> Any:
        """Posts a JSON body to `/api/<path>` and returns the JSON answer."""
        request = self._request(path)
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
        with self._open(request, TIMEOUT_S) as answer:
            return json.load(answer)

    def fetch(self, *path: str) -> tuple[str, bytes]:
        """Fetches the file at `/api/<path>`: returns the name that the brain gives it, and its content."""
        with self._open(self._request(path), FETCH_S) as answer:
            name = answer.headers.get_filename() or "download"
            try:
                return Path(name).name, answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise click.ClickException(f"the download was interrupted: {error}") from error

    def watch(self, last: int) -> Iterator[dict[str, Any] | None]:
        """Yields notes as they are written, and None when there was none for a while. Ends when the connection is lost."""
        with self._open(self._request(("watch",), f"last={last}"), WATCH_TIMEOUT_S) as answer:
            try:
                for raw in answer:
                    line = raw.decode("utf-8", "replace").rstrip("\n")
                    if line.startswith("data: {"):
                        note = json.loads(line[6:])
                        if note:
                            yield note
                    elif line.startswith(":"):
                        yield None
            except (OSError, http.client.HTTPException):
                return

    def _request(self, path: tuple[str, ...], query: str = "") -> urllib.request.Request:
        parts = "/".join(quote(part, safe="") for part in path)
        if not self._url.lower().startswith(("http://", "https://")):
            raise click.UsageError(f"--url {self._url!r} must begin with http:// or https://")
        try:
            request = urllib.request.Request(f"{self._url}/api/{parts}{f'?{query}' if query else ''}")  # noqa: S310 - http(s), checked
        except ValueError as error:
            raise click.UsageError(f"--url {self._url!r}: {error}") from error
        if self._token_file is not None:
            try:
                request.add_header("Authorization", f"Bearer {self._token_file.read_text().strip()}")
            except OSError as error:
                raise click.UsageError(f"--token-file {self._token_file}: {error.strerror}") from error
        return request

    def _open(self, request: urllib.request.Request, timeout_s: float) -> http.client.HTTPResponse:
        try:
            answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeout_s)  # noqa: S310 - http(s), checked
            return answer
        except urllib.error.HTTPError as error:
            raise click.ClickException(_message(error)) from error
        except (TimeoutError, urllib.error.URLError, http.client.HTTPException, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            raise click.ClickException(
                f"no brain answers at {self._url} ({reason}): start one with `gpuward up` or `gpuward run`, "
                f"or set --url or GPUWARD_URL"
            ) from error


def _message(error: urllib.error.HTTPError) -> str:
    try:
        body = json.load(error)
    except ValueError:
        return f"the brain answered {error.code} {error.reason}"
    return str(body.get("error") or body.get("refused") or f"the brain answered {error.code}")


def for_client(function: F) -> F:
    """Passes a command its client, and lets `--url`, `--token-file` and `--as` also follow the command's name."""

    def changed(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.obj = ctx.obj.at(**{str(param.name): value})

    options = (
        click.option("--url", callback=changed, expose_value=False, help="Where the brain is."),
        click.option(
            "--token-file", type=click.Path(path_type=Path), callback=changed, expose_value=False, hidden=True
        ),
        click.option("--as", "who", callback=changed, expose_value=False, hidden=True),
    )
    wrapped: Any = click.pass_obj(function)
    for option in options:
        wrapped = option(wrapped)
    result: F = wrapped
    return result
