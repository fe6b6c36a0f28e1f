"""What becomes of every drill: cause, end and steps. Played with the rules and runbooks that gpuward ships."""

import functools
from dataclasses import replace

from brain.core.engine import Engine
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import RunState
from simulations.drills import DRILLS
from simulations.virtual_time import Simulator
from tests.shipped import shipped_pack

NODES = {f"sim-{n:02}": Place(leaf=f"leaf-{1 + n % 2}") for n in range(1, 17)}
FAULTY = "sim-03"
DRILL_AT_S = 30.0
Expected = tuple[str, str, list[str]]  # cause of the incident, its end, what was done about it

_LINKS, _PORTS, _DIAGNOSE, _ACCEPT = "gpu.links_check", "port.check", "gpu.diagnose", "node.accept"
_IDLE = "scheduler.idle"
_EVIDENCE, _DRAIN, _RESUME, _PAGE = "evidence.collect", "scheduler.drain", "scheduler.resume", "page"
# After a reset of GPUs, and after a boot.
_TESTED_GPUS = (_LINKS, _DIAGNOSE, _ACCEPT)
_TESTED_NODE = (_LINKS, _PORTS, _DIAGNOSE, _ACCEPT)
STORIES: dict[str, Expected] = {
    "gpu-off-bus": (
        "gpu-lost",
        "closed",
        [_EVIDENCE, _DRAIN, "pci.rescan", "node.reboot", "bmc.power_cycle", *_TESTED_NODE, _RESUME],
    ),
    "gpu-dead": (
        "gpu-lost",
        "needs_human",
        [_EVIDENCE, _DRAIN, "pci.rescan", "node.reboot", "bmc.power_cycle", "node.isolate", _PAGE],
    ),
    "gpu-needs-reset": ("gpu-fatal-xid", "closed", [_EVIDENCE, _DRAIN, "gpu.reset", *_TESTED_GPUS, _RESUME]),
    "gpu-row-marked": (
        "gpu-memory-reset",
        "closed",
        [_EVIDENCE, _IDLE, _DRAIN, "gpu.reset", *_TESTED_GPUS, _RESUME],
    ),
    "gpu-cluster-bad": ("gpu-suspected", "needs_human", [_EVIDENCE, _IDLE, _DRAIN, "gpu.diagnose", _PAGE]),
    "gpu-rows-spent": ("gpu-memory-replace", "needs_human", [_EVIDENCE, _DRAIN, _PAGE]),
    "gpu-ecc": ("gpu-ecc", "needs_human", [_EVIDENCE, _PAGE]),
    "gpu-hot": ("gpu-thermal", "closed", [_EVIDENCE, "gpu.power_limit"]),
    "gpu-missing": (
        "gpus-missing",
        "closed",
        [_EVIDENCE, _DRAIN, "node.reboot", "bmc.power_cycle", *_TESTED_NODE, _RESUME],
    ),
    "nvlink-down": (
        "gpu-nvlink-down",
        "closed",
        [_EVIDENCE, _DRAIN, "fabricmanager.restart", "gpu.reset", *_TESTED_GPUS, _RESUME],
    ),
    "driver-hung": (
        "nvml-blind",
        "closed",
        [_EVIDENCE, "service.restart", _DRAIN, "driver.reload", *_TESTED_GPUS, _RESUME],
    ),
    "gpu-persistence-off": ("gpu-persistence-off", "closed", ["gpu.persistence"]),
    "gpu-idle-service": ("gpu-unowned", "closed", ["service.restart"]),
    "gpu-holder-stuck": (
        "gpu-holder-stuck",
        "closed",
        [_EVIDENCE, _DRAIN, "node.reboot", *_TESTED_NODE, _RESUME],
    ),
    "gpu-stuck-job": ("gpu-stuck-job", "closed", [_EVIDENCE, _PAGE, "scheduler.requeue"]),
    "job-hung": ("job-hung", "closed", [_EVIDENCE, _PAGE, "scheduler.requeue"]),
    "container-gpu-lost": ("container-gpu-lost", "closed", [_EVIDENCE, _PAGE, "scheduler.requeue"]),
    "job-accuses-node": ("job-accuses-node", "closed", [_EVIDENCE, _DRAIN, _DIAGNOSE, _ACCEPT, _RESUME]),
    "gpu-straggler": ("straggler", "needs_human", [_DRAIN, _PAGE]),
    "gpu-reset-failed": (
        "gpu-reset-failed",
        "closed",
        [_EVIDENCE, _DRAIN, "node.reboot", *_TESTED_NODE, _RESUME],
    ),
    "gpu-driver-reset": ("gpu-driver-reset", "needs_human", [_EVIDENCE, _PAGE]),
    "gpu-hung": ("gpu-hung", "needs_human", [_EVIDENCE, _PAGE]),
    "gpu-overheated": ("gpu-overheated", "needs_human", [_EVIDENCE, _DRAIN, _PAGE]),
    "gpu-pages-near": ("gpu-pages-near", "open", []),
    "xgmi-link-down": ("gpu-link-down", "needs_human", [_EVIDENCE, _PAGE]),
    "xgmi-link-errors": ("gpu-link-errors", "needs_human", [_EVIDENCE, _PAGE]),
    "gpu-no-driver": ("gpu-no-driver", "needs_human", [_EVIDENCE, _PAGE]),
    "npu-isolated": ("gpu-fault-separate", "needs_human", [_EVIDENCE, _DRAIN, _PAGE]),
    "npu-wants-restart": ("gpu-fault-restart", "needs_human", [_EVIDENCE, _PAGE]),
    "npu-unknown-fault": ("gpu-fault-unknown", "open", []),
    "npu-heartbeat": ("gpu-hung", "open", []),
    "npu-smi-hung": ("gpu-tool-hung", "needs_human", [_EVIDENCE, _PAGE]),
    "dcgm-inforom": ("gpu-inforom-corrupt", "needs_human", [_EVIDENCE, _PAGE]),
    "dcgm-pages": ("gpu-dcgm-pages", "needs_human", [_EVIDENCE, _PAGE]),
    "dcgm-power-unreadable": ("gpu-dcgm-other", "open", []),
    "dcgm-unknown": ("gpu-dcgm-unknown", "open", []),
    "dcgm-processor-hot": ("node-dcgm", "open", []),
    "dcgm-blind": ("dcgm-blind", "open", []),
    "ib-phy-errors": (
        "ib-phy-errors",
        "closed",
        [_EVIDENCE, _DRAIN, "link.bounce", _PORTS, _ACCEPT, _RESUME],
    ),
    "ib-port-down": ("ib-port-down", "closed", [_EVIDENCE, "ib.port_reset", _PORTS, _RESUME]),
    "ib-ports-down": ("ib-port-down", "closed", [_EVIDENCE, _DRAIN, "node.reboot", *_TESTED_NODE, _RESUME]),
    "ib-cable-cut": (
        "ib-port-down",
        "needs_human",
        [_EVIDENCE, "ib.port_reset", "switch.port_bounce", _DRAIN, "nic.reset", _PAGE],
    ),
    "switch-down": ("fabric-suspected", "closed", [_PAGE]),
    "leaf-down": ("switch-suspected", "closed", [_PAGE]),
    "sm-failover": ("sm-failover", "closed", []),
    "sm-frozen": ("no-working-sm", "closed", ["sm.status", "sm.start_standby", "sm.stop_master"]),
    "sm-unreachable": ("sm-unreachable", "needs_human", [_EVIDENCE, _PAGE]),
    "client-evicted": ("client-evicted", "closed", [_EVIDENCE, "scheduler.jobs", _PAGE]),
    "port-full": ("port-full", "closed", ["scheduler.jobs", _PAGE]),
    "ib-congested": ("port-congested", "closed", [_EVIDENCE, "scheduler.jobs", _PAGE]),
    "nic-broken": ("nic-broken", "closed", [_EVIDENCE, _DRAIN, "nic.reset", _PORTS, _ACCEPT, _RESUME]),
    "link-down": ("link-down", "closed", ["link.bounce"]),
    "cable-cut": ("link-down", "needs_human", ["link.bounce", _EVIDENCE, _PAGE]),
    "link-flapping": ("link-flapping", "needs_human", [_EVIDENCE, _DRAIN, _PAGE]),
    "dirty-fibre": ("optics-receive-low", "open", []),
    "pfc-lost": ("pfc-drift", "needs_human", [_EVIDENCE, _PAGE]),
    "lossy-link": ("path-loss", "needs_human", [_EVIDENCE, _PAGE]),
    "bond-degraded": ("bond-degraded", "closed", [_EVIDENCE, "bond.failover", "nic.reset", _PORTS]),
    "mtu-drift": ("mtu-drift", "closed", ["mtu.set"]),
    "rdma-refused": ("rdma-connect-failed", "closed", ["module.load", "module.load"]),
    "rdma-port-stuck": (
        "rdma-connect-failed",
        "closed",
        ["module.load", "module.load", _EVIDENCE, _DRAIN, "ib.port_reset", _PORTS, _ACCEPT, _RESUME],
    ),
    "pause-storm": ("pause-storm", "needs_human", [_EVIDENCE, "switch.port_disable", _DRAIN, _PAGE]),
    "service-failed": ("service-failed", "closed", ["service.restart"]),
    "fabric-manager-down": (
        "fabric-manager-down",
        "closed",
        [_EVIDENCE, _DRAIN, "fabricmanager.restart", _LINKS, _RESUME],
    ),
    "module-missing": ("module-missing", "closed", ["module.load"]),
    "node-unreachable": ("node-unreachable", "closed", ["bmc.evidence"]),
    "node-hung": (
        "node-unreachable",
        "closed",
        ["bmc.evidence", _DRAIN, "bmc.restart", *_TESTED_NODE, _RESUME],
    ),
    "node-dark": (
        "node-unreachable",
        "closed",
        ["bmc.evidence", _DRAIN, "bmc.restart", "bmc.power_on", *_TESTED_NODE, _RESUME],
    ),
    "coolant-leak": ("bmc-leak", "needs_human", [_PAGE, _DRAIN, "bmc.evidence", _PAGE]),
    "memory-error": ("memory-uncorrected", "needs_human", [_EVIDENCE, _DRAIN, _PAGE]),
    "disk-read-only": ("disk-failing", "needs_human", [_EVIDENCE, _DRAIN, _PAGE]),
    "disk-full": ("disk-full", "needs_human", ["fs.usage", _PAGE]),
    "scratch-full": ("disk-full", "needs_human", ["fs.usage", _PAGE]),
}
# Runbook that people or a schedule start -> what is done on an idle, healthy node.
REQUESTS = {
    "return-node": [_LINKS, _PORTS, "gpu.power_restore", _RESUME],
    "inspect-node": [_DRAIN, _LINKS, _PORTS, _DIAGNOSE, _ACCEPT, "bmc.evidence", _EVIDENCE, _RESUME],
    "accept-node": [_DRAIN, _LINKS, _PORTS, _DIAGNOSE, _ACCEPT, _EVIDENCE, _RESUME],
    "test-idle-node": [_DRAIN, _DIAGNOSE, _ACCEPT, _RESUME],
    "inspect-fabric": ["sm.status", "fabric.inspect"],
}


# Those that wait for an approval, and leave the node as people wanted it.
ON_APPROVAL = {"switch-off-node": ["node.isolate"]}


@functools.cache
def _pack(mode: Mode) -> Pack:
    settings = Settings(modes=(ModeSetting(mode=mode, nodes="sim-*"), ModeSetting(mode=mode, nodes="")))
    pack = shipped_pack(settings, NODES)
    runbooks = tuple(replace(runbook, every_s=0) for runbook in pack.runbooks)  # no scheduled inspections
    return replace(pack, runbooks=runbooks)


def world(mode: Mode = Mode.AUTO) -> Simulator:
    """Sixteen healthy nodes under two leaf switches."""
    return Simulator(Engine(actions=ACTIONS), _pack(mode), list(NODES))


def played(drill: str) -> Simulator:
    """A healthy start, the drill, then as long as its story takes; an operator approves what waits for approval."""
    made = world()
    made.inject(drill, FAULTY, at_s=DRILL_AT_S)
    ends_s = 2400 if drill in STORIES and STORIES[drill][1] != "closed" else 3600
    for until_s in range(60, ends_s, 60) if DRILLS[drill].approval else ():
        timeline = made.run(until_s)
        waiting = [run for run in timeline.runs.values() if run.state is RunState.APPROVAL]
        if waiting:
            made.command("approve", at_s=until_s, id=waiting[0].id)
    made.run(ends_s)
    return made


def happened(timeline: Timeline) -> list[Expected]:
    """Cause, end and steps of each incident that people see; most drills have one."""
    seen = [
        one
        for one in timeline.incidents.values()
        if one.state.value != "explained" and (one.pages.sent or one.runs)
    ]
    return [(one.cause, one.state.value, done(timeline)) for one in seen]


def done(timeline: Timeline) -> list[str]:
    """The action of every step, in order."""
    return [step.action for run in timeline.runs.values() for step in run.steps]
