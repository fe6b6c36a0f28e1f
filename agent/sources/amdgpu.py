"""AMD's GPUs, by what their driver shows under /sys: no tool, no library, no privilege.

Files: Linux, Documentation/gpu/amdgpu (driver-misc.rst, thermal.rst, ras.rst), amdgpu_ras.c (`ras/<block>_err_count`),
amdgpu_vram_mgr.c, amdgpu_device.c (`pcie_replay_count`), and amdkfd's kfd_process.c (`/sys/class/kfd/kfd/proc`). Reading an
error count asks the hardware; amdgpu adds up what it reads, so that the file counts since the driver was loaded.

While the driver resets a GPU its files are refused (EPERM): nothing is known of it then. One that is suspended is not woken.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from agent.collectors.samples import Gpu, GpuCount, GpuHealth, GpuProcess, GpuTemperatures, Sample
from agent.contract.accelerators import AMD
from agent.contract.owner import Owner
from agent.host import Host
from agent.options import off_or, option
from agent.process_owner import owner_of
from agent.shared import amdgpu_metrics
from agent.shared.amdgpu_metrics import AmdMetrics
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.pci_bus import PCI, ExpectedGpus, off_bus, on_bus
from agent.sources.poll import Poller

_KFD = "/sys/class/kfd/kfd"
_HANG_S = 60.0
_SETTLE_POLLS = 2  # a number of GPUs counts when it was seen so often in a row
_LOADS_S = 60.0  # for so long the driver may take a GPU, after a boot one after the other
_HEALTH_S = 60.0  # between readings of counters
# Of a block (amdgpu_ras.c, ras_block_string); `umc` is the memory controller of the HBM.
_COUNTER = re.compile(r"([a-z0-9_]{1,24})_err_count")
_COUNTS = re.compile(r"^(ue|ce): ([0-9]{1,18})$", re.MULTILINE)
_ALL_ONES = (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)  # what a register of a GPU reads as that is off the bus
_LOCATIONS = {"umc": "dram"}
_LINKS = "xgmi_wafl"  # the block of the links between GPUs
# NVML's bits, which the agent has for all vendors: what slows a GPU down because of heat, or at a signal from outside.
_SLOWED = {"prochot": 0x8, "socket_thermal": 0x40, "vr_thermal": 0x40, "hbm_thermal": 0x40}
_TEMPERATURES = frozenset(("memory_temp",))
_GENERATIONS = {
    "2.5": 1,
    "5.0": 2,
    "8.0": 3,
    "16.0": 4,
    "32.0": 5,
    "64.0": 6,
}  # GT/s → PCI Express generation


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdgpuSourceOptions:
    """What an operator can set."""

    amd_interval_s: float = option(
        10.0,
        "pause between samples of AMD's GPUs (their counters: a minute); 0: they are not sampled",
        unit="s",
        least=0,
        check=off_or(0.5),
    )


@dataclass(slots=True)
class _Card:
    """What is known of one GPU."""

    index: int
    function: str
    uuid: str = ""
    residency: tuple[int, ...] | None = None
    slowdowns: int | None = None
    # What does not change: thresholds, names.
    fixed: dict[str, int | float | str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    read_s: float | None = None
    told: dict[str, int | float | str] = field(default_factory=dict)
    hwmon: str = ""


class AmdgpuSource(Source):
    """Emits Gpu, GpuHealth and GpuCount of the GPUs that amdgpu has, or should have."""

    name: ClassVar[str] = "amdgpu"
    needs: ClassVar[str] = "an AMD Instinct GPU and its driver, amdgpu; left out without them"
    options: ClassVar[tuple[type[Any], ...]] = (AmdgpuSourceOptions, ExpectedGpus)

    def __init__(self, host: Host, options: AmdgpuSourceOptions, *, expected: int = 0) -> None:
        """`expected`: GPUs that this node should have; 0: those on the PCI bus, or ever seen."""
        self._host, self._expected = host, expected
        self._cards: dict[str, _Card] = {}
        # pid → name of the process and its owner.
        self._owners: dict[int, tuple[str, Owner]] = {}
        # Address of a GPU → numbers by which the KFD knows it, and when they were read.
        self._kfd: dict[str, list[str]] = {}
        self._kfd_s: float | None = None
        # The next poll emits everything; it also judges what may still change.
        self._whole, self._at_once = True, False
        self._count, self._same = (0, 0), 0
        # Address of a GPU that the driver has not taken → since when.
        self._untaken_s: dict[str, float] = {}
        self._poller = Poller(
            self.poll,
            what=self.name,
            period_s=options.amd_interval_s,
            hang_s=_HANG_S,
            forget=self._look_again,
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no such GPU is on the PCI bus."""
        options, expected = setup.options(AmdgpuSourceOptions), setup.options(ExpectedGpus).expected_gpus
        if not options.amd_interval_s or not on_bus(setup.host, AMD):
            return None
        return cls(setup.host, options, expected=expected)

    async def run(self, emit: Emit) -> None:
        """Sample until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """One sample."""
        self._at_once = True
        for sample in self.poll():
            emit(sample)

    def _look_again(self) -> None:
        self._whole = True

    def poll(self) -> list[Sample]:
        """All samples now, as the time of `run` asks for them."""
        now_s = self._host.mono_s()
        whole, self._whole = self._whole, False
        present = on_bus(self._host, AMD)
        for bdf, function in present.items():
            self._cards.setdefault(bdf, _Card(len(self._cards), function))
        if whole or self._kfd_s is None or now_s - self._kfd_s >= _HEALTH_S:
            self._kfd, self._kfd_s = self._kfd_numbers(), now_s
        holders = self._holders()
        samples: list[Sample] = []
        lost = 0
        for bdf, card in self._cards.items():
            found = self._one(bdf, card, bdf in present, holders, now_s, whole=whole)
            lost += any(isinstance(sample, Gpu) and bool(sample.lost) for sample in found)
            samples += found
        if count := self._roll(lost, now_s):
            samples.append(count)
        return samples

    def _one(
        self,
        bdf: str,
        card: _Card,
        present: bool,
        holders: dict[str, list[GpuProcess]] | None,
        now_s: float,
        *,
        whole: bool,
    ) -> list[Sample]:
        base = f"{PCI}/{card.function}"
        lost = "" if present else "not_found"
        if present and off_bus(self._host, card.function):
            lost = "lost"
        elif present and not self._host.path(f"{base}/drm").exists():
            since_s = self._untaken_s.setdefault(bdf, now_s)
            if not self._at_once and now_s - since_s < _LOADS_S:
                return [self._gpu(bdf, card, "", None, None, None, now_s)]
            lost = "no_driver"
        else:
            self._untaken_s.pop(bdf, None)
        if lost or self._host.read(f"{base}/power/runtime_status") == "suspended":
            if lost:
                card.residency, card.hwmon, card.fixed, card.read_s = None, "", {}, None
            return [self._gpu(bdf, card, lost, None, None, None, now_s)]
        if not card.fixed:
            self._learn(base, card)
        metrics = amdgpu_metrics.parse(self._host.read_bytes(f"{base}/gpu_metrics", amdgpu_metrics.SIZE))
        used = _number(self._host.read(f"{base}/mem_info_vram_used"))
        gpu = self._gpu(bdf, card, "", metrics, used, holders, now_s)
        health = self._health(bdf, base, card, metrics, now_s, whole=whole)
        return [gpu] if health is None else [gpu, health]

    def _gpu(
        self,
        bdf: str,
        card: _Card,
        lost: str,
        metrics: AmdMetrics | None,
        used: int | None,
        holders: dict[str, list[GpuProcess]] | None,
        now_s: float,
    ) -> Gpu:
        busy = metrics.busy if metrics else None
        if metrics is not None:
            violated = amdgpu_metrics.throttled(card.residency, metrics.residency)
            card.residency = metrics.residency
            if violated is not None:
                bits = {_SLOWED[name] for name in violated if name in _SLOWED}
                card.slowdowns = sum(bits)
        return Gpu(
            index=card.index,
            bdf=bdf,
            uuid=card.uuid,
            serial=str(card.fixed.get("serial", "")),
            by=self.name,
            lost=lost,
            answers=not lost and (metrics is not None or used is not None),
            utilization_now=busy,
            utilization=busy,
            memory_used_mb=None if used is None else used // 1048576,
            power_w=metrics.power_w if metrics else None,
            temperature_c=metrics.hotspot_c if metrics else None,
            slowdowns=card.slowdowns if metrics else None,
            processes=_together(holders or {}, self._kfd.get(bdf, ())),
            holders_known=holders is not None and bdf in self._kfd,
            mono_s=now_s,
        )

    def _health(
        self, bdf: str, base: str, card: _Card, metrics: AmdMetrics | None, now_s: float, *, whole: bool
    ) -> GpuHealth | GpuTemperatures | None:
        if whole or card.read_s is None or now_s - card.read_s >= _HEALTH_S:
            card.read_s = now_s
            card.counters |= self._counters(base)
        values: dict[str, int | float | str] = {
            key: value for key, value in card.fixed.items() if key != "serial"
        } | card.counters
        if metrics is not None and metrics.memory_c is not None:
            values["memory_temp"] = metrics.memory_c
        for link, up in ((metrics.links if metrics else None) or {}).items():
            values[f"link.xgmi.{link}.state"] = int(up)
        changed = {key for key in values if values[key] != card.told.get(key)} | (card.told.keys() - values)
        if not changed and not whole:
            return None
        card.told = values
        made = GpuHealth if whole or changed - _TEMPERATURES else GpuTemperatures
        return made(index=card.index, bdf=bdf, values=values, mono_s=now_s)

    def _learn(self, base: str, card: _Card) -> None:
        """What stays while the driver has the GPU."""
        host = self._host
        card.uuid = host.read(f"{base}/unique_id")
        fixed: dict[str, int | float | str] = {"driver": host.read("/sys/module/amdgpu/version")}
        for key, file in (("vbios", "vbios_version"), ("serial", "serial_number"), ("model", "product_name")):
            if text := host.read(f"{base}/{file}"):
                fixed[key] = text[:80]
        for name in host.listdir(f"{base}/hwmon"):
            card.hwmon = f"{base}/hwmon/{name}"
        # temp2 is the hottest place of the GPU, temp3 its memory (thermal.rst, amdgpu_pm.c); milli-°C.
        for key, file in (("threshold.gpu_max", "temp2_crit"), ("threshold.memory_max", "temp3_crit")):
            if (limit := _number(host.read(f"{card.hwmon}/{file}"))) and card.hwmon:
                fixed[key] = limit // 1000
        if (cap := _number(host.read(f"{card.hwmon}/power1_cap"))) and card.hwmon:
            fixed["power_limit"] = cap // 1000
        card.fixed = fixed

    def _counters(self, base: str) -> dict[str, int]:
        host, found = self._host, {}
        for name in host.listdir(f"{base}/ras"):
            if not (match := _COUNTER.fullmatch(name)):
                continue
            block = match[1]
            for kind, digits in _COUNTS.findall(host.read(f"{base}/ras/{name}")):
                if int(digits) in _ALL_ONES:
                    continue
                word = "uncorrected" if kind == "ue" else "corrected"
                key = (
                    f"link.xgmi.all.{word}"
                    if block == _LINKS
                    else f"ecc.volatile.{word}.{_LOCATIONS.get(block, block)}"
                )
                found[key] = int(digits)
        for key, file in (("pcie.replay", "pcie_replay_count"), ("pcie.width", "current_link_width")):
            if (value := _number(host.read(f"{base}/{file}"))) is not None and value not in _ALL_ONES:
                found[key] = value
        for key, file in (
            ("pcie.generation", "current_link_speed"),
            ("pcie.generation_max", "max_link_speed"),
        ):
            if generation := _GENERATIONS.get(host.read(f"{base}/{file}").partition(" ")[0]):
                found[key] = generation
        if (value := _number(host.read(f"{base}/max_link_width"))) is not None:
            found["pcie.width_max"] = value
        return found

    def _kfd_numbers(self) -> dict[str, list[str]]:
        """Address of a GPU → the numbers of its partitions in the KFD, by which files of processes are named: one, or up to eight
        where it is partitioned, e.g. as CPX, which can change while it is not used.
        """
        found: dict[str, list[str]] = {}
        for node in self._host.listdir(f"{_KFD}/topology/nodes"):
            folder = f"{_KFD}/topology/nodes/{node}"
            lines = (line.split() for line in self._host.read(f"{folder}/properties").splitlines())
            fields = {words[0]: words[1] for words in lines if len(words) == 2}
            domain, location = (_number(fields.get(key, "")) for key in ("domain", "location_id"))
            number_of = self._host.read(f"{folder}/gpu_id")
            if domain is None or location is None or number_of in ("", "0"):  # a processor's node
                continue
            # The number of a partition stands in the bits of the function, in older kernels above the bus.
            bus, device = location >> 8 & 0xFF, location >> 3 & 0x1F
            found.setdefault(f"{domain:04x}:{bus:02x}:{device:02x}", []).append(number_of)
        return found

    def _holders(self) -> dict[str, list[GpuProcess]] | None:
        """KFD's number of a GPU → the processes that have memory on it; None: there is no KFD."""
        host = self._host
        if not host.path(f"{_KFD}/proc").exists():
            return None
        found: dict[str, list[GpuProcess]] = {}
        owners: dict[int, tuple[str, Owner]] = {}
        for name in host.listdir(f"{_KFD}/proc"):
            if not name.isdigit() or len(name) > 10:
                continue
            pid = int(name)
            owners[pid] = self._owners.get(pid) or (host.read(f"/proc/{pid}/comm"), owner_of(host, pid))
            comm, owner = owners[pid]
            for file in host.listdir(f"{_KFD}/proc/{name}"):
                used = _number(host.read(f"{_KFD}/proc/{name}/{file}")) if file.startswith("vram_") else 0
                if used:
                    found.setdefault(file[5:], []).append(
                        GpuProcess(
                            pid=pid, memory_mb=used // 1048576, name=comm, job=owner.job, unit=owner.unit
                        )
                    )
        self._owners = owners
        return found

    def _roll(self, lost: int, now_s: float) -> GpuCount | None:
        """How many answer, once that has settled."""
        count = (len(self._cards) - lost, lost)
        self._same = self._same + 1 if count == self._count else 1
        self._count = count
        if self._same < _SETTLE_POLLS and not self._at_once:
            return None
        basis = "config" if self._expected else "pci"
        expected = self._expected or len(self._cards)
        return GpuCount(
            answering=count[0], lost=lost, expected=expected, basis=basis, by=self.name, mono_s=now_s
        )


def _together(holders: Mapping[str, list[GpuProcess]], numbers: Sequence[str]) -> tuple[GpuProcess, ...]:
    """The processes of a GPU, each once with what it has in all partitions."""
    found: dict[int, GpuProcess] = {}
    for process in (one for number in numbers for one in holders.get(number, ())):
        before = found.get(process.pid)
        more = before.memory_mb if before else 0
        found[process.pid] = replace(process, memory_mb=process.memory_mb + more)
    return tuple(found.values())


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and len(text) < 19 else None
