"""What remedies came to, and what the planned ones would have: the evidence by which people change modes and ladders."""

from typing import Literal

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time, TwoLanguagesShape
from brain.console.api.incident_shapes import Pattern

MOST = 20_000  # attempts, or planned runs, that one answer is reckoned from
MOST_PLANNED = 50  # that are listed of one runbook


class HelpedShape(Shape):
    """How often something helped."""

    tried: int = Field(
        description="How often it was done or could not be done, and is known to have helped or not."
    )
    helped: int = Field(description="Of these: verified by facts newer than the step.")
    lower: float = Field(description="The lower one of Wilson's bounds of that share (95 in 100), 0 to 1.")
    upper: float = Field(description="The upper one.")


class OfModelShape(HelpedShape):
    """Of one model of the hardware."""

    model: str = Field(description="Of the card, else of the node's first GPU; empty: its node has not told.")


class CameBackShape(Shape):
    """How often a fault came back after it was healed."""

    healed: int = Field(description="Of how many it is known: they came back, or the time is over.")
    back: int = Field(description="Of these, how many came back within the time.")
    upper: float = Field(description="The upper one of Wilson's bounds of that share (95 in 100), 0 to 1.")


class RemedyShape(HelpedShape):
    """One rung of one runbook against one cause."""

    cause: str
    runbook: str
    rung: str
    action: str = Field(description="Of actions.md; empty: it had several.")
    still_there: int = Field(description="How often it was done, and the fault was seen again.")
    failed: int = Field(description="How often it could not be done.")
    unknown: int = Field(description="How often nobody knows what came of it; not in `tried`.")
    not_tried: int = Field(description="How often it was refused, withdrawn or not reached; not in `tried`.")
    nodes: int = Field(description="On how many nodes it was tried.")
    took_s: float | None = Field(
        description="Median seconds from its beginning until it was verified; null: it never helped."
    )
    day: CameBackShape = Field(description="Within a day.")
    week: CameBackShape = Field(description="Within a week.")
    says: Literal["helps", "does_not_help", "unclear", "too_few"] = Field(
        description="`helps`: the lower bound is at least a half. `does_not_help`: the upper one is below 0.3. `too_few`: tried "
        "less than 5 times, or on less than 3 nodes."
    )
    models: list[OfModelShape] = Field(description="The same by model, the most tried first.")


class RemedyProposalShape(Shape):
    """What gpuward proposes. Nothing of it is done by itself."""

    runbook: str
    cause: str
    rung: str = Field(description="Empty: it is about the whole runbook.")
    text: str = Field(description="A sentence: what, and why.")


class TakenBackShape(Shape):
    """A runbook that harmed, and that gpuward has taken back to approve mode."""

    runbook: str
    since: Time | None
    why: str


class RemediesShape(Shape):
    """What remedies came to in a time."""

    since: Time | None
    until: Time | None
    reaches: Time | None = Field(description="The oldest attempt that is kept; null: there is none.")
    whole: bool = Field(description=f"false: there are more than {MOST} attempts, and these are the newest.")
    remedies: list[RemedyShape] = Field(description="By cause; then as the ladder has them.")
    taken_back: list[TakenBackShape]
    proposals: list[RemedyProposalShape]


class RemediesQuery(Asked):
    """Of which time, and of which runbooks."""

    days: float = Field(default=90, gt=0, le=3650, description="So many days back from now.")
    runbook: Pattern = Field(default="", description="Only these runbooks (glob).")
    cause: Pattern = Field(default="", description="Only against these causes (glob).")


class PlannedShape(Shape):
    """A fault against which a runbook would have acted, or has asked to."""

    incident: str
    run: str
    cause: str
    node: str
    at: Time | None = Field(description="When it would have begun.")
    rung: str = Field(description="The first rung that disrupts something; empty: none does.")
    stopped: list[str] = Field(description="Gates that stood in its way besides the mode.")
    how: Literal["same", "people", "itself", "explained", "open"] = Field(
        description="How it ended. `same`: people agreed to it, or did what it would have done. `people`: they ended it in "
        "another way, or said no. `itself`: nobody said or did anything. `explained`: another incident is its cause. `open`: it "
        "has not."
    )
    did: str = Field(description="What people did, as a clause; empty: nothing that is known.")
    after_s: float | None = Field(
        description="Seconds from its beginning until people did that, or it ended; null: it is open."
    )


class ReadyShape(Shape):
    """The evidence for one runbook."""

    runbook: str
    mode: str = Field(description="Where nothing else is set for a node.")
    at_most: str = Field(description="The loosest mode that anybody can give it.")
    planned: int = Field(
        description="Faults in this time against which it would have acted, or has asked to."
    )
    nodes: int
    same: int = Field(description="How they ended: as `how` says.")
    people: int
    itself: int
    explained: int
    open: int
    approved: int = Field(description="Of `same`, those to which people agreed.")
    healed: int = Field(description="Of these, how many it has healed.")
    stopped: dict[str, int] = Field(description="Gate -> how often it stood in the way.")
    lower: float = Field(
        description="The lower one of Wilson's bounds of `same` among those that are over, 0 to 1."
    )
    verdict: Literal["ready", "not_yet", "needless", "too_few", "none", "limited", "taken_back"] = Field(
        description="`ready`: people did the same at least every second time, by the lower bound. `needless`: at least every "
        "second one ended by itself. `limited`: its file allows no more. `none`: it would have done nothing. `too_few`: less "
        "than 5 are over, or on less than 3 nodes. `taken_back`: it harmed."
    )
    text: str = Field(description="The evidence and the verdict, as sentences.")
    cases: list[PlannedShape] = Field(description=f"The newest {MOST_PLANNED}.")


class ReadinessShape(Shape):
    """What the runbooks that may not act by themselves would have done in a time, and what people did."""

    since: Time | None
    until: Time | None
    whole: bool = Field(description=f"false: there are more than {MOST} runs, and these are the newest.")
    runbooks: list[ReadyShape] = Field(description="Those with the most planned runs first.")
    not_known: list[str] = Field(description="What nobody knows, a sentence each.")
    not_known_texts: list[TwoLanguagesShape] = Field(description="The same sentences, in both languages.")


class ReadinessQuery(Asked):
    """Of which time, and of which runbooks."""

    days: float = Field(default=14, gt=0, le=3650, description="So many days back from now.")
    runbook: Pattern = Field(default="", description="Only these runbooks (glob).")
