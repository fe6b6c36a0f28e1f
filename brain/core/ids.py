"""Ids and keys of the engine: only this module makes them and takes them apart.

An id is a hash of the input that led to it and of what it names, so that a replay gives the same ids. A key
`name@scope` names one thing (a symptom, a rule, a runbook) at one scope; a name contains no `@`.
"""

import base64
import hashlib

INCIDENT = "inc"
ALERT_GROUP = "grp"
HOLD = "hold"
COMMAND = "s:"  # how the ids of operators' commands begin


def hashed(kind: str, *parts: str) -> str:
    """`<kind>-<8 letters and digits>`, always the same for the same parts."""
    digest = hashlib.blake2b("|".join(parts).encode(), digest_size=5).digest()
    return f"{kind}-{base64.b32encode(digest).decode().lower()}"


def key(name: str, scope: str) -> str:
    """`name@scope`."""
    return f"{name}@{scope}"


def name_of(key: str) -> str:
    """The name in a key."""
    return key.partition("@")[0]


def split(key: str) -> tuple[str, str]:
    """(name, scope) of a key."""
    name, _, scope = key.partition("@")
    return name, scope
