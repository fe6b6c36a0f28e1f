"""Which lasting conditions make a node unfit for jobs, and how they are told in words. Pure; one table.

A condition is of one of the groups of agent/contract/fitness.py. Without being asked for more, a check counts only those of
the group `gpu`: what is the node's own. What many nodes share (a file server, a switch, a driver that was rolled out) would
otherwise drain a fleet, one prolog after the other. Here stands only what the agent also tells the end of: an XID has none, and
the GPU that it is about is soon lost, hung or asks for a reset, which stand here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.contract.components import name_of
from agent.contract.fitness import GPU
from agent.contract.messages import Scalar

Data = Mapping[str, Scalar]
_RESETS = frozenset((1, 2, 4, 6, 7))  # recovery actions without which the GPU cannot be used
_BACK = ("gpu.returned", "gpu.answers")
_NPU_RESTARTS = ("restart_npu", "restart_npu_when_free")
_USER_SPACE = ("no_permission", "no_device_files", "no_library", "other_version")
_NETWORK_MODULES = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_ipoib", "rdma_cm", "rdma_ucm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A kind of condition."""

    kind: str
    group: str
    # In words; of the component's name and the event's data.
    text: Callable[[str, Data], str]
    # Whether the event tells that it is present; one of severity info never does.
    when: Callable[[Data], bool] = lambda _: True
    # Other kinds that end it, of the same component. One of its own kind that is not present does.
    ends: tuple[str, ...] = ()
    # The field of the data that tells several conditions of one component apart; empty: there is one.
    by: str = ""
    # How long it must have lasted, seconds.
    for_s: float = 0.0


TABLE: tuple[Unfit, ...] = (
    Unfit(
        kind="gpu.lost",
        group=GPU,
        text=lambda name, data: f"GPU {name} is lost ({data['reason']})",
        ends=_BACK,
    ),
    Unfit(
        kind="gpu.removed",
        group=GPU,
        text=lambda name, _: f"GPU {name} is gone from the PCI bus",
        ends=_BACK,
    ),
    Unfit(
        kind="gpu.count",
        group=GPU,
        text=lambda _, data: f"{data['gpus']} of {data['expected']} GPUs answer",
        when=lambda data: _number(data, "unnamed") > 0,  # the others are gpu.lost by their names
    ),
    Unfit(
        kind="gpu.recovery_action",
        group=GPU,
        text=lambda name, data: f"GPU {name} needs {str(data['name']).replace('_', ' ')}",
        when=lambda data: data["action"] in _RESETS,
        ends=("gpu.returned",),
    ),
    Unfit(
        kind="gpu.fabric",
        group=GPU,
        text=lambda name, data: (
            f"GPU {name} is not in the NVSwitch fabric ({data['state']}, status {data['status']})"
        ),
        # Where the set-up is complete, the GPU can be used; its troubles are degraded bandwidth and the like.
        when=lambda data: data["state"] != "completed" or data["status"] != 0,
        ends=("gpu.returned",),
    ),
    Unfit(
        kind="gpu.holder_stuck",
        group=GPU,
        text=lambda name, data: (
            f"GPU {name} is held by {data['process']} (pid {data['pid']}, state {data['state']}), which no signal ends"
        ),
        when=lambda data: bool(data["active"]),
        ends=("gpu.returned",),
    ),
    Unfit(
        kind="nvml.hung",
        group=GPU,
        text=lambda _, data: f"the GPU driver hangs in {data['call']}",
        ends=("nvml.answers",),
        for_s=120.0,  # twelve deadlines: a machine under load may answer late
    ),
    Unfit(
        kind="nvml.blind",
        group=GPU,
        text=lambda _, data: f"the GPU driver hangs for good: {data['reason']}",
        ends=("nvml.answers",),
    ),
    Unfit(
        kind="nvml.refused",
        group=GPU,
        text=lambda _, data: f"the GPU driver lets no program in: {data['reason']} ({data['code']})",
        when=lambda data: data["what"] == "driver",
        ends=("nvml.answers",),
    ),
    Unfit(
        kind="node.module",
        group=GPU,
        text=lambda _, data: f"kernel module {data['module']} is not loaded",
        when=lambda data: data["module"] in ("nvidia", "nvidia_uvm"),
        by="module",
    ),
    Unfit(
        kind="gpu.fault",
        group=GPU,
        text=lambda name, data: f"NPU {name} has fault code {data['code']}, which takes it out of service",
        when=lambda data: bool(data["active"]) and data["level"] == "separate_npu",
        by="code",
    ),
    # --- only where the site asks for it ---
    Unfit(
        kind="gpu.fault",
        group="degraded",
        text=lambda name, data: f"NPU {name} has fault code {data['code']}, which wants a restart of it",
        when=lambda data: bool(data["active"]) and data["level"] in _NPU_RESTARTS,
        by="code",
    ),
    Unfit(
        kind="gpu.link_state",
        group="degraded",
        text=lambda name, data: f"GPU {name} has {data['down']} {data['link_type']} links down",
        when=lambda data: _number(data, "down") > 0,
        by="link_type",
    ),
    Unfit(
        kind="gpu.sram_threshold",
        group="degraded",
        text=lambda name, _: f"GPU {name} has more SRAM errors than NVIDIA allows",
        ends=("gpu.returned",),
    ),
    Unfit(
        kind="gpu.remap",
        group="degraded",
        text=lambda name, data: (
            f"memory of GPU {name} "
            + ("could not be remapped" if data["failure"] else "waits for a reset to be remapped")
        ),
        when=lambda data: bool(data["failure"] or data["pending"]),
        ends=("gpu.returned",),
    ),
    Unfit(
        kind="gpu.retired_pages",
        group="degraded",
        text=lambda name, _: f"memory pages of GPU {name} wait for a reboot to be retired",
        when=lambda data: bool(data["pending"]),
        ends=("gpu.returned",),
    ),
    Unfit(
        kind="gpu.throttle",
        group="degraded",
        text=lambda name, data: f"GPU {name} is slowed down ({data['reasons']})",
        when=lambda data: bool(data["active"]),
    ),
    Unfit(
        kind="gpu.temperature",
        group="degraded",
        text=lambda name, data: f"GPU {name} is too hot ({data['sensor']})",
        when=lambda data: bool(data["active"]),
        by="sensor",
    ),
    Unfit(
        kind="gpu.pcie_degraded",
        group="degraded",
        text=lambda name, data: (
            f"GPU {name} has PCIe x{data['width']} of x{data['width_max']}, "
            f"generation {data['generation']} of {data['generation_max']}"
        ),
        when=lambda data: bool(data["active"]),
    ),
    Unfit(
        kind="gpu.nvlink_state",
        group="degraded",
        text=lambda name, data: f"GPU {name} has {data['active']} of {data['expected']} NVLinks",
        when=lambda data: _number(data, "down") > 0,
    ),
    Unfit(
        kind="gpu.nvlink_ber",
        group="degraded",
        text=lambda name, data: f"NVLink {data['link']} of GPU {name} has bit errors",
        when=lambda data: bool(data["active"]),
    ),
    Unfit(
        kind="nvml.refused",
        group="software",
        text=lambda _, data: f"no program can use the GPUs: {data['reason']} ({data['what']})",
        when=lambda data: data["what"] in _USER_SPACE,
        ends=("nvml.answers",),
    ),
    Unfit(
        kind="node.module",
        group="software",
        text=lambda _, data: f"kernel module {data['module']} is not loaded",
        when=lambda data: data["module"] not in ("nvidia", "nvidia_uvm", *_NETWORK_MODULES),
        by="module",
    ),
    Unfit(
        kind="service.state",
        group="software",
        text=lambda name, data: f"{name} is {data['active']}",
    ),
    Unfit(
        kind="node.module",
        group="network",
        text=lambda _, data: f"kernel module {data['module']} is not loaded",
        when=lambda data: data["module"] in _NETWORK_MODULES,
        by="module",
    ),
    Unfit(
        kind="ib.device",
        group="network",
        text=lambda name, _: f"InfiniBand device {name} is gone",
    ),
    Unfit(
        kind="ib.port_state",
        group="network",
        text=lambda name, data: f"InfiniBand port {name} is {data['state']}",
    ),
    Unfit(
        kind="ib.degraded",
        group="network",
        text=lambda name, data: (
            f"InfiniBand port {name} has {data['what']} {data['value']}, not {data['expected']}"
        ),
        when=lambda data: bool(data["degraded"]),
        by="what",
    ),
    Unfit(
        kind="link.state",
        group="network",
        text=lambda name, data: f"network interface {name} is {data['operstate']}",
        ends=("link.moved",),
    ),
    Unfit(
        kind="bond.slaves",
        group="network",
        text=lambda name, data: f"{name} has {data['up']} of {data['slaves']} links",
        when=lambda data: bool(data["degraded"]),
        ends=("bond.removed",),
    ),
    Unfit(
        kind="bond.lacp",
        group="network",
        text=lambda name, _: f"{name}: the switch does not bundle its links (LACP)",
        ends=("bond.removed",),
    ),
    Unfit(
        kind="mount.state",
        group="storage",
        text=lambda name, data: f"file system {name} is {data['state']}",
    ),
    Unfit(
        kind="mount.space",
        group="storage",
        text=lambda name, data: f"file system {name} is full ({data['what']})",
        when=lambda data: bool(data["full"]),
        by="what",
    ),
    Unfit(
        kind="disk.health",
        group="storage",
        text=lambda name, data: f"disk {name} {_ill_disk(data)}",
        when=lambda data: bool(_ill_disk(data)),
    ),
    Unfit(
        kind="node.memory",
        group="host",
        text=lambda _, data: f"{data['available_mb']} MiB of memory left",
        when=lambda data: bool(data["low"]),
    ),
    Unfit(
        kind="node.pressure",
        group="host",
        text=lambda _, data: f"tasks wait for {data['resource']} ({data['full_percent']} % of the time)",
        when=lambda data: bool(data["high"]),
        by="resource",
    ),
    Unfit(
        kind="node.clock",
        group="host",
        text=lambda _, _data: "the clock is off or not synchronised",
        when=lambda data: not data["well"],
    ),
)
# Kinds that agent.look tells again as present, and that say nothing against a node → why.
FIT: Mapping[str, str] = {
    "gpu.idle": "a job that does not use its GPU",
    "gpu.spinning": "a job that waits",
    "link.busy": "a full link is no fault",
    "mount.slow": "many nodes share the server",
    "mount.target": "many nodes share the target",
    "gpu.orphaned": "memory of a job that is over; the brain decides what is done about it",
    "gpu.power_capped": "gpuward has lowered the limit itself, and jobs run",
    "gpu.dcgm_health": "what ends jobs is told by the kinds above as well; what only DCGM finds, jobs run on with",
    "ib.sm_answer": "the subnet manager is the whole fabric's",
    "probe.loss": "at which end of a path the fault is, only the words of both tell the brain",
    "probe.slow": "at which end of a path the fault is, only the words of both tell the brain",
    "optics.module": "the link works, and tells itself when it no longer does",
}


def text_of(row: Unfit, component: str, data: Data) -> str:
    """The condition in words."""
    return row.text(name_of(component), data)


def _number(data: Data, name: str) -> float:
    value = data.get(name, 0)
    return value if isinstance(value, int | float) else 0


def _ill_disk(data: Data) -> str:
    """What a disk that works no longer as one should says of itself; empty: it works, if worn."""
    if not data["answers"]:
        return "does not answer"
    if data.get("read_only"):
        return "can only be read"
    return "is no longer reliable" if data.get("unreliable") else ""
