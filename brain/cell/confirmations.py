"""Which node trusts which announcement: the leading brain writes it down, and `gpuward cell show` reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from agent.shared import files

MOST_AHEAD = (
    10_000  # announcements: beyond it a node's word moves no number of ours (years of daily rotations)
)


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


def ahead(nodes: Mapping[str, Confirmed], serial: int) -> dict[str, int]:
    """Node -> the announcement that it trusts, of those that were heard and trust a newer one than `serial`, our newest."""
    return {name: one.serial for name, one in sorted(nodes.items()) if one.live and one.serial > serial}


def highest(nodes: Mapping[str, Confirmed], serial: int) -> int:
    """The highest announcement that a node may have, `serial` at least: ours were perhaps put back from a backup."""
    believed = (one.serial for one in nodes.values() if one.serial <= serial + MOST_AHEAD)
    return max(serial, *believed, serial)


def is_behind(newer: int, heard: int) -> bool:
    """Do so many nodes, of so many that are heard, show that our keys are older than theirs? One may lie: unless it is alone."""
    return newer > 1 or newer == heard == 1
