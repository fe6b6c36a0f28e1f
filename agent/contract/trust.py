"""Whom the nodes of a cell trust: the keys that sign commands, and the authorities of its servers' certificates.

The brain announces it as a numbered statement that replaces the one before, signed by every signing key that it holds. A node
takes a statement whose number is above that of its own, if a key that it trusts now has signed it. So each statement endorses
the next one, and a node that was off is shown all of them in their order (docs/decisions/0031).
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.contract.errors import ContractError

_BEGINS = b'{"announcements":'


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What is trusted from one announcement on."""

    cell: str
    # Each announcement of a cell has a higher one; 0: none yet.
    serial: int
    # Key id -> base64 of the Ed25519 public key; none: no command is taken, and no further announcement.
    keys: Mapping[str, str]
    # PEM, one certificate or several; empty: as the node is configured.
    ca: str = ""

    def payload(self) -> str:
        """The text that is signed. It is no command, as a command is no announcement: their keys differ."""
        return json.dumps(
            {"trust": {"cell": self.cell, "serial": self.serial, "keys": dict(self.keys), "ca": self.ca}},
            separators=(",", ":"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A signed statement."""

    payload: str
    # Key id -> base64 of its signature of exactly these characters in UTF-8.
    signatures: Mapping[str, str]


def decode_trust(payload: str) -> Trust:
    """What an announcement says; ContractError when it is none."""
    try:
        raw = json.loads(payload)["trust"]
        cell, serial, keys, ca = raw["cell"], raw["serial"], raw["keys"], raw["ca"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ContractError(f"not an announcement of keys: {str(error)[:80]}") from error
    if not isinstance(cell, str) or not isinstance(ca, str) or not _texts(keys):
        raise ContractError("not an announcement of keys: cell and ca are texts, keys an object of texts")
    if not isinstance(serial, int) or isinstance(serial, bool) or serial < 1:
        raise ContractError("not an announcement of keys: its serial is a number from 1 on")
    if not all(_is_key(text) for text in keys.values()):
        raise ContractError("not an announcement of keys: a key is the base64 of 32 bytes")
    return Trust(cell=cell, serial=serial, keys=keys, ca=ca)


def pack_announcements(announcements: Sequence[Announcement]) -> bytes:
    """Announcements in their order, as one request to a node."""
    body = [{"payload": one.payload, "sigs": dict(one.signatures)} for one in announcements]
    return _BEGINS + json.dumps(body, separators=(",", ":")).encode() + b"}"


def unpack_announcements(body: bytes) -> list[Announcement] | None:
    """The announcements in a request; None: it is something else. ContractError: they cannot be read."""
    if not body.startswith(_BEGINS):
        return None
    try:
        raw = json.loads(body)["announcements"]
        found = [Announcement(payload=one["payload"], signatures=one["sigs"]) for one in raw]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ContractError(f"not announcements of keys: {str(error)[:80]}") from error
    if not all(isinstance(one.payload, str) and _texts(one.signatures) for one in found):
        raise ContractError("not announcements of keys: payload is a text, sigs an object of texts")
    return found


def _texts(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(one, str) for one in found.values())


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False
