"""Finds plug-ins that were written and not registered, and says which line is missing where.

The lists are explicit, nothing is discovered at run time; so a file that nobody listed would simply do nothing.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.contract.kinds import Kind

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A list of plug-ins, and how to recognise those that belong in it."""

    # Folder of the plug-ins, relative to ROOT.
    folder: str
    # Name of the list in the folder's __init__.py.
    list_name: str
    # Names that every plug-in's class has in its body; no other class of the folder has all of them.
    signs: frozenset[str]
    # What the list gets, with {module} and {name} of the class, and {key}, the value of its `name`.
    entry: str = "{name},"
    # The list has the classes themselves, not their names.
    imports: bool = True


COLLECTORS = Registry(
    folder="agent/collectors", list_name="COLLECTORS", signs=frozenset({"name", "wants", "kinds"})
)
SOURCES = Registry(folder="agent/sources", list_name="SOURCES", signs=frozenset({"name", "needs"}))
LINES = Registry(
    folder="agent/contract/lines", list_name="areas()", signs=frozenset({"kinds", "read"}), entry="{name}(),"
)
ACTIONS = Registry(
    folder="agent/actions",
    list_name="CLASSES",
    signs=frozenset({"name", "plan", "run"}),
    entry='"{key}": ("{module}", "{name}"),',
    imports=False,
)


def unregistered(registry: Registry, listed: Collection[tuple[str, str]], root: Path = ROOT) -> list[str]:
    """One message for each class that looks like a plug-in and is not in `listed`: (module, class)."""
    package = registry.folder.replace("/", ".")
    found = []
    for module, name, key in _classes(root / registry.folder, registry.signs):
        if (f"{package}.{module}", name) in listed:
            continue
        text = (
            f"{registry.folder}/{module}.py: {name} is not registered. In {registry.folder}/__init__.py add "
        )
        if registry.imports:
            text += f"the import\n    from {package}.{module} import {name}\nand "
        entry = registry.entry.format(module=module, name=name, key=key)
        found.append(f"{text}to {registry.list_name}\n    {entry}")
    return found


def _classes(folder: Path, signs: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """(module, class, its `name`) of those that have all the signs in their bodies; protocols are shapes, not plug-ins."""
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and signs <= _names(node) and "Protocol" not in _bases(node):
                yield path.stem, node.name, _value_of_name(node)


def _bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _names(node: ast.ClassDef) -> set[str]:
    found: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.add(item.target.id)
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(item.name)
    return found


def _value_of_name(node: ast.ClassDef) -> str:
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == "name":
            return str(item.value.value) if isinstance(item.value, ast.Constant) else ""
    return ""


def unlisted_areas(declared: Collection[str], root: Path = ROOT) -> list[str]:
    """One message for each kind that an area file declares and the table of all kinds does not have."""
    folder = root / "agent/contract/kinds"
    return [
        f"agent/contract/kinds/{path.stem}.py declares {name}, which is not in the table. "
        f"In agent/contract/kinds/__init__.py add `{path.stem}` to the import and to KINDS\n"
        f"    {path.stem}.KINDS,"
        for path in sorted(folder.glob("*.py"))
        for name in _declared(path)
        if name not in declared
    ]


def _declared(path: Path) -> Iterator[str]:
    """Names of the kinds in an area file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Kind":
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)


def undeclared(
    claims: Mapping[str, Collection[str]], kinds: Mapping[str, Kind], root: Path = ROOT
) -> list[str]:
    """One message for each kind that `claims` (whose → kinds) names and nothing declares."""
    return [
        f"{whose} emits {kind}, which is not declared. Add to KINDS in {_home(kind, root)}\n"
        f'    Kind(name="{kind}", component=..., severity=..., source=..., summary=..., fields=...),'
        for whose, names in claims.items()
        for kind in names
        if kind not in kinds
    ]


def _home(kind: str, root: Path) -> str:
    """The area file that has most kinds with the same beginning."""
    area = kind.partition(".")[0]
    counts = {
        path: sum(name.partition(".")[0] == area for name in _declared(path))
        for path in sorted((root / "agent/contract/kinds").glob("*.py"))
    }
    best = max(counts, key=lambda path: counts[path])
    return (
        str(best.relative_to(root))
        if counts[best]
        else "the area file of agent/contract/kinds/ where it belongs"
    )


def unclaimed(path: Path, class_name: str, claimed: Collection[str], kinds: Collection[str]) -> list[str]:
    """One message for each declared kind that a plug-in's file mentions and its class does not claim."""
    mentioned = {
        str(node.value): node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in kinds
    }
    return [
        f'{path.name}:{line}: {class_name} emits {kind}: add "{kind}" to its `kinds`'
        for kind, line in mentioned.items()
        if kind not in claimed
    ]


def unlisted_options(class_name: str, listed: Collection[type], read: Collection[type]) -> list[str]:
    """One message for each class of options that a plug-in reads and neither it nor another one lists."""
    return [
        f"{class_name} reads {part.__name__}, which no file can set: add it to its `options`\n"
        f"    options: ClassVar[tuple[type[Any], ...]] = ({part.__name__},)"
        for part in read
        if part not in listed
    ]


def silent_in_looks(collectors: Collection[type]) -> list[str]:
    """One message for each collector that neither tells its conditions again nor says why it has none, or does both."""
    return [
        f"{one.__module__.replace('.', '/')}.py: {one.__name__} has {'both' if why else 'neither'} of `restate`, which tells a "
        "condition that lasts again when the node is to look (agent.look), and why it keeps none\n"
        '    one_off: ClassVar[str] = "lines of a log"'
        for one in collectors
        for why in (getattr(one, "one_off", ""),)
        if ("restate" in vars(one)) == bool(why)
    ]
