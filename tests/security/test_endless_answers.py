"""What a mail server, a receiver, an archive or a collector answers without end, or in numbers that are none: their error."""

import asyncio
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from pathlib import Path

import pytest

from agent.contract.errors import Refused, TimedOut, Unreachable
from brain.adapters import archive_store
from brain.archive_config import ArchiveConfig
from brain.leader.trace_outputs import MOST_REJECTED, outputs
from brain.notify import mail
from brain.notify.apprise import build
from brain.notify.compose import compose
from brain.notify.http import Poster
from brain.notify.mail import Mailer, of_file
from brain.traces_config import TracesConfig
from tests.brain.notify.pages import page, rule
from tests.security.figures import Record, attacked

SPARE_BYTES = 64 * 1024**2


@contextmanager
def talking(says: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that says this to whoever connects; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            while True:
                try:
                    connected, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(connected,), daemon=True).start()

        def one(connected: socket.socket) -> None:
            with connected, suppress(OSError):
                says(connected)

        threading.Thread(target=run, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def mailer(port: int, folder: Path, more: str = "") -> Mailer:
    """As an operator configures it."""
    file = folder / "mail.url"
    file.write_text(
        f"mailto://{more}127.0.0.1:{port}/?from=ward@example.com&to=ann@example.com&mode=insecure\n"
    )
    return of_file(file, "reports.0.url_file")


def memory() -> int:
    """The most that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def without_end(connected: socket.socket) -> None:
    """Says of each line of its greeting that more comes."""
    while True:
        connected.sendall(b"220-" + b"x" * 4000 + b"\r\n")


def drop_by_drop(connected: socket.socket) -> None:
    """Each byte comes in time for its own limit."""
    while True:
        connected.sendall(b"2")
        time.sleep(0.05)  # the attack: as slow as that


def one_line(connected: socket.socket) -> None:
    """A line without an end."""
    while True:
        connected.sendall(b"2" * 4096)


def challenge(connected: socket.socket) -> None:
    """Asks for a login by what is no challenge."""
    connected.sendall(b"220 mail.example\r\n")
    while line := connected.recv(4096):
        connected.sendall(
            b"250-mail.example\r\n250 AUTH CRAM-MD5\r\n"
            if line[:4].upper() == b"EHLO"
            else b"334 ===\xff\r\n"
        )


@pytest.mark.parametrize(
    "says", [without_end, drop_by_drop, one_line, challenge], ids=lambda one: one.__name__
)
async def test_a_mail_server_that_never_ends(
    says: Callable[[socket.socket], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    """smtplib keeps every line of an answer: 600 MB in eight seconds, by whoever stands where the mail server should be."""
    monkeypatch.setattr(mail, "WHOLE_S", 2.0)
    before = memory()
    with talking(says) as port:
        message = EmailMessage()
        message.set_content("shift")
        with pytest.raises((Refused, Unreachable)):
            await mailer(port, tmp_path, "ward:secret@" if says is challenge else "").send(
                message, ["ann@example.com"]
            )
    assert memory() - before < SPARE_BYTES
    attacked(record_property, 1)


async def test_a_library_that_reads_without_end_ends_with_its_process(tmp_path: Path) -> None:
    """Apprise reads all of an answer, of mail servers and services: in a process that is ended when its time is over."""

    def http(connected: socket.socket) -> None:
        connected.recv(65536)
        connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connected.sendall(b"x" * 65536)

    before, message = memory(), compose(page(), rule=rule())
    for scheme, says in (("mailto", without_end), ("json", http)):
        with talking(says) as port:
            file = tmp_path / "url"
            file.write_text(
                f"{scheme}://127.0.0.1:{port}/?from=ward@example.com&to=ann@example.com&mode=insecure\n"
            )
            channel = build("a", {"url_file": str(file), "timeout_s": 6.0}, "channels.a")
            with pytest.raises((TimedOut, Unreachable)):
                await channel.send(message)
            await channel.close()
    assert memory() - before < SPARE_BYTES


async def test_a_receiver_s_cookies_are_not_kept() -> None:
    """Each answer may bring some, which would be kept for ever, and sent again with each page."""
    heads: list[bytes] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(heads) < 5:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await reader.readexactly(2)
            cookies = b"".join(
                b"Set-Cookie: c%d=%s; Max-Age=99999999\r\n" % (len(heads), b"v" * 100) for _ in range(20)
            )
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + cookies + b"\r\n{}")

    listening = await asyncio.start_server(one, "127.0.0.1", 0)
    poster = Poster(f"http://localhost:{listening.sockets[0].getsockname()[1]}", timeout_s=30)
    for _ in range(5):
        await poster.post(b"{}", {})
    await poster.close()
    listening.close()
    assert len(heads) == 5
    assert not any(b"cookie" in head.lower() for head in heads)


NO_NUMBER = "9" * 5000
DATED = b"Last-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\n\r\n"
PREFIXES = "".join(
    f"<CommonPrefixes><Prefix>default/{one}/</Prefix></CommonPrefixes>"
    for one in (
        f"2026-12-01-log.{NO_NUMBER}",
        "2026-12-01-log.2",
        "2026-12-01-log",
        "2026-\u0661\u0662-01-x",
    )
)


def bucket(connected: socket.socket) -> None:
    """Names logs that are none, and answers without end whoever reads a file."""
    while head := connected.recv(65536):
        if head.startswith((b"HEAD", b"PUT")):
            connected.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: x\r\nLast-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\n\r\n"
            )
            continue
        if b"list-type" in head:
            body = f"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>{PREFIXES}</ListBucketResult>".encode()
            connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            continue
        connected.sendall(b"HTTP/1.1 200 OK\r\nETag: x\r\nContent-Length: 99999999999\r\n" + DATED)
        while True:
            connected.sendall(b"x" * 65536)


async def test_a_bucket_that_says_what_it_likes(tmp_path: Path) -> None:
    """A log with a number of 5,000 digits ended the session of each brain that led; a file without end filled its memory."""
    (tmp_path / "keys").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    before = memory()
    with talking(bucket) as port:
        config = ArchiveConfig(
            url="s3://b", endpoint=f"http://127.0.0.1:{port}", region="x", credentials_file=tmp_path / "keys"
        )
        store = await asyncio.to_thread(archive_store.opened, config)
        assert await asyncio.to_thread(store.logs, "default") == ["2026-12-01-log", "2026-12-01-log.2"]
        assert not await asyncio.to_thread(store.put, "default/2026-12-01-log/1", b"xxxxy" * 1000)
    assert memory() - before < SPARE_BYTES


@pytest.mark.parametrize("rejected", ["-5", "1e308", NO_NUMBER[:4000], "true", "null", "[]", '"7"'])
async def test_what_a_collector_counts(rejected: str) -> None:
    """Whatever it says it has not taken: the figures for people stay such as there can be."""
    body = b'{"partialSuccess":{"rejectedSpans":%s}}' % rejected.encode()

    def collector(connected: socket.socket) -> None:
        connected.recv(65536)
        connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with talking(collector) as port:
        (output,) = outputs(TracesConfig(otlp_url=f"http://127.0.0.1:{port}/v1/traces"))
        count, _ = await output.write(b"{}")
        await output.close()
    assert 0 <= count <= MOST_REJECTED
