"""Kinds about a GPU's health, from samples of NVML. They report changes and growth: a healthy GPU causes no event.

What matters now and is true at the first sample already (a pending remap, a needed reset) is reported too; what counters
have counted before is not.
"""

from agent.contract.kinds.base import ERROR, INFO, WARNING, Field, Kind, field
from agent.contract.messages import Scalar, Severity


def _kind(
    name: str, severity: Severity, summary: str, fields: tuple[Field, ...], example: dict[str, Scalar]
) -> Kind:
    return Kind(
        name=name,
        component="gpu",
        severity=severity,
        source="NVML",
        summary=summary,
        fields=fields,
        example=example,
    )


_ACTIVE = field("active", "bool", "true: it began or got worse; false: it is over")
_JOB = field("job", "text", "job id of the holder; empty: no job")
_UNIT = field("unit", "text", "systemd unit of the holder; empty: none")

KINDS: tuple[Kind, ...] = (
    _kind(
        "gpu.ecc",
        ERROR,
        "An ECC error counter grew. Corrected errors are a warning, reported at most once a minute per location.",
        (
            field(
                "location",
                "text",
                "dram | sram | l1 | l2 | register | texture | cbu | total (not known where), or a block of AMD's: gfx, sdma, ...",
            ),
            field("corrected", "bool", "the errors were corrected"),
            field(
                "counter", "text", "volatile (since the driver was loaded) | aggregate (over the card's life)"
            ),
            field("delta", "int", "growth"),
            field("errors", "int", "the counter now"),
        ),
        {"location": "dram", "corrected": False, "counter": "volatile", "delta": 1, "errors": 1},
    ),
    _kind(
        "gpu.sram_threshold",
        ERROR,
        "Uncorrectable SRAM errors exceeded NVIDIA's threshold, above which the card is to be replaced; or no longer.",
        (field("exceeded", "bool", "it is exceeded"),),
        {"exceeded": True},
    ),
    _kind(
        "gpu.remap",
        ERROR,
        "Row remapping changed. Fatal when a remap failed, error while one waits for a reset, info when none is pending.",
        (
            field("pending", "bool", "rows wait for a reset of the GPU to be remapped"),
            field("failure", "bool", "a remap failed: the GPU is to be replaced"),
            field("corrected", "int", "rows remapped because of corrected errors"),
            field("uncorrected", "int", "rows remapped because of uncorrected errors"),
            field("banks_partial", "int", "banks with some spare rows left", always=False),
            field("banks_low", "int", "banks with few spare rows left", always=False),
            field("banks_none", "int", "banks without spare rows", always=False),
        ),
        {"pending": True, "failure": False, "corrected": 0, "uncorrected": 1, "banks_none": 0},
    ),
    _kind(
        "gpu.retired_pages",
        WARNING,
        "Page retirement changed (cards before Ampere). Error while a page waits for a reboot or reset.",
        (
            field("pending", "bool", "pages wait to be retired"),
            field("single_bit", "int", "pages retired because of corrected errors"),
            field("double_bit", "int", "pages retired because of uncorrected errors"),
        ),
        {"pending": True, "single_bit": 2, "double_bit": 1},
    ),
    _kind(
        "gpu.throttle",
        WARNING,
        "The hardware or heat slows a GPU down (in three samples; over after 10 s without).",
        (
            _ACTIVE,
            field("reasons", "text", "hw_slowdown, hw_thermal, sw_thermal, power_brake; comma separated"),
            field("thermal", "bool", "heat is among the reasons"),
            field("hardware", "bool", "the hardware itself slows it down, not only the driver"),
            field("power_brake", "bool", "the external power brake is among the reasons"),
            field("lasted_s", "float", "so far, or in total", "s"),
            field("temperature_c", "int", "temperature", "°C", always=False),
            field("power_w", "float", "power draw", "W", always=False),
        ),
        {
            "active": True,
            "reasons": "hw_slowdown,power_brake",
            "hardware": True,
            "thermal": False,
            "power_brake": True,
            "lasted_s": 2.0,
            "temperature_c": 61,
        },
    ),
    _kind(
        "gpu.temperature",
        ERROR,
        "A temperature reached its operating limit; over when it is 3 °C below.",
        (
            _ACTIVE,
            field("sensor", "text", "gpu | memory"),
            field("margin_c", "float", "distance to the limit; negative above it", "°C"),
            field(
                "temperature_c",
                "int",
                "temperature, where the limit is an absolute value",
                "°C",
                always=False,
            ),
        ),
        {"active": True, "sensor": "memory", "margin_c": -2.0, "temperature_c": 97},
    ),
    _kind(
        "gpu.pcie_degraded",
        WARNING,
        "The PCIe link has fewer lanes than it could, or is slower than it could while the GPU works.",
        (
            _ACTIVE,
            field("width", "int", "lanes"),
            field("width_max", "int", "lanes that card and slot could have"),
            field("generation", "int", "PCIe generation"),
            field("generation_max", "int", "generation that card and slot could have"),
        ),
        {"active": True, "width": 8, "width_max": 16, "generation": 5, "generation_max": 5},
    ),
    _kind(
        "gpu.pcie_errors",
        WARNING,
        "PCIe errors: corrected ones when there were more than 8 in a minute, others (severity error) at once.",
        (
            field("counter", "text", "replay, correctable, bad_tlp, lcrc, fatal, non_fatal, ..."),
            field("delta", "int", "growth"),
            field("value", "int", "the counter now"),
        ),
        {"counter": "replay", "delta": 12, "value": 40},
    ),
    _kind(
        "gpu.nvlink_state",
        ERROR,
        "A GPU has fewer active NVLinks than it had, or than other GPUs of the node have; info when it has them again.",
        (
            field("down", "int", "links that are missing; 0: no longer any"),
            field("active", "int", "links that are active"),
            field("expected", "int", "the most that it or another GPU had"),
            field("links", "text", "numbers of the inactive ones"),
        ),
        {"down": 1, "active": 17, "expected": 18, "links": "9"},
    ),
    _kind(
        "gpu.nvlink_errors",
        WARNING,
        "NVLink error counters grew; each at most once a minute, and all that grew together in one event. CRC errors, "
        "which are corrected, from 6000 a minute on.",
        (
            field(
                "counter",
                "text",
                "the worst: replay, recovery, crc, receive, recovery_failed, effective_errors, ...",
            ),
            field("delta", "int", "growth"),
            field("value", "int", "the counter now"),
            field(
                "link",
                "int",
                "the worst link; left out where the driver counts for all links together",
                always=False,
            ),
            field("links", "text", "the worst links with what grew", always=False),
            field("counters", "int", "how many grew", always=False),
        ),
        {"counter": "recovery", "delta": 1, "value": 3, "link": 9, "links": "9: recovery +1", "counters": 1},
    ),
    _kind(
        "gpu.nvlink_ber",
        WARNING,
        "The effective bit error rate of an NVLink is above 1e-12; repeated for each power of ten, and when it is over.",
        (
            _ACTIVE,
            field("link", "int", "the worst link; -1: none"),
            field("effective_ber", "float", "errors after correction", unit="1/bit"),
        ),
        {"active": True, "link": 9, "effective_ber": 5e-11},
    ),
    _kind(
        "gpu.fabric",
        ERROR,
        "The GPU is not part of the NVSwitch fabric as it should be, two minutes after the start; or is again.",
        (
            field("healthy", "bool", "it is part of the fabric, without problems"),
            field("state", "text", "not_started | in_progress | completed"),
            field("status", "int", "NVML return code of the fabric's set-up"),
            field(
                "trouble",
                "text",
                "degraded_bandwidth, route_unhealthy, no_partition, in_progress, ...; empty: none",
            ),
        ),
        {"healthy": False, "state": "completed", "status": 0, "trouble": "degraded_bandwidth"},
    ),
    _kind(
        "gpu.recovery_action",
        ERROR,
        "The driver needs an action before the GPU can be used again (as XID 154, but polled); info: no longer.",
        (
            field(
                "action",
                "int",
                "0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 recover IMEX domain, 6 bus reset, "
                "7 system reboot",
            ),
            field(
                "name",
                "text",
                "none | reset | reboot | drain_p2p | drain_and_reset | recover_imex_domain | bus_reset | "
                "system_reboot | unknown",
            ),
        ),
        {"action": 1, "name": "reset"},
    ),
    _kind(
        "gpu.power_capped",
        WARNING,
        "A power limit that gpuward has lowered stands (also every 15 minutes), or no longer (info).",
        (
            field("active", "bool", "it stands"),
            field("limit_w", "float", "the limit that was set", "W"),
            field("before_w", "float", "the limit before, which gpu.power_restore gives back", "W"),
        ),
        {"active": True, "limit_w": 490.0, "before_w": 700.0},
    ),
    _kind(
        "gpu.setting",
        INFO,
        "A setting changed while the agent watched; a warning when persistence mode or ECC was switched off. Also ECC that "
        "was off when the agent first saw a GPU that is delivered with it on.",
        (
            field(
                "what",
                "text",
                "persistence | mig | mig_pending | ecc.mode | ecc.mode_pending | power_limit | driver | vbios",
            ),
            field(
                "before",
                "text",
                "before; 0 and 1 for switches, mW for power_limit; as now where it is told again",
            ),
            field("now", "text", "now"),
            field(
                "found", "bool", "true: it was so when the agent first saw the GPU; absent else", always=False
            ),
        ),
        {"what": "persistence", "before": "1", "now": "0"},
    ),
    _kind(
        "gpu.nvml_event",
        WARNING,
        "NVML announced an event other than an XID (those are gpu.xid).",
        (
            field(
                "event", "text", "ecc_double_bit, ecc_single_bit_storm, poison_fatal, gpu_unavailable, ..."
            ),
            field("bit", "int", "nvmlEventType"),
            field("data", "int", "the data that NVML gives with it"),
        ),
        {"event": "gpu_unavailable", "bit": 16384, "data": 0},
    ),
    _kind(
        "gpu.spinning",
        WARNING,
        "Full utilisation at idle power over the whole idle window: a kernel that waits, e.g. in NCCL. Every 300 s.",
        (
            _ACTIVE,
            field("lasted_s", "float", "how long", "s"),
            field("utilization", "int", "utilisation", "%"),
            field("power_w", "float", "power draw", "W"),
            field("limit_w", "float", "power limit; idle power means below a quarter of it", "W"),
            _JOB,
            _UNIT,
        ),
        {
            "active": True,
            "lasted_s": 600.0,
            "utilization": 100,
            "power_w": 118.0,
            "limit_w": 700.0,
            "job": "4711",
            "unit": "",
        },
    ),
    _kind(
        "gpu.orphaned",
        WARNING,
        "More than 2 GiB in use and zero utilisation over the whole idle window, and no process holds the GPU. Every 300 s.",
        (
            _ACTIVE,
            field("lasted_s", "float", "how long", "s"),
            field("memory_mb", "int", "memory in use", "MiB"),
        ),
        {"active": True, "lasted_s": 600.0, "memory_mb": 70000},
    ),
    Kind(
        name="gpu.count",
        component="node",
        severity=ERROR,
        source="NVML",
        summary="Fewer GPUs answer than there should be, or another number of them is missing; info when none is missing.",
        fields=(
            field("gpus", "int", "GPUs that answer"),
            field("expected", "int", "GPUs that there should be"),
            field("missing", "int", "expected minus those that answer"),
            field("unnamed", "int", "missing GPUs without a gpu.lost: they are not even on the PCI bus"),
            field("basis", "text", "where the expectation comes from: config | pci | seen"),
        ),
        example={"gpus": 7, "expected": 8, "missing": 1, "unnamed": 1, "basis": "config"},
    ),
    Kind(
        name="nvml.refused",
        component="node",
        severity=ERROR,
        source="agent",
        summary="NVML cannot be opened, though GPUs are bound to NVIDIA's driver and it has had time to load. Told again "
        "when code or number change; ends with nvml.answers.",
        fields=(
            field(
                "what",
                "text",
                "what is the matter: driver | no_permission | no_device_files | no_library | other_version",
            ),
            field("code", "int", "nvmlReturn_t"),
            field("reason", "text", "the library's answer"),
            field("gpus", "int", "GPUs on the PCI bus that are bound to the driver"),
        ),
        example={"what": "driver", "code": 999, "reason": "Unknown Error", "gpus": 8},
    ),
    Kind(
        name="nvml.blind",
        component="node",
        severity=ERROR,
        source="agent",
        summary="Killed NVML children do not die (state D): none is started until one does. Ends with nvml.answers.",
        fields=(field("reason", "text", "how many there are"),),
        example={"reason": "3 killed children do not die"},
    ),
    Kind(
        name="gpu.minute",
        component="node",
        severity=INFO,
        source="NVML",
        summary="What the GPUs of one job did in a minute, where `compare_gpus` is on: told when it has moved, every ten "
        "minutes, and when the job is over. The lists are apart by blanks, in one order.",
        fields=(
            field("active", "bool", "false: the job has no GPU here any more"),
            field("job", "text", "job id of the GPUs' holders"),
            field("model", "text", "model of the GPUs; empty: not known"),
            field("gpus", "text", "their PCI addresses"),
            field("sm_mhz", "text", "median SM clock of each while it computed; 0: not known", "MHz"),
            field("power_w", "text", "mean power draw of each; 0: not known", "W"),
            field("busy", "text", "mean utilisation of each", "%"),
        ),
        example={
            "active": True,
            "job": "4711",
            "model": "NVIDIA H100 80GB HBM3",
            "gpus": "0000:1b:00 0000:45:00",
            "sm_mhz": "1980 1410",
            "power_w": "690 410",
            "busy": "100 100",
        },
        no_rule="the brain compares the nodes of a job by it, and tells gpu.straggler and node.straggler.",
    ),
)
