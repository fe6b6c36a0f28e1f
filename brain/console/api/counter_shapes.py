"""Counters of a node over time, as the site's exporters have told its Prometheus."""

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time


class CounterLineShape(Shape):
    """One line of a plot."""

    label: str = Field(
        description="A part of the node (`gpu/<PCI address>`), a device, or empty: the node itself."
    )
    values: list[float | None] = Field(
        description="One for each step from `since` on; null: nothing was told there."
    )


class CounterPanelShape(Shape):
    """One plot; of counters that only grow it is how much more there was within each step."""

    name: str
    unit: str = Field(description="Empty: a number.")
    lines: list[CounterLineShape] = Field(description="Those with the highest values, at most 16.")
    more: int = Field(description="How many more there are.")


class CountersShape(Shape):
    """Counters of a node."""

    configured: bool = Field(
        description="Is there a Prometheus to ask (`[console.prometheus]` in brain.toml)?"
    )
    since: Time | None
    until: Time | None
    step_s: float
    panels: list[CounterPanelShape] = Field(description="Those of which Prometheus knows something.")
    failed: list[str] = Field(
        description="What it did not answer, and why; empty: it has answered everything."
    )


class CountersQuery(Asked):
    """Of which time, and of which part."""

    hours: float = Field(default=24, gt=0, le=24 * 31, description="Up to now.")
    component: str = Field(
        default="", max_length=64, description="Of this GPU only (`gpu/<PCI address>`); empty: of the node."
    )
