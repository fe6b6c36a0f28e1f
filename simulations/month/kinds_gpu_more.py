"""Further kinds of faults of GPUs, NVLinks and their driver: memory, links, power, heat, PCIe, settings. Pure."""

from simulations.faults import Fix
from simulations.month.kinds import Cured, FaultKind, Harm, PeerRemedy
from simulations.month.signs import Facts, Says, Shows, Sign, logs, says, shows, unit_fails, well
from simulations.parts import FABRIC_MANAGER

_GPU = "gpu/{gpu}"
_PID = "pid=1234, name=python3"
_DOUBLE_BIT = (
    "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 1."
)
_NO_ROW = "Row Remapper Error: (0x0) - All reserved rows for bank are remapped"
_NETIR = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
_LOCKED = "NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7"
_PCIE_FATAL = "PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"
_FIELD = "job failure probability by XID: arXiv 2503.11901v3"


def _xid(code: int, text: str) -> str:
    return f"NVRM: Xid (PCI:{{gpu}}): {code}, {text}"


def _throttle(reasons: str, *, thermal: bool, hardware: bool, brake: bool) -> Shows:
    facts: Facts = {"reasons": reasons, "thermal": thermal, "hardware": hardware, "power_brake": brake}
    over: Facts = {"reasons": "", "thermal": False, "hardware": False, "power_brake": False}
    return shows(
        _GPU,
        says("gpu.throttle", active=True, lasted_s=2.0, more=facts),
        well=(well("gpu.throttle", active=False, lasted_s=0.0, more=over),),
        after_s=3.0,
    )


def _recovers(delta: int, value: int) -> Says:
    return says("gpu.nvlink_errors", counter="recovery", delta=delta, value=value, link=9, counters=1)


_NVLINK_DOWN = says("gpu.nvlink_state", down=1, active=17, expected=18, links="9")
_NVLINK_UP = well("gpu.nvlink_state", down=0, active=18, expected=18, links="")
_RESET = says("gpu.recovery_action", action=1, name="reset")
_NO_RESET = well("gpu.recovery_action", action=0, name="none")
_HUNG = says("nvml.hung", call="nvmlDeviceGetTemperature", waited_s=10.0, times=1)
_ANSWERS = well("nvml.answers", after_s=180.0)
_UNBOUND = says("gpu.count", "node", gpus=7, expected=8, missing=1, unnamed=1, basis="config")
_ALL_GPUS = well("gpu.count", "node", gpus=8, expected=8, missing=0, unnamed=0, basis="config")

KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="gpu-double-bit",
        summary="XID 48: an uncorrectable error in a GPU's memory ends the job; a row waits to be remapped",
        plan=shows(
            _GPU,
            says("gpu.remap", pending=True, failure=False, corrected=0, uncorrected=1, banks_none=0),
            well=(well("gpu.remap", pending=False, failure=False, corrected=0, uncorrected=1, banks_none=0),),
            lines=(_xid(48, f"{_PID}, {_DOUBLE_BIT}"),),
            after_s=1.0,
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_GPU: 0.92, Fix.REBOOT: 0.92, Fix.CYCLE_POWER: 0.92},
        seen_as="gpu-fatal-xid",
        peer=PeerRemedy.RESET,
        source=_FIELD,
    ),
    FaultKind(
        name="gpu-remap-failed",
        summary="XID 64: a row could not be remapped, and the driver says so",
        plan=logs(_xid(64, f"pid=1896, name=nvidia-persiste, {_NO_ROW}"), component=_GPU),
        harm=Harm.KILLS,
        seen_as="gpu-memory-replace",
        peer=PeerRemedy.RESET,
        source=_FIELD,
    ),
    FaultKind(
        name="gpu-ecc-uncorrected",
        summary="NVML counts uncorrectable errors of a GPU's memory, and the driver logs none",
        plan=shows(
            _GPU, says("gpu.ecc", location="dram", corrected=False, counter="volatile", delta=1, errors=1), after_s=1.0
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_GPU: 0.8, Fix.REBOOT: 0.85, Fix.CYCLE_POWER: 0.85},
        seen_as="gpu-ecc",
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-many-corrected",
        summary="XID 92: a GPU corrects very many memory errors; they stop (noise)",
        plan=logs(_xid(92, "pid='<unknown>', name=<unknown>, High single-bit ECC error rate"), component=_GPU),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="gpu-ecc",
        lasts=(1200.0, 0.8),
        alerts=False,
        checked=False,
        source="94 % of corrected errors follow another within the hour: arXiv 2508.03513",
    ),
    FaultKind(
        name="gpu-halted",
        summary="XID 62: a GPU's micro-controller halts; a reset in band may leave it without its driver",
        plan=Shows(
            first=Sign(
                component=_GPU, bad=(_RESET,), well=(_NO_RESET,), after_s=1.0,
                lines=(_xid(62, "pid=2517, name=nv-hostengine, 20e2(2d08) 00000000 00000000"),),
            ),
            worse=Sign(
                component=_GPU, bad=(_RESET,), well=(_NO_RESET,), after_s=1.0,
                lines=("NVRM: GPU {gpu}.0: RmInitAdapter failed! (0x62:0x40:2393)",),
            ),
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_GPU: 0.5, Fix.REBOOT: 0.75, Fix.CYCLE_POWER: 0.85},
        seen_as="gpu-fatal-xid",
        worsens={Fix.RESET_GPU: 0.15},
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-init-failed",
        summary="the driver cannot initialise a GPU",
        plan=logs("NVRM: GPU {gpu}.0: RmInitAdapter failed! (0x62:0x40:2393)", component=_GPU),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.4, Fix.CYCLE_POWER: 0.7},
        seen_as="gpu-init-failed",
        peer=PeerRemedy.REBOOT,
    ),
    FaultKind(
        name="gpu-missing",
        summary="a GPU is not even on the PCI bus",
        plan=shows("node", _UNBOUND, well=(_ALL_GPUS,), after_s=30.0),
        harm=Harm.KILLS,
        cures={Fix.CYCLE_POWER: 0.5},
        seen_as="gpus-missing",
    ),
    FaultKind(
        name="gpu-locked",
        summary="the driver waits for a GPU that does not answer its watchdog",
        plan=logs(_LOCKED, component=_GPU, every_s=600.0),
        harm=Harm.KILLS,
        cures={Fix.RESET_GPU: 0.5, Fix.REBOOT: 0.9, Fix.CYCLE_POWER: 0.95},
        seen_as="gpu-locked",
    ),
    FaultKind(
        name="gpu-flash",
        summary="XID 122: a GPU's firmware cannot reach its flash",
        plan=logs(_xid(122, "pid='<unknown>', name=<unknown>, SPI PMU RPC read failure"), component=_GPU),
        harm=Harm.KILLS,
        seen_as="gpu-firmware-flash",
        peer=PeerRemedy.RESET,
        source=_FIELD,
    ),
    FaultKind(
        name="gpu-power-cable",
        summary="XID 54: a GPU's auxiliary power is not connected",
        plan=logs(_xid(54, "External power connector is not attached"), component=_GPU),
        harm=Harm.SLOWS,
        seen_as="gpu-power-connector",
    ),
    FaultKind(
        name="gpu-pcie-timeout",
        summary="XID 167: a fatal timeout of a GPU on PCIe",
        plan=logs(_xid(167, "PCIE fatal timeout"), component=_GPU),
        harm=Harm.KILLS,
        cures={Fix.CYCLE_POWER: 0.4},
        seen_as="gpu-hardware-error",
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-pcie-fatal",
        summary="a PCIe error of a GPU that its hardware could not correct",
        plan=logs("nvidia {gpu}.0: " + _PCIE_FATAL, component=_GPU),
        harm=Harm.KILLS,
        cures={Fix.CYCLE_POWER: 0.4},
        seen_as="pcie-fatal",
    ),
    FaultKind(
        name="gpu-pcie-narrow",
        summary="a GPU's PCIe link trained at half of its width",
        plan=shows(
            _GPU,
            says("gpu.pcie_degraded", active=True, width=8, width_max=16, generation=5, generation_max=5),
            well=(well("gpu.pcie_degraded", active=False, width=16, width_max=16, generation=5, generation_max=5),),
            after_s=10.0,
        ),
        harm=Harm.SLOWS,
        cures={Fix.CYCLE_POWER: 0.3},
        seen_as="gpu-pcie",
        source="PCIe downgrades are 6.6 to 8.6 % of Minder's faults; the share that a power cycle ends is stated here",
    ),
    FaultKind(
        name="gpu-throttled",
        summary="a GPU's hardware slows it down by heat",
        plan=_throttle("hw_thermal", thermal=True, hardware=True, brake=False),
        harm=Harm.SLOWS,
        cures={Fix.LIMIT_POWER: 0.7},
        seen_as="gpu-thermal",
    ),
    FaultKind(
        name="gpu-warm",
        summary="the driver lowers a GPU's clocks for a while, as it should in the heat (noise)",
        plan=_throttle("sw_thermal", thermal=True, hardware=False, brake=False),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="gpu-warm",
        lasts=(1800.0, 0.6),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="gpu-power-brake",
        summary="the power brake of a chassis slows a GPU down for as long as its supplies are short",
        plan=_throttle("hw_slowdown,power_brake", thermal=False, hardware=True, brake=True),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="gpu-power-brake",
        lasts=(3600.0, 0.8),
    ),
    FaultKind(
        name="gpu-power-capped",
        summary="somebody lowered a GPU's power limit, and forgot it",
        plan=shows(
            _GPU,
            says("gpu.power_capped", active=True, limit_w=490.0, before_w=700.0),
            well=(well("gpu.power_capped", active=False, limit_w=700.0, before_w=490.0),),
            after_s=30.0,
        ),
        harm=Harm.SLOWS,
        seen_as="gpu-power-capped",
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="nvlink-errs",
        summary="an NVLink recovers from ever more errors",
        plan=Shows(
            first=Sign(component=_GPU, bad=(_recovers(1, 1),), after_s=1.0),
            grows=(
                (600.0, Sign(component=_GPU, bad=(_recovers(4, 5),))),
                (3600.0, Sign(component=_GPU, bad=(_recovers(30, 35),))),
            ),
        ),
        harm=Harm.SLOWS,
        cures={Fix.RESET_ALL_GPUS: 0.6, Fix.REBOOT: 0.65, Fix.CYCLE_POWER: 0.7},
        seen_as="gpu-nvlink-errors",
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="nvlink-once",
        summary="XID 74: one error of an NVLink ends the job that used it",
        plan=logs(_xid(74, "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)")),
        harm=Harm.KILLS,
        cured=Cured.JOB,
        seen_as="gpu-nvlink-errors",
        peer=PeerRemedy.RESET,
        source=_FIELD,
    ),
    FaultKind(
        name="nvlink-marginal",
        summary="an NVLink is down; a reset brings it back for hours, until it is down again",
        plan=shows(_GPU, _NVLINK_DOWN, well=(_NVLINK_UP,), after_s=1.0),
        harm=Harm.KILLS,
        cures={Fix.CYCLE_POWER: 0.1},
        seen_as="gpu-nvlink-down",
        soothes={Fix.RESET_ALL_GPUS: 0.7, Fix.REBOOT: 0.7, Fix.CYCLE_POWER: 0.7},
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="nvlink5-event",
        summary="XID 149 (Blackwell): an NVLink goes down for the link itself",
        plan=shows(
            _GPU,
            _RESET,
            well=(_NO_RESET,),
            lines=(_xid(149, f"{_PID}, {_NETIR}"),),
            after_s=1.0,
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_GPU: 0.5, Fix.REBOOT: 0.6, Fix.CYCLE_POWER: 0.7},
        seen_as="gpu-fatal-xid",
        peer=PeerRemedy.RESET,
        source="145 and 149 are 29.4 % of the failures of 504 B200: arXiv 2605.09370",
    ),
    FaultKind(
        name="nvlink-discovery",
        summary="the driver asks for its NVLinks' partners again and again, and new programs hang",
        plan=logs("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!", every_s=60.0),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.9, Fix.CYCLE_POWER: 0.95},
        seen_as="gpu-nvlink-discovery-failed",
    ),
    FaultKind(
        name="nvswitch-fatal",
        summary="a fatal SXid: traffic through an NVSwitch is unsafe",
        plan=logs(
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            component="nvswitch/0000:c1:00",
            again=True,
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_ALL_GPUS: 0.7, Fix.REBOOT: 0.75, Fix.CYCLE_POWER: 0.85},
        seen_as="nvswitch-fatal",
        peer=PeerRemedy.RESET,
    ),
    FaultKind(
        name="gpu-outside-fabric",
        summary="a GPU is in no NVSwitch fabric, though its fabric manager runs",
        plan=shows(
            _GPU,
            says("gpu.fabric", healthy=False, state="completed", status=1, trouble="not_registered"),
            well=(well("gpu.fabric", healthy=True, state="completed", status=0, trouble=""),),
            after_s=30.0,
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_ALL_GPUS: 0.6, Fix.REBOOT: 0.9, Fix.CYCLE_POWER: 0.95},
        seen_as="gpu-nvlink-down",
    ),
    FaultKind(
        name="fabric-manager-failed",
        summary="the fabric manager fails: no job can start on the node's GPUs",
        plan=unit_fails(FABRIC_MANAGER),
        harm=Harm.KILLS,
        cures={Fix.RESTART_FABRIC_MANAGER: 0.8, Fix.REBOOT: 0.95, Fix.CYCLE_POWER: 0.95},
        seen_as="fabric-manager-down",
    ),
    FaultKind(
        name="gpu-orphaned",
        summary="a GPU's memory is in use, and no process has it",
        plan=shows(
            _GPU,
            says("gpu.orphaned", active=True, lasted_s=600.0, memory_mb=70_000),
            well=(well("gpu.orphaned", active=False, lasted_s=0.0, memory_mb=0),),
            after_s=600.0,
        ),
        harm=Harm.NONE,
        cures={Fix.RESET_GPU: 0.95, Fix.RELOAD_DRIVER: 0.97, Fix.REBOOT: 1.0, Fix.CYCLE_POWER: 1.0},
        seen_as="gpu-orphaned",
        alerts=False,
    ),
    FaultKind(
        name="gpu-persistence-off",
        summary="persistence mode of a GPU is switched off",
        plan=shows(
            _GPU,
            says("gpu.setting", what="persistence", before="1", now="0"),
            well=(well("gpu.setting", what="persistence", before="0", now="1"),),
            after_s=60.0,
        ),
        harm=Harm.NONE,
        cures={Fix.PERSISTENCE: 1.0, Fix.REBOOT: 1.0, Fix.CYCLE_POWER: 1.0},
        seen_as="gpu-persistence-off",
        alerts=False,
    ),
    FaultKind(
        name="driver-mismatch",
        summary="an upgrade stopped halfway: no program can open a GPU",
        plan=logs(
            "NVRM: API mismatch: the client has the version 570.86.10, but\n"
            "NVRM: this kernel module has the version 550.54.15.  Please\n"
            "NVRM: make sure that this kernel module and all NVIDIA driver\n"
            "NVRM: components have the same version.\n",
            every_s=300.0,
            again=True,
        ),
        harm=Harm.KILLS,
        cures={Fix.RELOAD_DRIVER: 0.9, Fix.REBOOT: 0.97, Fix.CYCLE_POWER: 0.97},
        seen_as="driver-mismatch",
        alerts=False,
    ),
    FaultKind(
        name="driver-ages",
        summary="NVML calls hang; a reload or a boot helps for days, until the driver is replaced",
        plan=shows("node", _HUNG, well=(_ANSWERS,), after_s=10.0),
        harm=Harm.KILLS,
        seen_as="nvml-blind",
        soothes={Fix.RELOAD_DRIVER: 0.6, Fix.REBOOT: 1.0, Fix.CYCLE_POWER: 1.0},
        relapses=(3 * 86400.0, 0.7),
    ),
    FaultKind(
        name="driver-pauses",
        summary="NVML does not answer for a minute, and then does (noise)",
        plan=shows("node", _HUNG, well=(_ANSWERS,), after_s=10.0),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="agent-trouble",
        lasts=(60.0, 0.2),
        alerts=False,
        checked=False,
    ),
)  # fmt: skip
