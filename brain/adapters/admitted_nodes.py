"""Which nodes the embedded NATS server lets in, on its disk: for a start at which the registry of the cell cannot be read."""

from collections.abc import Mapping
from pathlib import Path

from agent.shared import files


def write(folder: Path, nodes: Mapping[str, str]) -> None:
    """Node -> its public NKEY. OSError: it is as it was."""
    files.write_json(folder / "nodes.json", dict(sorted(nodes.items())))


def read(folder: Path) -> dict[str, str]:
    """What was written last; nothing when there is no such file, or it is damaged."""
    found = files.read_json(folder / "nodes.json")
    if not isinstance(found, dict):
        return {}
    return {name: public for name, public in found.items() if isinstance(public, str)}
