"""What a brain knows of its NATS servers, by its own connection: for the metrics."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSeen:
    """What one thing takes that the brain keeps there, and where it is; of the lanes all together."""

    bytes: int
    # None: there is no limit
    max_bytes: int | None
    messages: int
    # Servers that are to keep it, and that have all of it now; of the lanes those of the one that has the fewest
    copies: int
    current: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSeen:
    """What the account of the brain takes of the servers' disk, or of their memory."""

    bytes: int
    # None: the account has no limit of its own
    max_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSeen:
    """What the servers have said last."""

    # That this brain is connected to
    server: str
    version: str
    rtt_s: float
    # `nats.replicas`
    wanted: int
    # By what is kept (brain/adapters/kept_streams.py)
    streams: Mapping[str, StreamSeen]
    # Streams that no server leads, or of which none says anything
    leaderless: int
    # Server → streams that it leads, and copies there that are away or behind
    leads: Mapping[str, int]
    behind: Mapping[str, int]
    # "file", "memory"
    stores: Mapping[str, StoreSeen]
