"""Which PCI devices are accelerators, and by which driver: the one table that sources, collectors and the inventory share.

A component is `gpu/<PCI address>` whoever made the accelerator: NVIDIA's and AMD's GPUs, Huawei's Ascend NPUs.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A maker of accelerators."""

    name: str
    # PCI vendor.
    pci: int
    # The upper bits of the PCI class of its accelerators, as hexadecimal digits: `12` all processing accelerators.
    classes: tuple[str, ...]
    # Kernel driver.
    driver: str


NVIDIA = Vendor(name="NVIDIA", pci=0x10DE, classes=("03",), driver="nvidia")
# Instinct cards are "display controllers, other" (MI50 to MI250X) or processing accelerators (MI300). Radeon graphics cards and
# what BMCs have are VGA controllers (0300): nobody computes on them here.
AMD = Vendor(name="AMD", pci=0x1002, classes=("0380", "12"), driver="amdgpu")
# Huawei's BMCs have a VGA controller and its network cards class 02, with the same vendor. The driver's name is that of its
# source, drv_pcie's devdrv_pci.c (g_devdrv_driver_name).
ASCEND = Vendor(name="Ascend", pci=0x19E5, classes=("12",), driver="devdrv_device_driver")
VENDORS = (NVIDIA, AMD, ASCEND)
DRIVERS = frozenset(vendor.driver for vendor in VENDORS)


def vendor_of(pci_vendor: int, pci_class: int) -> Vendor | None:
    """Who made an accelerator, by its PCI vendor and its class of three bytes; None: it is another device.

    >>> vendor_of(0x1002, 0x120000).name, vendor_of(0x1002, 0x030000), vendor_of(0x19E5, 0x120000).name
    ('AMD', None, 'Ascend')
    """
    digits = f"{pci_class:06x}"
    return next((one for one in VENDORS if one.pci == pci_vendor and digits.startswith(one.classes)), None)
