"""Our mark in the reason or annotation of a drain, and how it is recognized. Pure.

    gpuward: gpu_off_bus on gpu/0000:3b:00 (rule gpu-off-bus) [inc-17] #5c0e

The four digits at the end are a checksum of the text before them. A reason that someone else has changed or added to is
no longer ours: we do not undo it.
"""

import re
import zlib

from brain.actions.base import MARK

MAX_WHY = 200  # characters; `sinfo -R` and `kubectl describe` show all of them
_OURS = re.compile(rf"({MARK}: .*) #([0-9a-f]{{4}})", re.DOTALL)


def marked(why: str) -> str:
    """Returns the reason to write: one line of printable ASCII without quotes and backslashes."""
    plain = "".join(char if char.isascii() and char.isprintable() else " " for char in why)
    clean = " ".join(re.sub(r"[\"'\\`]", "", plain).split())
    text = f"{MARK}: {clean[:MAX_WHY].rstrip()}"
    return f"{text} #{_sum(text)}"


def ours(reason: str) -> bool:
    """Did we write this reason, and is it unchanged?"""
    found = _OURS.fullmatch(reason)
    return found is not None and found[2] == _sum(found[1])


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()) & 0xFFFF:04x}"
