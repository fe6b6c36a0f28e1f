"""Kernel lines by area, and the only way from a record to facts: `LineReader` (all but XIDs), `KernelReader` (all).

A new area is one file beside this one and one line in `areas`.
"""

from collections.abc import Mapping

from agent.contract.lines.amdgpu import AmdgpuArea
from agent.contract.lines.ascend import AscendArea
from agent.contract.lines.base import LIMIT, Area
from agent.contract.lines.bond import BondArea
from agent.contract.lines.crash import CrashArea
from agent.contract.lines.disk import DiskArea
from agent.contract.lines.ethernet import EthernetArea
from agent.contract.lines.fabric_manager import FabricManagerArea
from agent.contract.lines.file_server import FileServerArea
from agent.contract.lines.filesystem import FilesystemArea
from agent.contract.lines.limits import LimitsArea
from agent.contract.lines.memory import MemoryArea
from agent.contract.lines.nic import NicArea
from agent.contract.lines.nvidia import NvidiaArea
from agent.contract.lines.oom import OomArea
from agent.contract.lines.pcie import NO_DRIVERS, PcieArea
from agent.contract.lines.stall import StallArea
from agent.contract.lines.sxid import SxidArea
from agent.contract.lines.thermal import ThermalArea
from agent.contract.messages import UnsentEvent
from agent.contract.xid_facts import XidReader


def areas(*, kept: bool = False, drivers: Mapping[str, str] = NO_DRIVERS) -> tuple[Area, ...]:
    """Fresh ones, in the order in which they are tried; the first that recognises a line reads it.

    `kept`: the lines are of a log that somebody kept, and nothing else tells of its machine. `drivers`: see PcieArea.
    """
    only_kept: tuple[Area, ...] = (EthernetArea(), BondArea()) if kept else ()
    return (
        SxidArea(),
        NvidiaArea(),
        AmdgpuArea(),
        AscendArea(),
        NicArea(),
        PcieArea(drivers),
        MemoryArea(),
        OomArea(),
        DiskArea(),
        FilesystemArea(),
        FileServerArea(),
        StallArea(),
        CrashArea(),
        FabricManagerArea(),
        LimitsArea(),
        ThermalArea(),
        *only_kept,
    )


class LineReader:
    """Reads every kernel line but XIDs. An ordinary line takes a few microseconds."""

    def __init__(self, *, kept: bool = False, drivers: Mapping[str, str] = NO_DRIVERS) -> None:
        """See `areas`."""
        self._areas = areas(kept=kept, drivers=drivers)
        # Plain substrings: the fastest test for a line that belongs to no area.
        self._markers = tuple((marker, area) for area in self._areas for marker in area.markers)

    def read(self, text: str) -> list[UnsentEvent]:
        """The fact in one record, or none. Its age is 0."""
        text = text[:LIMIT]
        tried: Area | None = None
        for marker, area in self._markers:
            if marker in text and area is not tried:
                tried = area
                if (found := area.read(text)) is not None:
                    return [found]
        return []


class KernelReader:
    """Reads every kernel line."""

    def __init__(
        self, *, driver: str = "", kept: bool = False, drivers: Mapping[str, str] = NO_DRIVERS
    ) -> None:
        """`driver`: see XidReader; `kept`, `drivers`: see `areas`."""
        self._xids = XidReader(driver=driver)
        self._lines = LineReader(kept=kept, drivers=drivers)

    def read(self, text: str) -> list[UnsentEvent]:
        """The facts in one record. Ages are 0."""
        return self._xids.read(text) or self._lines.read(text)
