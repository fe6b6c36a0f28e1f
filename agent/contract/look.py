"""What the action agent.look tells again, and what its result means.

It tells the conditions that last, those that are present and those that are well: facts of the kinds `RESTATED`. A kind
that means that something happened is never told again. A source that could not look is named in the result's `blind`, by
the `source` of its kinds: silence about those proves nothing, and no fact of them is fresh.
"""

from collections.abc import Callable, Iterable, Mapping

from agent.contract.components import NODE, type_of

LOOK = "agent.look"  # always allowed: it only reads
RESTATED = frozenset(
    (
        *("gpu.lost", "gpu.answers", "gpu.removed", "gpu.idle", "gpu.busy", "gpu.spinning", "gpu.orphaned"),
        "gpu.holder_stuck",
        *("gpu.remap", "gpu.retired_pages", "gpu.sram_threshold", "gpu.throttle", "gpu.temperature"),
        *(
            "gpu.pcie_degraded",
            "gpu.nvlink_state",
            "gpu.nvlink_ber",
            "gpu.fabric",
            "gpu.link_state",
            "gpu.fault",
            "gpu.dcgm_health",
            "gpu.recovery_action",
            "gpu.setting",
        ),
        "gpu.power_capped",
        *("gpu.count", "nvml.hung", "nvml.answers"),
        *(
            "ib.port_state",
            "ib.device",
            "ib.degraded",
            "ib.sm_answer",
            "link.state",
            "bond.slaves",
            "bond.lacp",
            "link.busy",
        ),
        *(
            "service.state",
            "mount.state",
            "mount.space",
            "mount.slow",
            "mount.target",
            "node.module",
            "node.memory",
            "node.pressure",
        ),
        *("node.clock", "node.inventory", "node.settings", "disk.health", "optics.module"),
        *("probe.loss", "probe.slow"),
    )
)

# What the agent tells some time after its start, when its sources have looked (agent/look.py): collectors tell what begins and
# what ends, and what was present before a restart may have ended meanwhile. The symptom stays until one of these says so.
TOLD_AFTER_START = frozenset(("node.clock", "node.memory", "node.module", "node.pressure", "nvml.answers"))

# Kind → another `source` that tells it as well: NVML has events for XIDs, also where the kernel log cannot be read.
ALSO_TOLD_BY: Mapping[str, str] = {"gpu.xid": "NVML"}

# Source of the agent (agent/sources) → `source` of kinds.
SOURCES_OF_KINDS: Mapping[str, tuple[str, ...]] = {
    "kmsg": ("kernel log",),
    "udev": ("udev", "udev or NVML"),
    "netlink": ("rtnetlink",),
    "infiniband": ("/sys/class/infiniband",),
    "nic": ("ethtool counters",),
    "bond": ("/proc/net/bonding",),
    "node": ("/proc/modules", "/proc/meminfo", "/proc/pressure", "adjtimex"),
    "mounts": ("statvfs",),
    "nvme": ("NVMe health log",),
    "optics": ("memory of modules",),
    "inventory": ("/proc and /sys",),
    "storage": ("counters of file system clients",),
    "traffic": ("traffic counters",),
    "settings": ("settings of the node",),
    "power_caps": ("NVML",),
    # Facts that are common to all makers have the kinds that NVML's have.
    "amdgpu": ("accelerator driver", "NVML", "udev or NVML"),
    "ascend": ("accelerator driver", "NVML", "udev or NVML"),
    "nvml": ("NVML", "udev or NVML"),
    "dcgm": ("DCGM",),
    "systemd": ("systemd",),
    "joblog": ("job log",),
    "journal": ("job log",),
    "subnet": ("sminfo",),
    "probes": ("probes",),
    "fabric_manager": ("fabric manager's log",),
}
# What the agent says of itself and of its commands rests on no source.
OWN = frozenset(("agent", "uplink", "commands"))
# What is one cable or card has a name of each of these types, and they do not tell that they belong together.
_NETWORK = frozenset(("link", "bond", "port", "nic"))


def blind_sources(sources: Iterable[str]) -> str:
    """The result's `blind` when these sources of the agent could not look."""
    return ",".join(
        dict.fromkeys(name for source in sources for name in SOURCES_OF_KINDS.get(source, (source,)))
    )


def concerns(component: str) -> Callable[[str], bool]:
    """Whether what is told of another component concerns this one: itself and its parts, the node, and of the network all."""
    if component in ("", NODE):
        return lambda _: True
    network = type_of(component) in _NETWORK

    def wanted(other: str) -> bool:
        return (
            other in (NODE, component)
            or other.startswith(f"{component}/")
            or component.startswith(f"{other}/")
            or (network and type_of(other) in _NETWORK)
        )

    return wanted
