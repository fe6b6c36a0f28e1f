"""How the node is set up: what its BIOS and its boot have decided as the kernel shows it, mount options, and RoCE.

Only what is on the lists below is told: a kernel command line and mount options may hold passwords, and what differs between
equal nodes (addresses, disks) would make each of them differ. The value of a file that is not there is left out.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Self

from agent.collectors.samples import Sample
from agent.collectors.samples_node import NodeSettings
from agent.config import IB_ROOT
from agent.contract.counted import counted_names
from agent.contract.messages import MAX_TEXT
from agent.filesystems.mount_table import table, unescaped
from agent.host import Host
from agent.options import option
from agent.shared import dcb
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

_CPU = "/sys/devices/system/cpu"
_PAGES = "/sys/kernel/mm/hugepages"
# Parameters of the kernel that make a node slower, or keep GPUs and RDMA from working.
_BOOT = frozenset(
    (
        *(
            "iommu",
            "intel_iommu",
            "amd_iommu",
            "iommu.passthrough",
            "iommu.strict",
            "pci",
            "pcie_aspm",
            "pcie_ports",
        ),
        *("numa", "numa_balancing", "mitigations", "transparent_hugepage", "hugepages", "hugepagesz"),
        *("default_hugepagesz", "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "irqaffinity", "idle", "nosmt"),
        *(
            "intel_idle.max_cstate",
            "processor.max_cstate",
            "intel_pstate",
            "amd_pstate",
            "cpufreq.default_governor",
        ),
        *(
            "tsc",
            "clocksource",
            "crashkernel",
            "cgroup_enable",
            "systemd.unified_cgroup_hierarchy",
            "selinux",
        ),
        *("apparmor", "module_blacklist", "modprobe.blacklist", "rd.driver.blacklist", "nouveau.modeset"),
        *(
            "nvme_core.io_timeout",
            "nvme_core.multipath",
            "pci_hotplug",
            "memmap",
            "mem",
            "maxcpus",
            "nr_cpus",
        ),
    )
)
_BOOT_MODULES = ("nvidia", "mlx5_core.", "amdgpu.", "irdma.", "bnxt_")
_MOUNT = frozenset(
    (
        *(
            "rw",
            "ro",
            "hard",
            "soft",
            "softerr",
            "vers",
            "nfsvers",
            "minorversion",
            "proto",
            "rsize",
            "wsize",
            "timeo",
        ),
        *(
            "retrans",
            "nconnect",
            "max_connect",
            "sec",
            "xprtsec",
            "noatime",
            "relatime",
            "nodiratime",
            "strictatime",
        ),
        *(
            "flock",
            "localflock",
            "noflock",
            "lazystatfs",
            "nolazystatfs",
            "noac",
            "nolock",
            "local_lock",
            "fsc",
        ),
        *(
            "lookupcache",
            "actimeo",
            "acregmin",
            "acregmax",
            "acdirmin",
            "acdirmax",
            "nocto",
            "nosuid",
            "nodev",
        ),
        *(
            "noexec",
            "discard",
            "nobarrier",
            "barrier",
            "data",
            "errors",
            "largeio",
            "inode64",
            "noquota",
            "usrquota",
        ),
        *(
            "prjquota",
            "checksum",
            "nochecksum",
            "user_xattr",
            "sync",
            "async",
            "cache",
            "nodelalloc",
            "encrypt",
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSourceOptions:
    """What an operator can set."""

    settings_interval_s: float = option(
        0.0,
        "pause between looks at how the node is set up (boot parameters, what the BIOS has set, mount options, RoCE), which the "
        "brain compares with its peers; 0: not looked at",
        unit="s",
        least=0,
        example=3600.0,
    )


class SettingsSource(Source):
    """Emits NodeSettings at start and after each pause."""

    name: ClassVar[str] = "settings"
    needs: ClassVar[str] = "/proc/cmdline, /proc/mounts, /etc/fstab, /sys; only with `settings_interval_s`"
    options: ClassVar[tuple[type[Any], ...]] = (SettingsSourceOptions,)

    def __init__(
        self, host: Host, options: SettingsSourceOptions, *, ib_root: str = IB_ROOT, hang_s: float = 60.0
    ) -> None:
        self._host = host
        self._ib_root = ib_root
        self._poller = Poller(self._poll, what=self.name, period_s=options.settings_interval_s, hang_s=hang_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no interval is set."""
        options = setup.options(SettingsSourceOptions)
        if not options.settings_interval_s:
            return None
        return cls(setup.host, options, ib_root=setup.config.ib_root)

    async def run(self, emit: Emit) -> None:
        """Follow the settings until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The settings now."""
        for sample in self._poll():
            emit(sample)

    def _poll(self) -> list[Sample]:
        host = self._host
        return [
            NodeSettings(
                boot=_short("; ".join(sorted(_boot(host.read("/proc/cmdline"))))),
                processors=_short("; ".join(_processors(host))),
                mounts=_short("; ".join(_mounts(host))),
                rdma=_short(_rdma(host, self._ib_root)),
                mono_s=host.mono_s(),
            )
        ]


def _boot(text: str) -> Iterator[str]:
    for word in text.split():
        name = word.partition("=")[0]
        if name in _BOOT or name.startswith(_BOOT_MODULES):
            yield word


def _processors(host: Host) -> Iterator[str]:
    """What the BIOS and the boot have set of processors and memory."""
    frequency = f"{_CPU}/cpu0/cpufreq"
    turbo = {"0": "on", "1": "off"}.get(host.read(f"{_CPU}/intel_pstate/no_turbo"), "")
    boost = {"1": "on", "0": "off"}.get(host.read(f"{_CPU}/cpufreq/boost"), turbo)
    found = (
        ("SMT", host.read(f"{_CPU}/smt/control")),
        ("NUMA nodes", host.read("/sys/devices/system/node/online")),
        (
            "frequency",
            f"{host.read(f'{frequency}/scaling_driver')} {host.read(f'{frequency}/scaling_governor')}",
        ),
        ("boost", boost),
        ("idle states", " ".join(_idle_states(host))),
        ("IOMMU", host.read("/sys/kernel/iommu_groups/0/type")),
        ("huge pages", " ".join(_huge_pages(host))),
        ("transparent huge pages", _chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))),
    )
    for name, value in found:
        if value.strip():
            yield f"{name} {value.strip()}"


def _idle_states(host: Host) -> Iterator[str]:
    """Those that the kernel may use, by name."""
    base = f"{_CPU}/cpu0/cpuidle"
    for state in sorted(host.listdir(base)):
        if host.read(f"{base}/{state}/disable") != "1" and (name := host.read(f"{base}/{state}/name")):
            yield name


def _huge_pages(host: Host) -> Iterator[str]:
    for size in sorted(host.listdir(_PAGES)):
        number = host.read(f"{_PAGES}/{size}/nr_hugepages")
        if number not in ("", "0"):
            yield f"{number} x {size.removeprefix('hugepages-')}"


def _chosen(text: str) -> str:
    """`madvise` of `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0]


def _mounts(host: Host) -> Iterator[str]:
    """Options of the file systems in /etc/fstab that are mounted; what users and containers mount comes and goes."""
    rows = (line.split() for line in host.read("/etc/fstab").splitlines())
    meant = {unescaped(row[1]) for row in rows if len(row) > 2 and not row[0].startswith("#")}
    now: dict[str, str] = {}
    for row in (line.split(" ") for line in table(host).splitlines()):
        if len(row) > 3 and (path := unescaped(row[1])) in meant and row[2] != "autofs":
            options = sorted(one for one in row[3].split(",") if one.partition("=")[0] in _MOUNT)
            now[path] = f"{path} {row[2]} {','.join(options)}"
    yield from (now[path] for path in sorted(now))


def _rdma(host: Host, ib_root: str) -> str:
    """The devices by what is alike: model, NUMA node, and of RoCE the lossless priorities and how congestion is answered."""
    devices = (" ".join(_device(host, f"{ib_root}/{name}", name)) for name in host.listdir(ib_root))
    return counted_names(devices).replace(", ", "; ")


def _device(host: Host, base: str, name: str) -> Iterator[str]:
    yield host.read(f"{base}/hca_type") or name.rstrip("0123456789")
    if node := host.read(f"{base}/device/numa_node"):
        yield f"NUMA {node}"
    if host.read(f"{base}/ports/1/link_layer") != "Ethernet":
        return
    for link in host.listdir(f"{base}/device/net")[:1]:
        if host.live:
            with suppress(OSError):  # its driver does not tell, or it has just gone
                yield f"PFC {_numbers(dcb.lossless_priorities(link))}"
        for side, word in (("roce_np", "ECN marks"), ("roce_rp", "DCQCN")):
            folder = f"/sys/class/net/{link}/ecn/{side}/enable"
            if priorities := host.listdir(folder):
                yield f"{word} {_numbers(n for n in priorities if host.read(f'{folder}/{n}') == '1')}"
    if traffic := host.read(f"{base}/tc/1/traffic_class").partition("=")[2]:
        yield f"traffic class {traffic.split()[0]}"


def _numbers(priorities: Iterable[object]) -> str:
    return "+".join(sorted(str(one) for one in priorities)) or "none"


def _short(text: str) -> str:
    """What is cut keeps a digest, so that two long texts that differ at their ends are not equal."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT - 20]}… #{sha256(text.encode()).hexdigest()[:12]}"
