"""Drills of accelerators of other makers than NVIDIA: what their drivers log and show. Pure."""

from typing import Any

from agent.contract.messages import Severity, UnsentEvent
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import Drill, Plan, always, begin
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.state import MachineState

GPU = "gpu/0000:45:00"  # the GPU that has the faults
_AMD = f"amdgpu {GPU.partition('/')[2]}.0: amdgpu: "
_HUNG = "ring sdma1.2 timeout, signaled seq=1201, emitted seq=1203"
_HEARTBEAT = (
    "[ascend] [devdrv] [devdrv_heart_beat_device_down 201] <kworker/u8:1:77,77> device 3 heart beat exception is detected, "
    "device heart beat broken."
)
_FATAL, _INFO = Severity.FATAL, Severity.INFO


def _logged(*lines: str) -> Plan:
    return tuple(after(0.1 * n, ch.KernelLogs(text=_AMD + line)) for n, line in enumerate(lines))


def _says(*lines: str) -> Any:
    def plan(_: MachineState) -> Plan:
        return _logged(*lines)

    return plan


def _fault(name: str, *symptoms: UnsentEvent, recovery: tuple[UnsentEvent, ...] = ()) -> Any:
    return begin(Fault(name=name, component=GPU, fixes=(), symptoms=symptoms, recovery=recovery))


def _npu_fault(code: str, level: str, severity: Severity) -> Any:
    data: dict[str, Any] = {"code": code, "level": level, "active": True, "health": "Alarm", "message": ""}
    return _fault(f"fault {code}", event("gpu.fault", GPU, severity, **data))


DRILLS: tuple[Drill, ...] = (
    Drill(
        name="gpu-reset-failed",
        summary="amdgpu resets a GPU that hangs, and cannot bring it back.",
        nodes="one",
        ends="node.reboot of the drained node",
        plan=begin(
            Fault(
                name="reset failed",
                component=GPU,
                fixes=(Fix.REBOOT, Fix.CYCLE_POWER),
                symptoms=(
                    event(
                        "gpu.driver_reset",
                        GPU,
                        _FATAL,
                        state="failed",
                        message="GPU reset end with ret = -62",
                    ),
                ),
                recovery=(event("gpu.returned", GPU, _INFO, by="amdgpu"),),
            )
        ),
    ),
    Drill(
        name="gpu-driver-reset",
        summary="amdgpu resets a GPU that hangs, and it works again; its jobs have failed.",
        nodes="one",
        ends="by itself: the evidence is kept, and the incident closes after an hour without another",
        plan=_says(_HUNG, "GPU reset begin!", "GPU reset(2) succeeded!"),
        heals=False,
    ),
    Drill(
        name="gpu-hung",
        summary="amdgpu waits in vain for a GPU's queues, and does not reset it.",
        nodes="one",
        ends="it is not healed; the evidence is kept, and a person looks for the program",
        plan=_says("qcm fence wait loop timeout expired"),
        heals=False,
    ),
    Drill(
        name="gpu-overheated",
        summary="A GPU passes the temperature at which its driver shuts the system down.",
        nodes="one",
        ends="it is not healed; the node is drained, and a person repairs the cooling",
        plan=_says("ERROR: GPU over temperature range(SW CTF) detected!"),
        heals=False,
    ),
    Drill(
        name="gpu-pages-near",
        summary="A GPU has nine tenths of the bad memory pages at which amdgpu no longer starts it.",
        nodes="one",
        ends="it is not healed; the incident stays as a note for a week",
        plan=_says("RAS records:231 exceeds 90% of threshold:256"),
        heals=False,
    ),
    Drill(
        name="xgmi-link-down",
        summary="One of the xGMI links of a GPU is no longer active.",
        nodes="one",
        ends="it is not healed; the evidence is kept, and a person has the baseboard checked",
        plan=_fault(
            "xGMI link down", event("gpu.link_state", GPU, link_type="xgmi", down=1, active=6, links="3")
        ),
        heals=False,
    ),
    Drill(
        name="xgmi-link-errors",
        summary="An xGMI link of a GPU has too many bit errors.",
        nodes="one",
        ends="by itself: the evidence is kept, and the incident closes after an hour without another",
        plan=_says("XGMI PCS BERExceededErr detected"),
        heals=False,
    ),
    Drill(
        name="gpu-no-driver",
        summary="A GPU stands on the PCI bus, and its driver has not taken it.",
        nodes="one",
        ends="it is not healed; the evidence is kept, and a person loads the driver",
        plan=_fault("no driver", event("gpu.lost", GPU, reason="no_driver", by="amdgpu", index=2)),
        heals=False,
    ),
    Drill(
        name="npu-isolated",
        summary="An Ascend NPU has a fault code that no reset mends.",
        nodes="one",
        ends="it is not healed; the node is drained, the evidence kept, and a person has the NPU replaced",
        plan=_npu_fault("80E18402", "separate_npu", _FATAL),
        heals=False,
    ),
    Drill(
        name="npu-wants-restart",
        summary="An Ascend NPU has a fault code after which it must be restarted.",
        nodes="one",
        ends="it is not healed; the evidence is kept, and a person restarts the NPU",
        plan=_npu_fault("80C98001", "restart_npu", Severity.ERROR),
        heals=False,
    ),
    Drill(
        name="npu-unknown-fault",
        summary="An Ascend NPU has a fault code that no table has.",
        nodes="one",
        ends="it is not healed; a person looks the code up",
        plan=_npu_fault("8FFF0001", "unknown", Severity.UNKNOWN),
        heals=False,
    ),
    Drill(
        name="npu-heartbeat",
        summary="The driver of Ascend NPUs has lost the heartbeat of one, which it names by a number.",
        nodes="one",
        ends="it is not healed; a person finds the NPU with this number",
        plan=always(after(0, ch.KernelLogs(text=_HEARTBEAT))),
        heals=False,
    ),
    Drill(
        name="npu-smi-hung",
        summary="npu-smi does not end, and is killed.",
        nodes="one",
        ends="it is not healed; the evidence is kept, and a person looks at the driver",
        plan=begin(
            Fault(
                name="npu-smi hung",
                component="node",
                fixes=(),
                symptoms=(event("gpu.tool_hung", "node", tool="npu-smi", waited_s=20.0, times=1),),
            )
        ),
        heals=False,
    ),
)
