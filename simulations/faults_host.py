"""Faults of the node itself: services, modules, memory, disks, silence. Pure."""

import math

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.ailments import Ailment, Cure, said
from simulations.changes import After
from simulations.fault import Fault, ill, pick
from simulations.machines import Machine

SILENCE_S = 45.0
_INFO = Severity.INFO
_FABRIC_MANAGER = "nvidia-fabricmanager.service"


def _service_failed(machine: Machine) -> tuple[After, ...]:
    units = [
        one.name for one in machine.units.values() if one.active == "active" and one.name != _FABRIC_MANAGER
    ]
    name = pick(units, machine, "active service")
    return (After(s=0, change=ch.UnitIs(unit=name, active="failed", result="exit-code")),)


def _no_fabric_manager(machine: Machine) -> tuple[After, ...]:
    units = [_FABRIC_MANAGER] if machine.units[_FABRIC_MANAGER].active == "active" else []
    name = pick(units, machine, "fabric manager")
    return (After(s=0, change=ch.UnitIs(unit=name, active="failed", result="exit-code")),)


def _node_silent(machine: Machine) -> tuple[After, ...]:  # noqa: ARG001  the shape of a plan
    return (After(s=0, change=ch.FallsSilent(for_s=SILENCE_S)),)


def _node_dark(machine: Machine) -> tuple[After, ...]:  # noqa: ARG001  the shape of a plan
    return (After(s=0, change=ch.GoesDown(for_s=math.inf, power=True)),)


def _memory(machine: Machine) -> tuple[After, ...]:  # noqa: ARG001  the shape of a plan
    line = (
        "EDAC MC3: 2 UE memory scrubbing error on P1-DIMMH1 (channel:0 slot:0 page:0x0 offset:0x0 grain:32)"
    )
    broken = Ailment(name="broken DIMM", component="node", cures=())
    return (After(s=0, change=ch.KernelSays(text=line)), After(s=0, change=ch.FallsIll(ailment=broken)))


def _repair(machine: Machine) -> tuple[After, ...]:  # noqa: ARG001  the shape of a plan
    return (After(s=0, change=ch.Mended()),)


FAULTS: tuple[Fault, ...] = (
    Fault(
        name="service-failed",
        summary="A systemd unit that GPUs need fails.",
        nodes="one",
        ends="service.restart of it",
        plan=_service_failed,
    ),
    Fault(
        name="fabric-manager-down",
        summary="NVIDIA's fabric manager fails.",
        nodes="one",
        ends="fabricmanager.restart",
        plan=_no_fabric_manager,
    ),
    Fault(
        name="module-missing",
        summary="nvidia_peermem is not loaded any more.",
        nodes="one",
        ends="module.load of it, after the minute that a reload of the driver may take",
        plan=ill(
            Ailment(
                name="no nvidia_peermem",
                component="node",
                cures=(Cure.MODULE,),
                what="nvidia_peermem",
                signs=(said("node.module", "node", module="nvidia_peermem", loaded=False),),
                relief=(said("node.module", "node", _INFO, module="nvidia_peermem", loaded=True),),
            )
        ),
    ),
    Fault(
        name="node-silent",
        summary=f"A node sends nothing for {SILENCE_S:g} s.",
        nodes="one",
        ends=f"by itself, after {SILENCE_S:g} s; until then its restart waits for your approval",
        plan=_node_silent,
    ),
    Fault(
        name="node-hung",
        summary="A node's kernel hangs: it neither speaks nor hears.",
        nodes="one",
        ends="bmc.restart, when you approve it",
        plan=ill(
            Ailment(name="hung kernel", component="node", cures=(Cure.REBOOT, Cure.POWER), hangs=True),
        ),
        approval=True,
    ),
    Fault(
        name="node-dark",
        summary="A node loses its power.",
        nodes="one",
        ends="bmc.power_on, when you approve it",
        plan=_node_dark,
        approval=True,
    ),
    Fault(
        name="memory-error",
        summary="The node's memory has an uncorrected error.",
        nodes="one",
        ends="nothing: the node is drained and goes to a person",
        plan=_memory,
        heals=False,
    ),
    Fault(
        name="disk-full",
        summary="A file system of the node is nearly full.",
        nodes="one",
        ends="nothing: the largest directories are found, and it goes to a person",
        plan=ill(
            Ailment(
                name="full disk",
                component="mount//",
                cures=(),
                signs=(
                    said(
                        "mount.space", "mount//",
                        what="bytes", full=True, used_percent=96.0, free=9000, fstype="ext4", remote=False,
                    ),
                ),
                relief=(
                    said(
                        "mount.space", "mount//", _INFO,
                        what="bytes", full=False, used_percent=60.0, free=90_000, fstype="ext4", remote=False,
                    ),
                ),
            )
        ),
        heals=False,
    ),
    Fault(
        name="repair",
        summary="No fault: simulated people mend everything that is broken on a node.",
        nodes="one",
        ends="it is done at once",
        plan=_repair,
        breaks=False,
    ),
)  # fmt: skip
