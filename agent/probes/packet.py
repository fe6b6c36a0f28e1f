"""The packet of a probe: asked of a peer's agent, and answered by it in as many bytes.

    magic 4 | kind 1 | reserved 3 | sequence 8 | held_ns 8 | tag 16 | zeros up to the agreed size

The tag is a keyed BLAKE2b over the header, the size and both addresses: only who has the cell's key can ask or answer, and
what was recorded between two nodes is worth nothing between others. No time is on the wire but how long the answering
node held the packet, which the asking node takes off its round trip.
"""

import hmac
import struct
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import ip_address

ASK, ANSWER = 1, 2
TAG_BYTES = 16
_HEADER = struct.Struct("!4sB3xQQ")
_MAGIC = b"gwp1"
LEAST_BYTES = _HEADER.size + TAG_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One that had a valid tag."""

    # ASK | ANSWER
    kind: int
    sequence: int
    # In an answer: how long the node that answers had it.
    held_ns: int = 0


def way(source: str, target: str) -> bytes:
    """The two addresses as the tag covers them."""
    return b"".join((ip_address(source).packed, b">", ip_address(target).packed))


def pack(packet: Packet, *, size: int, key: bytes, between: bytes) -> bytes:
    """The bytes to send. `between`: `way` from who sends it to who gets it."""
    header = _HEADER.pack(_MAGIC, packet.kind, packet.sequence, packet.held_ns)
    return (header + _tag(header, size, key, between)).ljust(size, b"\0")


def unpack(data: bytes, *, key: bytes, between: bytes) -> Packet | None:
    """None: it is none, or whoever sent it has another key."""
    if len(data) < LEAST_BYTES or data[: len(_MAGIC)] != _MAGIC:
        return None
    header = data[: _HEADER.size]
    tag = data[_HEADER.size : LEAST_BYTES]
    if not hmac.compare_digest(tag, _tag(header, len(data), key, between)):
        return None
    _, kind, sequence, held_ns = _HEADER.unpack(header)
    return Packet(kind=kind, sequence=sequence, held_ns=held_ns)


def _tag(header: bytes, size: int, key: bytes, between: bytes) -> bytes:
    return blake2b(header + size.to_bytes(4) + between, digest_size=TAG_BYTES, key=key).digest()
