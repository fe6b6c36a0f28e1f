"""Finds plug-ins that were written and not registered, and says which line is missing where.

The lists are explicit, nothing is discovered at run time; so a file that nobody listed would simply do nothing.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from agent.contract.kinds import Kind

ROOT = Path(__file__).resolve().parents[2]
LOOK = "agent/contract/look.py"
# End of a name -> its unit, as the documents write it
UNITS: Mapping[str, tuple[str, ...]] = {
    "s": ("s", "1/s"),
    "bytes": ("bytes",),
    "c": ("°C",),
    "gbps": ("Gb/s",),
    "kb": ("KiB",),
    "mb": ("MiB",),
    "percent": ("%",),
    "w": ("W",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A list of plug-ins, and how to recognise those that belong in it."""

    # Folder of the plug-ins, relative to ROOT.
    folder: str
    # Name of the list in the folder's __init__.py.
    list_name: str
    # Names that every plug-in's class has in its body; no other class of the folder has all of them.
    members: frozenset[str]
    # What every plug-in is a subclass of, and nothing else. Empty: a protocol
    base: str = ""
    # What the list gets, with {module} and {name} of the class, and {key}, the value of its `name`.
    entry: str = "{name},"
    # The list has the classes themselves, not their names.
    imports: bool = True


COLLECTORS = Registry(
    folder="agent/collectors",
    list_name="COLLECTORS",
    members=frozenset({"name", "wants", "kinds"}),
    base="Collector",
)
SOURCES = Registry(
    folder="agent/sources", list_name="SOURCES", members=frozenset({"name", "needs"}), base="Source"
)
LINES = Registry(
    folder="agent/contract/lines",
    list_name="areas()",
    members=frozenset({"kinds", "read"}),
    entry="{name}(),",
)
ACTIONS = Registry(
    folder="agent/actions",
    list_name="CLASSES",
    members=frozenset({"name", "plan", "run"}),
    base="NodeAction",
    entry='"{key}": ("{module}", "{name}"),',
    imports=False,
)


def unregistered(registry: Registry, listed: Collection[tuple[str, str]], root: Path = ROOT) -> list[str]:
    """One message for each class that looks like a plug-in and is not in `listed`: (module, class)."""
    package = registry.folder.replace("/", ".")
    found = []
    for module, name, key in _classes(root / registry.folder, registry):
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


def _classes(folder: Path, registry: Registry) -> Iterator[tuple[str, str, str]]:
    """(module, class, its `name`) of each plug-in, also in a folder below; protocols and bases (`_Name`) are none."""
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and "Protocol" not in _bases(node) and node.name[0] != "_":
                values = class_values(node)
                if registry.base in _bases(node) or registry.members <= set(values):
                    yield module, node.name, values.get("name", "")


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0] for base in node.bases}


def class_values(node: ast.ClassDef) -> dict[str, str]:
    """Names in the body of a class, with their values where those are texts; annotated or not."""
    found: dict[str, str] = {}
    for item in node.body:
        targets: list[ast.expr] = []
        if isinstance(item, ast.AnnAssign):
            targets = [item.target]
        elif isinstance(item, ast.Assign):
            targets = item.targets
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            found[item.name] = ""
        for target in targets:
            value = item.value if isinstance(item, ast.AnnAssign | ast.Assign) else None
            if isinstance(target, ast.Name):
                found[target.id] = str(value.value) if isinstance(value, ast.Constant) else ""
    return found


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
        f'    Kind(name="{kind}", component=..., severity=..., source=..., summary=..., fields=..., example=...),'
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


def without_kinds(
    sources: Collection[str],
    table: Mapping[str, Collection[str]],
    kinds: Collection[Kind],
    own: Collection[str],
) -> list[str]:
    """One message for each source that SOURCES_OF_KINDS lacks, and for each kind that rests on no source in it."""
    named = {name for names in table.values() for name in names}
    return [
        *(
            f"{LOOK}: the source {source} is missing. Add to SOURCES_OF_KINDS, with the `source` of its kinds\n"
            f'    "{source}": ("...",),'
            for source in sources
            if source not in table
        ),
        *(
            f"{LOOK}: SOURCES_OF_KINDS: remove {source}: no source has that name"
            for source in table
            if source not in sources
        ),
        *(
            f"{LOOK}: {kind.name} rests on {kind.source!r}, which no source in SOURCES_OF_KINDS tells. Add it to one of them"
            for kind in kinds
            if kind.source not in {*named, *own}
        ),
    ]


def hidden(folder: str, table_name: str, table: Mapping[str, Any]) -> list[str]:
    """One message for each declaration in a file's `table_name` that is not the one of its name in the whole table.

    Its file is not in the whole table, or two declarations have one name: the later one hides the earlier.
    """
    package = folder.replace("/", ".")
    return [
        f"{folder}/{path.name}: {one.name} is not in the whole table, or declared twice: see {folder}/__init__.py"
        for path in sorted((ROOT / folder).glob("*.py"))
        if path.stem != "__init__"
        for one in getattr(import_module(f"{package}.{path.stem}"), table_name, ())
        if table.get(one.name) is not one
    ]


def without_unit(whose: str, name: str, unit: str, meaning: str, *, measured: bool = False) -> list[str]:
    """A message when a name ends with a unit and its declaration says another one or none, or has no meaning.

    `measured`: no mere count: it needs a unit, whatever its name.
    """
    wanted = UNITS.get(name.rpartition("_")[2], ()) if "_" in name else ()
    messages = [f"{whose}: {name} has no sentence that explains it"] if not meaning.strip() else []
    if wanted and unit not in wanted:
        messages.append(f"{whose}: {name} needs the unit {' or '.join(wanted)}, not {unit!r}")
    elif measured and not unit:
        messages.append(f"{whose}: {name} needs `unit=`, and a name that ends with it, such as {name}_s")
    return messages


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
