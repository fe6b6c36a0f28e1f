"""Reads rules and runbooks from files and checks them against brain/core/pack/spec.py. All errors come in one message.

    rules/<area>.yaml        symptoms: {<name>: {...}}   rules: {<name>: {...}}   overrides: {<name>: {...}}
    runbooks/<name>.yaml     one runbook, by default named like the file

Each error names file, line and key. What types cannot express (does the runbook exist?) is checked by
brain/core/pack/lint.py.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError, ContractError
from brain import renamed
from brain.adapters import diagnostics
from brain.core.pack.spec import Override, Pack, Place, Rule, Runbook, Settings, Symptom
from brain.marked_yaml import Diagnostic, Document, Key, read

_SYMPTOM, _RULE, _RUNBOOK = TypeAdapter(Symptom), TypeAdapter(Rule), TypeAdapter(Runbook)
_OVERRIDE = TypeAdapter(Override)
_PACK = TypeAdapter(Pack)
CATALOG = "catalog"  # below the rules: what the vendor says of its codes, compiled into agent/contract
_SECTIONS: dict[str, tuple[TypeAdapter[Any], type]] = {
    "symptoms": (_SYMPTOM, Symptom),
    "rules": (_RULE, Rule),
    "overrides": (_OVERRIDE, Override),
}


@dataclass(slots=True, kw_only=True)
class Sources:
    """The parts of a pack that could be read, where each of them is, and what is wrong."""

    symptoms: list[Symptom] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    overrides: list[Override] = field(default_factory=list)
    runbooks: list[Runbook] = field(default_factory=list)
    errors: list[Diagnostic] = field(default_factory=list)
    # Old names: they are still read
    warnings: list[Diagnostic] = field(default_factory=list)
    # ("rules", name) -> file and key
    origins: dict[tuple[str, str], tuple[Document, Key]] = field(default_factory=dict)

    def locate(self, key: Key, text: str) -> Diagnostic:
        """Returns an error that was found later, e.g. at ("rules", "gpu-lost", "runbook"), with file and line."""
        document, base = self.origins[str(key[0]), str(key[1])]
        here = (*base, *key[2:])
        shown = key if base else key[2:]
        return Diagnostic(
            file=document.file, line=document.line(here), key=".".join(map(str, shown)), text=text
        )


def load(
    rules_dir: Path,
    runbooks_dir: Path,
    settings: Settings | None = None,
    places: Mapping[str, Place] | None = None,
) -> Pack:
    """Returns the pack in two folders; ConfigError with every error that was found."""
    return assemble(scan(rules_dir, runbooks_dir), settings, places)


def assemble(
    sources: Sources, settings: Settings | None = None, places: Mapping[str, Place] | None = None
) -> Pack:
    """Returns the pack that was read, with its version; ConfigError with every error that was found."""
    if sources.errors:
        raise ConfigError("\n".join(map(str, sources.errors)))
    pack = Pack(
        version="",
        symptoms=tuple(sources.symptoms),
        rules=tuple(sources.rules),
        overrides=tuple(sources.overrides),
        runbooks=tuple(sources.runbooks),
        settings=settings or Settings(),
        places=dict(places or {}),
    )
    return replace(pack, version=digest(pack))


def digest(pack: Pack) -> str:
    """Returns the version of a pack: short, and the same for the same content in the same order."""
    content = orjson.dumps(dump(replace(pack, version="")), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()[:12]


def dump(pack: Pack) -> dict[str, Any]:
    """Returns the pack as a dict that JSON can hold. A setting that an earlier version does not know is left out where it says
    nothing: a brain of that version reads the others.
    """
    raw = dict(_PACK.dump_python(pack, mode="json"))
    if raw["settings"]["tickets"] is None:
        del raw["settings"]["tickets"]
    return raw


def parse(raw: Any) -> Pack:
    """Returns the pack that `dump` made; ContractError when it is not one."""
    try:
        content = orjson.loads(orjson.dumps(raw))
        renamed.rename_in_pack(content)
        return _PACK.validate_json(orjson.dumps(content), strict=True)
    except (ValidationError, TypeError) as error:
        raise ContractError(f"not a pack of rules: {str(error)[:300]}") from error


def scan(rules_dir: Path, runbooks_dir: Path) -> Sources:
    """Reads all files of both folders, in the order of their names."""
    sources = Sources()
    for path in _files(rules_dir, sources):
        document = read(path, f"{rules_dir.name}/{path.name}")
        _rules_file(sources, document)
        sources.errors.extend(sorted(document.errors, key=lambda error: error.line))
    for path in _files(runbooks_dir, sources):
        document = read(path, f"{runbooks_dir.name}/{path.name}")
        _runbook_file(sources, document, path.stem)
        sources.errors.extend(sorted(document.errors, key=lambda error: error.line))
    return sources


def _files(folder: Path, sources: Sources) -> Iterator[Path]:
    if not folder.is_dir():
        sources.errors.append(Diagnostic(file=str(folder), line=0, key="", text="there is no such folder"))
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue  # an editor's lock or copy, a mounted ConfigMap's `..data`
        if path.suffix == ".yml":
            sources.errors.append(
                Diagnostic(
                    file=f"{folder.name}/{path.name}", line=1, key="", text="name it .yaml: .yml is not read"
                )
            )
        elif path.is_dir() and path.name != CATALOG:
            lost = sorted(path.rglob("*.y*ml"))
            sources.errors.extend(
                Diagnostic(
                    file=f"{folder.name}/{inner.relative_to(folder)}",
                    line=1,
                    key="",
                    text=f"move it to {folder.name}/: folders below are not read",
                )
                for inner in lost
            )
        elif path.suffix == ".yaml":
            yield path


def _rules_file(sources: Sources, document: Document) -> None:
    if document.value is None:
        return
    if not isinstance(document.value, dict):
        document.error((), "must be a mapping with `symptoms` and `rules`")
        return
    for section, bodies in document.value.items():
        if section not in _SECTIONS:
            document.error((section,), "unknown key (have: symptoms, rules, overrides)")
        elif not isinstance(bodies, dict):
            document.error((section,), "must be a mapping of name to body")
        else:
            for name, body in bodies.items():
                _named(sources, document, section, name, body)


def _named(sources: Sources, document: Document, section: str, name: str, body: Any) -> None:
    key: Key = (section, name)
    if isinstance(body, dict) and "name" in body:
        document.error((*key, "name"), "unknown key: the name is the key of the mapping")
        return
    _rename(sources, document, key, body, renamed.BODIES[section])
    value = _validate(document, key, body, name, *_SECTIONS[section])
    if value is not None and _is_new(sources, document, section, name, key):
        getattr(sources, section).append(value)


def _runbook_file(sources: Sources, document: Document, stem: str) -> None:
    if document.errors and document.value is None:
        return
    body = document.value
    name = body.get("name", stem) if isinstance(body, dict) else stem
    _rename(sources, document, (), body, renamed.BODIES["runbooks"])
    value = _validate(document, (), body, name, _RUNBOOK, Runbook)
    if value is not None and _is_new(sources, document, "runbooks", value.name, ()):
        sources.runbooks.append(value)


def _rename(sources: Sources, document: Document, key: Key, body: Any, renaming: renamed.Renaming) -> None:
    def warn(where: renamed.Where, text: str) -> None:
        here = (*key, *where)
        shown = ".".join(map(str, here))
        sources.warnings.append(
            Diagnostic(file=document.file, line=document.line(here), key=shown, text=text)
        )

    renamed.rename(body, renaming, warn)


def _is_new(sources: Sources, document: Document, section: str, name: str, key: Key) -> bool:
    if (other := sources.origins.get((section, name))) is not None:
        where = f"{other[0].file}:{other[0].line(other[1])}"
        document.error(key, f"{section[:-1]} {name!r} exists already ({where})")
        return False
    sources.origins[section, name] = (document, key)
    return True


def _validate(
    document: Document, key: Key, body: Any, name: Any, adapter: TypeAdapter[Any], kind: type
) -> Any:
    if not isinstance(body, dict):
        document.error(key, "must be a mapping")
        return None
    try:
        # Through JSON, where strict means: a list becomes a tuple and a string an enum, but no string a number.
        return adapter.validate_json(orjson.dumps(body | {"name": name}), strict=True)
    except ValidationError as error:
        for where, text in diagnostics.explain(error, kind):
            document.error((*key, *where), text)
    except TypeError as error:  # an integer of more than 64 bits
        document.error(key, f"holds a value that JSON cannot: {error}")
    return None
