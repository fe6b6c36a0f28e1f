"""YAML with the line of every key, and without the traps of YAML 1.1.

`on`, `off`, `yes` and `no` are strings here, and so are `1:30` and `2026-11-20`; only true and false are booleans. A
key that occurs twice in one mapping is an error, and so is a key that is not a string.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Key = tuple[str | int, ...]  # path to a value: ("rules", "gpu-lost", "knowledge", "cause", "en")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """An error or a warning for the author of a file."""

    file: str
    # From 1; 0: not a file but a folder
    line: int
    # As in "rules.gpu-lost.when"; empty: the whole file
    key: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.key + ': ' if self.key else ''}{self.text}"


@dataclass(slots=True, kw_only=True)
class Document:
    """The content of one file, with the line of each of its values."""

    file: str
    value: Any = None
    lines: dict[Key, int] = field(default_factory=dict)
    errors: list[Diagnostic] = field(default_factory=list)

    def line(self, key: Key) -> int:
        """Returns the line of a value, or of the nearest value around it when it is missing."""
        while key not in self.lines and key:
            key = key[:-1]
        return self.lines.get(key, 1)

    def error(self, key: Key, text: str) -> None:
        """Adds an error at a value."""
        self.errors.append(
            Diagnostic(file=self.file, line=self.line(key), key=".".join(map(str, key)), text=text)
        )


class _Loader(yaml.SafeLoader):
    """The YAML 1.2 core schema."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012  PyYAML's way to configure it


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))

# The same in C, ten times as fast; None where PyYAML was built without libyaml.
_QUICK: type[yaml.CSafeLoader] | None = (
    type("_Quick", (yaml.CSafeLoader,), {"yaml_implicit_resolvers": _Loader.yaml_implicit_resolvers})
    if yaml.__with_libyaml__
    else None
)
_VALUES_LEAST, _VALUES_EACH = 10_000, 2
_MOST_DIGITS = 400
_NESTED_MOST = 5000  # it takes the C stack for each level, and has no limit of its own


def _compose(text: str) -> yaml.Node | None:
    """The tree of a text; YAMLError if it is none, RecursionError if it is too deep.

    What libyaml does not take is read again for PyYAML's own words. It takes tabs where PyYAML does not.
    """
    # Each level needs a bracket, or a column more than the one around it.
    deepest = max(map(len, text.split("\n"))) + text.count("[") + text.count("{")
    if _QUICK is not None and "\t" not in text:
        try:
            if deepest < _NESTED_MOST or _is_flat(text, _QUICK):
                return yaml.compose(text, Loader=_QUICK)
        except yaml.YAMLError:
            pass
    return yaml.compose(text, Loader=_Loader)


def _is_flat(text: str, loader: type[yaml.CSafeLoader]) -> bool:
    """Whether a text with many brackets, such as a line for each of 20,000 nodes, has few levels."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth >= _NESTED_MOST:
            return False
    return True


def read(path: Path, shown: str) -> Document:
    """Reads a file; `shown` is its name in messages. A file that cannot be read gives an error, not an exception."""
    document = Document(file=shown)
    try:
        text = path.read_text(encoding="utf-8")
        node = _compose(text)
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        document.errors.append(Diagnostic(file=shown, line=line, key="", text="is not UTF-8 text"))
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        document.errors.append(Diagnostic(file=shown, line=0, key="", text=text))
    except RecursionError:
        document.errors.append(Diagnostic(file=shown, line=1, key="", text="is nested too deep"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        why = error.problem or error.context or "unreadable"
        document.errors.append(Diagnostic(file=shown, line=line, key="", text=f"is not YAML: {why}"))
    except yaml.YAMLError as error:  # a character that YAML forbids
        why = str(error).partition("\n")[0]
        document.errors.append(Diagnostic(file=shown, line=1, key="", text=f"is not YAML: {why}"))
    else:
        if node is not None:
            builder = _Builder(document, most=max(_VALUES_LEAST, _VALUES_EACH * len(text)))
            document.value = builder.build(node, ())
            if builder.built > builder.most:
                text = f"has more than {builder.most} values: its aliases make many of few"
                document.errors = [Diagnostic(file=shown, line=1, key="", text=text)]
                document.value = None
    return document


class _Builder:
    """Builds plain values from YAML nodes."""

    MAX_DEPTH = 40

    def __init__(self, document: Document, most: int) -> None:
        """`most`: values that are built. Without aliases a text has fewer than characters; nine lines of them can mean 10**9."""
        self._document = document
        self.most = most
        self.built = 0
        self._loader = _Loader("")

    def build(self, node: yaml.Node, key: Key) -> Any:
        """Returns the value of a node and records its line."""
        self.built += 1
        if self.built > self.most:
            return None
        self._document.lines.setdefault(key, node.start_mark.line + 1)
        if len(key) > self.MAX_DEPTH:
            self._document.error(key, "is nested too deep (or contains itself by an alias)")
            return None
        if isinstance(node, yaml.MappingNode):
            return dict(self._items(node, key))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*key, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, key)

    def _items(self, node: yaml.MappingNode, key: Key) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for name_node, value_node in node.value:
            line = name_node.start_mark.line + 1
            if not isinstance(name_node, yaml.ScalarNode):
                self._document.error(key, f"has a key in line {line} that is not a string")
                continue
            name = str(name_node.value)
            here = (*key, name)
            if name in seen:
                self._document.errors.append(
                    Diagnostic(
                        file=self._document.file,
                        line=line,
                        key=".".join(map(str, here)),
                        text=f"occurs twice, first in line {seen[name]}",
                    )
                )
                continue
            seen[name] = line
            self._document.lines[here] = line
            yield name, self.build(value_node, here)

    def _scalar(self, node: yaml.Node, key: Key) -> Any:
        tag = str(node.tag).removeprefix("tag:yaml.org,2002:")
        text = str(node.value)
        match tag:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
                base = {"0x": 16, "0o": 8}.get(digits[:2], 10)
                if len(digits) > _MOST_DIGITS:
                    self._document.error(key, f"has a number of more than {_MOST_DIGITS} digits")
                    return None
                return sign * int(digits[2:] if base != 10 else digits, base)
            case "float":
                return float(text)
            case _:
                self._document.error(key, f"has the tag {node.tag}, which is not allowed here")
                return None
