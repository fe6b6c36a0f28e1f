"""What a simulated machine is made of, and what its agent tells of it: the real collector, on made-up parts. Pure.

Nodes are equal but for what is each card's own: serial numbers, UUIDs and GUIDs, which are always the same for the same place.
"""

from collections.abc import Iterator
from hashlib import sha256

from agent.collectors.inventory import InventoryCollector
from agent.collectors.samples import Gpu
from agent.collectors.samples_node import GpuCard, Inventory, NicCard
from agent.contract.messages import UnsentEvent
from simulations.state import MachineState

PRODUCT = "Simulated 8-GPU server"
MODEL, DRIVER, VBIOS = "NVIDIA H100 80GB HBM3 (simulated)", "580.82.07", "96.00.74.00.01"
HCA, BOARD, NIC_FIRMWARE = "MT4129", "MT_0000000838", "28.39.1002"
_BUSES = ("18", "2a", "3a", "5d", "9a", "aa", "ba", "dd")  # of the network cards


class SimulatedInventory:
    """The inventory of one machine, as an agent tells it that has just started."""

    def __init__(self, kernel: str) -> None:
        """`kernel`: its release."""
        self._kernel = kernel

    def told(self, state: MachineState) -> Iterator[UnsentEvent]:
        """The node, its GPUs and its network cards. A GPU that has left the bus is missing, as in /proc."""
        cards = tuple(
            GpuCard(
                bdf=gpu.bdf, model=MODEL, uuid=f"GPU-{_own(state, gpu.bdf)}", vbios=VBIOS, firmware=DRIVER
            )
            for gpu in state.gpus.values()
            if not gpu.removed
        )
        nics = tuple(
            NicCard(
                device=device,
                model=HCA,
                board=BOARD,
                firmware=NIC_FIRMWARE,
                guid=":".join(_own(state, device)[n : n + 4] for n in (0, 4, 9, 14)),
                bdf=f"0000:{bus}:00",
                netdevs=f"ib{number}:4092",
            )
            for number, (device, bus) in enumerate(zip(state.ports, _BUSES, strict=False))
        )
        collector = InventoryCollector()
        for card in cards:  # NVML knows the serial numbers, and tells them before
            serial = f"{int(_own(state, card.bdf)[:8], 16) % 10**10:013d}"
            gpu = Gpu(index=state.gpus[card.bdf].index, bdf=card.bdf, uuid=card.uuid, serial=serial)
            yield from collector.feed(gpu, 0.0)
        whole = Inventory(
            kernel=self._kernel,
            driver=DRIVER,
            cpus=192,
            memory_mb=2_063_000,
            product=PRODUCT,
            bios="1.0",
            gpus=cards,
            nics=nics,
        )
        yield from collector.feed(whole, 0.0)


def _own(state: MachineState, place: str) -> str:
    """What only the card at this place of this machine has: a UUID's letters."""
    found = sha256(f"{state.name} {place}".encode()).hexdigest()
    return "-".join((found[:8], found[8:12], found[12:16], found[16:20], found[20:32]))
