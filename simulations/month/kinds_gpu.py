"""Kinds of faults of GPUs, of their driver and of the jobs on them. Pure."""

from typing import Any

from agent.contract.messages import Severity, UnsentEvent
from simulations import changes as ch
from simulations.changes import after
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.month.kinds import Cured, FaultKind, Harm, Onset, PeerRemedy, Plan, begins

SAMPLE_S = 1.0  # the agent's pause between two samples of NVML
HUNG_S = 10.0  # after which a call of NVML counts as hung
_INFO = Severity.INFO
_DELTA = "92 % of uncorrectable memory errors of H100 are mitigated by a remap: arXiv 2503.11901v3"


def _bdf(onset: Onset) -> str:
    return list(onset.machine.gpus)[onset.part]


def _xid(onset: Onset, code: int, text: str) -> ch.ScheduledChange:
    return after(0.1, ch.KernelLogs(text=f"NVRM: Xid (PCI:{_bdf(onset)}): {code}, {text}"))


def _told(onset: Onset, *symptoms: UnsentEvent, recovery: tuple[UnsentEvent, ...] = ()) -> ch.ScheduledChange:
    fault = Fault(
        name=onset.name,
        component=f"gpu/{_bdf(onset)}",
        fixes=onset.fixes,
        symptoms=symptoms,
        recovery=recovery,
        shows_after_s=SAMPLE_S,
    )
    return after(0, ch.FaultBegins(fault=fault))


def _recovery(onset: Onset, action: int, name: str) -> ch.ScheduledChange:
    component = f"gpu/{_bdf(onset)}"
    wanted = event("gpu.recovery_action", component, action=action, name=name)
    well = event("gpu.recovery_action", component, _INFO, action=0, name="none")
    return _told(onset, wanted, recovery=(well,))


def _off_bus(onset: Onset) -> Plan:
    bdf = _bdf(onset)
    dead, warm = Fix.CYCLE_POWER not in onset.fixes, Fix.REBOOT in onset.fixes
    return (
        begins(onset, f"gpu/{bdf}"),
        after(0, ch.GpuLost(bdf=bdf, dead=dead, warm=warm)),
        _xid(onset, 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
        after(0.3, ch.NvmlQueried(bdf=bdf)),
        after(0.4, ch.GpuRemoved(bdf=bdf)),
    )


def _uncontained(onset: Onset) -> Plan:
    line = "pid=1234, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No"
    return _recovery(onset, 1, "reset"), _xid(onset, 95, line)


def _gsp(onset: Onset) -> Plan:
    line = "pid=1234, name=python3, Timeout after 45s of waiting for RPC response from GPU0 GSP! Expected function 76."
    return _recovery(onset, 1, "reset"), _xid(onset, 119, line)


def _engine_hang(onset: Onset) -> Plan:
    line = "pid=1234, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x1c009"
    return _recovery(onset, 1, "reset"), _xid(onset, 109, line)


def _row_marked(onset: Onset) -> Plan:
    component = f"gpu/{_bdf(onset)}"
    rows: dict[str, Any] = {"failure": False, "corrected": 0, "uncorrected": 1, "banks_none": 0}
    told = _told(
        onset,
        event("gpu.remap", component, pending=True, **rows),
        recovery=(event("gpu.remap", component, _INFO, pending=False, **rows),),
    )
    return (
        told,
        _xid(onset, 94, "pid=1234, name=python3, Contained: SM (0x1). RST: No, D-RST: No"),
        _xid(onset, 63, "pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate."),
    )


def _rows_spent(onset: Onset) -> Plan:
    component = f"gpu/{_bdf(onset)}"
    counts: dict[str, Any] = {"pending": False, "corrected": 0}
    return (
        _told(
            onset,
            event("gpu.remap", component, Severity.FATAL, failure=True, uncorrected=8, **counts),
            recovery=(event("gpu.remap", component, _INFO, failure=False, uncorrected=0, **counts),),
        ),
    )


def _nvlink(onset: Onset) -> Plan:
    component = f"gpu/{_bdf(onset)}"
    down = event("gpu.nvlink_state", component, down=1, active=17, expected=18, links="9")
    up = event("gpu.nvlink_state", component, _INFO, down=0, active=18, expected=18, links="")
    return (_told(onset, down, recovery=(up,)),)


def _hot(onset: Onset) -> Plan:
    component = f"gpu/{_bdf(onset)}"
    hot = event("gpu.temperature", component, active=True, sensor="gpu", margin_c=-1.0)
    cool = event("gpu.temperature", component, _INFO, active=False, sensor="gpu", margin_c=9.0)
    return (_told(onset, hot, recovery=(cool,)),)


def _silent(onset: Onset) -> Plan:
    return (begins(onset, f"gpu/{_bdf(onset)}" if onset.found else "node"),)


def _driver(onset: Onset) -> Plan:
    hung = event("nvml.hung", "node", call="nvmlDeviceGetTemperature", waited_s=10.0, times=1)
    answers = event("nvml.answers", "node", _INFO, after_s=180.0)
    fault = Fault(
        name=onset.name,
        component="node",
        fixes=onset.fixes,
        symptoms=(hung,),
        recovery=(answers,),
        shows_after_s=HUNG_S,
    )
    return (after(0, ch.FaultBegins(fault=fault)),)


def _watchdog(onset: Onset) -> Plan:
    """The watchdog says so when it ends the job; until then nothing shows."""
    job = next(iter(onset.machine.jobs), "")
    said = event("job.nccl_error", f"job/{job}", what="timeout", job=job, file=f"/var/log/jobs/{job}.log")
    return begins(onset, "node", target=job), *(
        (after(onset.lasts_s, ch.AgentSays(unsent=said)),) if job else ()
    )


def _program(onset: Onset) -> Plan:
    line = (
        "pid=1234, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
        "0x7f80_4e000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
    )
    return begins(onset, "node", target=next(iter(onset.machine.jobs), "")), _xid(onset, 31, line)


def _users_program(onset: Onset) -> Plan:
    line = "pid=1234, name=python3, Graphics Exception: ESR 0x504648=0x1000e 0x504650=0x0 0x504644=0xd3eff2 0x50464c=0x17f"
    return begins(onset, "node"), _xid(onset, 13, line)


def _corrected(onset: Onset) -> Plan:
    counted = event(
        "gpu.ecc",
        f"gpu/{_bdf(onset)}",
        Severity.WARNING,
        location="dram",
        corrected=True,
        counter="volatile",
        delta=3,
        errors=3,
    )
    return begins(onset, "node"), after(0.1, ch.AgentSays(unsent=counted))


KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="gpu-off-bus",
        summary="XID 79: a GPU falls off the bus",
        plan=_off_bus,
        harm=Harm.KILLS,
        seen_as="gpu-lost",
        cures={Fix.REBOOT: 0.3, Fix.CYCLE_POWER: 0.75},
        peer=PeerRemedy.REBOOT,
    ),
    FaultKind(
        name="gpu-uncontained",
        summary="XID 95: an uncontained memory error; the driver asks for a reset",
        plan=_uncontained,
        harm=Harm.KILLS,
        seen_as="gpu-fatal-xid",
        cures={Fix.RESET_GPU: 0.85, Fix.REBOOT: 0.92, Fix.CYCLE_POWER: 0.92},
        peer=PeerRemedy.RESET,
        source=_DELTA,
    ),
    FaultKind(
        name="gpu-gsp-timeout",
        summary="XID 119: the GPU's system processor does not answer",
        plan=_gsp,
        harm=Harm.KILLS,
        seen_as="gpu-fatal-xid",
        cures={Fix.RESET_GPU: 0.5, Fix.REBOOT: 0.85, Fix.CYCLE_POWER: 0.95},
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-engine-hang",
        summary="XID 109: an engine of a GPU does not switch contexts",
        plan=_engine_hang,
        harm=Harm.KILLS,
        seen_as="gpu-fatal-xid",
        cures={Fix.RESET_GPU: 0.8, Fix.REBOOT: 0.9, Fix.CYCLE_POWER: 0.95},
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-row-marked",
        summary="XID 94 and 63: a contained memory error; a row waits for a reset to be remapped",
        plan=_row_marked,
        harm=Harm.NONE,  # the program that met the error has ended; others run on
        seen_as="gpu-memory-reset",
        cures={Fix.RESET_GPU: 0.92, Fix.REBOOT: 0.92, Fix.CYCLE_POWER: 0.92},
        peer=PeerRemedy.RESET,
        source=_DELTA,
    ),
    FaultKind(
        name="gpu-rows-spent",
        summary="a row of a GPU's memory can no longer be remapped",
        plan=_rows_spent,
        harm=Harm.KILLS,
        seen_as="gpu-memory-replace",
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="nvlink-down",
        summary="an NVLink of a GPU is down",
        plan=_nvlink,
        harm=Harm.KILLS,
        seen_as="gpu-nvlink-down",
        cures={Fix.RESET_ALL_GPUS: 0.75, Fix.REBOOT: 0.8, Fix.CYCLE_POWER: 0.85},
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-hot",
        summary="a GPU is at its temperature limit",
        plan=_hot,
        harm=Harm.SLOWS,
        seen_as="gpu-thermal",
        cures={Fix.LIMIT_POWER: 0.7},
    ),
    FaultKind(
        name="gpu-silent",
        summary="a GPU computes wrongly, and nothing says so: the job sees it in its numbers",
        plan=_silent,
        harm=Harm.KILLS,
        lasts=(48 * 3600.0, 0.8),
        late=True,
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="driver-hung",
        summary="NVML calls no longer return",
        plan=_driver,
        harm=Harm.KILLS,
        seen_as="nvml-blind",
        cures={Fix.RELOAD_DRIVER: 0.6, Fix.REBOOT: 0.97, Fix.CYCLE_POWER: 0.98},
    ),
    FaultKind(
        name="job-hangs",
        summary="a collective of the job hangs, and no node is at fault: its watchdog ends it",
        plan=_watchdog,
        harm=Harm.HANGS,
        seen_as="job-hung",
        cured=Cured.JOB,
        lasts=(1800.0, 0.0),
        alerts=False,
        checked=False,
        source="an NCCL timeout takes 30 minutes to notice: arXiv 2401.00134",
    ),
    FaultKind(
        name="program-fails",
        summary="XID 31: a bug of the job's own program ends it",
        plan=_program,
        harm=Harm.KILLS,
        cured=Cured.JOB,
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="users-program-fails",
        summary="XID 13: somebody's small program fails; the node is well (noise)",
        plan=_users_program,
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(1.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="corrected-errors",
        summary="a burst of corrected memory errors (noise)",
        plan=_corrected,
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(1.0, 0.0),
        alerts=False,
        checked=False,
    ),
)
