"""Slurm's short form for names of nodes: `gpu[1-3,07],cpu4` → gpu1, gpu2, gpu3, gpu07, cpu4. Pure."""

import re
from itertools import product

MAX_HOSTS = 100_000
_PART = re.compile(r"((?:[^,\[\]]|\[[^\]]*\])+)(?:,|$)")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def expand(text: str) -> list[str]:
    """Returns the names in order; ValueError when the text is no host list or names more than MAX_HOSTS."""
    names: list[str] = []
    at = 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise ValueError(f"not a list of hosts: {text[:100]!r}")
        pieces = [
            _numbers(piece[1:-1]) if piece.startswith("[") else [piece]
            for piece in re.findall(r"\[[^\]]*\]|[^\[\]]+", found[1])
        ]
        names += ["".join(parts) for parts in product(*pieces)]
        if len(names) > MAX_HOSTS:
            raise ValueError(f"more than {MAX_HOSTS} hosts: {text[:100]!r}")
        at = found.end()
    return names


def _numbers(text: str) -> list[str]:
    """`1-3,07` → 1, 2, 3, 07: leading zeros are part of the name."""
    numbers: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise ValueError(f"not a range of hosts: {part[:40]!r}")
        first, last = found[1], found[2] or found[1]
        if int(last) - int(first) >= MAX_HOSTS:
            raise ValueError(f"more than {MAX_HOSTS} hosts: {part!r}")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers
