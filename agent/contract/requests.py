"""Requests to a node and its answers, on the wire: a line with the request's reference, then the body.

A node cannot answer to a reply subject: it offers its answer (subjects.ANSWER), and the reference says to what. It is a
random text of the brain that asked, so that nobody else can answer in time for the node.
"""

import re

_REFERENCE = re.compile(rb"[A-Za-z0-9]{8,40}")


def pack(reference: str, body: bytes) -> bytes:
    """A request or an answer. `reference`: 8 to 40 letters and digits."""
    return reference.encode() + b"\n" + body


def unpack(message: bytes) -> tuple[str, bytes] | None:
    """(reference, body); None when the message has no reference."""
    first, newline, body = message.partition(b"\n")
    if not newline or _REFERENCE.fullmatch(first) is None:
        return None
    return first.decode(), body
