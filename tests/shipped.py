"""The rules and runbooks that gpuward comes with. Their files are read once in each process: it takes half a second."""

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from brain.adapters import pack as packs
from brain.core.pack.spec import Pack, Place, Settings

ROOT = Path(__file__).resolve().parents[1]


def shipped_pack(settings: Settings | None = None, places: Mapping[str, Place] | None = None) -> Pack:
    """The pack, with the settings and places of a site."""
    return packs.assemble(_sources(), settings, places)


@cache
def _sources() -> packs.Sources:
    return packs.scan(ROOT / "rules", ROOT / "runbooks")


def small_pack(folder: Path) -> None:
    """Writes one file of our rules, that of bonds, with the runbooks that it leads to, into `rules` and `runbooks` of the folder:
    for tests that are about files, not about what we ship. To prove all takes some seconds.
    """
    for part, names in {"rules": ("bond",), "runbooks": ("restore-bond", "keep-evidence")}.items():
        (folder / part).mkdir()
        for name in names:
            shutil.copy(ROOT / part / f"{name}.yaml", folder / part)
