"""What becomes of every drill: cause, end and steps. Played with the rules and runbooks that gpuward comes with."""

import functools
from dataclasses import replace
from pathlib import Path

from brain.adapters import pack as packs
from brain.core.actions import ACTIONS
from brain.core.engine import Engine
from brain.core.inputs import Said
from brain.core.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.state import RunState
from brain.core.timeline import Timeline
from simulations.clockwork import Clockwork
from simulations.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
NODES = {f"sim-{n:02}": Place(leaf=f"leaf-{1 + n % 2}") for n in range(1, 17)}
SICK = "sim-03"

_EVIDENCE, _DRAIN, _RESUME, _PAGE = "evidence.collect", "scheduler.drain", "scheduler.resume", "page"
# drill -> (cause of its incident, its end, what was done about it)
STORIES: dict[str, tuple[str, str, list[str]]] = {
    "gpu-off-bus": (
        "gpu-lost",
        "closed",
        [_EVIDENCE, _DRAIN, "pci.rescan", "node.reboot", "bmc.power_cycle", _RESUME],
    ),
    "gpu-dead": (
        "gpu-lost",
        "person",
        [_EVIDENCE, _DRAIN, "pci.rescan", "node.reboot", "bmc.power_cycle", "node.isolate", _PAGE],
    ),
    "gpu-needs-reset": ("gpu-fatal-xid", "closed", [_EVIDENCE, _DRAIN, "gpu.reset", _RESUME]),
    "gpu-rows-spent": ("gpu-memory-replace", "person", [_EVIDENCE, _DRAIN, _PAGE]),
    "gpu-ecc": ("gpu-ecc", "person", [_EVIDENCE, _PAGE]),
    "gpu-hot": ("gpu-thermal", "closed", [_EVIDENCE, "gpu.power_limit"]),
    "gpu-missing": ("gpus-missing", "closed", [_EVIDENCE, _DRAIN, "node.reboot", "bmc.power_cycle", _RESUME]),
    "nvlink-down": (
        "gpu-nvlink-down",
        "closed",
        [_EVIDENCE, _DRAIN, "fabricmanager.restart", "gpu.reset", _RESUME],
    ),
    "driver-hung": (
        "nvml-blind",
        "closed",
        [_EVIDENCE, "service.restart", _DRAIN, "driver.reload", _RESUME],
    ),
    "gpu-idle-service": ("gpu-unowned", "closed", ["service.restart"]),
    "gpu-stuck-job": ("gpu-stuck-job", "closed", [_EVIDENCE, _PAGE, "scheduler.requeue"]),
    "job-hung": ("job-hung", "closed", [_EVIDENCE, _PAGE, "scheduler.requeue"]),
    "ib-phy-errors": ("ib-phy-errors", "closed", [_EVIDENCE, _DRAIN, "link.bounce", _RESUME]),
    "ib-port-down": ("ib-port-down", "closed", [_EVIDENCE, "ib.port_reset", _RESUME]),
    "ib-cable-cut": (
        "ib-port-down",
        "person",
        [_EVIDENCE, "ib.port_reset", "switch.port_bounce", _DRAIN, "nic.reset", _PAGE],
    ),
    "switch-down": ("fabric-suspected", "closed", [_PAGE, _PAGE]),
    "sm-failover": ("sm-failover", "closed", []),
    "sm-frozen": ("no-working-sm", "closed", ["sm.status", "sm.start_standby", "sm.stop_master"]),
    "sm-unreachable": ("sm-unreachable", "person", [_EVIDENCE, _PAGE]),
    "ib-congested": ("port-congested", "closed", [_EVIDENCE, "scheduler.jobs", _PAGE]),
    "nic-broken": ("nic-broken", "closed", [_EVIDENCE, _DRAIN, "nic.reset", _RESUME]),
    "link-down": ("link-down", "closed", ["link.bounce"]),
    "cable-cut": ("link-down", "person", ["link.bounce", _EVIDENCE, _PAGE]),
    "link-flapping": ("link-flapping", "closed", [_EVIDENCE, _DRAIN, _PAGE]),
    "bond-degraded": ("bond-degraded", "closed", [_EVIDENCE, "bond.failover", "nic.reset"]),
    "mtu-drift": ("mtu-drift", "closed", ["mtu.set"]),
    "rdma-refused": ("rdma-connect-failed", "closed", ["module.load", "module.load"]),
    "rdma-port-stuck": (
        "rdma-connect-failed",
        "closed",
        ["module.load", "module.load", _EVIDENCE, _DRAIN, "ib.port_reset", _RESUME],
    ),
    "pause-storm": ("pause-storm", "closed", [_EVIDENCE, "switch.port_disable", _DRAIN, _PAGE]),
    "service-failed": ("service-failed", "closed", ["service.restart"]),
    "fabric-manager-down": ("fabric-manager-down", "closed", [_EVIDENCE, "fabricmanager.restart", _RESUME]),
    "module-missing": ("module-missing", "closed", ["module.load"]),
    "node-silent": ("node-silent", "closed", ["bmc.evidence"]),
    "node-hung": (
        "node-silent",
        "closed",
        ["bmc.evidence", _DRAIN, "bmc.restart", _RESUME],
    ),
    "node-dark": ("node-silent", "closed", ["bmc.evidence", _DRAIN, "bmc.restart", "bmc.power_on", _RESUME]),
    "memory-error": ("memory-uncorrected", "person", [_EVIDENCE, _DRAIN, _PAGE]),
    "disk-full": ("disk-full", "person", ["fs.usage", _PAGE]),
}
# runbook that people or a schedule start -> what is done on an idle and well node
REQUESTS = {
    "return-node": [_RESUME],
    "inspect-node": [_DRAIN, "gpu.diagnose", "bmc.evidence", _EVIDENCE, _RESUME],
    "inspect-fabric": ["sm.status", "fabric.inspect"],
}


@functools.cache
def _pack(mode: Mode) -> Pack:
    settings = Settings(modes=(ModeSetting(mode=mode, nodes="sim-*"), ModeSetting(mode=mode, nodes="")))
    pack = packs.load(ROOT / "rules", ROOT / "runbooks", settings, NODES)
    books = tuple(replace(book, every_s=0) for book in pack.runbooks)  # no inspection comes between
    return replace(pack, runbooks=books)


def world(mode: Mode = Mode.AUTO) -> Clockwork:
    """Sixteen healthy nodes under two leaves."""
    return Clockwork(Engine(actions=ACTIONS), _pack(mode), list(NODES))


def played(fault: str) -> Clockwork:
    """Half a minute of health, the fault, then as long as its story takes; a person agrees where that is wanted."""
    made = world()
    made.inject(fault, SICK, at_s=30)
    longest = 3600 if STORIES[fault][1] == "closed" else 2400
    for until in range(60, longest, 60) if FAULTS[fault].approval else ():
        timeline = made.run(until)
        waiting = [run for run in timeline.runs.values() if run.state is RunState.APPROVAL]
        if waiting:
            word = Said(id=f"agreed-{until}", who="ann", verb="approve", args={"id": waiting[0].id})
            timeline.feed(word, made.start + until)
    made.run(longest)
    return made


def done(timeline: Timeline) -> list[str]:
    """All steps, in order."""
    return [step.action for run in timeline.runs.values() for step in run.steps]
