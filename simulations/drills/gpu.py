"""Drills of GPUs and their driver. Pure."""

from typing import Any

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import JOB, Drill, Plan, begin, healthy_gpu
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.state import MachineState

GPU = "gpu/0000:45:00"  # the GPU that has the faults; a loss takes the first healthy GPU
_FATAL = Severity.FATAL
_INFO = Severity.INFO


def _lost(machine: MachineState, *, dead: bool) -> Plan:
    bdf = healthy_gpu(machine)
    line = f"NVRM: Xid (PCI:{bdf}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    return (
        after(0, ch.GpuLost(bdf=bdf, dead=dead)),
        after(0, ch.KernelLogs(text=line)),
        after(0.05, ch.KernelLogs(text=f"NVRM: GPU {bdf}.0: GPU has fallen off the bus.")),
        after(0.15, ch.CudaErrorLogged(bdf=bdf, job=JOB, name="CUDA_ERROR_DEVICE_REMOVED")),
        after(0.30, ch.NvmlQueried(bdf=bdf)),
        after(0.40, ch.GpuRemoved(bdf=bdf)),
    )


def _off_bus(machine: MachineState) -> Plan:
    return _lost(machine, dead=False)


def _dead(machine: MachineState) -> Plan:
    return _lost(machine, dead=True)


def _needs_reset(machine: MachineState) -> Plan:
    bdf = healthy_gpu(machine)
    line = f"NVRM: Xid (PCI:{bdf}): 95, pid=1234, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No"
    fault = Fault(
        name=f"reset wanted {bdf}",
        component=f"gpu/{bdf}",
        fixes=(Fix.RESET_GPU,),
        symptoms=(event("gpu.recovery_action", f"gpu/{bdf}", action=1, name="reset"),),
        recovery=(event("gpu.recovery_action", f"gpu/{bdf}", _INFO, action=0, name="none"),),
    )
    return (
        after(0, ch.KernelLogs(text=line)),
        after(0.5, ch.FaultBegins(fault=fault)),
    )


def _row_marked(machine: MachineState) -> Plan:
    bdf = healthy_gpu(machine)
    line = f"NVRM: Xid (PCI:{bdf}): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate."
    rows: dict[str, Any] = {"failure": False, "corrected": 0, "uncorrected": 1, "banks_none": 0}
    fault = Fault(
        name=f"row marked {bdf}",
        component=f"gpu/{bdf}",
        fixes=(Fix.RESET_GPU,),
        symptoms=(event("gpu.remap", f"gpu/{bdf}", pending=True, **rows),),
        recovery=(event("gpu.remap", f"gpu/{bdf}", _INFO, pending=False, **rows),),
    )
    return (after(0, ch.KernelLogs(text=line)), after(0.5, ch.FaultBegins(fault=fault)))


def _no_persistence(machine: MachineState) -> Plan:
    bdf = healthy_gpu(machine)
    fault = Fault(
        name=f"no persistence mode {bdf}",
        component=f"gpu/{bdf}",
        fixes=(Fix.PERSISTENCE, Fix.REBOOT),
        symptoms=(event("gpu.setting", f"gpu/{bdf}", what="persistence", before="1", now="0"),),
        recovery=(event("gpu.setting", f"gpu/{bdf}", _INFO, what="persistence", before="0", now="1"),),
    )
    return (after(0, ch.FaultBegins(fault=fault)),)


def _idle_service(machine: MachineState) -> Plan:
    return (after(0, ch.GpuIdles(bdf=healthy_gpu(machine), unit="nvidia-persistenced.service")),)


def _holder_stuck(machine: MachineState) -> Plan:
    component = f"gpu/{healthy_gpu(machine)}"
    stuck, over = (
        event(
            "gpu.holder_stuck", component, severity, active=active, processes=int(active), lasted_s=300.0 * active,
            pid=4711 * active, process="python3" * active, state="D" * active, job="",
        )
        for severity, active in ((Severity.ERROR, True), (_INFO, False))
    )  # fmt: skip
    fixes = (Fix.REBOOT, Fix.CYCLE_POWER)
    return begin(
        Fault(
            name="process in state D",
            component=component,
            fixes=fixes,
            symptoms=(stuck,),
            recovery=(over,),
            repeat_s=300.0,
        )
    )(machine)


DRILLS: tuple[Drill, ...] = (
    Drill(
        name="gpu-off-bus",
        summary="A GPU falls off the bus: XID 79, CUDA error in a job log, NVML 'GPU is lost', udev.",
        nodes="one",
        ends="drain and rescan, then node.reboot (which does not help), then bmc.power_cycle brings it back",
        plan=_off_bus,
    ),
    Drill(
        name="gpu-dead",
        summary="A GPU falls off the bus for good.",
        nodes="one",
        ends="it is not healed; after reboot and power cycle the node is switched off and goes to a person",
        plan=_dead,
        heals=False,
    ),
    Drill(
        name="gpu-needs-reset",
        summary="An uncontained memory error: XID 95, and NVML wants a reset.",
        nodes="one",
        ends="gpu.reset of the drained node's GPU",
        plan=_needs_reset,
    ),
    Drill(
        name="gpu-row-marked",
        summary="A row of a GPU's memory waits for a reset to be remapped: XID 63, and NVML.",
        nodes="one",
        ends="gpu.reset at the node's next idle moment",
        plan=_row_marked,
    ),
    Drill(
        name="gpu-persistence-off",
        summary="Somebody switches persistence mode of a GPU off.",
        nodes="one",
        ends="gpu.persistence, after the two minutes that a restart of the daemon may take",
        plan=_no_persistence,
    ),
    Drill(
        name="gpu-cluster-bad",
        summary="The third program of a day fails on one processing cluster of a GPU: XID 13.",
        nodes="one",
        ends="nothing: diagnosed at the node's next idle moment, the GPU does not pass, and the node stays drained",
        plan=begin(
            Fault(
                name="bad processing cluster",
                component=GPU,
                fixes=(),
                symptoms=(
                    event(
                        "gpu.xid",
                        GPU,
                        code=13,
                        name="ROBUST_CHANNEL_GR_EXCEPTION",
                        action="RESTART_APP",
                        message="Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0)",
                        gpc=1,
                        tpc=3,
                        repeats=3,
                    ),
                ),
            )
        ),
        heals=False,
    ),
    Drill(
        name="gpu-rows-spent",
        summary="A row of a GPU's memory can no longer be remapped.",
        nodes="one",
        ends="it is not healed; the node is drained, the evidence kept, and a person replaces the card",
        plan=begin(
            Fault(
                name="rows spent",
                component=GPU,
                fixes=(),
                symptoms=(
                    event("gpu.remap", GPU, _FATAL, pending=False, failure=True, corrected=0, uncorrected=8),
                ),
                recovery=(
                    event("gpu.remap", GPU, _INFO, pending=False, failure=False, corrected=0, uncorrected=0),
                ),
            )
        ),
        heals=False,
    ),
    Drill(
        name="gpu-ecc",
        summary="An uncorrectable error in a GPU's memory.",
        nodes="one",
        ends="by itself: the evidence is kept, and the incident closes after an hour without another",
        plan=begin(
            Fault(
                name="ECC error",
                component=GPU,
                fixes=(Fix.RESET_GPU,),
                symptoms=(
                    event(
                        "gpu.ecc",
                        GPU,
                        location="dram",
                        corrected=False,
                        counter="volatile",
                        delta=1,
                        errors=1,
                    ),
                ),
            )
        ),
        heals=False,
    ),
    Drill(
        name="gpu-hot",
        summary="A GPU is at its temperature limit.",
        nodes="one",
        ends="gpu.power_limit: less power, less heat",
        plan=begin(
            Fault(
                name="heat",
                component=GPU,
                fixes=(Fix.LIMIT_POWER,),
                symptoms=(event("gpu.temperature", GPU, active=True, sensor="gpu", margin_c=-1.0),),
                recovery=(event("gpu.temperature", GPU, _INFO, active=False, sensor="gpu", margin_c=9.0),),
            )
        ),
    ),
    Drill(
        name="gpu-missing",
        summary="A GPU is not even on the PCI bus.",
        nodes="one",
        ends="bmc.power_cycle; the reboot before it does not help",
        plan=begin(
            Fault(
                name="missing GPU",
                component="node",
                fixes=(Fix.CYCLE_POWER,),
                symptoms=(
                    event("gpu.count", "node", gpus=7, expected=8, missing=1, unnamed=1, basis="config"),
                ),
                recovery=(
                    event(
                        "gpu.count", "node", _INFO, gpus=8, expected=8, missing=0, unnamed=0, basis="config"
                    ),
                ),
            )
        ),
    ),
    Drill(
        name="nvlink-down",
        summary="An NVLink of a GPU is down.",
        nodes="one",
        ends="gpu.reset of all GPUs together; the fabric manager's restart before it does not help",
        plan=begin(
            Fault(
                name="NVLink down",
                component=GPU,
                fixes=(Fix.RESET_ALL_GPUS,),
                symptoms=(event("gpu.nvlink_state", GPU, down=1, active=17, expected=18, links="9"),),
                recovery=(event("gpu.nvlink_state", GPU, _INFO, down=0, active=18, expected=18, links=""),),
            )
        ),
    ),
    Drill(
        name="driver-hung",
        summary="NVML calls no longer return.",
        nodes="one",
        ends="driver.reload, two minutes and a restart of nvidia-persistenced later",
        plan=begin(
            Fault(
                name="hung driver",
                component="node",
                fixes=(Fix.RELOAD_DRIVER,),
                symptoms=(
                    event("nvml.hung", "node", call="nvmlDeviceGetTemperature", waited_s=10.0, times=1),
                ),
                recovery=(event("nvml.answers", "node", _INFO, after_s=180.0),),
            )
        ),
    ),
    Drill(
        name="gpu-idle-service",
        summary="A GPU is at zero utilisation, held by nvidia-persistenced and by no job.",
        nodes="one",
        ends="service.restart of the unit that holds it",
        plan=_idle_service,
    ),
    Drill(
        name="gpu-holder-stuck",
        summary="A process in state D holds a GPU after its job has ended.",
        nodes="one",
        ends="node.reboot of the drained node",
        plan=_holder_stuck,
    ),
)
