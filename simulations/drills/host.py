"""Drills of the node itself: services, modules, memory, disks, power. Pure."""

import math

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import Drill, Plan, always, begin, first_healthy
from simulations.events import bmc, event
from simulations.faults import Fault, Fix
from simulations.parts import FABRIC_MANAGER
from simulations.state import MachineState

UNREACHABLE_S = 45.0
_INFO = Severity.INFO
_UNCORRECTED = (
    "EDAC MC3: 2 UE memory scrubbing error on P1-DIMMH1 (channel:0 slot:0 page:0x0 offset:0x0 grain:32)"
)

_EVICTED = (
    "LustreError: 167-0: work-OST0003-osc-ffff9a: This client was evicted by work-OST0003; in progress operations using this "
    "service will fail."
)
_CONNECTED = "Lustre: work-OST0003-osc-ffff9a: Connection restored to work-OST0003 (at 10.1.0.9@o2ib)"


def _service_failed(machine: MachineState) -> Plan:
    units = [
        one.name
        for one in machine.units.values()
        if one.active == "active"
        and not one.name.startswith("nvidia-")  # those wait for a fault of the driver
    ]
    name = first_healthy(units, machine, "active service")
    return (after(0, ch.UnitChanges(unit=name, active="failed", result="exit-code")),)


def _no_fabric_manager(machine: MachineState) -> Plan:
    units = [FABRIC_MANAGER] if machine.units[FABRIC_MANAGER].active == "active" else []
    name = first_healthy(units, machine, "fabric manager")
    return (after(0, ch.UnitChanges(unit=name, active="failed", result="exit-code")),)


def _full(mount: str, used_percent: float = 96.0) -> Fault:
    """A local file system that only people empty."""
    component = f"mount/{mount}"
    full = event(
        "mount.space", component,
        what="bytes", full=True, used_percent=used_percent, free=9000, fstype="ext4", remote=False,
    )  # fmt: skip
    emptied = event(
        "mount.space", component, _INFO,
        what="bytes", full=False, used_percent=60.0, free=90_000, fstype="ext4", remote=False,
    )  # fmt: skip
    return Fault(name=f"full {mount}", component=component, fixes=(), symptoms=(full,), recovery=(emptied,))


def _read_only_disk() -> Fault:
    """A disk that says so itself, and that only people replace."""
    component, model = "disk/nvme0", "simulated"
    ill = event(
        "disk.health", component, Severity.ERROR,
        answers=True, read_only=True, unreliable=False, spare_low=True, worn=False, unprotected=False, hot=False,
        spare_percent=0, spare_threshold_percent=10, used_percent=96, media_errors=0, temperature_c=41,
        model=model, serial="S1",
    )  # fmt: skip
    replaced = event(
        "disk.health", component, _INFO,
        answers=True, read_only=False, unreliable=False, spare_low=False, worn=False, unprotected=False, hot=False,
        spare_percent=100, spare_threshold_percent=10, used_percent=0, media_errors=0, temperature_c=37,
        model=model, serial="S2",
    )  # fmt: skip
    return Fault(
        name="read-only disk",
        component=component,
        fixes=(),
        symptoms=(ill,),
        recovery=(replaced,),
        repeat_s=3600,
    )


DRILLS: tuple[Drill, ...] = (
    Drill(
        name="service-failed",
        summary="A systemd unit that the node needs fails.",
        nodes="one",
        ends="service.restart of it",
        plan=_service_failed,
    ),
    Drill(
        name="fabric-manager-down",
        summary="NVIDIA's fabric manager fails.",
        nodes="one",
        ends="drain, then fabricmanager.restart",
        plan=_no_fabric_manager,
    ),
    Drill(
        name="module-missing",
        summary="nvidia_peermem is no longer loaded.",
        nodes="one",
        ends="module.load of it, after the minute that a reload of the driver may take",
        plan=begin(
            Fault(
                name="no nvidia_peermem",
                component="node",
                fixes=(Fix.LOAD_MODULE,),
                target="nvidia_peermem",
                symptoms=(event("node.module", "node", module="nvidia_peermem", loaded=False),),
                recovery=(event("node.module", "node", _INFO, module="nvidia_peermem", loaded=True),),
            )
        ),
    ),
    Drill(
        name="node-unreachable",
        summary=f"A node sends nothing for {UNREACHABLE_S:g} s.",
        nodes="one",
        ends=f"by itself, after {UNREACHABLE_S:g} s; until then its restart waits for your approval",
        plan=always(after(0, ch.GoesUnreachable(for_s=UNREACHABLE_S))),
    ),
    Drill(
        name="node-hung",
        summary="A node's kernel hangs: it neither sends nor receives anything.",
        nodes="one",
        ends="bmc.restart, when you approve it",
        plan=begin(
            Fault(name="hung kernel", component="node", fixes=(Fix.REBOOT, Fix.CYCLE_POWER), hangs_node=True),
        ),
        approval=True,
    ),
    Drill(
        name="node-dark",
        summary="A node loses its power.",
        nodes="one",
        ends="bmc.power_on, when you approve it",
        plan=always(after(0, ch.GoesDown(for_s=math.inf, power=True))),
        approval=True,
    ),
    Drill(
        name="coolant-leak",
        summary="The leak detector under a cold plate of the node is wet.",
        nodes="one",
        ends="it is not healed; facility is paged, the node is drained, and its power is for people to cut",
        plan=begin(
            Fault(
                name="coolant leak",
                component="node",
                fixes=(),
                symptoms=(bmc("bmc.leak", active=True, parts="Cold plate 2", text="Cold plate 2: Critical"),),
                recovery=(bmc("bmc.leak", _INFO, active=False, parts="", text=""),),
            )
        ),
        heals=False,
    ),
    Drill(
        name="memory-error",
        summary="The node's memory has an uncorrected error.",
        nodes="one",
        ends="it is not healed; the node is drained and goes to a person",
        plan=always(
            after(0, ch.KernelLogs(text=_UNCORRECTED)),
            after(0, ch.FaultBegins(fault=Fault(name="broken DIMM", component="node", fixes=()))),
        ),
        heals=False,
    ),
    Drill(
        name="disk-read-only",
        summary="An NVMe disk has used up its spare, and says that it can only be read.",
        nodes="one",
        ends="it is not healed; the node is drained and goes to a person, who replaces the disk",
        plan=begin(_read_only_disk()),
        heals=False,
    ),
    Drill(
        name="disk-full",
        summary="A file system of the node is nearly full.",
        nodes="one",
        ends="it is not healed; the largest directories are found, and it goes to a person",
        plan=begin(_full("/")),
        heals=False,
    ),
    Drill(
        name="client-evicted",
        summary="A Lustre server throws the node out, which is connected again 20 seconds later.",
        nodes="one",
        ends="by itself; a page says whose jobs run on the node",
        plan=always(after(0, ch.KernelLogs(text=_EVICTED)), after(20, ch.KernelLogs(text=_CONNECTED))),
    ),
    Drill(
        name="scratch-full",
        summary="The scratch file system for jobs, /scratch, is full.",
        nodes="one",
        ends="it is not healed; the largest directories are found, and it goes to a person",
        plan=begin(_full("/scratch", used_percent=99.0)),
        heals=False,
    ),
    Drill(
        name="repair",
        summary="No fault: simulated people repair everything that is broken on a node.",
        nodes="one",
        ends="at once",
        plan=always(after(0, ch.Repaired())),
        breaks=False,
    ),
)  # fmt: skip
