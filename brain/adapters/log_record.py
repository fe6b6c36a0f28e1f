"""One message of the log: what reads a log that was written down needs no NATS for it."""

from typing import NamedTuple


class Record(NamedTuple):
    """One message of the log."""

    seq: int
    # The server's timestamp, seconds since 1970; not yet clamped
    at: float
    subject: str
    body: bytes
    # How many messages the server has ready after this one
    pending: int
