"""What clients of file servers count. Only with `storage_interval_s`."""

from agent.contract.kinds.base import Field, Kind
from agent.contract.messages import Severity

_SOURCE = "counters of file system clients"

KINDS: tuple[Kind, ...] = (
    Kind(
        name="mount.slow",
        component="mount",
        severity=Severity.WARNING,
        source=_SOURCE,
        summary="A file server (NFS), or one storage target (Lustre), takes long to answer this node (`storage_slow_ms`, three "
        "readings in a row with 20 requests or more), and each hour while it lasts; info when it is fast again. Only with "
        "`storage_interval_s`.",
        fields=(
            Field(name="slow", type="bool", summary="false: fast again"),
            Field(name="mean_ms", type="float", summary="of a request, since the last reading", unit="ms"),
            Field(name="requests", type="int", summary="since the last reading"),
            Field(name="target", type="text", summary="`OST0003`; empty: the server is not told apart"),
            Field(name="fstype", type="text", summary="nfs | nfs4 | lustre"),
        ),
        example={"slow": True, "mean_ms": 412.5, "requests": 1880, "target": "OST0003", "fstype": "lustre"},
    ),
    Kind(
        name="mount.target",
        component="mount",
        severity=Severity.WARNING,
        source=_SOURCE,
        summary="A storage target (OST) of a shared file system is nearly full (`storage_target_percent`), and each hour while "
        "it lasts; info when it is not. Only with `storage_interval_s`.",
        fields=(
            Field(name="target", type="text", summary="`OST0003`"),
            Field(name="full", type="bool", summary="false: no longer"),
            Field(name="used_percent", type="float", summary="of its space", unit="%"),
            Field(name="free", type="int", summary="of its space", unit="MiB"),
        ),
        example={"target": "OST0003", "full": True, "used_percent": 91.2, "free": 6200000},
    ),
)
