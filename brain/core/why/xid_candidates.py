"""What an XID can come from, by its class in the catalogue (rules/catalog/xid.yaml)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from brain.core.pack.spec import Text
from brain.core.why.xid_classes import CLASSES


class XidOrigin(Enum):
    """One thing that may be at fault. The value: as people read it."""

    APPLICATION = ("the application", "应用程序")
    DRIVER = ("the driver", "驱动程序")
    HARDWARE = ("the hardware: the card, or what it sits in", "硬件：GPU 卡或其插槽")
    BUS = ("the PCIe path: slot, riser or cable", "PCIe 通路：插槽、转接卡或线缆")
    POWER = ("its power supply or power cable", "供电或电源线")
    LINK = ("an NVLink: this GPU, its peer or a switch", "NVLink：本 GPU、对端或交换芯片")
    FIRMWARE = ("the card's firmware", "GPU 固件")
    SETTING = ("how the machine is set up", "机器的配置")
    SOFTWARE = ("software of the node", "节点上的软件")

    @property
    def text(self) -> Text:
        """As people read it."""
        return Text(en=self.value[0], zh=self.value[1])


# The likelier one first. `informational` says nothing of where it comes from.
OF_CLASS: Final[Mapping[str, tuple[XidOrigin, ...]]] = {
    "app": (XidOrigin.APPLICATION, XidOrigin.HARDWARE),  # hardware is suspect when it repeats on one card
    "app_or_driver": (XidOrigin.APPLICATION, XidOrigin.DRIVER),
    "driver_or_app": (XidOrigin.DRIVER, XidOrigin.APPLICATION),
    "driver": (XidOrigin.DRIVER,),
    "driver_or_hardware": (XidOrigin.DRIVER, XidOrigin.HARDWARE),
    "hardware_or_driver": (XidOrigin.HARDWARE, XidOrigin.DRIVER),
    "hardware_or_firmware": (XidOrigin.HARDWARE, XidOrigin.FIRMWARE),
    "hardware": (XidOrigin.HARDWARE,),
    "bus_or_driver": (XidOrigin.BUS, XidOrigin.DRIVER),
    "bus": (XidOrigin.BUS,),
    "power": (XidOrigin.POWER,),
    "link": (XidOrigin.LINK,),
    "firmware": (XidOrigin.FIRMWARE,),
    "configuration": (XidOrigin.SETTING,),
    "software": (XidOrigin.SOFTWARE,),
    "informational": (),
}
CANDIDATES: Final[Mapping[int, tuple[XidOrigin, ...]]] = {
    code: OF_CLASS[name] for code, name in CLASSES.items()
}
