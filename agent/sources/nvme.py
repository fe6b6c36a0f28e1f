"""The SMART / Health logs of the node's NVMe disks, each asked of its controller by an ioctl: no tool, no process.

Linux, include/uapi/linux/nvme_ioctl.h. The kernel lets nobody without CAP_SYS_ADMIN ask. A controller that is dead does not
answer, and the thread that asked it waits in the kernel until that has reset or removed it.
"""

import asyncio
import ctypes
import fcntl
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from agent.collectors.samples_node import NvmeHealth
from agent.contract.smart_log import PAGE, PAGE_BYTES, SmartLog, smart_log
from agent.host import Host
from agent.options import off_or, option
from agent.sources.apart import Apart
from agent.sources.base import Emit, Source, SourceSetup

CLASS = "/sys/class/nvme"
_ADMIN_CMD = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_passthru_cmd)
# struct nvme_passthru_cmd: opcode, flags, nsid, cdw2, cdw3, metadata, addr, metadata_len, data_len, cdw10 to cdw15, timeout_ms,
# result. The timeout stays 0, the driver's own: when one ends, the driver resets the controller.
_COMMAND = struct.Struct("<BBxxIIIQQ10I")
_GET_LOG_PAGE = 0x02
_ALL_NAMESPACES = 0xFFFFFFFF
# Number of dwords less one; Retain Asynchronous Event: what is waiting to be told to the driver stays; the page.
_CDW10 = (PAGE_BYTES // 4 - 1) << 16 | 1 << 15 | PAGE
_DEADLINE_S = 10.0  # the kernel itself waits a minute
_AGAIN_S = 30.0
_Asked = bytes | OSError
_Ask = Callable[[str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmeSourceOptions:
    """What an operator can set."""

    nvme_interval_s: float = option(
        0.0,
        "pause between readings of the SMART / Health logs of NVMe disks, e.g. 600; 0: they are not read, as a reading needs "
        "CAP_SYS_ADMIN (gpuward-agent.service.d/nvme.conf or hands.conf) and wakes a disk that sleeps",
        unit="s",
        least=0,
        check=off_or(10, 3600),  # what is still wrong is told each hour
    )


class NvmeSource(Source):
    """Emits NvmeHealth for each local controller, after each pause.

    One that has not answered within the deadline is emitted without a log, and is not asked again until it has answered.
    """

    name: ClassVar[str] = "nvme"
    needs: ClassVar[str] = (
        "nvme_interval_s, and CAP_SYS_ADMIN: gpuward-agent.service.d/nvme.conf or hands.conf grants it"
    )
    options: ClassVar[tuple[type[Any], ...]] = (NvmeSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: NvmeSourceOptions,
        *,
        ask: _Ask | None = None,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        """`ask`: device file → its page."""
        self._host = host
        self._ask = ask or health_page
        self._period_s = options.nvme_interval_s
        self._questions = Apart[_Asked](host, "nvme", deadline_s=deadline_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None on a recorded machine, and where it is not asked for."""
        options = setup.options(NvmeSourceOptions)
        return cls(setup.host, options) if setup.host.live and options.nvme_interval_s else None

    async def run(self, emit: Emit) -> None:
        """Read until cancelled; those that do not answer are asked again sooner, as the kernel resets them within a minute."""
        while True:
            silent = await self._read(emit, self._controllers())
            left_s = self._period_s
            while silent and left_s > _AGAIN_S:
                await asyncio.sleep(_AGAIN_S)
                left_s -= _AGAIN_S
                silent = await self._read(emit, silent)
            await asyncio.sleep(left_s)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self.once(emit)

    async def once(self, emit: Emit) -> None:
        """Every controller once; returns after the deadline at the latest. PermissionError: this agent may not ask them."""
        await self._read(emit, self._controllers())

    async def _read(self, emit: Emit, names: list[str]) -> list[str]:
        """Reads these; those that do not answer."""
        refused: list[PermissionError] = []

        def take(name: str, asked: _Asked) -> None:
            if isinstance(asked, PermissionError):
                refused.append(asked)
            # A controller that is gone, reset, without such a page or without anything in it tells nothing here; of the first
            # two the kernel tells.
            elif isinstance(asked, bytes) and (log := smart_log(asked)) is not None:
                emit(self._health(name, log, 0.0))

        silent = await self._questions.ask(
            {name: partial(self._asked, f"/dev/{name}") for name in names}, take
        )
        for name, waited_s in silent.items():
            emit(self._health(name, None, waited_s))
        if refused:
            raise refused[0]
        return list(silent)

    def _controllers(self) -> list[str]:
        """Local ones that work: the health of those behind a network is their server's, and the driver opens no others."""
        return [
            name
            for name in self._host.listdir(CLASS)
            if self._host.read(f"{CLASS}/{name}/transport") == "pcie"
            and self._host.read(f"{CLASS}/{name}/state") == "live"
        ]

    def _asked(self, device: str) -> _Asked:
        try:
            return self._ask(device)
        except OSError as error:
            return error

    def _health(self, name: str, log: SmartLog | None, waited_s: float) -> NvmeHealth:
        return NvmeHealth(
            name=name,
            log=log,
            waited_s=waited_s,
            model=self._host.read(f"{CLASS}/{name}/model"),
            serial=self._host.read(f"{CLASS}/{name}/serial"),
            mono_s=self._host.mono_s(),
        )


def health_page(device: str) -> bytes:
    """The page of the controller `/dev/nvme0`. Blocks until it answers, or the kernel has reset it.

    OSError: it is gone, or was reset meanwhile, or has no such page. PermissionError: we may not ask.
    """
    page = ctypes.create_string_buffer(PAGE_BYTES)
    command = _COMMAND.pack(
        *(_GET_LOG_PAGE, 0, _ALL_NAMESPACES, 0, 0, 0, ctypes.addressof(page), 0, PAGE_BYTES, _CDW10),
        *(0,) * 7,
    )
    file = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = fcntl.ioctl(file, _ADMIN_CMD, bytearray(command), True)
    finally:
        with suppress(OSError):
            os.close(file)
    if status:
        raise OSError(f"{device} answered Get Log Page with status {status:#x}")
    return page.raw
