"""The whole fleet in columns: what a map of 10,000 nodes is drawn from, in one small answer."""

from enum import StrEnum

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time

_PLACE = "For each node an index into `{}`; -1: not known."


class NodeWord(StrEnum):
    """How a node stands, the most urgent word that fits."""

    NEEDS_HUMAN = "needs_human"  # an incident or an approval waits for a person
    HEALING = "healing"  # a run is under way
    UNREACHABLE = "unreachable"  # no beat for a while
    DRAINED = "drained"  # gpuward keeps it out of service
    SUSPECT = "suspect"  # an incident is open, and nothing is done about it yet, or it is over unless it comes again
    WELL = "well"  # nothing is open
    UNKNOWN = "unknown"  # the topology names it, and it has never been heard


class FleetIncidentsShape(Shape):
    """The open incidents that the columns name; all columns have the same length."""

    id: list[str]
    severity: list[str] = Field(description="P0 to P3.")
    state: list[str] = Field(description='One of "States of an incident" in reference.md.')
    cause: list[str]
    scope: list[str]


class FleetCardsShape(Shape):
    """The GPUs about which an incident is open; all columns have the same length. All others have the word of their node, or
    are well.
    """

    node: list[int] = Field(description="An index into `names`.")
    card: list[str] = Field(description="Its PCI address, as its node says.")
    state: list[int] = Field(description="An index into `words`.")
    incident: list[int] = Field(description="Its most severe one: an index into the columns of `incidents`.")


class FleetShape(Shape):
    """The nodes in columns of equal length, in the order of their names."""

    at: Time | None = Field(description="The time that was asked for; null: now.")
    since: float | None = Field(
        description="The earliest `at` that can be asked for, in seconds since 1970; null: there is no history yet."
    )
    words: list[NodeWord] = Field(description="What `state` counts in.")
    names: list[str]
    state: list[int] = Field(
        description="For each node an index into `words`. In the past: as far as incidents tell; nodes and places are those of "
        "today."
    )
    incident: list[int] = Field(
        description="For each node its most severe open incident: an index into the columns of `incidents`; -1: none."
    )
    held: list[int] = Field(description="Indexes of the nodes on which an operator's hold stands, or stood.")
    gpus: list[int] = Field(description="For each node how many GPUs it has; -1: it has not told.")
    cards: FleetCardsShape
    incidents: FleetIncidentsShape
    racks: list[str]
    rack: list[int] = Field(description=_PLACE.format("racks"))
    leaves: list[str]
    leaf: list[int] = Field(description=_PLACE.format("leaves"))
    pods: list[str]
    pod: list[int] = Field(description=_PLACE.format("pods"))
    agents: list[str] = Field(description="Versions of the agent.")
    agent: list[int] = Field(
        description=_PLACE.format("agents")
        + " Only the leading brain hears it, and of the past nobody knows."
    )
    drivers: list[str] = Field(description="Versions of the NVIDIA driver.")
    driver: list[int] = Field(description=_PLACE.format("drivers") + " Of today.")
    jobs: list[str]
    job: list[int] = Field(
        description="For each node the first job on it, an index into `jobs`; -1: none, or not known: the scheduler is asked "
        "about a node only before something disruptive is done there."
    )


class FleetQuery(Asked):
    """Of which time."""

    at: float | None = Field(
        default=None,
        ge=0,
        lt=1e11,
        description="In seconds since 1970; left out, or later than now: now.",
    )
