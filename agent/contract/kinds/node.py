"""Kinds about the machine: devices, services, jobs."""

from agent.contract.kinds.base import ERROR, INFO, WARNING, Kind, field

KINDS: tuple[Kind, ...] = (
    Kind(
        name="device.changed",
        component="pcie,link,nic,disk",
        severity=INFO,
        source="udev",
        summary="The kernel added or removed a PCI, network, InfiniBand or block device.",
        fields=(
            field("change", "text", "add | remove"),
            field("subsystem", "text", "pci | net | infiniband | block"),
        ),
        example={"change": "remove", "subsystem": "pci"},
        no_rule="a device that is gone is told by who uses it: gpu.removed, link.removed, ib.device, disk.error.",
    ),
    Kind(
        name="service.state",
        component="service",
        severity=ERROR,
        source="systemd",
        summary="A watched unit changed its state. Severity info when it became active.",
        fields=(
            field("active", "text", "active | inactive | failed | activating | ..."),
            field("sub", "text", "sub-state"),
            field("result", "text", "systemd's result", always=False),
        ),
        example={"active": "failed", "sub": "failed", "result": "exit-code"},
    ),
    Kind(
        name="job.cuda_error",
        component="gpu,node,job",
        severity=ERROR,
        source="job log",
        summary="A job's log names a CUDA error. The component is the GPU when the line names its PCI address.",
        fields=(
            field("name", "text", "e.g. CUDA_ERROR_DEVICE_REMOVED"),
            field("job", "text", "job id; empty when unknown"),
            field("file", "text", "log file"),
        ),
        example={"name": "CUDA_ERROR_DEVICE_REMOVED", "job": "4711", "file": "/var/log/jobs/4711.log"},
    ),
    Kind(
        name="job.gpu_access",
        component="node,job",
        severity=ERROR,
        source="job log",
        summary="A container has no access to its GPUs, or could not be started with them, by its log or its runtime's.",
        fields=(
            field(
                "what",
                "text",
                "access_lost (it had them) | version_mismatch | driver_not_loaded | cdi (no such CDI device) | toolkit "
                "(nvidia-container-toolkit failed, or is not configured)",
            ),
            field("job", "text", "job id; empty when unknown"),
            field("file", "text", "log file, or journal:<unit>"),
        ),
        example={"what": "access_lost", "job": "4711", "file": "/var/log/jobs/4711.log"},
    ),
    Kind(
        name="job.nccl_error",
        component="node,job",
        severity=WARNING,
        source="job log",
        summary="A job's log shows an NCCL warning, failure or watchdog time-out.",
        fields=(
            field("what", "text", "warning | timeout | system_error | remote_error | ib_error"),
            field("job", "text", "job id; empty when unknown"),
            field("file", "text", "log file"),
        ),
        example={"what": "timeout", "job": "4711", "file": "/var/log/jobs/4711.log"},
    ),
)
