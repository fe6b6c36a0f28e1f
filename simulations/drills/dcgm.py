"""Drills of what only NVIDIA's DCGM finds. Pure."""

from agent.contract.messages import Severity
from simulations.drills.drill import Drill, begin
from simulations.events import event
from simulations.faults import Fault

GPU = "gpu/0000:3b:00"  # the GPU that has the faults


def _found(
    name: str,
    summary: str,
    ends: str,
    *,
    error: str,
    code: int,
    system: str,
    failed: bool = False,
    entity: str = "GPU 1",
) -> Drill:
    component = GPU if entity.startswith("GPU") else "node"
    finding = event(
        "gpu.dcgm_health",
        component,
        Severity.ERROR if failed else Severity.WARNING,
        error=error,
        code=code,
        system=system,
        failed=failed,
        active=True,
        told_by="",
        entity=entity,
        message="",
    )
    fault = Fault(name=f"DCGM {error}", component=component, fixes=(), symptoms=(finding,))
    return Drill(name=name, summary=summary, nodes="one", ends=ends, plan=begin(fault), heals=False)


DRILLS: tuple[Drill, ...] = (
    _found(
        "dcgm-inforom",
        "DCGM finds the InfoROM of a GPU corrupt.",
        "it is not healed; the evidence is kept, and the vendor restores it or replaces the card",
        error="CORRUPT_INFOROM",
        code=9,
        system="inforom",
    ),
    _found(
        "dcgm-pages",
        "DCGM finds that a GPU has retired as many memory pages as NVIDIA allows.",
        "it is not healed; the evidence is kept, and a person has the card replaced",
        error="RETIRED_PAGES_LIMIT",
        code=7,
        system="memory",
        failed=True,
    ),
    _found(
        "dcgm-power-unreadable",
        "DCGM cannot read the power draw of a GPU.",
        "it is not healed; a person resets the GPU when its jobs have ended",
        error="POWER_UNREADABLE",
        code=11,
        system="power",
    ),
    _found(
        "dcgm-unknown",
        "DCGM finds an error of a GPU that gpuward does not know.",
        "it is not healed; a person reads what DCGM says",
        error="UNKNOWN",
        code=0,
        system="memory",
        failed=True,
    ),
    _found(
        "dcgm-processor-hot",
        "DCGM finds a Grace processor too hot.",
        "it is not healed; a person looks at the cooling",
        error="FIELD_THRESHOLD",
        code=36,
        system="thermal",
        failed=True,
        entity="CPU 0",
    ),
    Drill(
        name="dcgm-blind",
        summary="DCGM has no health watches any more, so that its health check tells nothing.",
        nodes="one",
        ends="it is not healed; a person sets the watches",
        plan=begin(
            Fault(
                name="no watches",
                component="node",
                fixes=(),
                symptoms=(
                    event(
                        "agent.source_failed",
                        "node",
                        source="dcgm",
                        reason="DCGM has no health watches for its group g",
                    ),
                ),
            )
        ),
        heals=False,
    ),
)
