"""Finds plug-ins of the brain that were written and not registered, and says which line is missing where.

The tables are explicit, nothing is discovered at run time; so a file that no table names would simply do nothing.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.agent.registration import class_values

ROOT = Path(__file__).resolve().parents[2]
ACTIONS = "brain/actions"
CHANNELS = "brain/notify"
DECLARATIONS = "brain/core/pack/actions.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionClass:
    """A class that performs an action of the brain."""

    file: str
    name: str
    action: str

    @property
    def module(self) -> str:
        """The module in which it is defined."""
        return self.file.removesuffix(".py").replace("/", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of types, each with the function that builds it: `module:function`."""

    file: str
    # Parameters of a function that belongs in it
    params: tuple[str, ...]
    # Part of the annotation of its result
    returns: str = ""


CHANNEL_TYPES = Table(file="brain/notify/notifier.py", params=("name", "table", "where", "way"))
SCHEDULER_TYPES = Table(file="brain/actions/scheduler.py", params=("name", "table", "where"))
BMC_TYPES = Table(file="brain/actions/bmc_tables.py", params=("table", "where"), returns="Backend")
SWITCH_TYPES = Table(file="brain/actions/switches.py", params=("table", "where", "ufms"))


def action_classes(root: Path = ROOT) -> list[ActionClass]:
    """Every class in brain/actions that has `plan`, `run` and the name of an action."""
    return [
        ActionClass(file=f"{ACTIONS}/{path.name}", name=node.name, action=action)
        for path in sorted((root / ACTIONS).glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and (action := _action(node))
    ]


def _action(node: ast.ClassDef) -> str:
    values = class_values(node)
    return (
        values.get("name", "")
        if {"plan", "run"} <= set(values) and "Protocol" not in map(ast.unparse, node.bases)
        else ""
    )


def undeclared(classes: Collection[ActionClass], declared: Collection[str]) -> list[str]:
    """One message for each class whose action is not declared."""
    return [
        f"{one.file}: {one.name} performs {one.action}, which is not declared. In {DECLARATIONS} add to BRAIN_ACTIONS\n"
        f'    _spec("{one.action}", "...", Disrupts..., Repeat..., <timeout in s>),'
        for one in classes
        if one.action not in declared
    ]


def declared_twice(root: Path = ROOT) -> list[str]:
    """One message for each name that a second row of the table declares."""
    rows = [
        (ast.literal_eval(node.args[0]), node.lineno)
        for node in ast.walk(ast.parse((root / DECLARATIONS).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_spec"
    ]
    names = [name for name, _ in rows]
    return [
        f"{DECLARATIONS}:{line}: {name} is declared already: the later row would win"
        for number, (name, line) in enumerate(rows)
        if name in names[:number]
    ]


def not_implemented(declared: Collection[str], classes: Collection[ActionClass]) -> list[str]:
    """One message for each declared action that no class performs."""
    performed = {one.action: one for one in classes}
    messages = []
    for action in declared:
        if action not in performed:
            area = action.partition(".")[0]
            like = next(
                (one.file for one in classes if one.action.partition(".")[0] == area), f"{ACTIONS}/{area}.py"
            )
            messages.append(
                f"{DECLARATIONS} declares {action}, and no class performs it. In {like} (or a file of its own) add a class\n"
                f'    name: ClassVar[str] = "{action}"'
            )
    return messages


def not_built(classes: Collection[ActionClass], built: Collection[str], root: Path = ROOT) -> list[str]:
    """One message for each class that a site with every table of the configuration does not get."""
    return [
        f"{one.file}: {one.name} is never built. {_where_to_build(one, root)}"
        for one in classes
        if one.action not in built
    ]


def _where_to_build(one: ActionClass, root: Path) -> str:
    for path in (root / one.file, *sorted((root / ACTIONS).glob("*.py"))):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        has_area = any(isinstance(node, ast.FunctionDef) and node.name == "area" for node in body)
        if has_area and (path == root / one.file or one.module in _imported(body)):
            file = path.relative_to(root)
            return f"In {file} add it to what `area` returns\n    {one.name}(...)"
    stem = Path(one.file).stem
    return (
        f"In {one.file} add a function `area(site: Site) -> list[Action]`, and in {ACTIONS}/__init__.py import {stem} and "
        f"add to AREAS\n    {stem}.area,"
    )


def _imported(body: list[ast.stmt]) -> set[str | None]:
    return {node.module for node in body if isinstance(node, ast.ImportFrom)}


def unregistered(folder: str, table: Table, types: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """One message for each `build` function of a folder that belongs in the table and is not there."""
    messages = []
    for module, params, returns in _builders(root / folder):
        place = f"{folder.replace('/', '.')}.{module}:build"
        fits = params == table.params and table.returns in returns
        if fits and place not in types.values():
            messages.append(
                f"{folder}/{module}.py: `build` is not registered. In {table.file} add to TYPES\n"
                f'    "{module}": "{place}",'
            )
    return messages


def strangers(folder: str, known: Collection[str], root: Path = ROOT) -> list[str]:
    """One message for each plug-in of a folder that nothing could find: a `build` or a channel in no table."""
    package = folder.replace("/", ".")
    found = [(module, "build") for module, _, _ in _builders(root / folder)]
    found += [(module, "build") for module in _senders(root / folder)]
    return [
        f"{folder}/{module}.py: its `{function}` is in no table: see CONTRIBUTING.md for its parameters"
        for module, function in dict.fromkeys(found)
        if f"{package}.{module}:{function}" not in known
    ]


def _senders(folder: Path) -> Iterator[str]:
    """Modules with a class that looks like a channel."""
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.ClassDef)
                and {"send", "close"} <= set(class_values(node))
                and "Protocol" not in map(ast.unparse, node.bases)
            ):
                yield path.stem


def _builders(folder: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(module, names of the parameters, annotation of the result) of each module's function `build`."""
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == "build":
                params = tuple(arg.arg.lstrip("_") for arg in node.args.args)
                yield path.stem, params, ast.unparse(node.returns) if node.returns else ""


def missing_verbs(
    engine: Collection[str], console: Collection[str], command_line: Collection[str]
) -> list[str]:
    """One message for each operator command that the engine, the console or the command line does not have."""
    lines = (
        ("brain/core/operators/commands.py: VERBS", engine, '"{0}": _{1},'),
        (
            "brain/console/api/verbs.py: VERBS",
            console,
            '"{0}": ((<required arguments>), (<optional arguments>), Role.<the weakest that may>),',
        ),
        (
            "brain/cli/main.py: COMMANDS",
            command_line,
            '"{0}": lazy("brain.cli.operator_commands:{1}", "..."),',
        ),
    )
    verbs = list(dict.fromkeys((*engine, *console, *command_line)))
    return [
        f"the operator command {verb} is missing in {where}. Add\n    {line.format(verb, verb.replace('-', '_'))}"
        for verb in verbs
        for where, known, line in lines
        if verb not in known
    ]


def unlisted_commands(places: Collection[str], root: Path = ROOT) -> list[str]:
    """One message for each click command in brain/cli that the table of commands does not name."""
    messages = []
    for path in sorted((root / "brain/cli").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            place = f"brain.cli.{path.stem}:{node.name}" if isinstance(node, ast.FunctionDef) else ""
            if isinstance(node, ast.FunctionDef) and _is_command(node) and place not in places:
                messages.append(
                    f"brain/cli/{path.name}: the command {node.name} is not listed. In brain/cli/main.py add to COMMANDS\n"
                    f'    "{node.name.rstrip("_").replace("_", "-")}": lazy("{place}", "..."),'
                )
    return messages


def _is_command(node: ast.FunctionDef) -> bool:
    commands = any(re.match(r"(click\.)?(command|group)\b", ast.unparse(one)) for one in node.decorator_list)
    return commands and not node.name.startswith("_")


def inputs_without_token(inputs: Collection[type], tokens: Mapping[str, type]) -> list[str]:
    """One message for each input of the engine that has no token on the log."""
    return [
        f"the input {one.__name__} cannot be put on the log. In brain/adapters/codec.py add to PLAIN\n"
        f'    "{one.__name__.lower()}": {one.__name__},'
        for one in inputs
        if one not in tokens.values()
    ]
