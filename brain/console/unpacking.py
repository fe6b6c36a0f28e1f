"""Reads what a node has packed (a .tar.gz), which is foreign and may be hostile: nothing of it is ever written to a path, what is
no regular file is left out, and each number that it could grow has a bound.
"""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, cast

from agent.contract.inert import inert
from agent.contract.messages import clip

MOST_UNPACKED = 512 * 1024**2  # bytes of one bundle
RATIO, RATIO_FROM = 200, 64 * 1024**2  # so much more than was packed, counted from so many bytes on
MOST_MEMBERS = 5_000
MOST_AT_ONCE = 1024**2  # bytes that one header may ask for: a long name, a table of attributes
PIECE = 65_536
_LOOKED_AT = 1024  # bytes of a file that say whether it is text
_NAME = 300
# What tarfile, gzip and zlib say of files that are none of theirs
_DAMAGE = (
    tarfile.TarError,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    LookupError,
)


class TooMuch(Exception):
    """A bound is reached: what comes behind it is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFile:
    """A regular file in a bundle."""

    # Its place among the bundle's members, from 0
    number: int
    name: str
    size: int
    # When it was written, as the node says, in seconds since 1970
    at: float
    # Does it look like text?
    text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in a bundle."""

    files: list[PackedFile]
    # How many members are links, devices, pipes or sparse files
    left_out: int
    # Why there may be more than these; empty: these are all
    cut: str


def contents(source: IO[bytes], size: int, pause: Callable[[], None]) -> Contents:
    """Returns the files of a .tar.gz of `size` bytes. `pause` is called between pieces of work."""
    files: list[PackedFile] = []
    left_out, cut = 0, ""
    try:
        for number, member, unpacked in _members(source, size, pause):
            if not _plain(member):
                left_out += not member.isdir()
                continue
            unpacked.to(member.offset_data)
            head = unpacked.read(min(member.size, _LOOKED_AT))
            files.append(_packed(number, member, head))
            unpacked.to(member.offset_data + member.size)  # what is said to be there must be there
    except TooMuch as bound:
        cut = str(bound)
    except _DAMAGE as error:
        cut = f"the bundle is damaged: {clip(inert(str(error)) or type(error).__name__, 200)}"
    return Contents(files=files, left_out=left_out, cut=cut)


def one_file(
    source: IO[bytes], size: int, number: int, pause: Callable[[], None]
) -> tuple[PackedFile, Iterator[bytes]]:
    """Returns a file of a .tar.gz, and its pieces. LookupError: it has no such file, or what comes before it cannot be read."""
    try:
        for place, member, unpacked in _members(source, size, pause):
            if place < number:
                continue
            if not _plain(member):
                break
            unpacked.to(member.offset_data)
            head = unpacked.read(min(member.size, PIECE))
            return _packed(place, member, head[:_LOOKED_AT]), _pieces(head, member.size, unpacked)
    except (TooMuch, *_DAMAGE) as error:
        raise LookupError(f"file {number} cannot be read: {clip(inert(str(error)), 200)}") from error
    raise LookupError(f"there is no regular file {number} in it")


def _pieces(head: bytes, size: int, unpacked: "_Unpacked") -> Iterator[bytes]:
    """EOFError: it ends too early, or a bound was reached."""
    left = size
    piece = head
    while left > 0:
        if not piece:
            raise EOFError("it ends too early")
        left -= len(piece)
        yield piece
        try:
            piece = unpacked.read(min(left, PIECE)) if left else b""
        except (TooMuch, *_DAMAGE) as error:
            raise EOFError(str(error)) from error


def _members(
    source: IO[bytes], size: int, pause: Callable[[], None]
) -> Iterator[tuple[int, tarfile.TarInfo, "_Unpacked"]]:
    source.seek(0)
    unpacked = _Unpacked(source, size, pause)
    with tarfile.open(fileobj=cast(IO[bytes], unpacked), mode="r:") as archive:
        for number in range(MOST_MEMBERS):
            member = archive.next()
            if member is None:
                return
            archive.members = []  # type: ignore[attr-defined]  # it keeps them all, else
            yield number, member, unpacked
    raise TooMuch(f"there are more than {MOST_MEMBERS} files")


def _plain(member: tarfile.TarInfo) -> bool:
    return member.isreg() and not member.issparse() and member.size >= 0


def _packed(number: int, member: tarfile.TarInfo, head: bytes) -> PackedFile:
    name = member.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return PackedFile(
        number=number,
        name=clip(inert(name), _NAME) or "?",
        size=member.size,
        at=float(member.mtime) if 0 < member.mtime < 1e11 else 0.0,
        text=_is_text(head),
    )


def _is_text(head: bytes) -> bool:
    """A cut in the middle of a letter is none of the file's."""
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4 and len(head) == _LOOKED_AT
    return True


class _Unpacked:
    """The unpacked bytes, as tarfile reads them: forwards only, and within the bounds."""

    def __init__(self, source: IO[bytes], size: int, pause: Callable[[], None]) -> None:
        self._source = gzip.GzipFile(fileobj=source, mode="rb")
        self._most = min(MOST_UNPACKED, max(RATIO_FROM, RATIO * size))
        self._at = 0
        self._pause = pause

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def seek(self, to: int, whence: int = 0) -> int:
        """Goes on to a place: tarfile's own steps over what it does not read."""
        if whence:
            raise tarfile.ReadError("only from its beginning")
        self.to(to)
        return self._at

    def to(self, place: int) -> None:
        """Goes forwards to a place. EOFError: it is not there."""
        if place < self._at:
            raise tarfile.ReadError("a member lies before its header")
        while place > self._at:
            if not self.read(min(place - self._at, PIECE)):
                raise EOFError("it ends too early")

    def read(self, size: int = -1) -> bytes:
        """Reads so many bytes, fewer at its end."""
        if not 0 <= size <= MOST_AT_ONCE:
            raise TooMuch(f"a header asks for {size} bytes at once")
        self._pause()
        found = self._source.read(size)
        self._at += len(found)
        if self._at > self._most:
            raise TooMuch(f"unpacked it is larger than {self._most // 1024**2} MiB: download it, with care")
        return found
