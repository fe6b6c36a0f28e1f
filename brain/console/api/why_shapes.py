"""Why a rule does not match at a scope; how sure an incident is, and which facts would change it."""

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time, TwoLanguagesShape
from brain.core.why.changes import Turn
from brain.core.why.sureness import Level
from brain.core.why.why_not import MatchOutcome


class WhyNotQuery(Asked):
    """Which rule, and where."""

    rule: str = Field(min_length=1, max_length=200, description="Its name.")
    scope: str = Field(
        min_length=1, max_length=500, description="`gpu/n1/0000:3b:00`, `node/n1`, `leaf/l3`, `cell`, ..."
    )


class PastShape(Shape):
    """When a symptom was last there, as far back as the history goes."""

    at: Time | None = Field(description="When it ended; null: not since `since`.")
    why: str = Field(description="What ended it.")
    since: Time | None = Field(description="How far back the history goes.")


class ConditionShape(Shape):
    """One test of the rule."""

    test: str
    met: bool
    in_the_way: bool = Field(description="One of the fewest tests that would have to find the opposite.")
    text: str = Field(description="What it finds now.")
    begins: str = Field(
        description="What it takes for the symptom to begin; empty: it is active, or it is none."
    )
    instead: list[str] = Field(description="Tests that would do in its place.")
    symptom: str
    scope: str = Field(description="Where the symptom is, or would be.")
    since: Time | None
    last: Time | None = Field(description="When its newest fact occurred.")
    nodes: list[str] = Field(description="Of a shared cause: those that show it.")
    takes: int = Field(description="Of a shared cause: how many nodes it takes; 0: it is none.")
    past: PastShape | None = Field(description="Of a symptom that stands in the way by not being active.")


class WhyNotShape(Shape):
    """Why a rule does not match at a scope now, or what became of its match."""

    rule: str
    scope: str
    at: Time | None
    matches: bool
    outcome: MatchOutcome = Field(
        description="`not_met`, `not_own` (what is around meets it, and nothing of the part itself is active), `explained`, "
        "`dismissed`, `held_off`, `no_incident` or `open`."
    )
    text: list[str] = Field(description="The same in sentences.")
    conditions: list[ConditionShape]
    incident: str = Field(description="Its own, or the one that explains it; empty: there is none.")
    until: Time | None = Field(description="When its hold-off ends.")
    runbook: str
    mode: str = Field(description="`observe`, `approve` or `auto`; empty: it has no runbook.")
    run: str
    gate: str = Field(description="That holds the run; empty: none does.")
    gate_until: Time | None = Field(description="When the hold or the window ends by itself.")
    gate_again: Time | None = Field(description="When the gate is asked again.")


class SurenessShape(Shape):
    """How sure a verdict is, and why."""

    level: Level
    reasons: list[TwoLanguagesShape] = Field(description="What speaks for it.")
    against: list[TwoLanguagesShape] = Field(description="What speaks against it.")
    alternatives: list[TwoLanguagesShape] = Field(description="What else it may be.")


class PlaceConsideredShape(Shape):
    """A place that was considered as what the nodes of a shared cause have in common."""

    place: str = Field(description="Its scope, such as `leaf/l3`.")
    ill: int = Field(description="How many of its nodes show it.")
    of: int = Field(description="How many nodes it has.")
    best: bool = Field(description="It was chosen.")
    why: str = Field(description="Why it was, or why not.")


class ChangeShape(Shape):
    """One turn that an incident may take, and the facts that it takes."""

    turn: Turn = Field(description="`ends`, `fresh`, `wider` (a cause that many nodes share) or `other`.")
    text: TwoLanguagesShape
    cause: str = Field(description="What it would be; empty: none, or its own.")
    scope: str
    nodes: int = Field(description="`wider`: how many nodes show it now.")
    takes: int = Field(description="`wider`: how many it takes.")
