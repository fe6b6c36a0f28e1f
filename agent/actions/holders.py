"""Which processes hold an NVIDIA device: nothing is reset, unloaded or removed under them."""

import os
from collections.abc import Collection
from dataclasses import dataclass

from agent.contract.errors import Refused
from agent.contract.owner import Owner, owner
from agent.host import Host

_DEVICES = "/dev/nvidia"  # nvidia0, nvidiactl, nvidia-uvm, nvidia-nvswitch0, nvidia-caps/...


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One process."""

    pid: int
    name: str
    owner: Owner
    devices: tuple[str, ...]  # sorted; empty when only NVML named it

    @property
    def text(self) -> str:
        """For people: `python (pid 7, job 4711)`."""
        whose = f", job {self.owner.job}" if self.owner.job else ""
        whose = f", {self.owner.unit}" if self.owner.unit else whose
        return f"{self.name or '?'} (pid {self.pid}{whose})"


def owner_of(host: Host, pid: int) -> Owner:
    """Whose process it is, by its cgroup, else its environment."""
    found = owner(cgroup := host.read(f"/proc/{pid}/cgroup"))
    return found if found.job else owner(cgroup, host.read(f"/proc/{pid}/environ"))


def holders(host: Host, named: Collection[int] = ()) -> list[Holder]:
    """All processes with an open NVIDIA device, and those that NVML `named`. Reads /proc: run it in a thread.

    Refused when it cannot be seen who holds what. Left out are children of this process: the NVML children.
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
                target = os.readlink(entry.path)  # noqa: PTH115  # thousands of them
            except FileNotFoundError:
                continue  # closed meanwhile
            if target.startswith(_DEVICES):
                devices.add(target.removesuffix(" (deleted)"))
    except PermissionError as error:
        if pid != 1:  # hardened kernels hide init's files from root too; init opens no GPU
            raise Refused(
                f"cannot see which devices process {pid} holds: the agent needs root and CAP_SYS_PTRACE"
            ) from error
    except OSError:
        pass  # it ended meanwhile
    return devices


def _own(host: Host, pid: int) -> bool:
    return f"PPid:\t{os.getpid()}" in host.read(f"/proc/{pid}/status").splitlines()
