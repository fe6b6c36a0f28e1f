"""The rules and runbooks that gpuward comes with. Their files are read once in each process: it takes half a second."""

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
