"""Which processes hold an NVIDIA device open: nothing is reset, unloaded or removed while they do."""

import os
from collections.abc import Collection
from dataclasses import dataclass

from agent.contract.errors import Refused
from agent.contract.owner import Owner
from agent.host import Host
from agent.process_owner import owner_of
from agent.shared.printable import printable

_DEVICES = "/dev/nvidia"  # nvidia0, nvidiactl, nvidia-uvm, nvidia-nvswitch0, nvidia-caps/...


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One process."""

    pid: int
    name: str
    owner: Owner
    # Sorted; empty when only NVML named the process.
    devices: tuple[str, ...]

    @property
    def text(self) -> str:
        """For people: `python (pid 7, job 4711)`; `says that it is of` where only its environment has the job."""
        says = "says that it is of " if self.owner.claimed else ""
        whose = f", {says}job {self.owner.job}" if self.owner.job else ""
        whose = f", {self.owner.unit}" if self.owner.unit else whose
        return f"{self.name or '?'} (pid {self.pid}{whose})"


def holders(host: Host, named: Collection[int] = ()) -> list[Holder]:
    """All processes that have an NVIDIA device open, and those that NVML `named`; children of this process (the NVML
    children) are left out. Refused when the agent may not see who holds what. Reads all of /proc: run it in a thread.
    """
    found = []
    for name in host.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        devices = _devices(host, pid)
        if (devices or pid in named) and not _own(host, pid):
            found.append(
                Holder(
                    pid=pid,
                    name=host.read(f"/proc/{pid}/comm"),
                    owner=owner_of(host, pid),
                    devices=tuple(sorted(devices)),
                )
            )
    return found


def _devices(host: Host, pid: int) -> set[str]:
    devices = set()
    try:
        for entry in os.scandir(host.path(f"/proc/{pid}/fd")):
            try:
                target = os.readlink(entry.path)  # noqa: PTH115  # there are thousands
            except FileNotFoundError:
                continue  # closed meanwhile
            if target.startswith(_DEVICES):
                devices.add(printable(target.removesuffix(" (deleted)")))
    except PermissionError as error:
        if pid != 1:  # hardened kernels hide init's files from root too; init opens no GPU
            raise Refused(
                f"cannot see which devices process {pid} holds: the agent needs root and CAP_SYS_PTRACE"
            ) from error
    except OSError:
        pass  # the process ended meanwhile
    return devices


def _own(host: Host, pid: int) -> bool:
    return f"PPid:\t{os.getpid()}" in host.read(f"/proc/{pid}/status").splitlines()
