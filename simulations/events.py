"""What the agent of a simulated machine reports of each state and change. Pure."""

from collections.abc import Mapping

from agent.collectors.infiniband import spec_s
from agent.contract.kinds import KINDS
from agent.contract.messages import Scalar, Severity, UnsentEvent
from brain.core.pack import vocabulary
from simulations.parts import SimulatedGpu, SimulatedLink, SimulatedPort, SimulatedUnit

SIMULATED = "sim-"  # how the names of simulated nodes begin


def event(kind: str, component: str, severity: Severity | None = None, **data: Scalar) -> UnsentEvent:
    """An event of any kind; without a severity with the default one of its kind."""
    evidence = ", ".join(f"{name} {value}" for name, value in data.items())
    default = KINDS[kind].severity
    return UnsentEvent(
        kind=kind, component=component, severity=severity or default, data=data, evidence=evidence
    )


def bmc(kind: str, severity: Severity | None = None, **data: Scalar) -> UnsentEvent:
    """What the BMC of a machine says, which is no word of its agent."""
    default = vocabulary.KINDS[kind].severity
    return UnsentEvent(kind=kind, component="node", severity=severity or default, data=data)


def agent_started(
    version: str, kernel: str, gpus: int, *, booted: bool = False, in_order: bool = False
) -> UnsentEvent:
    """The first event of an agent. `in_order`: it was stopped before, as by a reboot that somebody asked for."""
    data: dict[str, Scalar] = {"version": version, "kernel": kernel, "gpus": gpus, "booted": booted}
    if in_order:
        data["in_order"] = True
    return UnsentEvent(kind="agent.started", component="node", severity=Severity.INFO, data=data)


def command_result(
    command: str,
    outcome: str,
    why: str,
    took_s: float,
    more: Mapping[str, Scalar] | None = None,
    *,
    blind: str = "",
) -> UnsentEvent:
    """The event that ends a command. `more`: further fields of it, e.g. figures."""
    data: dict[str, Scalar] = {"command": command, "outcome": outcome, "why": why, "took_s": took_s}
    data |= more or {}
    if blind:
        data["blind"] = blind
    return UnsentEvent(kind="command.result", component="node", severity=Severity.INFO, data=data)


def command_progress(command: str, elapsed_s: float) -> UnsentEvent:
    """A long command is still under way."""
    return event("command.progress", "node", command=command, elapsed_s=float(elapsed_s), text="at work")


def gpu_lost(gpu: SimulatedGpu) -> UnsentEvent:
    """From NVML: the GPU does not answer."""
    return UnsentEvent(
        kind="gpu.lost",
        component=gpu.component,
        severity=Severity.FATAL,
        data={"reason": "lost", "index": gpu.index},
        evidence=f"NVML: GPU is lost: GPU {gpu.index} {gpu.bdf}",
    )


def gpu_removed(gpu: SimulatedGpu) -> UnsentEvent:
    """From udev: the kernel has removed the PCI device."""
    return UnsentEvent(
        kind="gpu.removed",
        component=gpu.component,
        severity=Severity.FATAL,
        data={"driver": "nvidia"},
        evidence=f"udev remove {gpu.bdf}.0 nvidia",
    )


def gpu_returned(gpu: SimulatedGpu) -> UnsentEvent:
    """From NVML: the GPU answers again."""
    return UnsentEvent(
        kind="gpu.returned",
        component=gpu.component,
        severity=Severity.INFO,
        data={"by": "nvml"},
        evidence=f"NVML answers again for GPU {gpu.index} {gpu.bdf} (was: lost)",
    )


def gpu_answers(gpu: SimulatedGpu) -> UnsentEvent:
    """From NVML, when the agent looks again: the GPU answers."""
    return UnsentEvent(
        kind="gpu.answers",
        component=gpu.component,
        severity=Severity.INFO,
        data={"index": gpu.index},
        evidence=f"NVML answers for GPU {gpu.index} {gpu.bdf}",
    )


def gpu_idle(gpu: SimulatedGpu, *, idle_s: float) -> UnsentEvent:
    """From the watch on GPUs that are held and unused."""
    holder = f"job {gpu.job}" if gpu.job else gpu.unit
    return UnsentEvent(
        kind="gpu.idle",
        component=gpu.component,
        severity=Severity.WARNING,
        data={"idle_s": idle_s, "memory_mb": 70_000, "processes": 1, "job": gpu.job, "unit": gpu.unit},
        evidence=f"GPU {gpu.index} {gpu.bdf}: utilisation 0 % for {idle_s:.0f} s, held by {holder}",
    )


def gpu_busy(gpu: SimulatedGpu) -> UnsentEvent:
    """From the same watch: nothing holds the GPU any more."""
    return UnsentEvent(
        kind="gpu.busy",
        component=gpu.component,
        severity=Severity.INFO,
        data={"utilization": 0},
        evidence=f"GPU {gpu.index} {gpu.bdf}: utilisation 0 %, 0 holders",
    )


def cuda_error(component: str, *, name: str, job: str) -> UnsentEvent:
    """From the log of a job."""
    return UnsentEvent(
        kind="job.cuda_error",
        component=component,
        severity=Severity.ERROR,
        data={"name": name, "job": job, "file": f"/var/log/jobs/{job}.log"},
        evidence=f"RuntimeError: CUDA error: {name} on {component.removeprefix('gpu/')}",
    )


def port_state(port: SimulatedPort, *, before: str) -> UnsentEvent:
    """From /sys/class/infiniband: a port went up or down."""
    state, phys = ("ACTIVE", "LinkUp") if port.up else ("DOWN", "Polling")
    return UnsentEvent(
        kind="ib.port_state",
        component=port.component,
        severity=Severity.INFO if port.up else Severity.WARNING,
        data={"state": state, "before": before, "phys_state": phys},
        evidence=f"{port.device} port 1 {before} -> {state}/{phys}",
    )


def port_errors(port: SimulatedPort, *, delta: int, interval_s: float) -> UnsentEvent:
    """From /sys/class/infiniband: the error counter of a port grows."""
    before = port.symbol_error - delta
    return UnsentEvent(
        kind="ib.errors",
        component=port.component,
        severity=Severity.WARNING,
        data={
            "counter": "symbol_error",
            "delta": delta,
            "value": port.symbol_error,
            "interval_s": interval_s,
            "spec_s": spec_s(delta),
        },
        evidence=f"{port.device} port 1 symbol_error {before} -> {port.symbol_error}",
    )


def master_changed(port: SimulatedPort, *, before: int) -> UnsentEvent:
    """From /sys/class/infiniband: a port has learnt the LID of another subnet manager."""
    return UnsentEvent(
        kind="ib.sm_lid",
        component=port.component,
        severity=Severity.WARNING,
        data={"sm_lid": port.sm_lid, "before": before},
        evidence=f"{port.device} port 1 sm_lid {before} -> {port.sm_lid}",
    )


def link_state(link: SimulatedLink) -> UnsentEvent:
    """From rtnetlink."""
    state = "up" if link.carrier else "down"
    return UnsentEvent(
        kind="link.state",
        component=link.component,
        severity=Severity.INFO if link.carrier else Severity.WARNING,
        data={"up": link.carrier, "admin_up": link.admin_up, "carrier": link.carrier, "operstate": state},
        evidence=f"{link.name} operstate {state}",
    )


def unit_state(unit: SimulatedUnit, *, result: str = "") -> UnsentEvent:
    """From systemd."""
    sub = {"active": "running", "failed": "failed"}.get(unit.active, "dead")
    data: dict[str, Scalar] = {"active": unit.active, "sub": sub}
    if result:
        data["result"] = result
    return UnsentEvent(
        kind="service.state",
        component=unit.component,
        severity=Severity.INFO if unit.active == "active" else Severity.ERROR,
        data=data,
        evidence=f"{unit.name}: {unit.active} ({sub})",
    )
