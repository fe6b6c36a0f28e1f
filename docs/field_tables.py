"""Tables of the fields of dataclasses, with defaults and the comments in their source."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any

from docs import field_comments


def table(kind: type) -> Iterator[str]:
    """Yields the lines of the table of a dataclass; the fields of a dataclass in it are `outer.inner`."""
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    comments = field_comments.of(kind)
    for one in fields(kind):
        if is_dataclass(one.type) and isinstance(one.type, type):
            inner = field_comments.of(one.type)
            yield from (_row(f"{one.name}.{part.name}", part, inner) for part in fields(one.type))
        else:
            yield _row(one.name, one, comments)
    yield ""


def _row(name: str, one: Field[Any], comments: Mapping[str, str]) -> str:
    meaning = comments.get(one.name, "").replace("|", "\\|")
    return f"| `{name}` | {_default(one)} | {meaning} |"


def _default(one: Field[Any]) -> str:
    default = one.default if one.default_factory is MISSING else one.default_factory()
    if default is MISSING:
        return "required"
    if default is None or default in ("", (), {}, []):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    entries = default if isinstance(default, tuple | list) else (default,)
    return f"`{', '.join(map(_text, entries))}`".replace("|", "\\|")


def _text(value: Any) -> str:
    if is_dataclass(value):
        return f"{{{', '.join(f'{one.name}: {_text(getattr(value, one.name))}' for one in fields(value))}}}"
    return str(value.value if isinstance(value, Enum) else value)
