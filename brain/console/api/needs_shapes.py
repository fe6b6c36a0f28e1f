"""What needs a person now, what heals by itself, and what was healed: the first page of a console in one answer."""

from enum import StrEnum

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time
from brain.core.pack.spec import Priority, Scalar


class NeedKind(StrEnum):
    """Why something needs a person; of equally severe ones the first come first."""

    APPROVAL = "approval"  # a run waits for an approval
    NO_REMEDY = "no_remedy"  # gpuward does nothing more: its remedies are at an end, or there is none
    BREAKER = "breaker"  # the breaker has tripped: nothing disruptive begins before somebody resets it
    HOLD_ENDS = "hold_ends"  # an operator's hold ends by itself within an hour
    HOLD_STANDS = "hold_stands"  # an operator's hold without an end has stood for a day
    PAGE = "page"  # people were paged, and nobody has acknowledged
    DRAINED = "drained"  # a node is out of service, and no remedy is left


class VerbShape(Shape):
    """A command that you may give about it (`POST /api/v1/command`)."""

    verb: str
    args: dict[str, Scalar]
    asks: list[str] = Field(description="Further arguments, which you must add.")
    two_persons: bool = Field(description="It counts when a second person says the same.")


class WantedApprovalShape(Shape):
    """Exactly what an approval would be for."""

    run: str
    runbook: str
    rung: str
    what: str = Field(description="`<rung>: <action>(<parameters>) on <scope>`.")
    seen: str = Field(
        description="Of how things stand: an approval that hands it back does not count when they have become worse since."
    )
    disrupts: str = Field(description="`nothing`, `job`, `node` or `fabric`.")
    repeat: str = Field(description="`safe`, `probe` or `never`: may it be done twice?")
    why: str = Field(description="Why it needs one.")
    valid_s: float = Field(description="How long it would be valid, once given.")
    jobs: list[str] | None = Field(
        description="What runs on the node, as the scheduler said last; null: nobody knows."
    )


class NeedShape(Shape):
    """One thing that needs a person, or will not."""

    kinds: list[NeedKind] = Field(
        description="Why it needs a person, the most urgent reason first; empty: it does not."
    )
    id: str = Field(description="Of the incident, alert group or hold; of the breaker: `breaker`.")
    severity: Priority
    state: str = Field(description="Of the incident; empty: it is none.")
    cause: str
    scope: str
    node: str = Field(description="Empty: wider than a node, or none.")
    since: Time | None
    until: Time | None = Field(description="When it changes by itself; null: not, or nobody knows.")
    text: str = Field(description="One sentence.")
    run: str = Field(description="The id of its newest run; empty: none.")
    acked_by: str = Field(description="Empty: nobody has acknowledged.")
    out_of_service: list[str] = Field(description="The nodes that it keeps so; the first ones of many.")
    approval: WantedApprovalShape | None
    verbs: list[VerbShape] = Field(description="What you may say about it, by your role and its limits.")


class HealedShape(Shape):
    """An incident that is over."""

    id: str
    severity: Priority
    cause: str
    scope: str
    node: str
    opened_at: Time | None
    closed_at: Time | None
    runbook: str = Field(
        description="The one whose run healed it, and verified that; empty: it went away otherwise."
    )
    text: str = Field(description="One sentence.")


class NeedsShape(Shape):
    """The page of somebody on call."""

    people: list[NeedShape] = Field(description="What needs a person, the most urgent first.")
    people_count: int = Field(description="How many of these there are, listed or not.")
    healing: list[NeedShape] = Field(
        description="Open incidents about which gpuward is doing something, or waits to see."
    )
    healing_count: int
    healed: list[HealedShape] = Field(description="What was over in the last `hours`, newest first.")
    healed_more: bool = Field(description="Are there more than these?")


class NeedsQuery(Asked):
    """How much of it."""

    hours: float = Field(default=24, gt=0, le=720, description="What was healed in these last hours.")
    limit: int = Field(default=200, ge=1, le=1000, description="How many of each sort.")
