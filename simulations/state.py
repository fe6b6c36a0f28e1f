"""The state of a simulated machine: what its actions and its drills read. Pure.

Only the machine itself writes it (simulations/machines.py), change by change (simulations/changes.py).
"""

import math
from dataclasses import dataclass, field

from simulations import parts
from simulations.faults import Fault
from simulations.parts import SimulatedGpu, SimulatedLink, SimulatedPort, SimulatedUnit

_BUSES = ("1b", "29", "45", "4e", "9b", "ab", "c1", "d0")


def _gpus() -> dict[str, SimulatedGpu]:
    return {f"0000:{bus}:00": SimulatedGpu(bdf=f"0000:{bus}:00", index=n) for n, bus in enumerate(_BUSES)}


def _ports() -> dict[str, SimulatedPort]:
    return {f"mlx5_{n}": SimulatedPort(device=f"mlx5_{n}") for n in range(8)}


def _links() -> dict[str, SimulatedLink]:
    return {name: SimulatedLink(name=name) for name in (parts.CONTROL_LINK, "eth1", "eth2")}


def _units() -> dict[str, SimulatedUnit]:
    return {name: SimulatedUnit(name=name) for name in parts.UNITS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTimes:
    """How long the long actions on a simulated machine take, in seconds. The defaults are short, so that a rehearsal is."""

    # the node is away
    boot_s: float = 4.0
    # the reset of a device or a driver
    reset_s: float = 1.5
    # a diagnosis or an acceptance test
    test_s: float = 0.5
    # between two looks of an action that waits
    look_s: float = 10.0


REHEARSAL = ActionTimes()


@dataclass(slots=True, kw_only=True)
class MachineState:
    """One node with 8 GPUs, 8 InfiniBand ports, 3 network interfaces and the usual services, and what its scheduler
    and its BMC know of it.
    """

    name: str
    # By PCI address.
    gpus: dict[str, SimulatedGpu] = field(default_factory=_gpus)
    # By device.
    ports: dict[str, SimulatedPort] = field(default_factory=_ports)
    links: dict[str, SimulatedLink] = field(default_factory=_links)
    units: dict[str, SimulatedUnit] = field(default_factory=_units)
    faults: dict[str, Fault] = field(default_factory=dict)
    # Faults that have ended, by name: what they were about is well.
    recovered: dict[str, Fault] = field(default_factory=dict)
    # Job id -> user, as the scheduler knows them. The nodes of one gang may share one mapping: it ends on all of them at once.
    jobs: dict[str, str] = field(default_factory=dict)
    # Why the scheduler gives it no jobs; empty: it is in service.
    drain_reason: str = ""
    # How often it has booted since the simulation began.
    boots: int = 0
    # It is unreachable until then; inf: it is switched off.
    unreachable_until: float = 0.0
    # And it is down until then; otherwise only its network fails.
    goes_down: bool = False
    times: ActionTimes = REHEARSAL

    @property
    def off(self) -> bool:
        """Whether it is switched off."""
        return self.unreachable_until == math.inf

    @property
    def hung(self) -> bool:
        """Whether its kernel hangs."""
        return any(fault.hangs_node for fault in self.faults.values())

    def unreachable(self, now: float) -> bool:
        """Whether it neither sends nor receives anything now."""
        return now < self.unreachable_until or self.hung

    @property
    def healthy(self) -> bool:
        """Whether every part works, and the node is in service."""
        return (
            all(gpu.present and not gpu.idle for gpu in self.gpus.values())
            and all(port.up and not port.errors_per_s for port in self.ports.values())
            and all(link.carrier for link in self.links.values())
            and all(unit.active == "active" for unit in self.units.values())
            and not (self.faults or self.drain_reason or self.off)
        )
