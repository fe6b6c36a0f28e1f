"""Faults of GPUs, their driver and their jobs. Pure."""

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.ailments import Ailment, Cure, said
from simulations.changes import After
from simulations.fault import JOB, Fault, ill, pick
from simulations.machines import Machine

GPU = "gpu/0000:45:00"  # where ailments of GPUs are; plain losses take the first GPU that is whole
_FATAL = Severity.FATAL
_INFO = Severity.INFO


def _lost(machine: Machine, *, dead: bool) -> tuple[After, ...]:
    bdf = _whole(machine)
    line = f"NVRM: Xid (PCI:{bdf}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    return (
        After(s=0, change=ch.GpuLost(bdf=bdf, dead=dead)),
        After(s=0, change=ch.KernelSays(text=line)),
        After(s=0.05, change=ch.KernelSays(text=f"NVRM: GPU {bdf}.0: GPU has fallen off the bus.")),
        After(s=0.15, change=ch.JobFails(bdf=bdf, job=JOB, name="CUDA_ERROR_DEVICE_REMOVED")),
        After(s=0.30, change=ch.NvmlAsks(bdf=bdf)),
        After(s=0.40, change=ch.GpuRemoved(bdf=bdf)),
    )


def _off_bus(machine: Machine) -> tuple[After, ...]:
    return _lost(machine, dead=False)


def _dead(machine: Machine) -> tuple[After, ...]:
    return _lost(machine, dead=True)


def _needs_reset(machine: Machine) -> tuple[After, ...]:
    bdf = _whole(machine)
    line = f"NVRM: Xid (PCI:{bdf}): 95, pid=1234, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No"
    wants = Ailment(
        name=f"reset wanted {bdf}",
        component=f"gpu/{bdf}",
        cures=(Cure.RESET,),
        signs=(said("gpu.recovery_action", f"gpu/{bdf}", action=1, name="reset"),),
        relief=(said("gpu.recovery_action", f"gpu/{bdf}", _INFO, action=0, name="none"),),
    )
    return (
        After(s=0, change=ch.KernelSays(text=line)),
        After(s=0.5, change=ch.FallsIll(ailment=wants)),
    )


def _idle_service(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.GpuIdles(bdf=_whole(machine), unit="nvidia-persistenced.service")),)


def _stuck_job(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.GpuIdles(bdf=_whole(machine), job=JOB)),)


def _hung_job(machine: Machine) -> tuple[After, ...]:
    """The job is there; its log says that a collective hangs."""
    job = Ailment(
        name=f"hung job {JOB}",
        component="node",
        cures=(Cure.REQUEUE,),
        what=JOB,
        signs=(
            said("job.nccl_error", f"job/{JOB}", what="timeout", job=JOB, file=f"/var/log/jobs/{JOB}.log"),
        ),
    )
    return (After(s=0, change=ch.JobBegins(job=JOB)), *ill(job)(machine))


def _whole(machine: Machine) -> str:
    return pick([gpu.bdf for gpu in machine.gpus.values() if gpu.present and not gpu.idle], machine, "GPU")


FAULTS: tuple[Fault, ...] = (
    Fault(
        name="gpu-off-bus",
        summary="A GPU falls off the bus: XID 79, CUDA error in a job log, NVML 'GPU is lost', udev.",
        nodes="one",
        ends="drain and rescan, then node.reboot (which does not help), then bmc.power_cycle brings it back",
        plan=_off_bus,
    ),
    Fault(
        name="gpu-dead",
        summary="A GPU falls off the bus for good.",
        nodes="one",
        ends="nothing: after reboot and power cycle the node is switched off and goes to a person",
        plan=_dead,
        heals=False,
    ),
    Fault(
        name="gpu-needs-reset",
        summary="An uncontained memory error: XID 95, and NVML wants a reset.",
        nodes="one",
        ends="gpu.reset of the drained node's GPU",
        plan=_needs_reset,
    ),
    Fault(
        name="gpu-rows-spent",
        summary="A row of a GPU's memory cannot be remapped any more.",
        nodes="one",
        ends="nothing: the node is drained, the evidence kept, and a person changes the card",
        plan=ill(
            Ailment(
                name="rows spent",
                component=GPU,
                cures=(),
                signs=(
                    said("gpu.remap", GPU, _FATAL, pending=False, failure=True, corrected=0, uncorrected=8),
                ),
                relief=(
                    said("gpu.remap", GPU, _INFO, pending=False, failure=False, corrected=0, uncorrected=0),
                ),
            )
        ),
        heals=False,
    ),
    Fault(
        name="gpu-ecc",
        summary="An uncorrectable error in a GPU's memory.",
        nodes="one",
        ends="nothing needs to: the evidence is kept, and the incident closes after an hour without another",
        plan=ill(
            Ailment(
                name="ECC error",
                component=GPU,
                cures=(Cure.RESET,),
                signs=(
                    said(
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
    Fault(
        name="gpu-hot",
        summary="A GPU is at its temperature limit.",
        nodes="one",
        ends="gpu.power_limit: less power, less heat",
        plan=ill(
            Ailment(
                name="heat",
                component=GPU,
                cures=(Cure.LIMIT,),
                signs=(said("gpu.temperature", GPU, active=True, sensor="gpu", margin_c=-1.0),),
                relief=(said("gpu.temperature", GPU, _INFO, active=False, sensor="gpu", margin_c=9.0),),
            )
        ),
    ),
    Fault(
        name="gpu-missing",
        summary="A GPU is not even on the PCI bus.",
        nodes="one",
        ends="bmc.power_cycle; the reboot before it does not help",
        plan=ill(
            Ailment(
                name="missing GPU",
                component="node",
                cures=(Cure.POWER,),
                signs=(said("gpu.count", "node", gpus=7, expected=8, missing=1, unnamed=1, basis="config"),),
                relief=(
                    said(
                        "gpu.count", "node", _INFO, gpus=8, expected=8, missing=0, unnamed=0, basis="config"
                    ),
                ),
            )
        ),
    ),
    Fault(
        name="nvlink-down",
        summary="An NVLink of a GPU is down.",
        nodes="one",
        ends="gpu.reset of all GPUs together; the fabric manager's restart before it does not help",
        plan=ill(
            Ailment(
                name="NVLink down",
                component=GPU,
                cures=(Cure.RESET_ALL,),
                signs=(said("gpu.nvlink_state", GPU, down=1, active=17, expected=18, links="9"),),
                relief=(said("gpu.nvlink_state", GPU, _INFO, down=0, active=18, expected=18, links=""),),
            )
        ),
    ),
    Fault(
        name="driver-hung",
        summary="NVML calls do not return any more.",
        nodes="one",
        ends="driver.reload, two minutes and a restart of nvidia-persistenced later",
        plan=ill(
            Ailment(
                name="hung driver",
                component="node",
                cures=(Cure.RELOAD,),
                signs=(said("nvml.hung", "node", call="nvmlDeviceGetTemperature", waited_s=10.0, times=1),),
                relief=(said("nvml.answers", "node", _INFO, after_s=180.0),),
            )
        ),
    ),
    Fault(
        name="gpu-idle-service",
        summary="A GPU stands at zero utilisation, held by nvidia-persistenced and by no job.",
        nodes="one",
        ends="service.restart of the unit that holds it",
        plan=_idle_service,
    ),
    Fault(
        name="gpu-stuck-job",
        summary="A GPU stands at zero utilisation while a job holds its memory.",
        nodes="one",
        ends="scheduler.requeue of the job, when you approve it",
        plan=_stuck_job,
        approval=True,
    ),
    Fault(
        name="job-hung",
        summary="NCCL's watchdog says in a job's log that a collective hangs.",
        nodes="one",
        ends="scheduler.requeue of the job, when you approve it",
        plan=_hung_job,
        approval=True,
    ),
)
