"""What a JetStream server says with a message: to who reads one, and to who wrote one."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson


class DeliveredMessage(NamedTuple):
    """What the server says of a message that a consumer delivers."""

    seq: int
    # The server's timestamp, seconds since 1970.
    at: float
    # The consumer's own number of it, from 1.
    number: int
    # How many messages are ready after this one.
    pending: int


def place_of(answer: bytes) -> int | None:
    """Where the log has a message, by the server's answer to who wrote it. None: it has not taken it (no leader in the cluster,
    no space, another copy under way). Such an answer, too, may name a position, which is 0.
    """
    try:
        found = orjson.loads(answer)
        return None if "error" in found else int(found["seq"]) or None
    except (ValueError, KeyError, TypeError):
        return None


def parse_delivery(reply: str | bytes) -> DeliveredMessage:
    """Reads a delivered message's reply subject: `$JS.ACK.<stream>.<consumer>.<tries>.<seq>.<count>.<ns>.<pending>`.

    Newer servers put the domain and an account hash before the stream, and one more token at the end.
    """
    parts = reply.split(".") if isinstance(reply, str) else reply.split(b".")
    seq, number, ns, pending = parts[5:9] if len(parts) == 9 else parts[7:11]
    return DeliveredMessage(int(seq), int(ns) / 1e9, int(number), int(pending))


def asked_at(reply: str, headers: Mapping[str, str]) -> str:
    """Of a flow control request or a heartbeat of a consumer: where the server waits for an answer before it sends on; empty:
    nowhere. Each heartbeat says again at which request it waits: on the way between servers that or the answer may be lost.
    """
    return reply or headers.get("Nats-Consumer-Stalled", "")
