"""Kinds about the node itself: modules, memory, mounts, clock, inventory; and what job logs show besides CUDA and NCCL."""

from agent.contract.kinds.base import Field, Kind
from agent.contract.messages import Severity

KINDS: tuple[Kind, ...] = (
    Kind(
        name="node.module",
        component="node",
        severity=Severity.ERROR,
        source="/proc/modules",
        summary="A needed kernel module is missing, or one that was loaded is gone; severity info when it is loaded.",
        fields=(
            Field(name="module", type="text", summary="e.g. nvidia_peermem"),
            Field(name="loaded", type="bool", summary="it is loaded now"),
        ),
        example={"module": "nvidia_peermem", "loaded": False},
    ),
    Kind(
        name="node.memory",
        component="node",
        severity=Severity.WARNING,
        source="/proc/meminfo",
        summary="Little main memory is left (`memory_low_percent`), or enough again (severity info).",
        fields=(
            Field(name="low", type="bool", summary="too little is left"),
            Field(name="available_mb", type="int", summary="available without swapping", unit="MiB"),
            Field(name="total_mb", type="int", summary="main memory", unit="MiB"),
        ),
        example={"low": True, "available_mb": 21000, "total_mb": 2063000},
    ),
    Kind(
        name="node.pressure",
        component="node",
        severity=Severity.WARNING,
        source="/proc/pressure",
        summary="All tasks waited for memory or I/O for much of a minute (`*_pressure_percent`); severity info when over.",
        fields=(
            Field(name="resource", type="text", summary="memory | io"),
            Field(name="high", type="bool", summary="above the threshold"),
            Field(name="full_percent", type="float", summary="time in which all tasks waited", unit="%"),
            Field(name="some_percent", type="float", summary="time in which at least one waited", unit="%"),
        ),
        example={"resource": "memory", "high": True, "full_percent": 23.5, "some_percent": 61.2},
    ),
    Kind(
        name="mount.state",
        component="mount",
        severity=Severity.ERROR,
        source="statvfs",
        summary="A mounted file system hangs, fails or is missing; severity info when it answers again.",
        fields=(
            Field(name="state", type="text", summary="ok | hung | error | gone"),
            Field(name="before", type="text", summary="state before"),
            Field(
                name="fstype", type="text", summary="e.g. lustre, nfs4, wekafs; empty when it is not mounted"
            ),
            Field(name="reason", type="text", summary="the error", always=False),
            Field(
                name="waited_s", type="float", summary="hung: since the check began", unit="s", always=False
            ),
        ),
        example={"state": "hung", "before": "ok", "fstype": "lustre", "waited_s": 10.0},
    ),
    Kind(
        name="mount.space",
        component="mount",
        severity=Severity.WARNING,
        source="statvfs",
        summary="A file system is nearly full (`disk_full_percent`), or no longer so (severity info).",
        fields=(
            Field(name="what", type="text", summary="bytes | inodes"),
            Field(name="full", type="bool", summary="above the threshold"),
            Field(name="used_percent", type="float", summary="in use", unit="%"),
            Field(name="free", type="int", summary="what is left: MiB, or inodes"),
            Field(name="fstype", type="text", summary="e.g. ext4"),
            Field(name="remote", type="bool", summary="on a file server: many nodes see it"),
        ),
        example={
            "what": "bytes",
            "full": True,
            "used_percent": 93.1,
            "free": 30500,
            "fstype": "ext4",
            "remote": False,
        },
    ),
    Kind(
        name="disk.health",
        component="disk",
        severity=Severity.WARNING,
        source="NVMe health log",
        summary="What an NVMe disk says of itself, when something of it begins or ends, and each hour while it lasts (severity "
        "error: read_only or unreliable; info: all is well). Only with `nvme_interval_s`.",
        fields=(
            Field(
                name="answers", type="bool", summary="its controller answered; else nothing below is known"
            ),
            Field(name="waited_s", type="float", summary="without an answer", unit="s", always=False),
            Field(
                name="read_only", type="bool", summary="it has put itself into read-only mode", always=False
            ),
            Field(
                name="unreliable",
                type="bool",
                summary="its reliability is degraded by media errors or an internal error",
                always=False,
            ),
            Field(
                name="spare_low",
                type="bool",
                summary="the spare that is left is below its own threshold",
                always=False,
            ),
            Field(name="worn", type="bool", summary="the life that its maker expects is over", always=False),
            Field(
                name="unprotected",
                type="bool",
                summary="what keeps its cache over a power cut has failed, or its persistent memory",
                always=False,
            ),
            Field(name="hot", type="bool", summary="its temperature is beyond its threshold", always=False),
            Field(name="spare_percent", type="int", summary="spare that is left", unit="%", always=False),
            Field(
                name="spare_threshold_percent",
                type="int",
                summary="below which it is too little",
                unit="%",
                always=False,
            ),
            Field(
                name="used_percent",
                type="int",
                summary="of the life that its maker expects; may be above 100",
                unit="%",
                always=False,
            ),
            Field(
                name="media_errors",
                type="int",
                summary="unrecovered errors of data since it was made",
                always=False,
            ),
            Field(name="temperature_c", type="int", summary="now", unit="°C", always=False),
            Field(name="model", type="text", summary="empty: not known"),
            Field(name="serial", type="text", summary="serial number; empty: not known"),
        ),
        example={
            "answers": True,
            "read_only": False,
            "unreliable": False,
            "spare_low": True,
            "worn": True,
            "unprotected": False,
            "hot": False,
            "spare_percent": 4,
            "spare_threshold_percent": 10,
            "used_percent": 104,
            "media_errors": 0,
            "temperature_c": 41,
            "model": "SAMSUNG MZQL23T8HCLS-00A07",
            "serial": "S64HNE0T601234",
        },
    ),
    Kind(
        name="disk.counter",
        component="disk",
        severity=Severity.ERROR,
        source="NVMe health log",
        summary="A counter of an NVMe disk has grown since the last reading, also while no agent ran. Only with "
        "`nvme_interval_s`.",
        fields=(
            Field(
                name="counter",
                type="text",
                summary="media_errors (data that it could not recover) | critical_temperature_min (minutes at or above its "
                "critical temperature)",
            ),
            Field(name="delta", type="int", summary="growth"),
            Field(name="value", type="int", summary="value now, since it was made"),
            Field(
                name="interval_s",
                type="float",
                summary="time between the readings; left out where an earlier run of the agent read it last",
                unit="s",
                always=False,
            ),
            Field(name="model", type="text", summary="empty: not known"),
            Field(name="serial", type="text", summary="serial number; empty: not known"),
        ),
        example={
            "counter": "media_errors",
            "delta": 2,
            "value": 2,
            "interval_s": 600.0,
            "model": "SAMSUNG MZQL23T8HCLS-00A07",
            "serial": "S64HNE0T601234",
        },
    ),
    Kind(
        name="node.clock",
        component="node",
        severity=Severity.WARNING,
        source="adjtimex",
        summary="The wall clock is not synchronised or far off (`clock_offset_s`), or is right again (severity info).",
        fields=(
            Field(name="well", type="bool", summary="synchronised and within the threshold"),
            Field(name="synchronised", type="bool", summary="by the kernel, something disciplines it"),
            Field(name="offset_s", type="float", summary="that is still being corrected", unit="s"),
            Field(name="max_error_s", type="float", summary="the kernel's bound of its error", unit="s"),
        ),
        example={"well": False, "synchronised": False, "offset_s": 0.0, "max_error_s": 16.0},
    ),
    Kind(
        name="node.clock_step",
        component="node",
        severity=Severity.WARNING,
        source="adjtimex",
        summary="The wall clock jumped by more than `clock_offset_s`: it was set.",
        fields=(Field(name="step_s", type="float", summary="how far; negative: back", unit="s"),),
        example={"step_s": -3600.0},
        no_rule="that the clock is wrong is node.clock; a step sets it right.",
    ),
    Kind(
        name="node.inventory",
        component="node",
        severity=Severity.INFO,
        source="/proc and /sys",
        summary="What the node is made of, at start and on change. Its parts are node.inventory.gpu and node.inventory.nic.",
        fields=(
            Field(
                name="digest",
                type="text",
                summary="equal for nodes that are equal in these fields and in the models and firmware of their parts",
            ),
            Field(
                name="changed",
                type="bool",
                summary="the digest differs from that of the last inventory, also over restarts and reboots",
            ),
            Field(name="kernel", type="text", summary="kernel release"),
            Field(name="driver", type="text", summary="NVIDIA driver; empty: none"),
            Field(name="gpus", type="int", summary="GPUs on the PCI bus"),
            Field(
                name="gpu_models", type="text", summary="models with their number, `8 NVIDIA H100 80GB HBM3`"
            ),
            Field(name="nics", type="int", summary="InfiniBand and RoCE devices"),
            Field(name="nic_firmware", type="text", summary="model and firmware with their number"),
            Field(name="gpu_vbios", type="text", summary="VBIOS versions with their number", always=False),
            Field(name="cpus", type="int", summary="processors that are online"),
            Field(name="memory_mb", type="int", summary="main memory", unit="MiB"),
            Field(name="product", type="text", summary="of the DMI table; empty: not known"),
            Field(name="bios", type="text", summary="version of the BIOS; empty: not known"),
        ),
        example={
            "digest": "5f0c2a91d3b7",
            "changed": False,
            "kernel": "5.15.0-1053",
            "driver": "550.90.07",
            "gpus": 8,
            "gpu_models": "8 NVIDIA H100 80GB HBM3",
            "nics": 9,
            "nic_firmware": "8 MT4129 28.39.1002, 1 MT4125 22.39.1002",
            "cpus": 192,
            "memory_mb": 2063000,
            "product": "G593-SD0",
            "bios": "F17",
        },
    ),
    Kind(
        name="node.inventory.gpu",
        component="gpu",
        severity=Severity.INFO,
        source="/proc and /sys",
        summary="One GPU of the inventory: at start, and when it was replaced or changed.",
        fields=(
            Field(name="model", type="text", summary="empty: not known"),
            Field(name="uuid", type="text", summary="empty: not known"),
            Field(name="serial", type="text", summary="empty: not known"),
            Field(name="vbios", type="text", summary="empty: not known"),
            Field(name="firmware", type="text", summary="GSP firmware; empty: not known"),
        ),
        example={
            "model": "NVIDIA H100 80GB HBM3",
            "uuid": "GPU-5c1b2f7e-0a33-4c68-9f1d-2b7a60a4e911",
            "serial": "1653023018213",
            "vbios": "96.00.74.00.01",
            "firmware": "550.90.07",
        },
        no_rule="what it compares is summed up in node.inventory.",
    ),
    Kind(
        name="node.inventory.nic",
        component="nic",
        severity=Severity.INFO,
        source="/proc and /sys",
        summary="One InfiniBand or RoCE device of the inventory: at start, and when it was replaced or changed.",
        fields=(
            Field(name="model", type="text", summary="hca_type; empty: not known"),
            Field(name="board", type="text", summary="board id (PSID); empty: not known"),
            Field(name="firmware", type="text", summary="empty: not known"),
            Field(name="guid", type="text", summary="node GUID; empty: not known"),
            Field(name="bdf", type="text", summary="PCI address; empty: not known"),
            Field(
                name="netdevs", type="text", summary="its interfaces with their MTU, `eth2:9000`; empty: none"
            ),
        ),
        example={
            "model": "MT4129",
            "board": "MT_0000000838",
            "firmware": "28.39.1002",
            "guid": "a088:c203:00ab:1234",
            "bdf": "0000:18:00",
            "netdevs": "ib0:4092",
        },
        no_rule="what it compares is summed up in node.inventory.",
    ),
    Kind(
        name="job.rdma_error",
        component="node,job",
        severity=Severity.ERROR,
        source="job log",
        summary="A job's log names a failed RDMA connection (RDMA_CM_EVENT_CONNECT_ERROR and others).",
        fields=(
            Field(name="name", type="text", summary="the event, e.g. RDMA_CM_EVENT_CONNECT_ERROR"),
            Field(name="job", type="text", summary="job id; empty when unknown"),
            Field(name="file", type="text", summary="log file, or journal:<unit>"),
            Field(
                name="port",
                type="text",
                summary="`port/<device>.<port>` of the RDMA device that the line names",
                always=False,
            ),
        ),
        example={"name": "RDMA_CM_EVENT_CONNECT_ERROR", "job": "4711", "file": "/var/log/jobs/4711.log"},
    ),
    Kind(
        name="job.nan_loss",
        component="node,job",
        severity=Severity.WARNING,
        source="job log",
        summary="A job's log shows a loss that is not a number, or what its trainer found when it computed one again (severity "
        "info: an overflow that a loss scaler meets, or a result that is right). Only with `job_nan_loss`.",
        fields=(
            Field(
                name="what",
                type="text",
                summary="loss | gradient: it overflowed | local: one rank's own result, before it is combined with others | "
                "not_reproducible: the same GPU computed something else the second time | other_gpu_differs: another GPU did, "
                "so the one before was wrong | reproduced: another GPU computed the same",
            ),
            Field(
                name="here", type="bool", summary="local or not_reproducible, and the line names this machine"
            ),
            Field(name="rank", type="int", summary="rank that the line names", always=False),
            Field(name="device", type="int", summary="its GPU, as the program counts", always=False),
            Field(name="job", type="text", summary="job id; empty when unknown"),
            Field(name="file", type="text", summary="log file, or journal:<unit>"),
        ),
        example={
            "what": "local",
            "here": True,
            "rank": 7,
            "device": 3,
            "job": "4711",
            "file": "/var/log/jobs/4711.log",
        },
    ),
    Kind(
        name="job.steps",
        component="node,job",
        severity=Severity.INFO,
        source="job log",
        summary="How long the steps of a job take by its log, the median of a minute: told when it has moved by 5 %, and every "
        "ten minutes. Only with `job_step_text`.",
        fields=(
            Field(name="step_s", type="float", summary="the median", unit="s"),
            Field(name="job", type="text", summary="job id; empty when unknown"),
            Field(name="file", type="text", summary="log file, or journal:<unit>"),
        ),
        example={"step_s": 5.2124, "job": "4711", "file": "/var/log/jobs/4711.log"},
        no_rule="a slow job names no node; the evidence of a straggler says how much longer its job's steps take.",
    ),
)
