"""The accelerators of one maker on the PCI bus, whether their driver has taken them or not. Not a source; a part of some."""

from dataclasses import dataclass

from agent.contract import components
from agent.contract.accelerators import NVIDIA, VENDORS, Vendor, vendor_of
from agent.contract.errors import ContractError
from agent.host import Host
from agent.options import option

PCI = "/sys/bus/pci/devices"
_OFF = b"\xff\xff\xff\xff"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGpus:
    """What an operator can set."""

    expected_gpus: int = option(
        0,
        "GPUs or NPUs that this node should have; 0: those on the PCI bus, or ever seen since the start",
        least=0,
        example=8,
    )


def on_bus(host: Host, vendor: Vendor) -> dict[str, str]:
    """Address (`0000:3b:00`) → function (`0000:3b:00.0`), of those that their own driver has or none. Virtual functions, and
    what vfio-pci gives to a virtual machine, are left out.
    """
    found: dict[str, str] = {}
    for function in host.listdir(PCI):
        base = f"{PCI}/{function}"
        ids = (_hex(host.read(f"{base}/vendor")), _hex(host.read(f"{base}/class")))
        if vendor_of(*ids) is not vendor or driver_of(host, function) not in ("", vendor.driver):
            continue
        if host.path(f"{base}/physfn").exists():
            continue
        try:
            found[components.bdf(function)] = function
        except ContractError:
            continue
    return found


def others_on_bus(host: Host) -> bool:
    """Are there accelerators of another maker than NVIDIA?"""
    return any(on_bus(host, vendor) for vendor in VENDORS if vendor is not NVIDIA)


def driver_of(host: Host, function: str) -> str:
    """The kernel driver of a PCI function; empty: none is bound."""
    lines = host.read(f"{PCI}/{function}/uevent").splitlines()
    return next((line[7:] for line in lines if line.startswith("DRIVER=")), "")


def off_bus(host: Host, function: str) -> bool:
    """Does the device no longer answer on PCI? A read of the configuration space that fails returns all ones (PCI Express
    base specification; so tests amdgpu itself: amdgpu_device.c, amdgpu_device_health_check).
    """
    return host.read_bytes(f"{PCI}/{function}/config", 4) == _OFF


def _hex(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
