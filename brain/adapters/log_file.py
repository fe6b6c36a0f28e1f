"""The log in a file: one line of JSON for each message, for people, `jq` and `gpuward log replay`. The archive is made of such
files, and `gpuward log export` writes one.

| line | what it is |
|---|---|
| `{"format": "gpuward-log", "version": 1, "gpuward": ..., "cell": ..., "log": ..., "first": N}` | the first one; `log`: the log's identity, which changes when it is made anew; `first`: the position with which the file begins |
| `{"seq": N, "at": T, "subject": ..., "body": {...}}` | a message: its position, the server's time (seconds since 1970), its subject and its body |
| the same with `"text"` or `"base64"` in place of `"body"` | a body that is not JSON, or would not be the same bytes again |
| `{"gap": {"first": N, "last": M}}` | messages that had gone from the log before they were written here |
| `{"end": {"last": N, "at": T, "messages": K, "sha256": ...}}` | the last one; `sha256`: of all bytes before it. A file without it was cut off |

Plain or compressed by gzip. A body comes back byte for byte: as JSON it is written only where orjson makes the same bytes of it
again.
"""  # noqa: E501 - a table

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from agent import __version__
from agent.contract import subjects
from agent.contract.errors import ConfigError, ContractError
from brain.adapters.log_record import Record

FORMAT = "gpuward-log"
VERSION = 1
MAX_LINE = 128 * 1024**2  # a pack of rules is the longest message
_LEVEL = 6
_PIECE = 256 * 1024
_LATEST = 1e11  # seconds since 1970
_IDENTITY = re.compile(r"[ -~]{1,100}")


class Damaged(ContractError):
    """The file is not what was written: cut off, changed, or none of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogName:
    """Which log it is: the first line of its files."""

    cell: str
    # The log's identity (brain.adapters.log.LogInfo)
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning of a file."""

    name: LogName
    # The position with which it begins
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Messages that are not there: they had gone from the log."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a file: its last position (the one before its beginning: it is empty), that one's time, and how many
    messages it has.
    """

    last: int
    at: float
    messages: int


Part = Head | Record | Gap | End


class LogFileWriter:
    """Writes one file into `sink`, which takes its bytes piece by piece. `finish` makes it whole."""

    def __init__(
        self, sink: Callable[[bytes], object], name: LogName, first: int, *, packed: bool = True
    ) -> None:
        """`packed`: compressed by gzip. The same lines give the same bytes, whoever writes them and when."""
        self._sink = sink
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31) if packed else None
        self._sha = hashlib.sha256()
        self.size = 0  # of the lines, before compression
        self.last = first - 1
        self.last_at = 0.0
        self.messages = 0
        about = {"format": FORMAT, "version": VERSION, "gpuward": __version__, "cell": name.cell}
        self._line(orjson.dumps({**about, "log": name.log, "first": first}))

    def add(self, record: Record) -> None:
        """The next message."""
        self._line(_encoded(record))
        self.last, self.last_at = record.seq, record.at
        self.messages += 1

    def gap(self, gap: Gap) -> None:
        """Messages that are not there."""
        self._line(orjson.dumps({"gap": {"first": gap.first, "last": gap.last}}))
        self.last = max(self.last, gap.last)

    def finish(self) -> None:
        """The last line."""
        sha = self._sha.hexdigest()
        end = {"last": self.last, "at": self.last_at, "messages": self.messages, "sha256": sha}
        self._line(orjson.dumps({"end": end}))
        if self._gzip is not None:
            self._sink(self._gzip.flush())

    def _line(self, line: bytes) -> None:
        line += b"\n"
        self._sha.update(line)
        self.size += len(line)
        self._sink(self._gzip.compress(line) if self._gzip is not None else line)


def read(pieces: Iterable[bytes], where: str) -> Iterator[Part]:
    """Yields a file's parts: its head, what is in it, and at last its end. Damaged: when it turns out so, after what was good;
    what was yielded before counts only with the end. `where` names the file in errors.
    """
    sha = hashlib.sha256()
    begun, last, at, messages = False, 0, 0.0, 0
    lines = _lines(pieces, where)
    for line in lines:
        found = _parsed(line, where)
        if not begun:
            part = _head(found, where)
            begun, last = True, part.first - 1
            yield part
        elif "end" in found:
            end, sum_ = _end(found, where)
            if (end.last, end.at, end.messages, sum_) != (last, at, messages, sha.hexdigest()):
                raise Damaged(f"{where}: its sum is wrong: it was changed, or not all of it is there")
            for _ in lines:
                raise Damaged(f"{where}: there is more after its end")
            yield end
            return
        elif "gap" in found:
            gap = _gap(found, where)
            last = max(last, gap.last)
            yield gap
        else:
            record = _record(found, where)
            if record.seq != last + 1:
                raise Damaged(f"{where}: message {record.seq} follows {last}")
            last, at, messages = record.seq, record.at, messages + 1
            yield record
        sha.update(line)
        sha.update(b"\n")
    raise Damaged(f"{where}: its end is missing: it was cut off" if begun else f"{where}: is empty")


def _encoded(record: Record) -> bytes:
    body = record.body
    about = b'{"seq":%d,"at":%s,"subject":%s' % (
        record.seq,
        orjson.dumps(record.at),
        orjson.dumps(record.subject),
    )
    try:
        if orjson.dumps(orjson.loads(body)) == body:
            return b'%s,"body":%s}' % (about, body)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    try:
        return b'%s,"text":%s}' % (about, orjson.dumps(body.decode()))
    except UnicodeDecodeError:
        return b'%s,"base64":"%s"}' % (about, base64.b64encode(body))


def _record(found: dict[str, Any], where: str) -> Record:
    try:
        if "body" in found:
            body = orjson.dumps(found["body"])
        elif "text" in found:
            body = str(found["text"]).encode()
        else:
            body = base64.b64decode(found["base64"], validate=True)
        return Record(_position(found["seq"]), _time(found["at"]), str(found["subject"]), body, 0)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{where}: a line is no message: {error!r}") from error


def _head(found: dict[str, Any], where: str) -> Head:
    if found.get("format") != FORMAT:
        raise Damaged(f"{where}: is no log of gpuward")
    version = found.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ContractError(
            f"{where}: its format is version {version}, of gpuward {found.get('gpuward')}: this gpuward {__version__} "
            f"reads up to {VERSION}"
        )
    try:
        return Head(
            name=LogName(cell=subjects.token(str(found["cell"]), "cell"), log=_identity(found["log"])),
            first=_position(found["first"]),
        )
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise Damaged(f"{where}: its first line is wrong: {error!r}") from error


def _gap(found: dict[str, Any], where: str) -> Gap:
    try:
        return Gap(first=_position(found["gap"]["first"]), last=_position(found["gap"]["last"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{where}: a line is no gap: {error!r}") from error


def _end(found: dict[str, Any], where: str) -> tuple[End, str]:
    try:
        told = found["end"]
        end = End(last=_position(told["last"]), at=_time(told["at"]), messages=_position(told["messages"]))
        return end, str(told["sha256"])
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{where}: its last line is wrong: {error!r}") from error


def _position(found: Any) -> int:
    """ValueError: no log has it."""
    if not isinstance(found, int) or not 0 <= found < 2**63:
        raise ValueError(f"no position: {str(found)[:80]}")
    return found


def _time(found: Any) -> float:
    """ValueError: no server's clock gives it."""
    if not isinstance(found, int | float) or not 0 <= found < _LATEST:
        raise ValueError(f"no time: {str(found)[:80]}")
    return float(found)


def _identity(found: Any) -> str:
    """Of a log, a time: it goes to a terminal. ValueError: it is none."""
    if not isinstance(found, str) or _IDENTITY.fullmatch(found) is None:
        raise ValueError(f"no identity of a log: {str(found)[:80]!r}")
    return found


def _parsed(line: bytes, where: str) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Damaged(f"{where}: a line is not JSON") from error
    if not isinstance(found, dict):
        raise Damaged(f"{where}: a line is no object")
    return found


def _lines(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    rest = bytearray()
    for piece in _unpacked(pieces, where):
        rest += piece
        if b"\n" not in piece:
            if len(rest) > MAX_LINE:
                raise Damaged(f"{where}: a line has more than {MAX_LINE} bytes")
            continue
        *whole, left = rest.split(b"\n")
        yield from map(bytes, whole)
        rest = left
    if rest:
        raise Damaged(f"{where}: its last line has no end: it was cut off")


def _unpacked(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    """What was compressed; a piece at a time, however well it was."""
    gzip: Any = None
    for number, piece in enumerate(pieces):
        if number == 0 and piece[:2] == b"\x1f\x8b":
            gzip = zlib.decompressobj(31)
        if gzip is not None and gzip.eof:
            raise Damaged(f"{where}: there is more after its end")
        if gzip is None:
            yield piece
            continue
        try:
            while piece:
                yield gzip.decompress(piece, _PIECE)
                piece = gzip.unconsumed_tail
        except zlib.error as error:
            raise Damaged(f"{where}: cannot be unpacked: {error}") from error
        if gzip.unused_data:
            raise Damaged(f"{where}: there is more after its end")
    if gzip is not None and not gzip.eof:
        raise Damaged(f"{where}: its end is missing: it was cut off")
