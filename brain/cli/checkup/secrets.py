"""Which files of an installation are secrets: those that the configuration names, and those that the brain has made."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from brain.adapters.keys import beside
from brain.adapters.operator_mode import ACCOUNT_FILE
from brain.config import PLUG_INS, BrainConfig
from brain.options import FOLDER

_PUBLIC = ("ca_file", "tls_cert_file")
_MADE_WHEN_MISSING = ("signing_key_file", "console.tokens_file")
_OF_THE_CELL = ("ca.key", "server.key", "next-ca.key", ACCOUNT_FILE, "brain.nk")
_KEPT = ("registry.json", "trust.json", "void.json", "journal.json")  # of the cell, and no keys


def secret_files(config: BrainConfig) -> Iterator[tuple[str, Path]]:
    """Yields the key of brain.toml, and the file; an empty key for a file that need not be there."""
    seen = set()
    for key, path in (*named_files(config, public=False), *_made(config)):
        if path not in seen:
            seen.add(path)
            yield "" if key in _MADE_WHEN_MISSING else key, path


def named_files(config: BrainConfig, *, public: bool) -> Iterator[tuple[str, Path]]:
    """Yields the files that the configuration names: certificates (`public`), or secrets."""
    yield from ((key, path) for key, path in _of_model(config, "") if _is_public(key) is public)
    for plug_in in PLUG_INS:
        tables: Mapping[str, Mapping[str, Any]] = getattr(config, plug_in)
        for name, table in tables.items():
            for key, value in table.items():
                if key.endswith("_file") and isinstance(value, str) and _is_public(key) is public:
                    yield f"{plug_in}.{name}.{key}", Path(table.get(FOLDER, ".")) / value


def _of_model(model: BaseModel, before: str) -> Iterator[tuple[str, Path]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _of_model(value, f"{before}{name}.")
        elif isinstance(value, tuple):
            for number, one in enumerate(value):
                if isinstance(one, BaseModel):
                    yield from _of_model(one, f"{before}{name}.{number}.")
        elif isinstance(value, Path) and name.endswith("_file"):
            yield f"{before}{name}", value


def _is_public(key: str) -> bool:
    return key.rpartition(".")[2] in _PUBLIC


def _made(config: BrainConfig) -> Iterator[tuple[str, Path]]:
    own = [config.signing_key, config.data_dir / "tokens.json"]
    own += [config.cell_dir / name for name in _OF_THE_CELL]
    if config.brain_seed is not None:
        own.append(config.brain_seed)
    for path in own:
        yield "", path
        yield from (("", beside(path, what)) for what in ("next", "old"))
    yield from (("", config.cell_dir / name) for name in _KEPT)
