"""The parts of a simulated machine, and what its agent would report of each state. Pure."""

from dataclasses import dataclass

from agent.contract.messages import Draft, Scalar, Severity

CONTROL_LINK = "eth0"  # carries the control path: the agent refuses to bounce it
USER = "ann"  # whose jobs run
UNITS = ("nvidia-persistenced.service", "nvidia-fabricmanager.service", "slurmd.service")


@dataclass(slots=True, kw_only=True)
class Gpu:
    """One GPU."""

    bdf: str
    index: int
    present: bool = True
    idle: bool = False  # held, and nothing runs on it
    job: str = ""  # job that holds it
    unit: str = ""  # systemd unit that holds it
    dead: bool = False  # lost for good: only another card helps

    @property
    def component(self) -> str:
        """`gpu/0000:1b:00`."""
        return f"gpu/{self.bdf}"


@dataclass(slots=True, kw_only=True)
class Port:
    """One InfiniBand port."""

    device: str
    sm_lid: int = 1
    up: bool = True
    stuck: bool = False  # no link until it is trained anew
    cut: bool = False  # no link, whatever is done
    errors_per_s: int = 0  # a bounce trains the link anew and ends them
    symbol_error: int = 0

    @property
    def component(self) -> str:
        """`port/mlx5_0.1`."""
        return f"port/{self.device}.1"


@dataclass(slots=True, kw_only=True)
class Link:
    """One network interface."""

    name: str
    admin_up: bool = True
    stuck: bool = False  # no carrier until it is taken down and up
    cut: bool = False  # no carrier, whatever is done: somebody must change the cable

    @property
    def component(self) -> str:
        """`link/eth1`."""
        return f"link/{self.name}"

    @property
    def carrier(self) -> bool:
        """Has it a carrier?"""
        return self.admin_up and not (self.stuck or self.cut)


@dataclass(slots=True, kw_only=True)
class Unit:
    """One systemd unit."""

    name: str
    active: str = "active"

    @property
    def component(self) -> str:
        """`service/slurmd.service`."""
        return f"service/{self.name}"


def link_state(link: Link) -> Draft:
    """What rtnetlink says."""
    word = "up" if link.carrier else "down"
    return Draft(
        kind="link.state",
        component=link.component,
        severity=Severity.INFO if link.carrier else Severity.WARNING,
        data={"up": link.carrier, "admin_up": link.admin_up, "carrier": link.carrier, "operstate": word},
        evidence=f"{link.name} operstate {word}",
    )


def port_state(port: Port, *, before: str) -> Draft:
    """What /sys/class/infiniband says of a port that went up or down."""
    state, phys = ("ACTIVE", "LinkUp") if port.up else ("DOWN", "Disabled")
    return Draft(
        kind="ib.port_state",
        component=port.component,
        severity=Severity.INFO if port.up else Severity.WARNING,
        data={"state": state, "before": before, "phys_state": phys},
        evidence=f"{port.device} port 1 {before} -> {state}/{phys}",
    )


def port_errors(port: Port, *, delta: int, interval_s: float) -> Draft:
    """What the error counter of a port says."""
    before = port.symbol_error - delta
    return Draft(
        kind="ib.errors",
        component=port.component,
        severity=Severity.WARNING,
        data={
            "counter": "symbol_error",
            "delta": delta,
            "value": port.symbol_error,
            "interval_s": interval_s,
        },
        evidence=f"{port.device} port 1 symbol_error {before} -> {port.symbol_error}",
    )


def unit_state(unit: Unit, *, result: str = "") -> Draft:
    """What systemd says."""
    sub = {"active": "running", "failed": "failed"}.get(unit.active, "dead")
    data: dict[str, Scalar] = {"active": unit.active, "sub": sub}
    if result:
        data["result"] = result
    return Draft(
        kind="service.state",
        component=unit.component,
        severity=Severity.INFO if unit.active == "active" else Severity.ERROR,
        data=data,
        evidence=f"{unit.name}: {unit.active} ({sub})",
    )


def gpu_lost(gpu: Gpu) -> Draft:
    """What NVML says of a GPU that is gone."""
    return Draft(
        kind="gpu.lost",
        component=gpu.component,
        severity=Severity.FATAL,
        data={"reason": "lost", "index": gpu.index},
        evidence=f"NVML: GPU is lost: GPU {gpu.index} {gpu.bdf}",
    )


def agent_started(version: str, kernel: str, gpus: int) -> Draft:
    """What an agent says at its start."""
    data: dict[str, Scalar] = {"version": version, "kernel": kernel, "gpus": gpus}
    return Draft(kind="agent.started", component="node", severity=Severity.INFO, data=data)


def gpu_removed(gpu: Gpu) -> Draft:
    """What udev says when the kernel gives the device up."""
    return Draft(
        kind="gpu.removed",
        component=gpu.component,
        severity=Severity.FATAL,
        data={"driver": "nvidia"},
        evidence=f"udev remove {gpu.bdf}.0 nvidia",
    )


def gpu_returned(gpu: Gpu) -> Draft:
    """What NVML says when it is back."""
    return Draft(
        kind="gpu.returned",
        component=gpu.component,
        severity=Severity.INFO,
        data={"by": "nvml"},
        evidence=f"NVML answers again for GPU {gpu.index} {gpu.bdf} (was: lost)",
    )


def gpu_idle(gpu: Gpu, *, idle_s: float) -> Draft:
    """What the watch on held and unused GPUs says."""
    holder = f"job {gpu.job}" if gpu.job else gpu.unit
    return Draft(
        kind="gpu.idle",
        component=gpu.component,
        severity=Severity.WARNING,
        data={"idle_s": idle_s, "memory_mb": 70_000, "processes": 1, "job": gpu.job, "unit": gpu.unit},
        evidence=f"GPU {gpu.index} {gpu.bdf}: utilisation 0 % for {idle_s:.0f} s, held by {holder}",
    )


def gpu_busy(gpu: Gpu) -> Draft:
    """The same watch, when nobody holds the GPU any more."""
    return Draft(
        kind="gpu.busy",
        component=gpu.component,
        severity=Severity.INFO,
        data={"utilization": 0},
        evidence=f"GPU {gpu.index} {gpu.bdf}: utilisation 0 %, 0 holders",
    )


def cuda_error(component: str, *, name: str, job: str) -> Draft:
    """What the follower of job logs says."""
    return Draft(
        kind="job.cuda_error",
        component=component,
        severity=Severity.ERROR,
        data={"name": name, "job": job, "file": f"/var/log/jobs/{job}.log"},
        evidence=f"RuntimeError: CUDA error: {name} on {component.removeprefix('gpu/')}",
    )


def command_result(command: str, outcome: str, why: str, took_s: float) -> Draft:
    """What the agent says when a command has ended."""
    data: dict[str, Scalar] = {"command": command, "outcome": outcome, "why": why, "took_s": took_s}
    return Draft(kind="command.result", component="node", severity=Severity.INFO, data=data)
