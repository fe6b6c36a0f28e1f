"""The log of NVIDIA's fabric manager, on machines with NVSwitches: its lines are read like kernel lines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.samples import Line, Sample
from agent.contract.kernel_text import USER
from agent.contract.lines.fabric_manager import FabricManagerArea
from agent.host import Host
from agent.options import option
from agent.sources.base import Source, SourceSetup
from agent.sources.log_files import LogFiles
from agent.sources.tail import Tail

NVSWITCHES = "/dev/nvidia-nvswitchctl"  # made by the driver where there are NVSwitches


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricManagerSourceOptions:
    """What an operator can set."""

    fabric_manager_log: str = option(
        "/var/log/fabricmanager.log",
        "log of NVIDIA's fabric manager, followed where there are NVSwitches; empty: not followed",
    )


class FabricManagerSource(LogFiles, Source):
    """Emits Line for those lines of the log that may mean something; follows it like a job's log."""

    name: ClassVar[str] = "fabric_manager"
    needs: ClassVar[str] = "read access to the fabric manager's log (only on machines with NVSwitches)"
    options: ClassVar[tuple[type[Any], ...]] = (FabricManagerSourceOptions,)

    def __init__(
        self, host: Host, *, path: str, poll_s: float = 1.0, checkpoints: Mapping[str, str] | None = None
    ) -> None:
        """`path`: absolute; a file that is created later is followed from its beginning."""
        super().__init__(
            host,
            name=self.name,
            globs=(path,),
            poll_s=poll_s,
            markers=FabricManagerArea.markers,
            checkpoints=checkpoints,
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where there are neither NVSwitches nor such a log."""
        host, log = setup.host, setup.options(FabricManagerSourceOptions).fabric_manager_log
        if not log or not (host.path(NVSWITCHES).exists() or host.path(log).exists()):
            return None
        return cls(host, path=log, checkpoints=setup.checkpoints(f"{cls.name} "))

    def _sample(self, tail: Tail, line: bytes) -> Sample:
        text = line.decode(errors="replace").rstrip("\r")
        return Line(text=text, mono_s=self._written_s(tail), facility=USER)
