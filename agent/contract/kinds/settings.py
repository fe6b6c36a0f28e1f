"""How a node is set up. Only with `settings_interval_s`."""

from agent.contract.kinds.base import Field, Kind
from agent.contract.messages import Severity

KINDS: tuple[Kind, ...] = (
    Kind(
        name="node.settings",
        component="node",
        severity=Severity.INFO,
        source="settings of the node",
        summary="How the node is set up, at start and on change: texts that are equal on equal nodes, their parts divided by "
        "semicolons. Only with `settings_interval_s`.",
        fields=(
            Field(name="product", type="text", summary="of the DMI table; empty: not known"),
            Field(
                name="gpu_models",
                type="text",
                summary="models with their number, or `no GPU`: by them it has its peers",
            ),
            Field(
                name="boot",
                type="text",
                summary="parameters of the kernel that matter for speed, GPUs and RDMA; no others are told",
            ),
            Field(
                name="processors",
                type="text",
                summary="what BIOS and boot have set, as the kernel shows it: SMT, NUMA nodes, frequency, boost, idle "
                "states, IOMMU, huge pages",
            ),
            Field(
                name="mounts",
                type="text",
                summary="the mounted file systems of /etc/fstab with their options; addresses and names are left out",
            ),
            Field(
                name="rdma",
                type="text",
                summary="RDMA devices with their number, by model and NUMA node; of RoCE also lossless priorities (PFC), ECN and "
                "traffic class, as far as the driver shows them",
            ),
        ),
        example={
            "product": "G593-SD0",
            "gpu_models": "8 NVIDIA H100 80GB HBM3",
            "boot": "iommu=pt; transparent_hugepage=madvise",
            "processors": "SMT on; NUMA nodes 0-1; frequency intel_pstate performance; boost on; idle states POLL C1",
            "mounts": "/home nfs4 hard,nconnect=16,rw,vers=4.2; /scratch lustre flock,rw",
            "rdma": "4 MT4129 NUMA 0 PFC 3 ECN marks 3 DCQCN 3; 4 MT4129 NUMA 1 PFC 3 ECN marks 3 DCQCN 3",
        },
    ),
)
