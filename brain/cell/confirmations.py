"""Which node trusts which announcement: the leading brain writes it down, and `gpuward cell show` reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from agent.shared import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What one node has said last."""

    serial: int
    # was it heard when this was written?
    live: bool


def write_confirmed(file: Path, nodes: Mapping[str, Confirmed]) -> None:
    """Replaces the file. OSError: it is as it was."""
    body = orjson.dumps({name: [one.serial, one.live] for name, one in sorted(nodes.items())})
    files.write(file, body, mode=0o640, like=file.parent)


def read_confirmed(file: Path) -> dict[str, Confirmed]:
    """Node -> what it has said; empty when there is no such file, or it is damaged: it is written again."""
    found = files.read_json(file)
    if not isinstance(found, dict):
        return {}
    return {
        name: Confirmed(serial=one[0], live=one[1])
        for name, one in found.items()
        if isinstance(one, list) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], bool)
    }
