"""The part `[bmc_poll]` of the brain's configuration: how the BMCs of `[bmc.*]` are asked how their nodes are."""

from pydantic import BaseModel, ConfigDict, Field


class BmcPollConfig(BaseModel):
    """The leader asks each BMC in turn, spread over the interval (docs/operations.md). Off by default: give `every_s`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # Between two looks at one BMC; 0: they are not asked. Less than a minute is more than most BMCs can bear
    every_s: float = Field(default=0, ge=0, le=86400)
    # BMCs that are asked at once: a look takes 1 to 5 s, so 16 do for some 1,000 nodes in 300 s
    at_once: int = Field(default=16, ge=1, le=512)
    # A look that takes longer is given up, with what it has read until then
    within_s: float = Field(default=60, gt=0, le=600)
    # Glob of node names; of the others no BMC is asked
    nodes: str = "*"
    # Air that comes in so warm is too warm, whatever the BMC's own limit is (ASHRAE's class A2 allows 35)
    inlet_celsius: float = Field(default=35, ge=10, le=70)

    # BMCs whose stream of events (Redfish, ServerSentEventUri) is heard at once, so that one that says something is looked at
    # within seconds; 0: none. Each is one connection, which the BMC may have few of
    event_streams: int = Field(default=0, ge=0, le=1000)

    @property
    def on(self) -> bool:
        """Are they asked at all?"""
        return self.every_s > 0
