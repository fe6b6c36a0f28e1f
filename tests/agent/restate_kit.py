"""agent.look: the tables of what collectors tell again of conditions that last, there and well, and of what they do not.

A collector that tells again has two rows: one in PRESENT, one in WELL.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.collectors import every_collector
from agent.collectors.base import CollectorSetup
from agent.collectors.gpu import STEADY_SAMPLES
from agent.collectors.samples import (
    Device,
    Gpu,
    GpuCount,
    GpuEvent,
    GpuHealth,
    GpuProcess,
    IbDevices,
    IbPort,
    Line,
    LinkState,
    Looked,
    LoweredPower,
    NvmlState,
    Overrun,
    Sample,
    SmAnswer,
    Tick,
    Unit,
)
from agent.collectors.samples_node import (
    Bond,
    BondSlave,
    DcgmFinding,
    DcgmHealth,
    Inventory,
    LoadedModules,
    Memory,
    Mount,
    NicCounters,
    NodeSettings,
    NpuFaults,
    NvmeHealth,
    Optics,
    PeerProbes,
    Pressure,
    ProbeRound,
    ServerTime,
    StorageTarget,
    Traffic,
    WallClock,
)
from agent.contract.look import concerns
from agent.contract.messages import UnsentEvent
from agent.contract.optics_module import Flag, OpticsModule
from agent.contract.smart_log import PAGE_BYTES, smart_log
from agent.supervisor import Feeder
from tests.agent.uplink_kit import Clock, FakeHost, open_spool

BDF, ON = "0000:3b:00", "gpu/0000:3b:00"
FOUND = DcgmFinding(
    bdf=BDF, entity="GPU 1", system="inforom", failed=False, code=9, name="CORRUPT_INFOROM", told_by=""
)
JOB = GpuProcess(pid=7, memory_mb=70_000, name="python", job="4711")
GPU = Gpu(index=0, bdf=BDF, uuid="GPU-1", utilization=50, power_w=300.0, temperature_c=60, slowdowns=0)
LOWERED = LoweredPower(bdf=BDF, limit_mw=490_000, before_mw=700_000)
HELD = replace(GPU, processes=(JOB,), memory_used_mb=70_000)
PORT = IbPort(
    device="mlx5_0", port=1, state="ACTIVE", phys_state="LinkUp", rate="400 Gb/sec (4X NDR)", lid=1, sm_lid=1,
    link_layer="InfiniBand", model="MT4129",
)  # fmt: skip
PORTS = tuple(replace(PORT, device=f"mlx5_{number}") for number in range(3))
LINK = LinkState(name="eth1", admin_up=True, carrier=True, operstate="up")
BOND = Bond(
    name="bond0", mode="802.3ad", partner="aa:bb:cc:dd:ee:ff", aggregator="1",
    slaves=(BondSlave(name="eth2", up=True, aggregator="1"), BondSlave(name="eth3", up=True, aggregator="1")),
)  # fmt: skip
MOUNT = Mount(path="/lustre", fstype="lustre", remote=True, state="ok", total_bytes=100, free_bytes=50, files=100,
              files_free=50)  # fmt: skip
DISK = NvmeHealth(name="nvme0", log=smart_log(bytes((0, 55, 1, 100, 10)).ljust(PAGE_BYTES, b"\0")))
OPTICS = Optics(
    link="eth2", module=OpticsModule(layout="SFP", vendor="", part="", revision="", serial="", lanes={})
)


def probed(times_us: tuple[float, ...]) -> ProbeRound:
    """Five packets to one peer."""
    return ProbeRound(
        link="eth2", address="10.0.0.1", peers=(PeerProbes(peer="n2", near=True, sent=5, times_us=times_us),)
    )


PROBED, SILENT, SLOW = probed((20.0,) * 5), probed(()), probed((2000.0,) * 5)
CLOCK = WallClock(synchronised=True, offset_s=0.0, max_error_s=0.1, ahead_s=1000.0)
UNIT = Unit(name="slurmd.service", active="active", sub="running")


def health(**values: int | float | str) -> GpuHealth:
    """Keys with `__` for dots."""
    return GpuHealth(
        index=0, bdf=BDF, values={key.replace("__", "."): value for key, value in values.items()}
    )


def over(sample: Any, *seconds: float, **changes: Any) -> list[Sample]:
    """The same sample, at several times."""
    return [replace(sample, mono_s=at_s, **changes) for at_s in seconds]


def told(
    tmp_path: Path, before: Sequence[Sample], look: Sequence[Sample], component: str = ""
) -> list[UnsentEvent]:
    """What a node with all collectors tells again, after `before`, from the samples of `look`."""
    clock = Clock(mono_s=0.0)
    spool = open_spool(tmp_path / "spool.db", clock)
    setup = CollectorSetup(values={"kernel_modules": ("nvidia",), "job_nan_loss": True})
    feeder = Feeder(FakeHost(clock), [one.of(setup) for one in every_collector()], spool)
    for sample in (*before, *look):
        clock.mono_s = max(clock.mono_s, sample.mono_s)
        feeder.emit(sample)
    feeder.emit(Tick(mono_s=clock.mono_s))
    spool.close()
    return feeder.restate(look, concerns(component))


Row = tuple[Sequence[Sample], Sequence[Sample], str, str, dict[str, Any]]


def full(number: int, more: int = 47 * 10**9) -> Traffic:
    """A reading of a port of 400 Gb/s: bytes sent grow by so much in each second (47 GB: 94 %)."""
    return Traffic(
        component="port/mlx5_0.1",
        rate_gbps=400.0,
        received_bytes=0,
        sent_bytes=number * 30 * more,
        mono_s=number * 30.0,
    )


TARGET = StorageTarget(path="/lustre", target="OST0003", total_kb=100, free_kb=40, mono_s=1.0)


def asked(number: int, each_ms: float = 150.0) -> ServerTime:
    """A reading of an NFS mount with 100 requests more in each minute."""
    return ServerTime(
        path="/home",
        fstype="nfs4",
        requests=number * 100,
        waited_ms=number * 100 * each_ms,
        mono_s=number * 60.0,
    )


def stuck(at_s: float) -> Gpu:
    """A GPU that is held by a process in state D."""
    process = GpuProcess(pid=7, memory_mb=9, state="D")
    return replace(
        GPU, utilization=0, utilization_now=0, processes=(process,), holders_known=True, mono_s=at_s
    )


# Name → what came before, what the look samples, kind and component of what is told again, and some of its data.
PRESENT: dict[str, Row] = {
    "GPU lost": ([GPU, replace(GPU, lost="lost")], [replace(GPU, lost="lost")], "gpu.lost", ON, {"reason": "lost"}),
    "GPU removed": (
        [Device(change="remove", subsystem="pci", sysname=f"{BDF}.0", pci_class=0x030200, vendor=0x10DE)],
        [Looked(source="udev")], "gpu.removed", ON, {},
    ),
    "GPU idle": (over(HELD, *range(0, 700, 30), utilization=0), over(HELD, 700, utilization=0), "gpu.idle", ON,
                 {"job": "4711", "idle_s": 700.0}),
    "GPU spinning": ([health(power_limit=700_000), *over(HELD, *range(0, 700, 30), utilization=100, power_w=90.0)],
                     over(HELD, 700, utilization=100, power_w=90.0), "gpu.spinning", ON, {"active": True}),
    "GPU orphaned": (over(GPU, *range(0, 700, 30), utilization=0, memory_used_mb=9000),
                     over(GPU, 700, utilization=0, memory_used_mb=9000), "gpu.orphaned", ON, {"active": True}),
    "rows wait": ([], [health(remap__pending=1, remap__failure=0, remap__corrected=0, remap__uncorrected=1)],
                  "gpu.remap", ON, {"pending": True}),
    "pages wait": ([], [health(retired__pending=1, retired__single_bit=0, retired__double_bit=1)],
                   "gpu.retired_pages", ON, {"pending": True}),
    "SRAM spent": ([], [health(sram_threshold=1)], "gpu.sram_threshold", ON, {"exceeded": True}),
    "GPU slowed down": (over(GPU, 1, 2, 3, slowdowns=0x88), over(GPU, 4, slowdowns=0x88), "gpu.throttle", ON,
                        {"active": True, "power_brake": True}),
    "power cap in force": (over(GPU, 1, 2, 3, slowdowns=0x80), over(GPU, 4, slowdowns=0), "gpu.throttle", ON,
                           {"active": True, "power_brake": True}),
    "stuck process": ([stuck(n) for n in range(0, 301, 10)], [stuck(310)], "gpu.holder_stuck", ON,
                      {"active": True, "pid": 7, "state": "D"}),
    "GPU hot": ([], [health(margin=-2)], "gpu.temperature", ON, {"active": True, "sensor": "gpu"}),
    "PCIe narrow": ([], [health(pcie__width=8, pcie__width_max=16, pcie__generation=5, pcie__generation_max=5)],
                    "gpu.pcie_degraded", ON, {"active": True, "width": 8}),
    "NVLink down": ([health(nvlink__0__state=1, nvlink__1__state=1)], [health(nvlink__0__state=1, nvlink__1__state=0)],
                    "gpu.nvlink_state", ON, {"down": 1, "links": "1", "expected": 2}),
    "NVLink errors": ([], [health(nvlink__0__state=1, nvlink__0__effective_ber=0x50A)], "gpu.nvlink_ber", ON,
                      {"active": True, "link": 0}),
    "NPU fault": ([], [NpuFaults(bdf=BDF, health="Alarm", codes=("80E18402",))], "gpu.fault", ON,
                  {"code": "80E18402", "level": "separate_npu", "active": True}),
    "DCGM's finding": ([], [DcgmHealth(findings=(FOUND,))], "gpu.dcgm_health", ON, {"error": "CORRUPT_INFOROM", "active": True}),
    "xGMI link down": ([health(link__xgmi__0__state=1, link__xgmi__1__state=1)],
                       [health(link__xgmi__0__state=1, link__xgmi__1__state=0)], "gpu.link_state", ON, {"down": 1, "links": "1"}),
    "fabric error": ([], [health(fabric__state=3, fabric__status=7, fabric__health=0)], "gpu.fabric", ON,
                     {"healthy": False, "trouble": "error 7"}),
    "power limit lowered": ([LOWERED, health(power_limit=490_000)], [health(power_limit=490_000)], "gpu.power_capped", ON,
                            {"active": True, "limit_w": 490.0}),
    "recovery wanted": ([], [health(recovery_action=1)], "gpu.recovery_action", ON, {"name": "reset"}),
    "persistence switched off": ([health(persistence=1), health(persistence=0)], [health(persistence=0)], "gpu.setting", ON,
                                 {"what": "persistence", "before": "0", "now": "0"}),
    "ECC switched off": ([health(ecc__mode=1), health(ecc__mode=0)], [health(ecc__mode=0, ecc__mode_pending=1)], "gpu.setting",
                         ON, {"what": "ecc.mode", "now": "0"}),
    "ECC off from the beginning": ([], [health(ecc__mode=0, ecc__default=1)], "gpu.setting", ON,
                                   {"what": "ecc.mode", "now": "0", "found": True}),
    "GPU missing": ([], [GpuCount(answering=7, lost=0, expected=8, basis="config")], "gpu.count", "node",
                    {"missing": 1, "unnamed": 1}),
    "port down": ([PORT], [replace(PORT, state="DOWN", phys_state="Polling")], "ib.port_state", "port/mlx5_0.1",
                  {"state": "DOWN"}),
    "IB device gone": ([IbDevices(names=("mlx5_0",)), *[IbDevices(names=())] * 3], [IbDevices(names=())], "ib.device",
                       "nic/mlx5_0", {"present": False}),
    "port slow": ([*PORTS, replace(PORTS[0], rate="200 Gb/sec (4X HDR)"), Tick(mono_s=5.0)],
                  [replace(PORTS[0], rate="200 Gb/sec (4X HDR)")], "ib.degraded", "port/mlx5_0.1",
                  {"what": "rate", "value": "200", "expected": "400", "degraded": True}),
    "SM lost": ([SmAnswer(device="mlx5_0", port=1, sm_lid=1, state="")] * 2,
                [SmAnswer(device="mlx5_0", port=1, sm_lid=1, state="")], "ib.sm_answer", "port/mlx5_0.1",
                {"answers": False}),
    "link down": ([LINK], [replace(LINK, carrier=False, operstate="down")], "link.state", "link/eth1", {"up": False}),
    "link down for long": ([LINK, replace(LINK, carrier=False, operstate="down")],
                           [replace(LINK, carrier=False, operstate="down")], "link.state", "link/eth1", {"up": False}),
    "link down under another name": (
        [LINK, replace(LINK, name="ens5", before="eth1", carrier=False, operstate="down")],
        [replace(LINK, name="ens5", carrier=False, operstate="down")], "link.state", "link/ens5", {"up": False}),
    "bond degraded": ([], [replace(BOND, slaves=(replace(BOND.slaves[0], up=False), BOND.slaves[1]))], "bond.slaves",
                      "bond/bond0", {"degraded": True, "down": "eth2"}),
    "no LACP partner": ([], [replace(BOND, partner="00:00:00:00:00:00")], "bond.lacp", "bond/bond0",
                        {"answers": False}),
    "port full": ([full(n) for n in range(11)], [full(11)], "link.busy", "port/mlx5_0.1", {"percent": 90}),
    "server slow": ([asked(n) for n in range(4)], [asked(4)], "mount.slow", "mount//home", {"slow": True, "mean_ms": 150.0}),
    "target full": ([], [replace(TARGET, free_kb=5)], "mount.target", "mount//lustre", {"full": True, "target": "OST0003"}),
    "unit failed": ([], [replace(UNIT, active="failed", sub="failed", first=True)], "service.state",
                    "service/slurmd.service", {"active": "failed"}),
    "unit stopped": ([UNIT, replace(UNIT, active="inactive", sub="dead")],
                     [replace(UNIT, active="inactive", sub="dead")], "service.state", "service/slurmd.service",
                     {"active": "inactive"}),
    "mount hung": ([], [replace(MOUNT, state="hung", waited_s=40.0)], "mount.state", "mount//lustre",
                   {"state": "hung"}),
    "mount full": ([], [replace(MOUNT, free_bytes=1)], "mount.space", "mount//lustre", {"full": True, "what": "bytes"}),
    "disk read-only": ([], [replace(DISK, log=smart_log(b"\x08".ljust(PAGE_BYTES, b"\0")))], "disk.health", "disk/nvme0",
                       {"answers": True, "read_only": True}),
    "disk silent": ([DISK], [replace(DISK, log=None, waited_s=10.0)], "disk.health", "disk/nvme0", {"answers": False}),
    "module too hot": (
        [], [replace(OPTICS, module=replace(OPTICS.module, flags=(Flag("temperature_high", 0, alarm=True),)))],
        "optics.module", "link/eth2", {"hot": True},
    ),
    "peer silent": ([SILENT] * 20, [SILENT], "probe.loss", "link/eth2", {"active": True, "silent": "n2"}),
    "path slow": ([*[PROBED] * 30, *[SLOW] * 30], [SLOW], "probe.slow", "link/eth2", {"active": True, "near_ill": "n2"}),
    "module missing": ([], [LoadedModules(loaded=frozenset(("mlx5_core",)))], "node.module", "node",
                       {"module": "nvidia", "loaded": False}),
    "memory low": ([], [Memory(total_mb=1000, available_mb=5)], "node.memory", "node", {"low": True}),
    "memory pressure": ([], [Pressure(resource="memory", some_percent=50.0, full_percent=40.0)], "node.pressure", "node",
                        {"high": True}),
    "clock off": (over(CLOCK, 0, 200, synchronised=False), over(CLOCK, 210, synchronised=False), "node.clock", "node",
                  {"well": False}),
}  # fmt: skip
WELL: dict[str, Row] = {
    "GPU answers": ([], [GPU], "gpu.answers", ON, {"index": 0}),
    "GPU answers after a loss": ([GPU, replace(GPU, lost="lost"), *[GPU] * STEADY_SAMPLES], [GPU], "gpu.answers", ON,
                                 {"index": 0}),
    "NVML answers": ([NvmlState(state="hung", call="nvmlInit", waited_s=10.0)], [NvmlState(state="answers")],
                     "nvml.answers", "node", {}),
    "NVML was opened": ([NvmlState(state="ready", mono_s=1.0)], [NvmlState(state="answers", mono_s=151.0)],
                        "nvml.answers", "node", {"after_s": 0.0, "open_s": 150.0}),
    "GPU busy": ([], [HELD], "gpu.busy", ON, {"utilization": 50}),
    "GPU not spinning": ([health(power_limit=700_000)], [HELD], "gpu.spinning", ON, {"active": False}),
    "GPU not orphaned": ([], [HELD], "gpu.orphaned", ON, {"active": False}),
    "no rows wait": ([], [health(remap__pending=0, remap__failure=0, remap__corrected=0, remap__uncorrected=1)],
                     "gpu.remap", ON, {"pending": False, "failure": False}),
    "no pages wait": ([], [health(retired__pending=0, retired__single_bit=3)], "gpu.retired_pages", ON,
                      {"pending": False}),
    "SRAM well": ([], [health(sram_threshold=0)], "gpu.sram_threshold", ON, {"exceeded": False}),
    "no stuck process": ([], [replace(HELD, holders_known=True)], "gpu.holder_stuck", ON, {"active": False, "pid": 0}),
    "full speed": ([], [GPU], "gpu.throttle", ON, {"active": False}),
    "cool": ([], [health(margin=20)], "gpu.temperature", ON, {"active": False}),
    "PCIe wide": ([], [health(pcie__width=16, pcie__width_max=16, pcie__generation=5, pcie__generation_max=5)],
                  "gpu.pcie_degraded", ON, {"active": False}),
    "NVLinks up": ([], [health(nvlink__0__state=1)], "gpu.nvlink_state", ON, {"down": 0, "active": 1}),
    "xGMI links up": ([], [health(link__xgmi__0__state=1, link__xgmi__7__state=0)], "gpu.link_state", ON,
                      {"down": 0, "active": 1}),
    "fabric well": ([], [health(fabric__state=3, fabric__status=0, fabric__health=0)], "gpu.fabric", ON,
                    {"healthy": True}),
    "no recovery wanted": ([], [health(recovery_action=0)], "gpu.recovery_action", ON, {"action": 0}),
    "persistence is on": ([], [health(persistence=1)], "gpu.setting", ON, {"what": "persistence", "now": "1"}),
    "ECC is on": ([health(ecc__mode=1), health(ecc__mode=0)], [health(ecc__mode=1)], "gpu.setting", ON,
                  {"what": "ecc.mode", "now": "1"}),
    "ECC stays on": ([], [health(ecc__mode_pending=1)], "gpu.setting", ON, {"what": "ecc.mode_pending", "now": "1"}),
    "all GPUs there": ([], [GpuCount(answering=8, lost=0, expected=8, basis="config")], "gpu.count", "node",
                       {"missing": 0}),
    "port active": ([], [PORT], "ib.port_state", "port/mlx5_0.1", {"state": "ACTIVE"}),
    "IB device there": ([], [IbDevices(names=("mlx5_0",))], "ib.device", "nic/mlx5_0", {"present": True}),
    "port fast": ([*PORTS, Tick(mono_s=5.0)], [PORTS[0]], "ib.degraded", "port/mlx5_0.1",
                  {"what": "rate", "degraded": False}),
    "SM answers": ([], [SmAnswer(device="mlx5_0", port=1, sm_lid=1, state="MASTER")], "ib.sm_answer", "port/mlx5_0.1",
                   {"answers": True}),
    "link up": ([], [replace(LINK, first=True)], "link.state", "link/eth1", {"up": True}),
    "bond whole": ([], [BOND], "bond.slaves", "bond/bond0", {"degraded": False, "up": 2}),
    "LACP partner": ([], [BOND], "bond.lacp", "bond/bond0", {"answers": True, "apart": 0}),
    "port not full": ([full(0, 1)], [full(1, 1)], "link.busy", "port/mlx5_0.1", {"percent": 0}),
    "server fast": ([asked(0, 3.0)], [asked(1, 3.0)], "mount.slow", "mount//home", {"slow": False}),
    "target not full": ([], [TARGET], "mount.target", "mount//lustre", {"full": False}),
    "unit active": ([], [replace(UNIT, first=True)], "service.state", "service/slurmd.service", {"active": "active"}),
    "mount answers": ([replace(MOUNT, state="hung")], [MOUNT], "mount.state", "mount//lustre", {"state": "ok"}),
    "mount not full": ([], [MOUNT], "mount.space", "mount//lustre", {"full": False}),
    "disk well": ([], [DISK], "disk.health", "disk/nvme0", {"answers": True, "read_only": False}),
    "peer answers": ([PROBED] * 20, [PROBED], "probe.loss", "link/eth2", {"active": False, "silent": ""}),
    "path not slow": ([PROBED] * 20, [PROBED], "probe.slow", "link/eth2", {"active": False}),
    "module not hot": ([], [OPTICS], "optics.module", "link/eth2", {"hot": False}),
    "module loaded": ([], [LoadedModules(loaded=frozenset(("nvidia",)))], "node.module", "node",
                      {"module": "nvidia", "loaded": True}),
    "memory enough": ([], [Memory(total_mb=1000, available_mb=500)], "node.memory", "node", {"low": False}),
    "no pressure": ([], [Pressure(resource="memory", some_percent=0.0, full_percent=0.0)], "node.pressure", "node",
                    {"high": False}),
    "clock right": ([], [CLOCK], "node.clock", "node", {"well": True}),
    "inventory": ([], [Inventory(kernel="6.1", driver="580", cpus=96, memory_mb=1024, product="x", bios="1", gpus=(),
                                 nics=())], "node.inventory", "node", {"changed": False}),
    "settings": ([Inventory(kernel="6.1", driver="580", cpus=96, memory_mb=1024)], [NodeSettings(boot="iommu=pt")],
                 "node.settings", "node", {"boot": "iommu=pt", "gpu_models": "no GPU"}),
}  # fmt: skip
# What happened, is ordinary, or may soon be otherwise is not told again.
NOTHING: dict[str, tuple[Sequence[Sample], Sequence[Sample]]] = {
    "a port that has been full for a minute": ([full(0), full(1)], [full(2)]),
    "a port that was read once": ([], [full(0)]),
    "a server that has been slow for a moment": ([asked(0), asked(1)], [asked(2)]),
    "a server of which little is asked": ([asked(0)], [replace(asked(0), requests=3)]),
    "an XID": ([], [Line(text=f"NVRM: Xid (PCI:{BDF}): 79, GPU has fallen off the bus.", mono_s=1.0, seq=1)]),
    "a GPU that was lost and has answered once": (
        [GPU, replace(GPU, lost="lost")],
        [replace(GPU, utilization=None, slowdowns=None)],
    ),
    "a GPU that hardly answers": ([], [replace(GPU, answers=False, utilization=None, slowdowns=None)]),
    "an NVML event": ([], [GpuEvent(bdf=BDF, type=0x2, data=0)]),
    "lost log records": ([], [Overrun(lost=5, mono_s=1.0)]),
    "counters that grew": (
        [NicCounters(name="eth1", counters={"rx_discards_phy": 1})],
        [NicCounters(name="eth1", counters={"rx_discards_phy": 9})],
    ),
    "a port that never had a cable": ([], [replace(PORT, state="DOWN", phys_state="Polling")]),
    "a link that never had a cable": ([], [replace(LINK, carrier=False, operstate="down")]),
    "a unit that was never started": ([], [replace(UNIT, active="inactive", sub="dead", first=True)]),
    "a unit on its way": ([UNIT], [replace(UNIT, active="activating", sub="start-pre")]),
    "one query without an answer": ([], [SmAnswer(device="mlx5_0", port=1, sm_lid=1, state="")]),
    "a clock that is off for a moment": ([CLOCK], over(CLOCK, 10, synchronised=False)),
    "a GPU whose ECC was off when the agent began": (
        [health(ecc__mode=0)],
        [health(ecc__mode=0, persistence=0)],
    ),
    "settings that are people's": (
        [health(mig=0, power_limit=7)],
        [health(mig=1, power_limit=5, driver="580")],
    ),
    "a bit error rate that is well": ([], [health(nvlink__0__effective_ber=0x50F)]),
    "a few rounds of probes": ([SILENT] * 3, [SILENT]),
    "no values": ([], [health()]),
}
