"""The scenarios that gpuward comes with, by name, and those of a file."""

import functools
from collections.abc import Mapping
from pathlib import Path

from agent.contract.errors import ConfigError
from simulations.scenarios.load import load
from simulations.scenarios.spec import Class, Tale

FOLDER = Path(__file__).parent
SCHEMA = FOLDER / "schema.json"  # made by `make docs`


@functools.cache
def shipped() -> Mapping[str, Class]:
    """Name of a file, without its ending -> the scenarios of one class of causes."""
    return {path.stem: load(path) for path in sorted(FOLDER.glob("*.yaml"))}


def named(name: str) -> tuple[Tale, ...]:
    """The scenarios that a person names: one, a class of them, or all of a file (`*.yaml`); () where there is none of that name.

    ConfigError: the file cannot be read, or is wrong: each error with file, line and key.
    """
    if (found := shipped().get(name)) is not None:
        return found.stories
    return tuple(tale for one in shipped().values() for tale in one.stories if tale.name == name)


def of_file(path: Path) -> tuple[Tale, ...]:
    """The scenarios of a file."""
    return load(path).stories


def is_one(path: Path) -> bool:
    """Whether a YAML file has scenarios, and is no profile of a fleet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return any(line.startswith("stories:") for line in lines)
