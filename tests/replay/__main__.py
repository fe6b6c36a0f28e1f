"""Makes the recordings: `python -m tests.replay capture` runs the tests and keeps their logs, `python -m tests.replay again`
plays the kept logs once more and keeps what comes of them now: for a change that is meant to change it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.replay import recording
from tests.replay.chance import Chance

RANDOM = {1: 2500, 2: 2500}  # seed -> inputs
_GROUPS = {"test_drills": "drills", "test_examples": "examples"}


def capture() -> None:
    """The tests' logs, and the random ones."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "logs.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.replay.capture",
            "-q",
            "-p",
            "no:cacheprovider",
        ]
        command += ["tests/brain", "tests/simulations", "-m", "not root and not component"]
        subprocess.run(command, check=False, env=os.environ | {"GPUWARD_CAPTURE": str(file)})
        body = json.loads(file.read_text())
    packs: dict[str, Any] = body["packs"]
    groups: dict[str, list[dict[str, Any]]] = {"drills": [], "examples": [], "stories": [], "random": []}
    for entry in body["logs"]:
        group = next((group for part, group in _GROUPS.items() if part in entry["name"]), "stories")
        if entry["log"]:
            groups[group].append(entry)
    for seed, inputs in RANDOM.items():
        log = [recording.message(given, now, packs) for given, now in Chance(seed, inputs).play()]
        groups["random"].append({"name": f"seed {seed}", "observe_all": False, "log": log})
    for group, entries in groups.items():
        seen: dict[str, int] = {}
        for entry in entries:
            seen[entry["name"]] = seen.get(entry["name"], 0) + 1
            entry["name"] += f" #{seen[entry['name']]}"
        _write(group, entries, packs)


def again() -> None:
    """What comes of the kept logs now."""
    for file in sorted(recording.FOLDER.glob("*.json.xz")):
        group = file.name.partition(".")[0]
        found, packs = recording.load(group)
        _write(
            group,
            [{"name": one.name, "observe_all": one.observe_all, "log": one.log} for one in found],
            packs,
        )


def _write(group: str, entries: list[dict[str, Any]], packs: dict[str, Any]) -> None:
    player = recording.Player(packs)
    found = [player.play(entry["name"], entry["log"], observe_all=entry["observe_all"]) for entry in entries]
    player.close()
    recording.save(group, found, packs)
    inputs = sum(len(one.log) for one in found)
    print(
        f"{group}: {len(found)} logs, {inputs} inputs, {(recording.FOLDER / f'{group}.json.xz').stat().st_size} bytes"
    )


if __name__ == "__main__":
    {"capture": capture, "again": again}[sys.argv[1]]()
