"""What happened in a time: how many faults, how fast they were found and healed, and what they cost."""

from typing import Literal

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time, TwoLanguagesShape

MOST = 10_000  # incidents of one report


class SpreadShape(Shape):
    """Some times, in seconds."""

    count: int = Field(description="Of how many it is known.")
    median_s: float | None = Field(description="null: of none.")
    p90_s: float | None = Field(description="Nine in ten took no longer; null: of none.")


NO_TIMES = SpreadShape(count=0, median_s=None, p90_s=None)


class ReportFiguresShape(Shape):
    """The figures of some incidents."""

    incidents: int = Field(
        description="Those that opened in this time; without those that another one explains."
    )
    open: int = Field(description="Of these, how many are still open.")
    healed: int = Field(description="Of these, how many a run has healed, and verified.")
    without_people: float | None = Field(
        description="Of these that are over, the share (0 to 1) to which nobody said anything, and about which nobody had to be "
        "told that no remedy is left; null: none is over."
    )
    detect: SpreadShape = Field(
        description="From the first fact, as old as its node says, to the opening of the incident."
    )
    decide: SpreadShape = Field(description="From opening to the first step of its first run.")
    heal: SpreadShape = Field(description="From opening to the end of the run that healed it.")
    node_hours: float = Field(
        description="Hours in this time for which gpuward kept nodes out of service for these incidents, and for others that had "
        "opened before. A node that several keep so counts for each of them; in `total` once."
    )
    node_hours_saved: float = Field(
        default=0.0,
        description="An estimate. For each of these that a run has healed without any person: the time from the first step of "
        "that run to when people would have begun with it (`people_begin_s` after the first fact), in hours of one node.",
    )


class CauseFiguresShape(ReportFiguresShape):
    """Of one cause."""

    cause: str


class NodeFiguresShape(Shape):
    """A node that had faults."""

    node: str
    incidents: int
    node_hours: float = Field(description="For which it was out of service, each hour once.")


class HitFiguresShape(Shape):
    """What the incidents that hit somebody took and cost."""

    detect: SpreadShape = Field(
        default=NO_TIMES,
        description="From the first fact, as old as its node says, to the opening of the incident.",
    )
    decide: SpreadShape = Field(
        default=NO_TIMES, description="From opening to the first step of its first run."
    )
    heal: SpreadShape = Field(
        default=NO_TIMES, description="From opening to the end of the run that healed it."
    )
    node_hours: float = Field(
        default=0.0,
        description="For which gpuward kept the nodes of these incidents out of service, each node's hour once.",
    )
    node_hours_saved: float = Field(default=0.0, description="As in `total`: an estimate.")


class JobFiguresShape(HitFiguresShape):
    """A job that was hit."""

    job: str = Field(description="As the scheduler names it.")
    incidents: int = Field(description="How many incidents were at nodes on which it ran.")
    tenant: str = Field(
        default="", description="Whose it is: its user; of a pod its namespace. Empty: not known."
    )


class TenantFiguresShape(HitFiguresShape):
    """Somebody whose jobs were hit."""

    tenant: str = Field(description="A user; of pods a namespace. Empty: not known whose.")
    incidents: int = Field(description="How many incidents were at nodes on which jobs of theirs ran.")
    jobs: int = Field(description="How many jobs that was.")


class ReportShape(Shape):
    """What happened in a time, as the history tells it."""

    since: Time | None
    until: Time | None
    reaches: Time | None = Field(
        description="The oldest note of the history; null: there is none. What was before is not counted."
    )
    whole: bool = Field(description=f"false: there are more than {MOST} incidents, and these are the newest.")
    total: ReportFiguresShape
    people_begin_s: float = Field(
        default=0.0,
        description="So long after the first fact people would have begun, by the site's setting (`console.people_begin_s`): "
        "what `node_hours_saved` is reckoned by; 0: nothing is estimated.",
    )
    causes: list[CauseFiguresShape] = Field(description="Those with the most incidents first.")
    nodes: list[NodeFiguresShape] = Field(description="The worst 50: by incidents, then by hours.")
    jobs: list[JobFiguresShape] = Field(description="Those with the most incidents first, at most 50.")
    tenants: list[TenantFiguresShape] = Field(
        default=[], description="Those with the most incidents first, at most 50."
    )
    not_known: list[str] = Field(description="What nobody knows, a sentence each.")
    not_known_texts: list[TwoLanguagesShape] = Field(description="The same sentences, in both languages.")


class ReportTime(Asked):
    """Of which time: not longer ago than the history reaches."""

    since: float | None = Field(
        default=None,
        alias="from",
        ge=0,
        lt=1e11,
        description="In seconds since 1970; left out: a week before `to`.",
    )
    until: float | None = Field(
        default=None, alias="to", ge=0, lt=1e11, description="In seconds since 1970; left out: now."
    )


class ReportQuery(ReportTime):
    """Of which time, and as what."""

    format: Literal["json", "csv", "html"] = Field(
        default="json",
        description="`csv`: one line for each incident that opened in this time (RFC 4180). `html`: one file for people, without "
        "scripts, and without anything that it loads.",
    )
    language: Literal["en", "zh"] = Field(default="en", description="Of `html`.")
    zone: str = Field(
        default="",
        max_length=64,
        description="Of `html`: by whose clocks, as in the tz database (Europe/Berlin); empty: UTC.",
    )
    hand_over: bool = Field(
        default=False,
        description="Of `html`: what a shift hands over comes first: what needs a person now, holds, what was over, who did "
        "what. Otherwise the time before stands beside it.",
    )
