"""Which GPUs the machine has, by the PCI bus and the driver's own list: what NVML should show."""

from agent.contract import components
from agent.contract.errors import ContractError
from agent.host import Host

PCI = "/sys/bus/pci/devices"
NVIDIA = "0x10de"  # PCI vendor
_DISPLAY, _BRIDGE = "0x03", "0x0680"  # PCI classes of GPUs and of NVSwitches
_DRIVER = "/proc/driver/nvidia/gpus"


def is_gpu(host: Host, function: str) -> bool:
    """Is the PCI function (`0000:3b:00.0`) an NVIDIA display device?"""
    return _is_nvidia(host, function, _DISPLAY)


def is_nvswitch(host: Host, function: str) -> bool:
    """Is the PCI function an NVSwitch?"""
    return _is_nvidia(host, function, _BRIDGE)


def gpus_on_bus(host: Host) -> dict[str, str]:
    """Address (`0000:3b:00`) → "nvidia", or "" where no driver is bound.

    Left out: a GPU that is bound to another driver (vfio-pci: it belongs to a virtual machine), a virtual function, and
    one that the administrator excluded (`GPU Excluded: Yes` in /proc/driver/nvidia/gpus/*/information).
    """
    found: dict[str, str] = {}
    for name in host.listdir(PCI):
        if not is_gpu(host, name):
            continue
        base = f"{PCI}/{name}"
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


def _is_nvidia(host: Host, function: str, pci_class: str) -> bool:
    base = f"{PCI}/{function}"
    return host.read(f"{base}/vendor") == NVIDIA and host.read(f"{base}/class").startswith(pci_class)


def _driver(uevent: str) -> str:
    return next((line[7:] for line in uevent.splitlines() if line.startswith("DRIVER=")), "")


def _excluded(information: str) -> bool:
    for line in information.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "GPU Excluded":
            return value.strip() == "Yes"
    return False
