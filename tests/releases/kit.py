"""Reads what `python -m tests.releases` has kept, and installs a released version beside this one."""

import lzma
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from brain.core.state import State
from tests.tars import unpack

FOLDER = Path(__file__).parents[1] / "fixtures" / "releases"
CELL = "c"
KEPT = "log-of-a-release"  # the identity of the log of each snapshot
ENTRY = {"gpuward": "brain.__main__", "gpuward-agent": "agent.__main__"}

Logged = tuple[float, str, bytes]  # (time, subject, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """A state as a released version wrote it."""

    name: str
    snapshot: bytes
    summary: dict[str, object]
    before: Sequence[Logged]  # the log up to there
    after: Sequence[Logged]


def versions() -> list[str]:
    """All that were released, oldest first."""
    return sorted((one.name for one in FOLDER.iterdir()), key=lambda text: [int(n) for n in text.split(".")])


def states(version: str) -> list[KeptState]:
    """What is kept of a version."""
    found = []
    for path in sorted((FOLDER / version).glob("*.json.xz")):
        raw = orjson.loads(lzma.decompress(path.read_bytes()))
        found.append(
            KeptState(
                name=path.name,
                snapshot=raw["snapshot"].encode(),
                summary=raw["summary"],
                before=[(now, subject, body.encode()) for now, subject, body in raw["before"]],
                after=[(now, subject, body.encode()) for now, subject, body in raw["log"]],
            )
        )
    return found


def summary(state: State) -> dict[str, object]:
    """What an operator would miss if it were forgotten."""
    return {
        "incidents": {one.id: [one.cause, one.scope, one.state.value] for one in state.incidents.values()},
        "runs": {one.id: one.state.value for one in state.runs.values()},
        "holds": {key: [hold.scope, hold.who, hold.why] for key, hold in state.holds.items()},
        "drains": {node: sorted(owners) for node, owners in state.drains.items()},
        "modes": [[one.runbook, one.mode.value] for one in state.modes],
        "epoch": state.epoch,
    }


def install(version: str, folder: Path) -> Path:
    """Unpacks a released version, to run with this environment's libraries; the folder of its two programs."""
    unpack(lzma.decompress((FOLDER / version / "source.tar.xz").read_bytes()), folder / "source")
    programs = folder / "bin"
    programs.mkdir()
    for name, module in ENTRY.items():
        program = programs / name
        # -P: not the folder in which it is started.
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH="{folder}/source" exec "{sys.executable}" -P -m {module} "$@"\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return programs
