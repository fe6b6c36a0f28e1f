"""Rules and runbooks: what each means, how often it was needed, and how far it may go here."""

from typing import Any

from pydantic import Field

from brain.console.api.base import Shape, Time, TwoLanguagesShape
from brain.console.api.incident_shapes import Pattern
from brain.console.api.pages import Paged
from brain.console.api.status_shapes import ModeShape
from brain.core.pack.spec import Priority


class FiredShape(Shape):
    """What the history tells of a rule's incidents; at most a minute old."""

    fired: int = Field(description="How many incidents it has opened that the history still has.")
    open: int = Field(description="Of these, how many are open.")
    healed: int = Field(description="Of these, how many a run has healed, and verified.")
    healed_in_s: float | None = Field(
        description="Median seconds from the opening of those to the end of the run that healed them; null: none."
    )
    last_at: Time | None = Field(description="When it last opened one.")


class RuleEntryShape(FiredShape):
    """A rule, in short."""

    name: str
    cause: str
    scope: str = Field(description="The type of the scopes whose situations it matches.")
    severity: Priority
    because: str
    because_zh: str = Field(description="The same in Chinese; empty: there is only the English.")
    runbook: str = Field(description="Empty: none, people must act.")
    page: str = Field(description="When people are paged: `open`, `failure` or `never`.")
    source: str = Field(
        description="`<file>:<line>`; empty: gpuward has made it for a shared cause, or the files have changed since."
    )


class RuleListShape(Shape):
    """The rules in force, by name."""

    rules: list[RuleEntryShape]
    pack: str = Field(description="Their version.")
    next: str = Field(description="The cursor of the next page; empty: this is the last one.")


class AdviceShape(Shape):
    """What to do in one case."""

    when: dict[str, Any] = Field(
        description="A condition on the situation (reference.md, The language of conditions)."
    )
    todo: TwoLanguagesShape


class RuleSymptomShape(Shape):
    """A symptom that a rule names."""

    name: str
    summary: str
    source: str = Field(description="`<file>:<line>`; empty: as for a rule.")


class RuleDetailShape(RuleEntryShape):
    """A rule."""

    pack: str = Field(description="The version of the rules in force.")
    cause_text: TwoLanguagesShape = Field(description="The cause, for whoever is paged.")
    todo: TwoLanguagesShape = Field(description="What to do; `$drain` stands for draining the node.")
    advice: list[AdviceShape] = Field(
        description="The first whose condition holds takes the place of `todo`."
    )
    links: list[str]
    when: dict[str, Any] = Field(description="What it matches.")
    symptoms: list[RuleSymptomShape]
    inhibits: list[str] = Field(description="Causes that this one explains.")
    hold_off_s: float
    resolve_delay_s: float


class RulesQuery(Paged):
    """Which rules. Without `limit`: all."""

    name: Pattern = Field(default="", description="Only these names (glob).")
    cause: Pattern = Field(default="", description="Only these causes (glob).")
    scope: Pattern = Field(default="", description="Only these types of scope (glob).")
    runbook: Pattern = Field(default="", description="Only those that lead to these runbooks (glob).")
    severity: Priority | None = Field(default=None, description="Only those of this severity.")


class RanShape(Shape):
    """What the history tells of a runbook's runs; at most a minute old."""

    runs: int = Field(description="How many runs of it the history has.")
    under_way: int
    succeeded: int
    exhausted: int = Field(description="Those that had no rung left: people had to act.")
    observed: int = Field(description="Those that were only planned.")
    cancelled: int
    healed_in_s: float | None = Field(
        description="Median seconds from beginning to end of those that succeeded; null: none."
    )
    last_at: Time | None = Field(description="When the last one began.")


class RunbookEntryShape(RanShape):
    """A runbook, in short."""

    name: str
    summary: str
    source: str = Field(description="`<file>:<line>`; empty: the files have changed since.")
    at_most: str = Field(description="The loosest mode that anybody can give it.")
    rules: list[str] = Field(description="The rules that lead to it.")
    starts_on: str = Field(
        description="On what people may start it without a fault: `node` or `fabric`; empty: on nothing."
    )


class RunbookListShape(Shape):
    """The runbooks in force, by name."""

    runbooks: list[RunbookEntryShape]
    pack: str = Field(description="Their version.")
    next: str = Field(description="The cursor of the next page; empty: this is the last one.")


class LadderRungShape(Shape):
    """A rung of a ladder, with what its action declares."""

    name: str
    do: str = Field(description="An action of actions.md.")
    means: str = Field(description="What the action does.")
    params: dict[str, Any] = Field(description="`$name` is filled in from the situation.")
    where: str = Field(description="Who performs it: `node` or `brain`.")
    disrupts: str = Field(description="`nothing`, `job`, `node` or `fabric`.")
    repeat: str = Field(
        description="What to do where nobody knows whether it was done: `safe` (again), `probe` (verify first), `never`."
    )
    timeout_s: float
    retries: int
    when: dict[str, Any] = Field(description="Only if this holds; empty: always.")
    after: list[str] = Field(description="Only if one of these rungs was begun; empty: always.")
    verify: str = Field(description="When it has worked, as a sentence; empty: it heals nothing.")
    on_failure: str = Field(description="`next` rung, `stop` (the run fails) or `quit` (it has succeeded).")
    on_refusal: str = Field(description="After a refusal; empty: as on_failure.")


class SetModeShape(ModeShape):
    """A mode that fits a runbook."""

    at: Time | None = Field(description="When; null: the configuration, or nobody remembers.")


class RunbookDetailShape(RunbookEntryShape):
    """A runbook with its ladder."""

    pack: str = Field(description="The version of the rules in force.")
    rungs: list[LadderRungShape] = Field(description="Gentlest first.")
    return_to_service: list[LadderRungShape] = Field(
        description="Performed once a rung has worked, if one disrupted something."
    )
    modes: list[SetModeShape] = Field(description="Those that fit it; on each node the last one counts.")
    request: bool = Field(description="May people start it without a fault?")
    every_s: float = Field(description="Its schedule; 0: none.")
    tries: int = Field(description="A remedy tried so often for one fault is not tried again ...")
    tries_within_s: float = Field(description="... within this time.")
    last_resort: str = Field(description="The runbook that is run then; empty: none.")
    for_several: str = Field(
        description="The runbook that is run once in its place when three parts of a node have the fault; empty: none."
    )


class RunbooksQuery(Paged):
    """Which runbooks. Without `limit`: all."""

    name: Pattern = Field(default="", description="Only these names (glob).")
