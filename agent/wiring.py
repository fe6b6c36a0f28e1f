"""What the agent's commands share: collectors as this machine and its configuration need them."""

from agent.collectors import collectors
from agent.collectors.base import Collector, CollectorSetup
from agent.config import AgentConfig
from agent.contract.accelerators import ASCEND, DRIVERS
from agent.host import Host
from agent.remembered.last_known import LastKnown


def collectors_for(
    host: Host,
    config: AgentConfig,
    *,
    lost_before: frozenset[str] = frozenset(),
    known: LastKnown | None = None,
) -> list[Collector]:
    """Fresh collectors. They know this machine's NVIDIA driver and InfiniBand devices, the GPUs that were lost before
    (LostGpus), and what they remembered in an earlier run.
    """
    made = collectors(
        CollectorSetup(
            values=config.plugins,
            driver=host.nvidia_driver(),
            hostname=host.hostname(),
            nics=nic_names(host),
            drivers=pci_drivers(host),
            numbered=npu_numbers(host),
            lost_before=lost_before,
            remembered=known.values if known else {},
        )
    )
    if known is not None:
        known.follow(made)
    return made


def pci_drivers(host: Host) -> dict[str, str]:
    """PCI address with the function → kernel driver, of this machine's GPUs and network cards."""
    return {
        address: driver
        for driver in (*sorted(DRIVERS), "mlx5_core")
        for address in host.listdir(f"/sys/bus/pci/drivers/{driver}")
        if address[:1].isdigit() and ":" in address
    }


def npu_numbers(host: Host) -> dict[int, str]:
    """Device number → PCI address, of Ascend NPUs: `dev_id` of their driver's devices."""
    folder = f"/sys/bus/pci/drivers/{ASCEND.driver}"
    return {
        int(number): address
        for address in host.listdir(folder)
        if (number := host.read(f"{folder}/{address}/dev_id")).isdigit() and len(number) < 5
    }


def nic_names(host: Host) -> dict[str, str]:
    """PCI address with the function → InfiniBand device, e.g. `0000:5e:00.0` → `mlx5_0`; drivers name the first."""
    names = {}
    for name in host.listdir("/sys/class/infiniband"):
        for line in host.read(f"/sys/class/infiniband/{name}/device/uevent").splitlines():
            if line.startswith("PCI_SLOT_NAME="):
                names[line.partition("=")[2]] = name
    return names
