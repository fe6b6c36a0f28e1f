"""The reason of a drain, as text that Slurm and Kubernetes keep: what it may hold, and how its writer knows it again. Pure.

    gpuward-agent: GPU 0000:3b:00 is lost (NVML) #5c0e

So drains a prolog that asks `gpuward-agent check`. The brain takes such a drain over when an incident wants the node out of
service, and nobody else gives the node back. A reason whose checksum does not fit was changed by somebody, and is theirs.
Imports next to nothing: the command has 100 ms, and most of them are Python's own start.
"""

import re
from binascii import crc32

AGENT = "gpuward-agent"
MAX_WORDS = 160  # characters of all reasons together; `sinfo --format=%E` shows them
_OURS = re.compile(rf"{AGENT}: (.*) #([0-9a-f]{{4}})", re.DOTALL)


def plain(text: str) -> str:
    """One line of printable ASCII without quotes, backslashes and square brackets."""
    kept = "".join(char if char.isascii() and char.isprintable() else " " for char in text)
    return " ".join(re.sub(r"[\"'\\`]", "", kept).translate({91: "(", 93: ")"}).split())


def checksum(writer: str, text: str) -> str:
    """Four digits that fit no other text."""
    return f"{crc32(f'{writer}: {text}'.encode()) & 0xFFFF:04x}"


def written(words: str) -> str:
    """The reason with which a prolog drains its node."""
    text = plain(words)[:MAX_WORDS].rstrip()
    return f"{AGENT}: {text} #{checksum(AGENT, text)}"


def words_of(reason: str) -> str:
    """Why a prolog has drained the node; empty: somebody else did, or has changed the reason since."""
    found = _OURS.fullmatch(reason)
    return found[1] if found is not None and found[2] == checksum(AGENT, found[1]) else ""
