"""Kinds of facts that the brain tells from what schedulers say of nodes and of jobs that wait (brain/actions/witness.py)."""

from agent.contract.kinds import Field, Kind
from agent.contract.messages import Severity

SCHEDULER_NODE = "scheduler.node"
SCHEDULER_LOST = "scheduler.lost"
SCHEDULER_DRAINED = "scheduler.drained"
SCHEDULER_GPUS = "scheduler.gpus"
SCHEDULER_DEVICES = "scheduler.devices"
SCHEDULER_QUEUE = "scheduler.queue"
SCHEDULER_IDLE = "scheduler.idle"
SCHEDULER_SPARES = "scheduler.spares"

_SCHEDULER = Field(name="scheduler", type="text", summary="its table in [schedulers]")
_ACTIVE = Field(name="active", type="bool", summary="false: it is no longer so")

KINDS: tuple[Kind, ...] = (
    Kind(
        name=SCHEDULER_NODE,
        component="node",
        severity=Severity.ERROR,
        source="scheduler",
        summary="The scheduler has lost a node or calls it unusable; severity info when it uses it again.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="state", type="text", summary="in its words: DOWN+NOT_RESPONDING, NotReady, ..."),
            Field(name="text", type="text", summary="its reason"),
        ),
        example={
            "active": True,
            "scheduler": "train",
            "state": "DOWN+NOT_RESPONDING",
            "text": "Not responding",
        },
    ),
    Kind(
        name=SCHEDULER_LOST,
        component="node",
        severity=Severity.WARNING,
        source="scheduler",
        summary="The scheduler hears nothing of a node (slurmd, kubelet), drained or not; severity info when it does again.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="text", type="text", summary="its words"),
        ),
        example={"active": True, "scheduler": "train", "text": "NOT_RESPONDING: Not responding"},
    ),
    Kind(
        name=SCHEDULER_DRAINED,
        component="node",
        severity=Severity.INFO,
        source="scheduler",
        summary="Somebody else has drained or cordoned a node. It is theirs: gpuward leaves it as it is.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="by", type="text", summary="who, where the scheduler says it"),
            Field(name="text", type="text", summary="their reason"),
        ),
        example={"active": True, "scheduler": "train", "by": "root", "text": "new cable"},
    ),
    Kind(
        name=SCHEDULER_GPUS,
        component="node",
        severity=Severity.ERROR,
        source="scheduler",
        summary="Jobs can have fewer GPUs of a node than the scheduler knows it to have; severity info when they can have all.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="have", type="int", summary="GPUs that the node should have"),
            Field(name="usable", type="int", summary="GPUs that jobs can have"),
            Field(name="plugin_down", type="bool", summary="none at all: the device plugin is gone"),
            Field(name="text", type="text", summary="its words"),
        ),
        example={
            "active": True,
            "scheduler": "k8s",
            "have": 8,
            "usable": 7,
            "plugin_down": False,
            "text": "7 of 8 GPUs allocatable",
        },
    ),
    Kind(
        name=SCHEDULER_DEVICES,
        component="node",
        severity=Severity.ERROR,
        source="scheduler",
        summary="Devices of a node are tainted in dynamic resource allocation: no new claim gets them; severity info when none "
        "is, or an administrator has tainted them.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="devices", type="int", summary="so many"),
            Field(name="driver", type="text", summary="the DRA drivers that have them"),
            Field(name="pool", type="text", summary="their pools"),
            Field(name="device", type="text", summary="their names in their pools"),
            Field(name="key", type="text", summary="keys of the taints"),
            Field(
                name="effect",
                type="text",
                summary="NoSchedule; NoExecute: pods that have them are ended, too",
            ),
            Field(
                name="by_driver",
                type="bool",
                summary="a driver has set one; false: only rules of administrators (DeviceTaintRule)",
            ),
            Field(name="text", type="text", summary="each taint with its value and who has set it"),
        ),
        example={
            "active": True,
            "scheduler": "k8s",
            "devices": 1,
            "driver": "gpu.example.com",
            "pool": "gpu1",
            "device": "gpu-3",
            "key": "gpu.example.com/unhealthy",
            "effect": "NoExecute",
            "by_driver": True,
            "text": "gpu-3 of gpu.example.com, pool gpu1: gpu.example.com/unhealthy=xid79:NoExecute, by its driver",
        },
    ),
    Kind(
        name=SCHEDULER_QUEUE,
        component="node",
        severity=Severity.WARNING,
        source="scheduler",
        summary="Jobs wait for over an hour for a reason that does not pass by itself. About the cell, no node.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="jobs", type="int", summary="so many"),
            Field(name="reasons", type="text", summary="each with the number of its jobs"),
            Field(name="text", type="text", summary="the longest waiting ones"),
        ),
        example={
            "active": True,
            "scheduler": "train",
            "jobs": 3,
            "reasons": "3 ReqNodeNotAvail",
            "text": "4711 of ann for 2.5 h: ReqNodeNotAvail, UnavailableNodes:gpu7",
        },
    ),
    Kind(
        name=SCHEDULER_IDLE,
        component="node",
        severity=Severity.INFO,
        source="scheduler",
        summary="A node has had no job for a while, and none is planned for it. Only with `idle_after_s`.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="idle_s", type="float", summary="since it was first seen so", unit="s"),
        ),
        example={"active": True, "scheduler": "train", "idle_s": 3600.0},
    ),
    Kind(
        name=SCHEDULER_SPARES,
        component="node",
        severity=Severity.WARNING,
        source="scheduler",
        summary="A pool has had fewer idle and healthy nodes than its share of spares for ten minutes; severity info when it has "
        "had enough for as long. About the cell, no node. Only with `spares`.",
        fields=(
            _ACTIVE,
            _SCHEDULER,
            Field(name="pool", type="text", summary="its table in `spares`"),
            Field(name="ready", type="int", summary="idle and healthy nodes"),
            Field(name="wanted", type="int", summary="so many there should be"),
            Field(name="of", type="int", summary="nodes of the pool"),
            Field(name="out", type="int", summary="of these, nodes that take no jobs: drained or down"),
            Field(name="ill", type="text", summary="nodes that are idle and not healthy"),
        ),
        example={
            "active": True,
            "scheduler": "train",
            "pool": "h100",
            "ready": 3,
            "wanted": 13,
            "of": 128,
            "out": 9,
            "ill": "h100-017, h100-031",
        },
    ),
)
