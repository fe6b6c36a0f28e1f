"""The faults that a drill can inject: what happens to the machine over time, and what ends it. Pure.

Each row says honestly what a simulated person does: a lost GPU does not come back by a command, so a
simulated technician mends it `recovers_after_s` after the evidence was collected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.contract.errors import Refused
from simulations import changes as ch
from simulations.changes import After
from simulations.machines import Machine

REPAIR_S = 8.0
SILENCE_S = 45.0
PORT_OUTAGE_S = 90.0
FLAPS = 4
JOB = "4711"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row of `gpuward drill --list`."""

    name: str
    summary: str
    nodes: Literal["one", "all"]
    ends: str  # what ends it, for people
    plan: Callable[
        [Machine], tuple[After, ...]
    ]  # Refused when the machine has nothing left that can break so
    recovers_after_s: float = 0.0  # so long after the evidence a simulated person mends it; 0: nobody does
    breaks: bool = True  # False: it mends


def _gpu_off_bus(machine: Machine) -> tuple[After, ...]:
    bdf = _pick([gpu.bdf for gpu in machine.gpus.values() if gpu.present and not gpu.idle], machine, "GPU")
    line = f"NVRM: Xid (PCI:{bdf}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    return (
        After(s=0, change=ch.GpuLost(bdf=bdf, repair_s=REPAIR_S)),
        After(s=0, change=ch.KernelSays(text=line)),
        After(s=0.05, change=ch.KernelSays(text=f"NVRM: GPU {bdf}.0: GPU has fallen off the bus.")),
        After(s=0.15, change=ch.JobFails(bdf=bdf, job=JOB, name="CUDA_ERROR_DEVICE_REMOVED")),
        After(s=0.30, change=ch.NvmlAsks(bdf=bdf)),
        After(s=0.40, change=ch.GpuRemoved(bdf=bdf)),
    )


def _ib_phy_errors(machine: Machine) -> tuple[After, ...]:
    ports = [port.device for port in machine.ports.values() if port.up and not port.errors_per_s]
    return (After(s=0, change=ch.PortErrs(device=_pick(ports, machine, "InfiniBand port"), per_s=240)),)


def _sm_failover(machine: Machine) -> tuple[After, ...]:
    lid = 7 if next(iter(machine.ports.values())).sm_lid == 1 else 1
    return (After(s=0, change=ch.MasterMoves(sm_lid=lid)),)


def _gpu_idle_service(machine: Machine) -> tuple[After, ...]:
    bdf = _pick([gpu.bdf for gpu in machine.gpus.values() if gpu.present and not gpu.idle], machine, "GPU")
    return (After(s=0, change=ch.GpuIdles(bdf=bdf, unit="nvidia-persistenced.service")),)


def _gpu_stuck_job(machine: Machine) -> tuple[After, ...]:
    bdf = _pick([gpu.bdf for gpu in machine.gpus.values() if gpu.present and not gpu.idle], machine, "GPU")
    return (After(s=0, change=ch.GpuIdles(bdf=bdf, job=JOB, repair_s=REPAIR_S)),)


def _link_down(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.CarrierLost(link=_pick(_links(machine), machine, "link"))),)


def _cable_cut(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.CarrierLost(link=_pick(_links(machine), machine, "link"), cut=True)),)


def _link_flapping(machine: Machine) -> tuple[After, ...]:
    """Down and up faster than an outage settles, so that it is the flapping that shows, not one of the outages."""
    link = _pick(_links(machine), machine, "link")
    return tuple(
        After(s=number * 0.4, change=ch.AdminUp(link=link) if number % 2 else ch.CarrierLost(link=link))
        for number in range(2 * FLAPS)
    )


def _ib_port_down(machine: Machine) -> tuple[After, ...]:
    device = _pick([port.device for port in machine.ports.values() if port.up], machine, "InfiniBand port")
    return (
        After(s=0, change=ch.PortDown(device=device)),
        After(s=PORT_OUTAGE_S, change=ch.PortUp(device=device)),
    )


def _service_failed(machine: Machine) -> tuple[After, ...]:
    units = [unit.name for unit in machine.units.values() if unit.active == "active"]
    name = _pick(units, machine, "active service")
    return (After(s=0, change=ch.UnitIs(unit=name, active="failed", result="exit-code")),)


def _node_silent(machine: Machine) -> tuple[After, ...]:  # noqa: ARG001  the shape of a plan
    return (After(s=0, change=ch.FallsSilent(for_s=SILENCE_S)),)


def _repair(machine: Machine) -> tuple[After, ...]:  # noqa: ARG001  the shape of a plan
    return (After(s=0, change=ch.Mended()),)


def _links(machine: Machine) -> list[str]:
    return [link.name for link in machine.links.values() if link.carrier and link.name != "eth0"]


def _pick(candidates: list[str], machine: Machine, what: str) -> str:
    if not candidates:
        raise Refused(
            f"{machine.name} has no healthy {what} left: wait until it is mended, or name another node"
        )
    return candidates[0]


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            name="gpu-off-bus",
            summary="A GPU falls off the bus: XID 79, CUDA error in a job log, NVML 'GPU is lost', udev.",
            nodes="one",
            ends=f"a simulated technician mends it {REPAIR_S:g} s after its evidence was collected",
            plan=_gpu_off_bus,
            recovers_after_s=REPAIR_S,
        ),
        Fault(
            name="ib-phy-errors",
            summary="The symbol errors of an InfiniBand port grow by 240 a second.",
            nodes="one",
            ends="link.bounce on the port; its verification then watches the counters for some minutes",
            plan=_ib_phy_errors,
        ),
        Fault(
            name="sm-failover",
            summary="The subnet manager fails over: every port of every node learns another sm_lid.",
            nodes="all",
            ends="nothing needs to: it happens once, and the incident closes after some minutes of quiet",
            plan=_sm_failover,
        ),
        Fault(
            name="gpu-idle-service",
            summary="A GPU stands at zero utilisation, held by nvidia-persistenced and by no job.",
            nodes="one",
            ends="service.restart of the unit that holds it",
            plan=_gpu_idle_service,
        ),
        Fault(
            name="gpu-stuck-job",
            summary="A GPU stands at zero utilisation while a job holds its memory.",
            nodes="one",
            ends=f"a simulated scheduler ends the job {REPAIR_S:g} s after the evidence was collected",
            plan=_gpu_stuck_job,
            recovers_after_s=REPAIR_S,
        ),
        Fault(
            name="link-down",
            summary="A network interface loses its carrier and is stuck so.",
            nodes="one",
            ends="link.bounce on it",
            plan=_link_down,
        ),
        Fault(
            name="cable-cut",
            summary="A network interface loses its carrier for good: link.bounce does not help.",
            nodes="one",
            ends="nothing: it goes to a person",
            plan=_cable_cut,
        ),
        Fault(
            name="link-flapping",
            summary=f"A network interface goes down and up {FLAPS} times within seconds.",
            nodes="one",
            ends="by itself; the incident closes after ten minutes without a change",
            plan=_link_flapping,
        ),
        Fault(
            name="ib-port-down",
            summary=f"An InfiniBand port has no link for {PORT_OUTAGE_S:g} s.",
            nodes="one",
            ends=f"by itself, after {PORT_OUTAGE_S:g} s",
            plan=_ib_port_down,
        ),
        Fault(
            name="service-failed",
            summary="A systemd unit that GPUs need fails.",
            nodes="one",
            ends="service.restart of it",
            plan=_service_failed,
        ),
        Fault(
            name="node-silent",
            summary=f"A node sends nothing for {SILENCE_S:g} s.",
            nodes="one",
            ends=f"by itself, after {SILENCE_S:g} s",
            plan=_node_silent,
        ),
        Fault(
            name="repair",
            summary="No fault: simulated people mend everything that is broken on a node.",
            nodes="one",
            ends="it is done at once",
            plan=_repair,
            breaks=False,
        ),
    )
}
