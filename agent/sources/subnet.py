"""Does the subnet manager answer? `sminfo` of infiniband-diags queries each manager that a port knows.

A frozen manager changes nothing under /sys: only a query shows it.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from agent.collectors.samples import Sample, SmAnswer
from agent.config import IB_ROOT
from agent.contract import subnet
from agent.host import Host
from agent.options import option
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

TOOL = "sminfo"
_MAD_MS = "500"  # of one query; sminfo sends three
_TOOL_S = 10.0
_MOST_BYTES = 4096
# What it says when it cannot open the port: that says nothing about the manager.
_CLOSED = b"ailed to open"
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetSourceOptions:
    """What an operator can set."""

    sm_interval_s: float = option(
        30.0,
        "pause between queries (sminfo) whether the subnet manager answers; 0: it is not queried",
        unit="s",
        least=0,
    )


class SubnetSource(Source):
    """Emits SmAnswer for one active port of each manager, after each pause.

    `tools`: folder of infiniband-diags; `root`: folder of the devices.
    """

    name: ClassVar[str] = "subnet"
    needs: ClassVar[str] = "sminfo (infiniband-diags) and an InfiniBand port; left out without them"
    options: ClassVar[tuple[type[Any], ...]] = (SubnetSourceOptions,)

    def __init__(self, host: Host, options: SubnetSourceOptions, *, tools: Path, root: str = IB_ROOT) -> None:
        self._host = host
        self._sminfo = str(tools / TOOL)
        self._root = root
        self._poller = Poller(self._poll, what=self.name, period_s=options.sm_interval_s, hang_s=8 * _TOOL_S)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None on a recorded machine, without the tool, or where it is not asked for."""
        options, config = setup.options(SubnetSourceOptions), setup.config
        if not (setup.host.live and options.sm_interval_s and (config.ib_tools / TOOL).exists()):
            return None
        return cls(setup.host, options, tools=config.ib_tools, root=config.ib_root)

    async def run(self, emit: Emit) -> None:
        """Query until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """Query once."""
        for sample in self._poll():
            emit(sample)

    def _poll(self) -> list[Sample]:
        # (subnet prefix, LID of the manager) → the port from which it is queried.
        managers: dict[tuple[str, int], tuple[str, int]] = {}
        for device in self._host.listdir(self._root):
            for port in self._host.listdir(f"{self._root}/{device}/ports"):
                folder = f"{self._root}/{device}/ports/{port}"
                sm_lid = _number(self._host.read(f"{folder}/sm_lid"))
                active = "ACTIVE" in self._host.read(f"{folder}/state")
                if not sm_lid or not active or self._host.read(f"{folder}/link_layer") == "Ethernet":
                    continue
                prefix = self._host.read(f"{folder}/gids/0")[:19]  # two fabrics may use the same LIDs
                managers.setdefault((prefix, sm_lid), (device, _number(port)))
        return [self._query(device, port, sm_lid) for (_, sm_lid), (device, port) in managers.items()]

    def _query(self, device: str, port: int, sm_lid: int) -> Sample:
        argv = [self._sminfo, "-C", device, "-P", str(port), "-t", _MAD_MS]
        try:
            done = subprocess.run(
                argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TOOL_S, check=False, env=_ENV
            )
            if _CLOSED in done.stderr:
                raise PermissionError(
                    f"{TOOL} cannot open {device}: it needs read and write on /dev/infiniband/umad*"
                )
            out = done.stdout[:_MOST_BYTES].decode(errors="replace") if done.returncode == 0 else ""
        except subprocess.TimeoutExpired:
            out = ""
        answer = subnet.sminfo(out)
        return SmAnswer(
            device=device,
            port=port,
            sm_lid=sm_lid,
            state=answer.state if answer else "",
            mono_s=self._host.mono_s(),
        )


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0
