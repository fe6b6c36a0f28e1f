"""What NVIDIA's DCGM says of the GPUs beside NVML, where the site has it check their health."""

from agent.contract.kinds.base import WARNING, Kind, field

KINDS: tuple[Kind, ...] = (
    Kind(
        name="gpu.dcgm_health",
        component="gpu,node",
        severity=WARNING,
        source="DCGM",
        summary="DCGM's health check shows an error, again each hour while it lasts, or no longer (info). What gpuward tells "
        "by itself (`told_by`) is info, and no rule goes by it.",
        fields=(
            field("error", "text", "as in dcgm_errors.h without DCGM_FR_; UNKNOWN: gpuward does not know it"),
            field("code", "int", "its number there; 0: UNKNOWN"),
            field(
                "system",
                "text",
                "what DCGM watched: pcie | nvlink | memory | sm | inforom | thermal | power | driver | other",
            ),
            field("failed", "bool", "by DCGM's verdict that system is a failure; false: a warning"),
            field("active", "bool", "it is there"),
            field(
                "told_by",
                "text",
                "the kind by which gpuward tells the same itself; empty: only DCGM tells it",
            ),
            field("entity", "text", "by DCGM's number: GPU 3, Switch 0, CPU 1; empty: not said"),
            field("message", "text", "what DCGM says of it; empty: nothing"),
            field("xid", "int", "of XID_ERROR: which", always=False),
        ),
        example={
            "error": "CORRUPT_INFOROM",
            "code": 9,
            "system": "inforom",
            "failed": False,
            "active": True,
            "told_by": "",
            "entity": "GPU 3",
            "message": "A corrupt InfoROM has been detected in GPU 3. Flash the InfoROM to clear this corruption.",
        },
    ),
)
