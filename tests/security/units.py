"""The units of deploy/systemd as the tests read them."""

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "deploy/systemd"
BRAIN, AGENT = FOLDER / "gpuward.service", FOLDER / "gpuward-agent.service"
HANDS = FOLDER / "gpuward-agent.service.d/hands.conf"


def settings(unit: Path) -> Mapping[str, str]:
    """Key → value of a unit; values of a key that stands there several times are joined, as systemd does with lists."""
    found: dict[str, str] = {}
    for line in unit.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[key] = f"{found[key]} {value}" if key in found else value
    return found


def comments(unit: Path) -> str:
    """What the unit says to people."""
    return "\n".join(line for line in unit.read_text().splitlines() if line.startswith("#"))
