"""Kinds of faults that schedulers and others' watchers see; unknown codes; settings and versions that changed. Pure."""

from dataclasses import replace

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.month.kinds import Cured, FaultKind, Harm
from simulations.month.signs import Facts, Shows, Sign, logs, says, shows, well

_GPUS: Facts = {"scheduler": "train", "have": 8, "plugin_down": False}
_INVENTORY: Facts = {
    "digest": "5f0c2a91d3b7", "changed": True, "kernel": "5.15.0-1053", "driver": "560.35.03", "gpus": 8,
    "gpu_models": "8 NVIDIA H100 80GB HBM3", "nics": 9, "nic_firmware": "9 MT4129 28.39.1002", "cpus": 192,
    "memory_mb": 2_063_880, "product": "G593-SD0", "bios": "F17",
}  # fmt: skip

KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="gpu-code-unknown",
        summary="an XID that no catalogue knows; nothing else happens (noise)",
        plan=logs("NVRM: Xid (PCI:{gpu}): 900, something new"),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="gpu-unknown-xid",
        lasts=(60.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="nvswitch-code-unknown",
        summary="an SXid that no catalogue knows; nothing else happens (noise)",
        plan=logs("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 31337, Fatal, Link 01 new"),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="nvswitch-unknown-sxid",
        lasts=(60.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="gpu-ecc-off",
        summary="somebody switches ECC of a GPU off: from the next boot on its errors are not seen",
        plan=shows(
            "gpu/{gpu}",
            replace(says("gpu.setting", what="ecc.mode_pending", before="1", now="0"), severity=Severity.WARNING),
            well=(well("gpu.setting", what="ecc.mode_pending", before="0", now="1"),),
            after_s=60.0,
        ),
        harm=Harm.NONE,
        seen_as="gpu-ecc-off",
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="scheduler-lost-node",
        summary="a node's scheduler cannot use it, though its agent is heard",
        plan=shows(
            "node",
            says("scheduler.node", active=True, scheduler="train", state="DOWN+NOT_RESPONDING", text="Not responding"),
            well=(well("scheduler.node", active=False, scheduler="train", state="IDLE", text=""),),
            after_s=60.0,
        ),
        harm=Harm.KILLS,
        seen_as="scheduler-node-down",
    ),
    FaultKind(
        name="scheduler-lost-gpu",
        summary="a node's scheduler calls one of its GPUs unhealthy, and no fault is known of it",
        plan=shows(
            "node",
            says("scheduler.gpus", active=True, usable=7, text="gres/gpu", more=_GPUS),
            well=(well("scheduler.gpus", active=False, usable=8, text="gres/gpu", more=_GPUS),),
            after_s=60.0,
        ),
        harm=Harm.NONE,
        seen_as="scheduler-gpus",
    ),
    FaultKind(
        name="others-complain",
        summary="another watcher (node-problem-detector) calls the node's kernel deadlocked",
        plan=shows(
            "node",
            says("node.condition", active=True, conditions="KernelDeadlock", text="KernelDeadlock: task docker:7 blocked"),
            well=(well("node.condition", active=False, conditions="", text=""),),
            after_s=30.0,
        ),
        harm=Harm.NONE,
        seen_as="node-condition",
    ),
    FaultKind(
        name="version-changed",
        summary="a node boots with another driver than before (noise)",
        plan=shows("node", says("node.inventory", more=_INVENTORY)),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="inventory-changed",
        lasts=(60.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="manager-strange",
        summary="one node follows another subnet manager (noise)",
        plan=Shows(first=Sign(), changes=(after(0, ch.MasterChanges(sm_lid=9)),)),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="sm-lid-changed",
        lasts=(60.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="counter-full",
        summary="an error counter of a port is at its maximum, and hides what comes (noise)",
        plan=shows("port/{port}.1", says("ib.saturated", counter="symbol_error", value=65535)),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="ib-counter-blind",
        lasts=(600.0, 0.5),
        alerts=False,
        checked=False,
    ),
)  # fmt: skip
