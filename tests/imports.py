"""Finds imports that are not allowed. `.importlinter` forbids what it names; here everything is forbidden that is not named.

Read from the source text, so an import inside a function or for type checking counts like any other.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A module named by a text at run time: no import rule sees it.
DYNAMIC = frozenset({"importlib", "runpy", "pkgutil", "__import__", "exec", "eval"})
# Builtins and methods of `datetime` that do I/O, read the clock, or differ from process to process.
IMPURE = frozenset(
    {"open", "input", "print", "hash", "breakpoint", "datetime.now", "datetime.utcnow", "datetime.today"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the modules below some packages may import."""

    of: tuple[str, ...]
    # Modules, packages, or names in them. Empty: no rule but `never`
    only: frozenset[str] = frozenset()
    # The rule is about imports below these; empty: about all
    among: tuple[str, ...] = ()
    # (module, what it may import all the same)
    exempt: frozenset[tuple[str, str]] = frozenset()


def below(name: str, packages: Collection[str]) -> bool:
    """Whether `name` is one of the packages or stands in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def files(packages: Collection[str], root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """(module, file) of every module below the packages."""
    for package in packages:
        place = root / package.replace(".", "/")
        for path in [place.with_suffix(".py"), *sorted(place.rglob("*.py"))]:
            if path.exists():
                parts = path.relative_to(root).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """(module or name in a module, line) of every import in a file; relative ones in full."""
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)


def broken(rule: Rule, root: Path = ROOT) -> list[str]:
    """One message for each import that the rule does not allow."""
    return [
        f"{path.relative_to(root)}:{line}: {module} may not import {name}"
        for module, path in files(rule.of, root)
        for name, line in imported(module, path)
        if (not rule.among or below(name, rule.among))
        and not below(name, rule.only)
        and not any(module == who and below(name, (what,)) for who, what in rule.exempt)
    ]


def used(packages: Collection[str], names: Collection[str], root: Path = ROOT) -> list[str]:
    """One message for each call of one of the builtins or methods, and for each import of a module of that name."""
    messages = []
    for module, path in files(packages, root):
        found = [(name, line) for name, line in imported(module, path) if name.partition(".")[0] in names]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                text = ".".join(ast.unparse(node).split(".")[-2:])
                found += [(text, node.lineno)] if text in names else []
        messages += [f"{path.relative_to(root)}:{line}: {module} may not use {name}" for name, line in found]
    return messages


def installed(*extras: str, root: Path = ROOT) -> frozenset[str]:
    """The standard library, and the modules of what pyproject.toml depends on, without and with the extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(one for extra in extras for one in project["optional-dependencies"][extra]),
    ]
    known = {_normal(re.split(r"[\[<>=!~; ]", one)[0]) for one in wanted}
    modules = {name for name, made_by in _distributions().items() if known & set(map(_normal, made_by))}
    return frozenset({*modules, *sys.stdlib_module_names, "_typeshed"})


_distributions = cache(packages_distributions)  # reads the metadata of all that is installed


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def packages(root: Path = ROOT) -> set[str]:
    """The top-level packages of the repository."""
    return {path.parent.name for path in root.glob("*/*.py") if not path.parent.name.startswith(".")}
