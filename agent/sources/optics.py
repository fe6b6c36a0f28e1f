"""What the pluggable modules of the node's network interfaces say of themselves, each asked of its driver by netlink.

The kernel lets nobody without CAP_NET_ADMIN ask. A module answers over a slow bus of its own, and one that is broken may hang
its driver: each is asked in a thread of its own.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from agent.collectors.samples_node import Optics
from agent.contract.optics import module_of, wanted
from agent.contract.optics_module import Half, OpticsModule
from agent.host import Host
from agent.options import off_or, option
from agent.shared.module_memory import read_half
from agent.sources.apart import Apart
from agent.sources.base import Emit, Source, SourceSetup

NET = "/sys/class/net"
_UP = 0x1  # IFF_UP
_DEADLINE_S = 10.0
# Flags stay set until they are read; what is still so sets them again within a second (SFF-8636 and CMIS).
_CONFIRM_S = 1.5
_Asked = OpticsModule | OSError | None
_Ask = Callable[[str, Half], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpticsSourceOptions:
    """What an operator can set."""

    optics_interval_s: float = option(
        0.0,
        "pause between readings of the memory of optical modules and cables, e.g. 600; 0: it is not read, as a reading needs "
        "CAP_NET_ADMIN (gpuward-agent.service.d/optics.conf or hands.conf) and Linux 5.13",
        unit="s",
        least=0,
        check=off_or(10, 3600),  # what is still wrong is told each hour
    )


class OpticsSource(Source):
    """Emits Optics for each interface that is set up and has a module, after each pause. One that does not answer within the
    deadline is left out, and not asked again until it has.
    """

    name: ClassVar[str] = "optics"
    needs: ClassVar[str] = (
        "optics_interval_s, and CAP_NET_ADMIN: gpuward-agent.service.d/optics.conf or hands.conf grants it"
    )
    options: ClassVar[tuple[type[Any], ...]] = (OpticsSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: OpticsSourceOptions,
        *,
        ask: _Ask = read_half,
        deadline_s: float = _DEADLINE_S,
        confirm_s: float = _CONFIRM_S,
    ) -> None:
        """`ask`: interface, half → its bytes."""
        self._host = host
        self._ask = ask
        self._period_s = options.optics_interval_s
        self._confirm_s = confirm_s
        self._questions = Apart[_Asked](host, "optics", deadline_s=deadline_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None on a recorded machine, and where it is not asked for."""
        options = setup.options(OpticsSourceOptions)
        return cls(setup.host, options) if setup.host.live and options.optics_interval_s else None

    async def run(self, emit: Emit) -> None:
        """Read until cancelled."""
        while True:
            await self.once(emit)
            await asyncio.sleep(self._period_s)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self.once(emit)

    async def once(self, emit: Emit) -> None:
        """Every module once; returns after the deadline at the latest. PermissionError: this agent may not ask them."""
        refused: list[PermissionError] = []

        def take(link: str, asked: _Asked) -> None:
            if isinstance(asked, PermissionError):
                refused.append(asked)
            # An interface without a module, whose driver has none, or whose module cannot be read: its link tells the rest.
            elif isinstance(asked, OpticsModule):
                emit(Optics(link=link, module=asked, port=self._port(link), mono_s=self._host.mono_s()))

        await self._questions.ask({link: partial(self._asked, link) for link in self._links()}, take)
        if refused:
            raise refused[0]

    def _links(self) -> list[str]:
        """Interfaces of devices that are set up; a virtual function has its module in common with its card."""
        return [
            link
            for link in self._host.listdir(NET)
            if (device := self._host.listdir(f"{NET}/{link}/device"))
            and "physfn" not in device
            and _number(self._host.read(f"{NET}/{link}/flags")) & _UP
        ]

    def _port(self, link: str) -> str:
        """`mlx5_2.1`: the port of RDMA that the interface belongs to; empty: none."""
        devices = self._host.listdir(f"{NET}/{link}/device/infiniband")
        port = _number(self._host.read(f"{NET}/{link}/dev_port")) + 1
        return f"{devices[0]}.{port}" if len(devices) == 1 else ""

    def _asked(self, link: str) -> _Asked:
        try:
            module = self._module(link)
            if module is not None and (module.flags or module.dark):
                time.sleep(self._confirm_s)  # in a thread of its own
                module = self._module(link)
        except OSError as error:
            return error
        return module

    def _module(self, link: str) -> OpticsModule | None:
        memory: dict[Half, bytes] = {}
        while halves := wanted(memory):
            for half in halves:
                memory[half] = self._ask(link, half)
        return module_of(memory)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0
