"""Kernel lines by area, and the one way from a record to facts: `LineReader` (all but XIDs), `KernelReader` (all).

A new area is one file beside this one and one line in `areas`.
"""

from agent.contract.lines.base import LIMIT, Area
from agent.contract.lines.crash import CrashArea
from agent.contract.lines.disk import DiskArea
from agent.contract.lines.fabric_manager import FabricManagerArea
from agent.contract.lines.file_server import FileServerArea
from agent.contract.lines.filesystem import FilesystemArea
from agent.contract.lines.memory import MemoryArea
from agent.contract.lines.nic import NicArea
from agent.contract.lines.nvidia import NvidiaArea
from agent.contract.lines.oom import OomArea
from agent.contract.lines.pcie import PcieArea
from agent.contract.lines.stall import StallArea
from agent.contract.lines.sxid import SxidArea
from agent.contract.messages import Draft
from agent.contract.xid_facts import XidReader


def areas() -> tuple[Area, ...]:
    """Fresh ones, in the order in which they are asked; the first that knows a line answers."""
    return (
        SxidArea(),
        NvidiaArea(),
        NicArea(),
        PcieArea(),
        MemoryArea(),
        OomArea(),
        DiskArea(),
        FilesystemArea(),
        FileServerArea(),
        StallArea(),
        CrashArea(),
        FabricManagerArea(),
    )


class LineReader:
    """Everything that a kernel line may mean but XIDs. An ordinary line costs a few microseconds."""

    def __init__(self) -> None:
        self._areas = areas()
        # Plain substrings: the fastest test there is for a line that is nobody's.
        self._marks = tuple((mark, area) for area in self._areas for mark in area.marks)

    def read(self, text: str) -> list[Draft]:
        """The fact in one record, or none. Ages are left at 0."""
        text = text[:LIMIT]
        asked: Area | None = None
        for mark, area in self._marks:
            if mark in text and area is not asked:
                asked = area
                if (found := area.read(text)) is not None:
                    return [found]
        return []


class KernelReader:
    """Everything that a kernel line may mean."""

    def __init__(self, *, driver: str = "") -> None:
        """`driver`: see XidReader."""
        self._xids = XidReader(driver=driver)
        self._lines = LineReader()

    def read(self, text: str) -> list[Draft]:
        """The facts in one record. Ages are left at 0."""
        return self._xids.read(text) or self._lines.read(text)
