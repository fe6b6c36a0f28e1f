"""Where a key stands in a TOML file: the standard library's parser does not say it."""

import re
from collections.abc import Sequence

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*([A-Za-z0-9_."'-]+?)\s*=""")


def line_of(text: str, key: Sequence[str]) -> int:
    """Returns the line of a key, e.g. `settings`, `hold_off_s`, or of the first table or key below it, or of the table or key
    around it; 0: none is there.

    An entry of an array of tables has its number in the key: `modes`, `0`, `mode`.
    """
    best, best_line = 0, 0
    table: list[str] = []
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        here = table
        if head := _TABLE.match(line):
            table = _parts(head[2])
            if head[1] == "[[":
                counts[head[2]] = counts.get(head[2], -1) + 1
                table = [*table, str(counts[head[2]])]
            here = table
        elif named := _KEY.match(line):
            here = [*table, *_parts(named[1])]
        else:
            continue
        common = min(len(here), len(key))  # `[consol.oidc]` is where `consol` stands, too
        if common > best and list(key[:common]) == here[:common]:
            best, best_line = common, number
    return best_line


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
