"""The power limits of GPUs that gpuward itself has lowered, on disk until they are restored: a debt that outlives the agent.

A limit does not outlive a boot; neither does its entry.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from agent.shared import files

FILE = "power_caps.json"  # in the agent's data_dir
SAME_MW = 1000  # some cards round to watts


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCap:
    """One GPU's."""

    bdf: str
    uuid: str
    # As we set it, and as it was before, mW.
    cap_mw: int
    before_mw: int
    # The boot in which it was set.
    boot: str


class PowerCaps:
    """Reads and writes the file. Blocks."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[PowerCap]:
        """All entries, also of other boots; none where the file is missing or damaged."""
        found = []
        raw = files.read_json(self._path)
        for one in raw if isinstance(raw, list) else []:
            try:
                cap = PowerCap(**one)
            except TypeError:
                continue
            if isinstance(cap.bdf, str) and isinstance(cap.cap_mw, int) and isinstance(cap.before_mw, int):
                found.append(cap)
        return found

    def remember(self, cap: PowerCap) -> None:
        """Adds an entry, or replaces that of the same GPU; on the disk when this returns. OSError: it is not."""
        self._write([*(one for one in self.read() if one.bdf != cap.bdf), cap])

    def forget(self, bdf: str) -> None:
        """Removes the entry of a GPU. OSError: it is still there."""
        left = [one for one in self.read() if one.bdf != bdf]
        if left or self._path.exists():
            self._write(left)

    def _write(self, caps: list[PowerCap]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write_json(self._path, [asdict(one) for one in caps], sync=True)
