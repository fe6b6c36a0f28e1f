"""The files of the corpus, which are the scenarios that gpuward comes with, and what of it is not yet judged right."""

import functools
from collections.abc import Collection, Mapping
from pathlib import Path

from brain.marked_yaml import read
from simulations.scenarios import load as scenarios
from simulations.scenarios.files import FOLDER
from simulations.scenarios.spec import Class

OPEN = Path(__file__).parent / "open.yaml"


@functools.cache
def load(path: Path) -> Class:
    """One file of the corpus, read once in a process."""
    return scenarios.load(path)


def files() -> list[Path]:
    """The files of stories."""
    return sorted(FOLDER.glob("*.yaml"))


@functools.cache
def still_open() -> Mapping[str, str]:
    """Stories that are not yet judged right -> why."""
    value = read(OPEN, OPEN.name).value
    return {str(name): str(why) for name, why in (value or {}).items()}


def close(names: Collection[str]) -> None:
    """Takes stories that are judged right out of `open.yaml`."""
    lines = OPEN.read_text().splitlines(keepends=True)
    OPEN.write_text("".join(line for line in lines if line.partition(":")[0] not in names))
    still_open.cache_clear()
