"""Drills of jobs and their containers: stuck, hung, without GPUs, slowed down by one, or accusing one. Pure."""

import re

from agent.contract.messages import Severity, UnsentEvent
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import JOB, Drill, Plan, begin, healthy_gpu
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.state import MachineState

_ADDRESSES = tuple(MachineState(name="").gpus)
_JOB_S = 1800.0  # how long the job of the drill with a straggler runs
_INFO = Severity.INFO


def _stuck_job(machine: MachineState) -> Plan:
    return (after(0, ch.GpuIdles(bdf=healthy_gpu(machine), job=JOB)),)


def _hung_job(machine: MachineState) -> Plan:
    """The job runs; its log says that a collective hangs."""
    fault = Fault(
        name=f"hung job {JOB}",
        component="node",
        fixes=(Fix.END_JOB,),
        target=JOB,
        symptoms=(
            event("job.nccl_error", f"job/{JOB}", what="timeout", job=JOB, file=f"/var/log/jobs/{JOB}.log"),
        ),
    )
    return (after(0, ch.JobStarts(job=JOB)), *begin(fault)(machine))


def _container_without_gpu(machine: MachineState) -> Plan:
    """The job runs in a container, which has lost its GPUs after a `systemctl daemon-reload`."""
    fault = Fault(
        name=f"container of job {JOB}",
        component="node",
        fixes=(Fix.END_JOB,),
        target=JOB,
        symptoms=(
            event(
                "job.gpu_access", f"job/{JOB}", what="access_lost", job=JOB, file=f"/var/log/jobs/{JOB}.log"
            ),
        ),
    )
    return (after(0, ch.JobStarts(job=JOB)), *begin(fault)(machine))


def _accused(_: MachineState) -> Plan:
    """A job ends with a result that is not a number on one rank alone; the GPU passes its tests afterwards."""
    found = event(
        "job.nan_loss", f"job/{JOB}", what="not_reproducible", here=True, rank=3, device=3, job=JOB,
        file=f"/var/log/jobs/{JOB}.log",
    )  # fmt: skip
    return (
        after(0, ch.JobStarts(job=JOB)),
        after(5, ch.AgentSays(unsent=found)),
        after(60, ch.JobEnds(job=JOB)),
    )


def _minute(*slow: int) -> UnsentEvent:
    """What the GPUs of a job did in a minute: those with these numbers run at low clocks."""
    clocks = [1410 if number in slow else 1980 for number in range(8)]
    return event(
        "gpu.minute", "node", active=True, job=JOB, model="NVIDIA H100 80GB HBM3", gpus=" ".join(_ADDRESSES),
        sm_mhz=" ".join(map(str, clocks)), power_w=" ".join("410" if mhz < 1980 else "690" for mhz in clocks),
        busy=" ".join(["100"] * 8),
    )  # fmt: skip


def _straggler(machine: MachineState) -> Plan:
    """A job runs on all nodes; five minutes later one GPU of the third becomes slow. The job ends after half an hour."""
    third = re.search(r"(?:^|\D)0*3$", machine.name) is not None
    over = event(
        "gpu.minute", "node", _INFO, active=False, job=JOB, model="NVIDIA H100 80GB HBM3", gpus="", sm_mhz="", power_w="",
        busy="",
    )  # fmt: skip
    fault = Fault(
        name=f"figures of job {JOB}",
        component="node",
        fixes=(Fix.END_JOB,),
        target=JOB,
        symptoms=(_minute(2) if third else _minute(),),
        recovery=(over,),
        repeat_s=600.0,
    )
    begin_s = 400.0 if third else 0.0
    return (
        after(0, ch.JobStarts(job=JOB)),
        after(0, ch.AgentSays(unsent=_minute())),
        after(begin_s, ch.FaultBegins(fault=fault)),
        after(_JOB_S, ch.JobEnds(job=JOB)),
        after(_JOB_S, ch.FixApplied(fix=Fix.END_JOB, component="node", target=JOB)),
    )


DRILLS: tuple[Drill, ...] = (
    Drill(
        name="gpu-stuck-job",
        summary="A GPU is at zero utilisation while a job holds its memory.",
        nodes="one",
        ends="scheduler.requeue of the job, when you approve it",
        plan=_stuck_job,
        approval=True,
    ),
    Drill(
        name="job-hung",
        summary="NCCL's watchdog says in a job's log that a collective hangs.",
        nodes="one",
        ends="scheduler.requeue of the job, when you approve it",
        plan=_hung_job,
        approval=True,
    ),
    Drill(
        name="container-gpu-lost",
        summary="A container has lost its GPUs after a daemon-reload of systemd.",
        nodes="one",
        ends="scheduler.requeue of the job, when you approve it",
        plan=_container_without_gpu,
        approval=True,
    ),
    Drill(
        name="job-accuses-node",
        summary="A job's trainer computes a result again on the same GPU, and gets another one.",
        nodes="one",
        ends="the node is drained, tested (it passes) and given back, when you approve each step",
        plan=_accused,
        approval=True,
    ),
    Drill(
        name="gpu-straggler",
        summary="A GPU of the third node becomes slower than its peers of a job that runs on all nodes (six or more).",
        nodes="all",
        ends="the node is drained when you approve it, and stays so after its job has ended, until you say `gpuward return NODE`",
        plan=_straggler,
        heals=False,
        approval=True,
    ),
)
