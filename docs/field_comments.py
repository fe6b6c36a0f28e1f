"""Reads the comments of fields and enum members from the source: they are the sentences of the generated documents."""

import ast
import inspect
import io
import tokenize
from functools import cache
from pathlib import Path


@cache
def of(kind: type) -> dict[str, str]:
    """Name of a field or member → the comment above it or, if there is none, behind it. Inherited ones are included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ != "builtins" and inspect.isclass(base):
            found |= _own(base)
    return found


def _own(kind: type) -> dict[str, str]:
    try:
        source = Path(inspect.getfile(kind)).read_text(encoding="utf-8")
    except (OSError, TypeError):
        return {}
    body = next(
        (
            node.body
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__
        ),
        [],
    )
    comments = {
        token.start[0]: (token.start[1], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    lines = source.splitlines()
    found = {}
    for node in body:
        name = _name(node)
        if name:
            above: list[str] = []
            number = node.lineno - 1
            while number in comments and not lines[number - 1][: comments[number][0]].strip():
                above.insert(0, comments[number][1])
                number -= 1
            behind = comments.get(node.end_lineno or node.lineno, (0, ""))[1]
            found[name] = " ".join(above) or behind
    return found


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""
