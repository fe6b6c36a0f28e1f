"""Where traces go: a collector over OTLP/HTTP, a file of OTLP/JSON lines."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import orjson

from agent.contract.errors import ConfigError, Unreachable
from agent.contract.messages import clip
from agent.shared.secret_file import warn_if_open
from agent.shared.tasks import abandonable
from brain.notify import http
from brain.outgoing import DIRECT, Outgoing
from brain.traces_config import TracesConfig

MODE = 0o640  # of the file, which quotes kernel lines; its group may read it, to send it on
MOST_REJECTED = 1_000_000  # spans of one request that a collector may say it has not taken: there are fewer
MAX_HEADERS_FILE = 64 * 1024  # bytes


class TraceOutput(Protocol):
    """One place."""

    @property
    def name(self) -> str:
        """Its key in `[traces]`."""
        ...

    async def write(self, body: bytes) -> tuple[int, str]:
        """Takes one ExportTraceServiceRequest; returns how many of its spans were rejected, and why.

        Unreachable, TimedOut: to be tried again. Refused: it will not take this one.
        """
        ...

    async def reach(self) -> str:
        """Looks whether it can be reached, and writes nothing; returns where it is. Unreachable: it cannot."""
        ...

    async def close(self) -> None:
        """Ends its connections."""
        ...


class OtlpCollector:
    """A receiver of OTLP over HTTP."""

    name = "otlp_url"

    def __init__(self, poster: http.Poster, headers: Mapping[str, str]) -> None:
        self._http = poster
        self._headers = headers

    async def write(self, body: bytes) -> tuple[int, str]:
        """As in TraceOutput."""
        try:
            return _rejected(await self._http.post(body, self._headers))
        except http.NotAdmitted as error:  # it will take it when its token or its address is right
            raise Unreachable(str(error)) from error

    async def reach(self) -> str:
        """As in TraceOutput."""
        return await self._http.reach()

    async def close(self) -> None:
        """As in TraceOutput."""
        await self._http.close()


def _rejected(answer: bytes) -> tuple[int, str]:
    """What an ExportTraceServiceResponse says; nothing where the answer is none: the spans were taken."""
    with contextlib.suppress(ValueError, TypeError, AttributeError, OverflowError):
        partial = orjson.loads(answer).get("partialSuccess") or {}
        return min(max(int(partial.get("rejectedSpans", 0)), 0), MOST_REJECTED), clip(
            str(partial.get("errorMessage", "")), 200
        )
    return 0, ""


class TraceFile:
    """A file that grows by a line each time. At `max_bytes` it becomes `<file>.1`."""

    name = "file"

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes

    async def write(self, body: bytes) -> tuple[int, str]:
        """As in TraceOutput."""
        await abandonable(partial(self._append, body + b"\n"), "traces")
        return 0, ""

    async def reach(self) -> str:
        """As in TraceOutput: the file, or else its folder, may be written."""
        await abandonable(self._look, "traces")
        return str(self._path)

    async def close(self) -> None:
        """As in TraceOutput."""

    def _look(self) -> None:
        existed = self._path.exists()
        try:
            with self._path.open("ab"):
                pass
            if not existed:
                self._path.unlink()
        except OSError as error:
            raise self._cannot(error) from error

    def _append(self, line: bytes) -> None:
        try:
            if self._path.exists() and self._path.stat().st_size + len(line) > self._max_bytes:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            new = not self._path.exists()
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, MODE)
            if new:
                os.fchmod(descriptor, MODE)  # whatever the umask is
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                before = file.tell()
                if file.write(line) != len(line):  # the disk is full: half a line would spoil the next one
                    file.truncate(before)
                    raise Unreachable(f"{self._path}: no space left")
        except OSError as error:
            raise self._cannot(error) from error

    def _cannot(self, error: OSError) -> Unreachable:
        return Unreachable(f"{self._path} cannot be written: {error.strerror or error}")


def outputs(config: TracesConfig, way: Outgoing = DIRECT) -> Sequence[TraceOutput]:
    """Builds what `[traces]` names; ConfigError names the key."""
    found: list[TraceOutput] = []
    if config.otlp_url:
        url = http.checked_url(config.otlp_url, "traces.otlp_url")
        tls = http.trust(config.ca_file, "traces.ca_file")
        headers = _checked(config.headers, "traces.headers") | _from_file(config.headers_file)
        found.append(OtlpCollector(http.Poster(url, timeout_s=config.timeout_s, tls=tls, way=way), headers))
    if config.file is not None:
        if not config.file.parent.is_dir():
            raise ConfigError(f"traces.file: there is no folder {config.file.parent}")
        found.append(TraceFile(config.file, config.file_max_bytes))
    return found


def _from_file(path: Path | None) -> dict[str, str]:
    """The headers of a file with secrets."""
    if path is None:
        return {}
    where = f"traces.headers_file: {path}"
    try:
        text = path.read_bytes()[:MAX_HEADERS_FILE].decode()
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} is not text") from error
    warn_if_open(path)
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if line.strip() and not colon:
            raise ConfigError(
                f"{where}: line {number}: want `Name: value`"
            )  # and never the line: it is a secret
        if line.strip():
            found[name.strip()] = value.strip()
    if not found:
        raise ConfigError(f"{where} is empty")
    return _checked(found, where)


def _checked(headers: Mapping[str, str], where: str) -> dict[str, str]:
    for name, value in headers.items():
        if not name or not name.isascii() or not name.isprintable() or set(name) & set(' :"'):
            raise ConfigError(f"{where}: {clip(name, 40)!r} is no name of an HTTP header")
        if not value.isprintable():
            raise ConfigError(f"{where}: the value of {name} is not printable")
    return dict(headers)
