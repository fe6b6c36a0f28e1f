"""Slurm's short form for names of nodes: `gpu[1-3,07],cpu4` → gpu1, gpu2, gpu3, gpu07, cpu4. Pure."""

import math
import re
from collections.abc import Iterable
from itertools import product

MAX_HOSTS = 100_000
_PART = re.compile(r"((?:[^,\[\]]|\[[^\]]*\])+)(?:,|$)")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_DIGITS = 18
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
        # Counted before they are made: three short brackets name more hosts than fit into memory.
        if len(names) + math.prod(map(len, pieces)) > MAX_HOSTS:
            raise ValueError(f"more than {MAX_HOSTS} hosts: {text[:100]!r}")
        names += ["".join(parts) for parts in product(*pieces)]
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
        if max(len(first), len(last)) > _DIGITS:
            raise ValueError(f"not a range of hosts: {part[:40]!r}")
        if int(last) - int(first) + len(numbers) >= MAX_HOSTS:
            raise ValueError(f"more than {MAX_HOSTS} hosts: {part!r}")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def fold(names: Iterable[str]) -> str:
    """The short form of names: gpu1, gpu2, gpu3, cpu4 → `cpu4,gpu[1-3]`. Each once, in the order of their letters."""
    bases: dict[
        tuple[str, int], list[int]
    ] = {}  # (text before the number, digits with leading zeros or 0) -> numbers
    plain: list[str] = []
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.append(name)
            continue
        width = len(found[2]) if found[2].startswith("0") and len(found[2]) > 1 else 0
        bases.setdefault((found[1], width or _as_wide(found[2], found[1], bases)), []).append(int(found[2]))
    folded = [_brackets(base, width, sorted(numbers)) for (base, width), numbers in bases.items()]
    return ",".join(sorted([*plain, *folded]))


def _as_wide(number: str, base: str, known: dict[tuple[str, int], list[int]]) -> int:
    """The digits of the names that `number` follows: 10 after 09; 0: those have no leading zeros."""
    return len(number) if (base, len(number)) in known else 0


def _brackets(base: str, width: int, numbers: list[int]) -> str:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    shown = [
        str(first).zfill(width) + (f"-{str(last).zfill(width)}" if last > first else "")
        for first, last in ranges
    ]
    return f"{base}{shown[0]}" if len(numbers) == 1 else f"{base}[{','.join(shown)}]"
