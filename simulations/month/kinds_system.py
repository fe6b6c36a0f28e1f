"""Kinds of faults of a node's system: its kernel, memory, processors, PCIe, services, modules, clock. Pure."""

from simulations import changes as ch
from simulations.changes import after
from simulations.faults import Fix
from simulations.month.kinds import Cured, FaultKind, Harm
from simulations.month.signs import Shows, Sign, logs, says, shows, unit_fails, well

_CORRECTED = (
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 "
    "(channel:1 slot:0 page:0x1f6a2 offset:0x940 grain:32 syndrome:0x0)"
)
_PCIE_CORRECTED = (
    "nvme 0000:02:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)"
)
_KILLED = (
    "Out of memory: Killed process 4711 (python3) total-vm:70312344kB, anon-rss:61203456kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:1000"
)
_RESTART = {Fix.RESTART_SERVICE: 0.9, Fix.REBOOT: 0.95, Fix.CYCLE_POWER: 0.95}


KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="kernel-oops",
        summary="the kernel of a node has an oops, and goes on",
        plan=logs("BUG: unable to handle page fault for address: ffffb2c000000000"),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.95, Fix.CYCLE_POWER: 0.95},
        seen_as="kernel-broke",
    ),
    FaultKind(
        name="tasks-stall",
        summary="tasks hang in the kernel for ever",
        plan=logs("INFO: task python3:4711 blocked for more than 120 seconds.", every_s=300.0),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.95, Fix.CYCLE_POWER: 0.97},
        seen_as="kernel-stalls",
    ),
    FaultKind(
        name="bad-page",
        summary="the kernel finds what it knows of a page of memory damaged",
        plan=logs("BUG: Bad page state in process python3  pfn:3f2a1c"),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.7, Fix.CYCLE_POWER: 0.7},
        seen_as="kernel-bad-page",
    ),
    FaultKind(
        name="memory-weak",
        summary="a module corrects very many errors; a boot that trains it anew may end with a node that hangs",
        plan=Shows(
            first=Sign(lines=(_CORRECTED,) * 120, every_s=3600.0),
            worse=Sign(lines=(_CORRECTED,), hangs_node=True),
        ),
        harm=Harm.NONE,
        seen_as="memory-corrected",
        worsens={Fix.REBOOT: 0.2, Fix.CYCLE_POWER: 0.2},
    ),
    FaultKind(
        name="memory-corrects",
        summary="a module corrects a single error (noise)",
        plan=logs(_CORRECTED),
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(1.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="memory-short",
        summary="a node has hardly any memory left for a while",
        plan=shows(
            "node",
            says("node.memory", low=True, available_mb=9000, total_mb=2_063_000),
            well=(well("node.memory", low=False, available_mb=1_900_000, total_mb=2_063_000),),
            after_s=30.0,
        ),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="memory-short",
        lasts=(1200.0, 0.6),
    ),
    FaultKind(
        name="processor-hot",
        summary="processors are slowed down by heat again and again",
        plan=Shows(
            first=Sign(lines=("CPU3: Core temperature above threshold, cpu clock throttled (total events = 17)",)),
            grows=(
                (300.0, Sign(lines=("CPU3: Core temperature above threshold, cpu clock throttled (total events = 4000)",))),
                (1800.0, Sign(lines=("CPU3: Core temperature above threshold, cpu clock throttled (total events = 90000)",))),
            ),
        ),
        harm=Harm.SLOWS,
        seen_as="cpu-throttled",
    ),
    FaultKind(
        name="pcie-lost-request",
        summary="a request on PCIe was lost, and its driver has gone on (noise)",
        plan=logs("nvme 0000:02:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)"),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="pcie-nonfatal",
        lasts=(60.0, 0.5),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="pcie-errs",
        summary="a PCIe link corrects errors all the time",
        plan=logs(*(_PCIE_CORRECTED,) * 100, every_s=3600.0),
        harm=Harm.SLOWS,
        cures={Fix.CYCLE_POWER: 0.3},
        seen_as="pcie-corrected",
    ),
    FaultKind(
        name="pcie-corrects",
        summary="a PCIe link corrects a single error (noise)",
        plan=logs(_PCIE_CORRECTED),
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(1.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="module-missing",
        summary="nvidia_peermem is no longer loaded: the next job copies by host memory",
        plan=Shows(
            first=Sign(
                bad=(says("node.module", module="nvidia_peermem", loaded=False),),
                well=(well("node.module", module="nvidia_peermem", loaded=True),),
                target="nvidia_peermem", after_s=10.0,
            )
        ),
        harm=Harm.SLOWS,
        cures={Fix.LOAD_MODULE: 0.95, Fix.REBOOT: 0.97, Fix.CYCLE_POWER: 0.97},
        seen_as="module-missing",
        alerts=False,
    ),
    FaultKind(
        name="clock-off",
        summary="a node's clock is not synchronised",
        plan=shows(
            "node",
            says("node.clock", well=False, synchronised=False, offset_s=0.0, max_error_s=16.0),
            well=(well("node.clock", well=True, synchronised=True, offset_s=0.0, max_error_s=0.01),),
            after_s=60.0,
        ),
        harm=Harm.NONE,
        seen_as="clock-off",
    ),
    FaultKind(
        name="persistenced-failed",
        summary="NVIDIA's persistence daemon fails",
        plan=unit_fails("nvidia-persistenced.service"),
        harm=Harm.NONE,
        cures=_RESTART,
        seen_as="driver-service-failed",
    ),
    FaultKind(
        name="munge-failed",
        summary="munge fails: the scheduler's daemons do not know each other",
        plan=unit_fails("munge.service"),
        harm=Harm.NONE,
        cures=_RESTART,
        seen_as="service-failed",
    ),
    FaultKind(
        name="containerd-failed",
        summary="containerd fails: no container starts",
        plan=unit_fails("containerd.service"),
        harm=Harm.NONE,
        cures=_RESTART,
        seen_as="service-failed",
    ),
    FaultKind(
        name="dcgm-failed",
        summary="DCGM's daemon fails: its exporters and checks see nothing",
        plan=unit_fails("nvidia-dcgm.service"),
        harm=Harm.NONE,
        cures=_RESTART,
        seen_as="service-failed",
    ),
    FaultKind(
        name="service-killed",
        summary="the kernel ends the scheduler's daemon for lack of memory",
        plan=unit_fails("slurmd.service", _KILLED, result="oom-kill"),
        harm=Harm.NONE,
        cures=_RESTART,
        seen_as="service-died-of-memory",
    ),
    FaultKind(
        name="services-fall",
        summary="the scheduler's daemon fails again a while after each restart, until its configuration is mended",
        plan=unit_fails("slurmd.service"),
        harm=Harm.NONE,
        seen_as="service-failed",
        soothes={Fix.RESTART_SERVICE: 1.0, Fix.REBOOT: 1.0, Fix.CYCLE_POWER: 1.0},
        relapses=(1800.0, 0.7),
    ),
    FaultKind(
        name="agent-restarts",
        summary="gpuward's own agent is away for a few seconds (noise)",
        plan=Shows(first=Sign(), changes=(after(0, ch.GoesUnreachable(for_s=8.0)),)),
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(8.0, 0.0),
        alerts=False,
        checked=False,
    ),
)  # fmt: skip
