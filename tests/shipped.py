"""The rules and runbooks that gpuward comes with. Their files are read once in each process: it takes half a second."""

import copy
import shutil
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path

from brain.adapters import pack as packs
from brain.core.pack.spec import Pack, Place, Settings

ROOT = Path(__file__).resolve().parents[1]
OURS = (ROOT / "rules", ROOT / "runbooks")
scan = packs.scan


def shipped_pack(settings: Settings | None = None, places: Mapping[str, Place] | None = None) -> Pack:
    """The pack, with the settings and places of a site."""
    return packs.assemble(_sources(), settings, places)


@cache
def _sources() -> packs.Sources:
    return scan(*OURS)


def scan_once(rules_dir: Path, runbooks_dir: Path) -> packs.Sources:
    """As `packs.scan`, which it stands for in all tests (conftest.py): our own folders are read once, all others each time."""
    if (rules_dir, runbooks_dir) != OURS:
        return scan(rules_dir, runbooks_dir)
    ours = _sources()
    return packs.Sources(**{field.name: copy.copy(getattr(ours, field.name)) for field in fields(ours)})


def small_pack(folder: Path) -> None:
    """Writes one file of our rules, that of bonds, with the runbooks that it leads to, into `rules` and `runbooks` of the folder:
    for tests that are about files, not about what we ship. To prove all takes some seconds.
    """
    for part, names in {"rules": ("bond",), "runbooks": ("restore-bond", "keep-evidence")}.items():
        (folder / part).mkdir()
        for name in names:
            shutil.copy(ROOT / part / f"{name}.yaml", folder / part)
