"""What the GPUs have used in a time, by tenant, as the site's Prometheus has it."""

from typing import Literal

from pydantic import Field

from brain.console.api.base import Shape, Time, TwoLanguagesShape
from brain.console.api.report_shapes import ReportTime


class TenantEnergyShape(Shape):
    """What one tenant's GPUs have used."""

    tenant: str = Field(
        description="As dcgm-exporter names it beside a GPU's series; empty: it names none, so the GPU idles or nobody tells."
    )
    kwh: float
    share: float = Field(description="Of all that was measured, 0 to 1.")
    use: float | None = Field(
        description="How much of the time its GPUs computed, 0 to 1, in the mean; null: not told."
    )
    values: list[float | None] = Field(
        description="kWh within each step from `since` on; null: nothing was measured."
    )


class EnergyShape(Shape):
    """The energy of GPUs."""

    configured: bool = Field(
        description="Is there a Prometheus to ask (`[console.prometheus]` in brain.toml)?"
    )
    since: Time | None
    until: Time | None
    step_s: float
    kwh: float = Field(description="All that was measured.")
    use: float | None = Field(description="As of a tenant, of all of them.")
    gpus: int = Field(description="How many this cell's nodes have told of.")
    measured: float | None = Field(
        description="Of how much of these GPUs' time it is known what they used, 0 to 1; null: no node has told of a GPU."
    )
    split: int = Field(
        description="GPUs that are split (MIG, vGPU): what they use belongs to several, and is not counted."
    )
    tenants: list[TenantEnergyShape] = Field(
        description="Those with the most first, at most 50; nobody's, too."
    )
    more: int = Field(description="How many more there are.")
    failed: list[str] = Field(
        description="What it did not answer, and why; empty: it has answered everything."
    )
    not_known_texts: list[TwoLanguagesShape] = Field(
        description="What of this nobody knows, a sentence each."
    )


class EnergyQuery(ReportTime):
    """Of which time, and as what."""

    format: Literal["json", "csv"] = Field(
        default="json", description="`csv`: one line for each tenant (RFC 4180)."
    )
