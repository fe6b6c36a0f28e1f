"""The short way through nats-py's parser takes nothing apart otherwise than nats-py does, wherever the bytes are cut."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from agent.shared.nats_parser import DirectParser

DIRECT, OTHER = 7, 8  # numbers of subscriptions
WITH_ID = b"NATS/1.0\r\nNats-Msg-Id:"
Heard = list[tuple[Any, ...]]


class FakeClient:
    """Writes down what a parser calls."""

    def __init__(self) -> None:
        self.heard: Heard = []
        self.parser: Parser | None = None

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        self.heard.append(
            (sid, subject, reply, data, None if (headers or WITH_ID).startswith(WITH_ID) else headers)
        )

    async def _process_ping(self) -> None:
        self.heard.append(("ping",))

    async def _process_pong(self) -> None:
        self.heard.append(("pong",))

    async def _process_info(self, info: Any) -> None:
        self.heard.append(("info", info["server_id"]))

    async def _process_err(self, text: str) -> None:
        self.heard.append(("error", text))
        if self.parser is not None:
            self.parser.reset()  # as nats-py does where the server ends the connection


def message(sid: int, body: bytes, *, reply: bytes = b"", headers: bytes | None = None) -> bytes:
    """As a server sends it."""
    words = [
        b"MSG" if headers is None else b"HMSG",
        b"ward.c.event.n1",
        str(sid).encode(),
        *([reply] if reply else []),
    ]
    words += [] if headers is None else [str(len(headers)).encode()]
    words += [str(len(headers or b"") + len(body)).encode()]
    return b" ".join(words) + b"\r\n" + (headers or b"") + body + b"\r\n"


bodies = st.one_of(
    st.binary(max_size=40), st.sampled_from((b"", b"\r\n", b"PING\r\n", b"MSG a 7 3\r\nabc\r\n", b"x" * 5000))
)
messages = st.builds(
    message,
    st.sampled_from((DIRECT, OTHER)),
    bodies,
    reply=st.sampled_from((b"", b"$JS.ACK.S.C.1.2.3.4.5")),
    headers=st.sampled_from(
        (None, WITH_ID + b" 1\r\n\r\n", b"NATS/1.0\r\nX-A: 1\r\n\r\n", b"NATS/1.0 100 Idle Heartbeat\r\n\r\n")
    ),
)
words = st.one_of(
    messages, st.sampled_from((b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b'INFO {"server_id":"s1"}\r\n'))
)


def direct(client: FakeClient) -> DirectParser:
    """A parser that passes one subscription on directly, and says so in the client's own list."""

    def take(subject: bytes, reply: bytes, data: bytes, headers: Any) -> None:
        client.heard.append((DIRECT, subject, reply, data, headers))

    async def read(headers: bytes) -> Any:
        return headers

    return DirectParser(client, {DIRECT: take}, read, WITH_ID)


def parse(parser: Parser, stream: bytes, cuts: list[int]) -> None:
    """Gives it the stream in pieces of these sizes, and the rest at once."""

    async def parsed() -> None:
        rest = stream
        for size in cuts:
            await parser.parse(rest[:size])
            rest = rest[size:]
        await parser.parse(rest)

    asyncio.run(parsed())


@given(st.lists(words, max_size=12), st.lists(st.integers(1, 60), max_size=30))
def test_both_hear_the_same(said: list[bytes], cuts: list[int]) -> None:
    """Wherever the connection cuts what the server says."""
    ours, theirs = FakeClient(), FakeClient()
    parse(direct(ours), b"".join(said), cuts)
    parse(Parser(theirs), b"".join(said), [])
    assert ours.heard == theirs.heard


@given(
    st.lists(messages, min_size=1, max_size=6), st.lists(st.integers(1, 60), max_size=30), st.integers(0, 6)
)
def test_a_taker_may_come_and_go(said: list[bytes], cuts: list[int], comes: int) -> None:
    """Also while a message of it is half there: nothing is lost, nothing comes twice."""
    stream, heard = b"".join(said), FakeClient()
    parser = direct(heard)
    takers: dict[int, Any] = parser._takers  # type: ignore[assignment]  # a parser only reads it
    taker = dict(takers)
    takers.clear()

    async def parsed() -> None:
        rest = stream
        for number, size in enumerate(cuts):
            if number == comes:
                takers.update(taker)
            if number == comes + 3:
                takers.clear()
            await parser.parse(rest[:size])
            rest = rest[size:]
        await parser.parse(rest)

    asyncio.run(parsed())
    theirs = FakeClient()
    parse(Parser(theirs), stream, [])
    assert heard.heard == theirs.heard


@pytest.mark.parametrize(
    "wrong",
    [b"MSG a\r\n", b"MSG a 7 x\r\n", b"HMSG a 7 b\r\n", b"NONSENSE\r\n"],
    ids=repr,
)
def test_what_no_server_says_is_an_error(wrong: bytes) -> None:
    """nats-py's own: it connects anew."""
    for parser in (direct(FakeClient()), Parser(FakeClient())):
        with pytest.raises(ProtocolError):
            parse(parser, message(DIRECT, b"a") + wrong, [])


def test_after_the_servers_last_word_nothing_is_taken_from_that_connection() -> None:
    """What came behind it would otherwise be the beginning of the next connection."""
    client = FakeClient()
    parser = client.parser = direct(client)
    parse(parser, message(DIRECT, b"a") + b"-ERR 'Stale Connection'\r\n" + b"MSG half", [])
    parse(parser, message(DIRECT, b"b"), [])
    assert [each[-2:] for each in client.heard] == [
        (b"a", None),
        ("error", "'stale connection'"),
        (b"b", None),
    ]
