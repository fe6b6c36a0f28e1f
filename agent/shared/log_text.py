"""Reads logs that people kept: plain or compressed, in the encodings that their tools write."""

import bz2
import contextlib
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agent.contract.errors import ConfigError

STDIN = Path("-")
MAX_LINE = 65_536  # characters; what a longer line holds behind them is no kernel's
_PEEK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """How much of a log is read at most: a compressed file of some KB may hold lines without end."""

    lines: int
    # also of those beyond MAX_LINE
    characters: int


_PACKED: dict[bytes, Callable[[io.BufferedReader], object]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
PACKED_SUFFIXES = (".gz", ".bz2", ".xz")
# What holds a log but cannot be read here, and the program that prints it.
_FOREIGN = {
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "zstdcat {}"),
    b"\x04\x22\x4d\x18": ("compressed with lz4", "lz4cat {}"),
    b"LPKSHHRH": ("a file of the systemd journal", "journalctl --file={} -k"),
    b"PK\x03\x04": ("a zip archive", "unzip -p {}"),
}


def log_lines(file: Path, most: Most | None = None, *, unended: Callable[[], object] = bool) -> Iterator[str]:
    r"""Yields the lines of a log as they come; `-`: standard input. `unended` is called when the last one has no end.

    Only \n ends a line, as in the kernel. gzip, bzip2, xz and UTF-16 are read as what they hold; bytes that are no text
    become U+FFFD. Raises ConfigError, which says what to do, where there is no file, its form is another, or it has more than
    `most`.
    """
    try:
        with contextlib.nullcontext(_stdin()) if file == STDIN else file.open("rb") as raw:
            yield from _lines(_unpacked(raw, file), file, most, unended)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ConfigError(f"{file}: is damaged: {str(error) or 'it ends too early'}") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from error


def _stdin() -> io.BufferedReader:
    if sys.stdin is None:
        raise ConfigError("standard input is closed: name a file, or pass the log on with a pipe")
    raw = sys.stdin.buffer
    return raw if isinstance(raw, io.BufferedReader) else _buffered(raw)


def _buffered(stream: object) -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, stream))


def _unpacked(raw: io.BufferedReader, file: Path) -> io.BufferedReader:
    head = raw.peek(_PEEK)
    for magic, (what, reader) in _FOREIGN.items():
        if head.startswith(magic):
            raise ConfigError(f"{file}: is {what}: print it with `{reader.format(file)}` and pass that on")
    for magic, unpack in _PACKED.items():
        if head.startswith(magic):
            return _buffered(unpack(raw))
    return raw


def _lines(
    content: io.BufferedReader, file: Path, most: Most | None, unended: Callable[[], object]
) -> Iterator[str]:
    head = content.peek(_PEEK)[:_PEEK]
    text = io.TextIOWrapper(content, encoding=_encoding(head), errors="replace", newline="\n")
    lines = characters = 0
    try:
        while line := text.readline(MAX_LINE):
            rest = line
            lines, characters = lines + 1, characters + len(line)
            while rest and not rest.endswith("\n") and (most is None or characters <= most.characters):
                rest = text.readline(MAX_LINE)
                characters += len(rest)
            if most is not None and (lines > most.lines or characters > most.characters):
                raise ConfigError(
                    f"{file}: holds more than {most.lines:,} lines or {most.characters:,} characters: pass the part on that you "
                    "want to know about, e.g. with `tail -n 100000`, or `zcat FILE | tail -n 100000`"
                )
            if not rest:
                unended()
            yield line.removesuffix("\n")
    finally:
        text.detach()


def _encoding(head: bytes) -> str:
    """By the zero bytes: the first ones of a log are those of plain letters, digits and blanks."""
    body = head.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff")
    even, odd = body[0::2], body[1::2]
    for zeros, others, name in ((odd, even, "le"), (even, odd, "be")):
        if len(zeros) > 2 and not any(zeros) and all(others):
            return "utf-16" if len(body) < len(head) else f"utf-16-{name}"
    return "utf-8-sig"
