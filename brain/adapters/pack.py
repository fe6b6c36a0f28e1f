"""Rules and runbooks from files: read, checked against brain/core/spec.py, all errors in one message.

    rules/<area>.yaml        symptoms: {<name>: {...}}   rules: {<name>: {...}}   overrides: {<name>: {...}}
    runbooks/<name>.yaml     one runbook, its name by default that of the file

Each error names file, line and key. What the types cannot say (does the runbook exist?) is for
brain/core/lint.py.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError, ContractError
from brain.adapters import complaints
from brain.adapters.marked_yaml import Document, Fault, Key, read
from brain.core.spec import Override, Pack, Place, Rule, Runbook, Settings, Symptom

_SYMPTOM, _RULE, _RUNBOOK = TypeAdapter(Symptom), TypeAdapter(Rule), TypeAdapter(Runbook)
_OVERRIDE = TypeAdapter(Override)
_PACK = TypeAdapter(Pack)
_SECTIONS: dict[str, tuple[TypeAdapter[Any], type]] = {
    "symptoms": (_SYMPTOM, Symptom),
    "rules": (_RULE, Rule),
    "overrides": (_OVERRIDE, Override),
}


@dataclass(slots=True, kw_only=True)
class Reading:
    """A pack as far as it could be read, what is wrong with it, and where its parts stand."""

    symptoms: list[Symptom] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    overrides: list[Override] = field(default_factory=list)
    runbooks: list[Runbook] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    places: dict[tuple[str, str], tuple[Document, Key]] = field(
        default_factory=dict
    )  # ("rules", name) -> where

    def locate(self, key: Key, text: str) -> Fault:
        """An error that was found later, e.g. at ("rules", "gpu-lost", "runbook")."""
        document, base = self.places[str(key[0]), str(key[1])]
        here = (*base, *key[2:])
        shown = key if base else key[2:]
        return Fault(file=document.file, line=document.line(here), key=".".join(map(str, shown)), text=text)


def load(
    rules_dir: Path,
    runbooks_dir: Path,
    settings: Settings | None = None,
    places: Mapping[str, Place] | None = None,
) -> Pack:
    """The pack in two folders; ConfigError with every error that was found."""
    reading = scan(rules_dir, runbooks_dir)
    if reading.faults:
        raise ConfigError("\n".join(map(str, reading.faults)))
    return assemble(reading, settings, places)


def assemble(
    reading: Reading, settings: Settings | None = None, places: Mapping[str, Place] | None = None
) -> Pack:
    """A pack of what was read, with its version."""
    pack = Pack(
        version="",
        symptoms=tuple(reading.symptoms),
        rules=tuple(reading.rules),
        overrides=tuple(reading.overrides),
        runbooks=tuple(reading.runbooks),
        settings=settings or Settings(),
        places=dict(places or {}),
    )
    return replace(pack, version=digest(pack))


def digest(pack: Pack) -> str:
    """The version of a pack: short, and the same for the same content in the same order."""
    content = orjson.dumps(dump(replace(pack, version="")), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()[:12]


def dump(pack: Pack) -> dict[str, Any]:
    """A JSON-ready dict."""
    return dict(_PACK.dump_python(pack, mode="json"))


def parse(raw: Any) -> Pack:
    """The pack that `dump` made; ContractError when it is none."""
    try:
        return _PACK.validate_json(orjson.dumps(raw), strict=True)
    except (ValidationError, TypeError) as error:
        raise ContractError(f"not a pack of rules: {str(error)[:300]}") from error


def scan(rules_dir: Path, runbooks_dir: Path) -> Reading:
    """Reads all files of both folders, in the order of their names."""
    reading = Reading()
    for path in _files(rules_dir, reading):
        document = read(path, f"{rules_dir.name}/{path.name}")
        _rules_file(reading, document)
        reading.faults.extend(sorted(document.faults, key=lambda fault: fault.line))
    for path in _files(runbooks_dir, reading):
        document = read(path, f"{runbooks_dir.name}/{path.name}")
        _runbook_file(reading, document, path.stem)
        reading.faults.extend(sorted(document.faults, key=lambda fault: fault.line))
    return reading


def _files(folder: Path, reading: Reading) -> Iterator[Path]:
    if not folder.is_dir():
        reading.faults.append(Fault(file=str(folder), line=1, key="", text="there is no such folder"))
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == ".yml":
            reading.faults.append(
                Fault(
                    file=f"{folder.name}/{path.name}", line=1, key="", text="name it .yaml: .yml is not read"
                )
            )
        elif path.suffix == ".yaml":
            yield path


def _rules_file(reading: Reading, document: Document) -> None:
    if document.value is None:
        return
    if not isinstance(document.value, dict):
        document.fault((), "must be a mapping with `symptoms` and `rules`")
        return
    for section, bodies in document.value.items():
        if section not in _SECTIONS:
            document.fault((section,), "unknown key (have: symptoms, rules, overrides)")
        elif not isinstance(bodies, dict):
            document.fault((section,), "must be a mapping of name to body")
        else:
            for name, body in bodies.items():
                _named(reading, document, section, name, body)


def _named(reading: Reading, document: Document, section: str, name: str, body: Any) -> None:
    key: Key = (section, name)
    if isinstance(body, dict) and "name" in body:
        document.fault((*key, "name"), "unknown key: the name is the key of the mapping")
        return
    value = _validate(document, key, body, name, *_SECTIONS[section])
    if value is not None and _is_new(reading, document, section, name, key):
        getattr(reading, section).append(value)


def _runbook_file(reading: Reading, document: Document, stem: str) -> None:
    if document.faults and document.value is None:
        return
    body = document.value
    name = body.get("name", stem) if isinstance(body, dict) else stem
    value = _validate(document, (), body, name, _RUNBOOK, Runbook)
    if value is not None and _is_new(reading, document, "runbooks", value.name, ()):
        reading.runbooks.append(value)


def _is_new(reading: Reading, document: Document, section: str, name: str, key: Key) -> bool:
    if (other := reading.places.get((section, name))) is not None:
        where = f"{other[0].file}:{other[0].line(other[1])}"
        document.fault(key, f"{section[:-1]} {name!r} exists already ({where})")
        return False
    reading.places[section, name] = (document, key)
    return True


def _validate(
    document: Document, key: Key, body: Any, name: Any, adapter: TypeAdapter[Any], kind: type
) -> Any:
    if not isinstance(body, dict):
        document.fault(key, "must be a mapping")
        return None
    try:
        # By way of JSON, where strict means: lists make tuples, texts make enums, and no text makes a number.
        return adapter.validate_json(orjson.dumps(body | {"name": name}), strict=True)
    except ValidationError as error:
        for where, text in complaints.of(error, kind):
            document.fault((*key, *where), text)
    except TypeError as error:  # a whole number of more than 64 bits
        document.fault(key, f"holds a value that JSON cannot: {error}")
    return None
