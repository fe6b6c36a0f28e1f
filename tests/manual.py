"""Pages of the manual as a test reads them: their fenced blocks, the commands in these, and what the commands print.

A block is one of

    ```console            commands behind `$ `, each with lines that it prints: the test runs them
    ```yaml title="..."   a file of docs/examples, below `site/` here
    ```toml               part of brain.toml
    ```on-a-real-site     commands that cannot run in a test (`NOT_RUN` says why)

A printed line of a page is a pattern: ids, times, numbers and names of the machine are any of their kind, `…` is any text. An
id stands for the same thing in the whole page, also in the commands that follow.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
TUTORIALS = ("first-day.md", "write-a-rule.md")
NOT_RUN = {"on-a-real-site": "it changes /etc and restarts the brain's unit"}

_FENCE = re.compile(r'(?ms)^```([\w-]+)(?: title="([^"]+)")?\n(.*?)^```$')
_ANY_BLOCK = re.compile(
    r"(?ms)^ *```(?P<language>[\w-]*)[^\n]*\n(?P<fenced>.*?)^ *```$|(?P<indented>(?:^    [^\n]*\n)+)"
)
_ID = re.compile(r"\b(?:inc|hold)-[a-z0-9]{8}\b")
# Texts of a page that differ from site to site, and what they are there.
_ANY = (
    (_ID, r"(?:inc|hold)-[a-z0-9]{8}"),
    (re.compile(r"\[sim-\d\d:[0-9a-f]{8}:\d+\]"), r"\[[^\]]+\]"),
    (re.compile(r"\b\d\d-\d\d \d\d:\d\d:\d\dZ"), r"\d\d-\d\d \d\d:\d\d:\d\dZ"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), r"\d\d:\d\d:\d\d"),
    (re.compile(r"/srv/gpuward/"), r"/\S+/"),
    (re.compile(r"\b[0-9a-f]{12}\b"), r"[0-9a-f]{12}"),
    (re.compile(r"\b(?:ann|brain-1)\b"), r"\S+"),
    (re.compile(r"(?<![\w.:/-])\d+(?:\.\d+)*(?![\w:/-])"), r"\d+(?:\.\d+)*"),
    (re.compile("…"), ".*?"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """One command, and the lines that the page says it prints."""

    command: str
    shows: tuple[str, ...]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page of docs/, in their order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text.count("\n```") % 2 == 0, f"{page}: a block without an end"
    found = [Block(language=one[0], title=one[1], text=one[2]) for one in _FENCE.findall(text)]
    assert 2 * len(found) == text.count("\n```"), f"{page}: each block needs a language"
    return found


def typed(page: str) -> Iterator[Typed]:
    """The commands that a reader types."""
    for block in blocks(page):
        if block.language == "console":
            assert block.text.startswith("$ "), f"{page}: a console begins with a command:\n{block.text}"
            for part in block.text.removeprefix("$ ").split("\n$ "):
                command, *shows = part.splitlines()
                yield Typed(command=command, shows=tuple(line for line in shows if line.strip()))


def commands(page: str) -> Iterator[list[str]]:
    """Every command of a page, block by block: those of fences that are commands, and of indented blocks that are no
    configuration. A comment behind a command is not part of it.
    """
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for found in _ANY_BLOCK.finditer(text):
        language, fenced, indented = found["language"], found["fenced"], found["indented"]
        if language in {"console", "sh", *NOT_RUN}:
            yield list(_lines(fenced))
        elif indented and not _is_configuration(block := re.sub("(?m)^    ", "", indented)):
            yield list(_lines(block))


def _lines(block: str) -> Iterator[str]:
    whole = re.sub(r"\\\n\s*", "", block)
    if shown := re.findall(r"(?m)^\$ (.*)$", whole):
        whole = "\n".join(shown)
    yield from filter(None, (without_comment(line) for line in whole.splitlines()))


def without_comment(line: str) -> str:
    """The command of a line."""
    return re.sub(r"(?:^|\s{2,})#.*", "", line).strip()


def _is_configuration(block: str) -> bool:
    """TOML, YAML with keys, lines of JSON, or Slurm's. A command is none of these."""
    if re.fullmatch(r'(?:[A-Z][A-Za-z]+=[^$ \n]+\n)+|(?: *\{"[^\n]+\}\n)+', block):
        return True
    try:
        tomllib.loads(block)
    except tomllib.TOMLDecodeError:
        pass
    else:
        return True
    try:
        return isinstance(yaml.safe_load(block), dict)
    except yaml.YAMLError:
        return False


class Ids:
    """What the ids of a page are here."""

    def __init__(self) -> None:
        self._here: dict[str, str] = {}

    def in_command(self, command: str) -> str:
        """The command with the ids of this site; each must have been shown before."""
        return _ID.sub(lambda found: self._here[found[0]], command)

    def seen(self, shows: tuple[str, ...], printed: str) -> str:
        """Looks for the lines in this order, and learns new ids; the first line that is not there, or an empty text."""
        printed = " ".join(printed.split())
        at, learned = 0, dict(self._here)
        for line in shows:
            names = [name for name in dict.fromkeys(_ID.findall(line)) if name not in learned]
            found = re.compile(self._pattern(" ".join(line.split()), learned)).search(printed, at)
            if found is None:
                return line
            at = found.end()
            learned |= {name: found[_group(name)] for name in names}
        self._here = learned
        return ""

    def _pattern(self, line: str, known: dict[str, str]) -> str:
        whole = re.compile("|".join(f"({kind.pattern})" for kind, _ in _ANY))
        parts, done, grouped = [], 0, set()
        for found in whole.finditer(line):
            parts.append(re.escape(line[done : found.start()]))
            done = found.end()
            text = found[0]
            if not _ID.fullmatch(text):
                parts.append(_ANY[(found.lastindex or 1) - 1][1])
            elif text in known:
                parts.append(re.escape(known[text]))
            elif text in grouped:
                parts.append(f"(?P={_group(text)})")
            else:
                grouped.add(text)
                parts.append(f"(?P<{_group(text)}>{_ANY[0][1]})")
        return "".join([*parts, re.escape(line[done:])])


def _group(name: str) -> str:
    return name.replace("-", "_")
