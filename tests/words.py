"""What the command lines say, as it stands in the code: all that a catalogue must have."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from click import Context

from agent.cli import check
from agent.contract.fitness import GPU, GROUPS
from agent.shared.words import id_of
from brain.__main__ import MOUNTS
from brain.cli import language
from brain.cli.checkup.lines import Health
from brain.cli.main import COMMANDS, MOUNTED, group
from docs.man_pages import AGENT, tables

ROOT = Path(__file__).resolve().parents[1]
OF_AGENT = (ROOT / "agent/cli",)
OF_CONSOLE = (ROOT / "brain/console", ROOT / "brain/core")  # what the API refuses
OF_BRAIN = (ROOT / "brain/cli", ROOT / "simulations", ROOT / "docs")


def calls(folders: Iterable[Path], *names: str) -> Iterator[tuple[Path, ast.Call]]:
    """The calls of functions of these names in the code of some folders."""
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                    yield file, node


def said(folders: Iterable[Path]) -> dict[str, set[str]]:
    """The sentences that are said there, and the values that each takes."""
    found: dict[str, set[str]] = {}
    for file, call in calls(folders, "t", "later", "said"):
        values = {one.arg for one in call.keywords if one.arg is not None}
        for english in _texts(call.args[0]):
            assert found.setdefault(english, values) == values, (file, english)
    return found


def counted(folders: Iterable[Path]) -> set[str]:
    """The things that are counted there."""
    return {one for _, call in calls(folders, "many") for one in _texts(call.args[1])}


def _texts(given: ast.expr) -> list[str]:
    """A text, or one of two."""
    ways = (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,)
    return [one.value for one in ways if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def checks() -> set[str]:
    """The names of what the doctor looks at, as they stand in its code."""
    found = {
        call.args[0] for _, call in calls((ROOT / "brain/cli/checkup",), "ok", "warn", "fail", "unchecked")
    }
    for file in sorted((ROOT / "brain/cli/checkup").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign):
                found |= set(_named(node.targets[0], node.value))
    return {one for each in found for one in _texts(each)}


def _named(target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    """What is assigned to `name`, alone or among others."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, of in zip(target.elts, value.elts, strict=True):
            yield from _named(one, of)
    elif isinstance(target, ast.Name) and target.id == "name":
        yield value


def helped() -> set[str]:
    """Every text of the help of `gpuward`, and what its code names by variables."""
    whole = group(MOUNTS)
    found = set(language.helps(whole)) | {one.help for one in COMMANDS.values()} | set(MOUNTED.values())
    for name in whole.list_commands(Context(whole)):
        command = whole.get_command(Context(whole), name)
        assert command is not None
        found |= set(language.helps(command))
    of_tables = {one for each in (tables(), tables(AGENT)) for one in _cells(each)}
    return found | of_tables | {one.value for one in Health} | checks()


def _cells(found: Mapping[str, Iterable[list[str]]]) -> Iterator[str]:
    yield from found
    yield from (one for rows in found.values() for row in rows for one in row[1:])


def agent_helped() -> set[str]:
    """What the code of the agent's command line names by variables."""
    return {check.ABOUT, *(what for name, what in GROUPS.items() if name != GPU)}


def by_id(texts: Iterable[str]) -> dict[str, str]:
    """The sentences by the id that they have in a catalogue. Two have one only where nothing but their case differs."""
    found: dict[str, str] = {}
    for text in sorted(texts):
        same = found.setdefault(id_of(text), text)
        assert _core(same) == _core(text), (id_of(text), same, text)
    return found


def _core(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")
