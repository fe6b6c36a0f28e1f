"""Which GPUs the machine has, by the PCI bus and the driver's own list: what NVML should show.

Not a source: what agent/sources/nvml.py compares NVML's list with.
"""

from agent.contract import components
from agent.contract.errors import ContractError
from agent.host import Host

NVIDIA = "0x10de"
_PCI = "/sys/bus/pci/devices"
_DRIVER = "/proc/driver/nvidia/gpus"


def gpus_on_bus(host: Host) -> dict[str, str]:
    """Address (`0000:3b:00`) → "nvidia", or "" where no driver is bound.

    Left out: a GPU that another driver has (vfio-pci: it belongs to a virtual machine), a virtual function, and one
    that the administrator excluded (`GPU Excluded: Yes` in /proc/driver/nvidia/gpus/*/information).
    """
    found: dict[str, str] = {}
    for name in host.listdir(_PCI):
        base = f"{_PCI}/{name}"
        if host.read(f"{base}/vendor") != NVIDIA or not host.read(f"{base}/class").startswith("0x03"):
            continue
        driver = _driver(host.read(f"{base}/uevent"))
        if driver in ("", "nvidia") and not host.path(f"{base}/physfn").exists() and (bdf := address(name)):
            found[bdf] = driver
    for name in host.listdir(_DRIVER):
        if not (bdf := address(name)):
            continue
        if _excluded(host.read(f"{_DRIVER}/{name}/information")):
            found.pop(bdf, None)
        else:
            found[bdf] = "nvidia"
    return found


def address(text: str) -> str:
    """`0000:3b:00` of any form of the address; empty when it is none."""
    try:
        return components.bdf(text)
    except ContractError:
        return ""


def _driver(uevent: str) -> str:
    return next((line[7:] for line in uevent.splitlines() if line.startswith("DRIVER=")), "")


def _excluded(information: str) -> bool:
    for line in information.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "GPU Excluded":
            return value.strip() == "Yes"
    return False
