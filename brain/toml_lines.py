"""Where a key stands in a TOML file: the standard library's parser does not say it."""

import re
import tomllib
from collections.abc import Sequence

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*([A-Za-z0-9_."'-]+?)\s*=""")

_AT = re.compile(r" \(at line (\d+), column \d+\)$")


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


def with_lines(message: str, where: str, text: str) -> str:
    """The lines of an error, `where: KEY: ...`, each with the line of its key behind the file, as they stand there; those without
    one come first.
    """

    def numbered(line: str) -> str:
        key = line.removeprefix(f"{where}: ").partition(": ")[0]
        number = line_of(text, key.split(".")) if line.startswith(f"{where}: ") else 0
        return f"{where}:{number}{line.removeprefix(where)}" if number else line

    return in_order("\n".join(map(numbered, message.splitlines())), where)


def in_order(message: str, where: str) -> str:
    """The lines of an error, `where:NUMBER: ...`, as they stand in the file."""

    def number(line: str) -> int:
        found = re.match(r":(\d+): ", line.removeprefix(where))
        return int(found[1]) if found else 0

    return "\n".join(sorted(message.splitlines(), key=number))


def not_toml(where: str, text: str, error: tomllib.TOMLDecodeError) -> str:
    """What is wrong with a file that is no TOML. A table that was pasted behind another one of its name is what happens most:
    the shipped file has most of them.
    """
    found = _AT.search(str(error))
    if found is None:
        return f"{where}: not TOML: {error}"
    line, says = int(found[1]), str(error)[: found.start()]
    lines = text.splitlines()
    head = _TABLE.match(lines[line - 1]) if line <= len(lines) else None
    if head and "twice" in says:
        first = line_of("\n".join(lines[: line - 1]), _parts(head[2]))
        return f"{where}:{line}: the table [{head[2]}] is there already, in line {first}: move what is below this one there"
    return f"{where}:{line}: not TOML: {says}"


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
