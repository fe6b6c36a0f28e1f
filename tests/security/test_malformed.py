"""What is no HTTP request comes before the door, from whoever likes: it fills no log."""

import asyncio
import logging
import socket
from pathlib import Path

import pytest
from aiohttp.http_exceptions import HttpProcessingError

from brain.console.access import malformed
from tests.security.figures import Record, attacked
from tests.security.test_connections import ELSEWHERE
from tests.security.test_door import ask, console

NONSENSE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer gw_secret\r\nX Y: " + b"z" * 7000 + b"\r\n\r\n"
)


async def test_what_is_no_request_is_one_short_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, record_property: Record
) -> None:
    """Of an address in a minute, without what it said, which may be somebody's token."""

    def say(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), 20, source_address=(ELSEWHERE, 0)) as one:
            one.sendall(NONSENSE)
            return one.recv(100)

    async with console(tmp_path) as (url, _):
        caplog.clear()
        for _ in range(40):
            assert b" 400 " in await asyncio.to_thread(say, int(url.rpartition(":")[2]))
        assert (await ask(url))[0] == 200
        assert [one.getMessage() for one in caplog.records] == [
            f"console: {ELSEWHERE} sends what is no HTTP request"
        ]
        assert "Traceback" not in caplog.text
        assert "gw_secret" not in caplog.text
    attacked(record_property, 40)


def test_errors_of_our_own_are_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    """Each with its traceback; and many addresses together write few lines."""
    logger = malformed.logger(lambda: 0.0)
    logger.error("Error handling request from %s", "198.51.100.7", exc_info=KeyError("ours"))
    assert "KeyError: 'ours'" in caplog.text
    caplog.clear()
    for number in range(200):
        odd = HttpProcessingError(message="odd")
        logger.error("Error handling request from %s", f"198.51.100.{number}", exc_info=odd)
    assert len(caplog.records) == malformed.LINES_AT_ONCE
    assert {one.levelno for one in caplog.records} == {logging.WARNING}
