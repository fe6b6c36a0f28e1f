"""Logs as people kept them: packed, with marks of their encoding, with lines that never end."""

import bz2
import gzip
import lzma
import os
import threading
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from agent.shared.log_text import MAX_LINE, Most, log_lines

TEXT = "[    1.5] first\n\n[    2.5] Überhitzung \r\nlast without an end"
LINES = ["[    1.5] first", "", "[    2.5] Überhitzung \r", "last without an end"]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode("utf-16"),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT[:20].encode(), mtime=0)
        + gzip.compress(TEXT[20:].encode(), mtime=0),  # as log shippers append
        bz2.compress(TEXT.encode()),
        lzma.compress(TEXT.encode()),
        gzip.compress(TEXT.encode("utf-16"), mtime=0),
    ],
)
def test_what_it_holds(content: bytes, tmp_path: Path) -> None:
    """The same lines from every form."""
    log = tmp_path / "log"
    log.write_bytes(content)
    assert list(log_lines(log)) == LINES


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x28\xb5\x2f\xfd....", "is compressed with zstd: print it with `zstdcat {}` and pass that on"),
        (b"LPKSHHRH....", "is a file of the systemd journal: print it with `journalctl --file={} -k`"),
        (gzip.compress(TEXT.encode() * 50, mtime=0)[:60], "is damaged: Compressed file ended before"),
        (lzma.compress(TEXT.encode())[:40], "is damaged: Compressed file ended before"),
        (b"\x1f\x8bno more", "is damaged: "),
        (b"\xfd7zXZ\x00no more", "is damaged: "),
        (b"BZhno more", "cannot be read: "),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_what_it_cannot_read(content: bytes | None, why: str, tmp_path: Path) -> None:
    """The file and what to do are named."""
    log = tmp_path / "log"
    if content is not None:
        log.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        list(log_lines(log))
    assert str(error.value).startswith(f"{log}: {why.format(log)}")


def test_a_line_of_three_megabytes(tmp_path: Path) -> None:
    """Its begin is read, its rest is not kept, the next line is a line."""
    log = tmp_path / "log"
    log.write_text("x" * 3_000_000 + "\n" + "y" * MAX_LINE + "\nnext\n")
    assert [len(line) for line in log_lines(log)] == [MAX_LINE, MAX_LINE, 4]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A mark of UTF-16 that is none, and an empty file."""
    log = tmp_path / "log"
    log.write_bytes(b"\xff\xfe\x00NVRM\n\xffz")
    assert list(log_lines(log)) == ["\ufffd\ufffd\x00NVRM", "\ufffdz"]
    log.write_bytes(b"")
    assert list(log_lines(log)) == []


def test_lines_come_when_they_are_written(tmp_path: Path) -> None:
    """`journalctl -kf | gpuward-agent decode`: nothing waits for a buffer to be full."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with pipe.open("w") as sink:
            sink.write("one\n")
            sink.flush()
            read.wait(60)
            sink.write("two\n")
            go_on.set()

    writer = threading.Thread(target=write)
    writer.start()
    lines = log_lines(pipe)
    assert next(lines) == "one"
    read.set()
    assert list(lines) == ["two"]
    writer.join()
    assert go_on.is_set()


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("\n" * 100, True),
        ("\n" * 101, False),
        ("\n" * 30_000_000, False),
        ("a" * 4999 + "\n", True),
        ("a" * 5000 + "\n", False),
        ("a" * 30_000_000, False),
        (("a" * 99 + "\n") * 50, True),
        (("a" * 99 + "\n") * 51, False),
    ],
)
def test_a_small_file_that_holds_lines_without_end(tmp_path: Path, text: str, fits: bool) -> None:
    """No more is unpacked than what is read; the operator hears what to do."""
    log = tmp_path / "log.gz"
    log.write_bytes(gzip.compress(text.encode(), 1, mtime=0))
    read = log_lines(log, Most(lines=100, characters=5000))
    if fits:
        assert len(list(read)) == text.count("\n")
        return
    with pytest.raises(ConfigError, match="holds more than 100 lines or 5,000 characters: pass the part on"):
        list(read)
