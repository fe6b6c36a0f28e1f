"""Does the subnet manager answer? Asked by `sminfo` of infiniband-diags (a query) for each manager that a port knows.

A frozen manager changes nothing under /sys: only a question shows it.
"""

import subprocess
from pathlib import Path
from typing import ClassVar

from agent.collectors.readings import Reading, SmAnswer
from agent.contract import subnet
from agent.host import Host
from agent.sources.base import Emit
from agent.sources.poll import Poller

TOOL = "sminfo"
_MAD_MS = "500"  # of one question; sminfo asks three times
_TOOL_S = 10.0
_MOST_BYTES = 4096
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


class SubnetSource:
    """Emits SmAnswer for one active port of each manager, every `period_s` seconds.

    `tools`: folder of infiniband-diags; `root`: folder of the devices.
    """

    name: ClassVar[str] = "subnet"
    needs: ClassVar[str] = "sminfo (infiniband-diags) and an InfiniBand port; left out without them"

    def __init__(
        self, host: Host, *, tools: Path, period_s: float = 30.0, root: str = "/sys/class/infiniband"
    ) -> None:
        self._host = host
        self._sminfo = str(tools / TOOL)
        self._root = root
        self._poller = Poller(self._poll, what=self.name, period_s=period_s, hang_s=8 * _TOOL_S)

    async def run(self, emit: Emit) -> None:
        """Ask until cancelled."""
        await self._poller.run(emit)

    async def once(self, emit: Emit) -> None:
        """Ask once."""
        for reading in self._poll():
            emit(reading)

    def _poll(self) -> list[Reading]:
        asked: dict[tuple[str, int], tuple[str, int]] = {}
        for device in self._host.listdir(self._root):
            for port in self._host.listdir(f"{self._root}/{device}/ports"):
                folder = f"{self._root}/{device}/ports/{port}"
                sm_lid = _number(self._host.read(f"{folder}/sm_lid"))
                active = "ACTIVE" in self._host.read(f"{folder}/state")
                if not sm_lid or not active or self._host.read(f"{folder}/link_layer") == "Ethernet":
                    continue
                prefix = self._host.read(f"{folder}/gids/0")[:19]  # two fabrics may use the same LIDs
                asked.setdefault((prefix, sm_lid), (device, _number(port)))
        return [self._ask(device, port, sm_lid) for (_, sm_lid), (device, port) in asked.items()]

    def _ask(self, device: str, port: int, sm_lid: int) -> Reading:
        argv = [self._sminfo, "-C", device, "-P", str(port), "-t", _MAD_MS]
        try:
            done = subprocess.run(
                argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TOOL_S, check=False, env=_ENV
            )
            said = done.stdout[:_MOST_BYTES].decode(errors="replace") if done.returncode == 0 else ""
        except subprocess.TimeoutExpired:
            said = ""
        answer = subnet.sminfo(said)
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
