"""The log of NVIDIA's fabric manager, on machines with NVSwitches: its lines are read like kernel lines."""

from collections.abc import Mapping
from typing import ClassVar

from agent.collectors.readings import Line, Reading
from agent.contract.kernel_text import USER
from agent.contract.lines.fabric_manager import FabricManagerArea
from agent.host import Host
from agent.sources.joblog import JobLogSource
from agent.sources.tail import Tail


class FabricManagerSource(JobLogSource):
    """Emits Line for the lines of the log that may mean something; follows it like a job's log."""

    name: ClassVar[str] = "fabric_manager"
    needs: ClassVar[str] = "read access to the fabric manager's log (only on machines with NVSwitches)"

    def __init__(
        self, host: Host, *, path: str, poll_s: float = 1.0, marks: Mapping[str, str] | None = None
    ) -> None:
        """`path`: absolute; a file that comes later is followed from its beginning."""
        super().__init__(host, globs=(path,), poll_s=poll_s, markers=FabricManagerArea.marks, marks=marks)

    def _reading(self, tail: Tail, line: bytes) -> Reading:
        text = line.decode(errors="replace").rstrip("\r")
        return Line(text=text, mono_s=self._written_s(tail), facility=USER)
