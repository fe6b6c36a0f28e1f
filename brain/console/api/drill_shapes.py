"""Drills: faults that a person injects into simulated nodes. Only with `drill = true` in brain.toml."""

from typing import Annotated

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time


class DrillShape(Shape):
    """One drill."""

    name: str
    summary: str
    affects: str = Field(description="`one` node, those of one `leaf`, or `all`.")
    ends: str = Field(description="How it ends.")
    heals: bool = Field(description="Does gpuward heal it?")
    approval: bool = Field(description="Must a person approve something?")
    breaks: bool = Field(description="Is it a fault? If not: it ends those that are there.")


class DrillListShape(Shape):
    """What can be injected, and where."""

    ok: bool
    drills: list[DrillShape]
    nodes: list[str] = Field(description="The simulated nodes.")


class InjectedShape(DrillShape):
    """A drill that was injected."""

    ok: bool
    nodes: list[str] = Field(description="Where.")
    at: Time = Field(description="When, by the brain's clock: what comes of it opens later.")


class WantedDrill(Asked):
    """A drill to be injected."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    node: str = Field(
        default="", max_length=200, description="A simulated node; empty: the first healthy one."
    )
