"""Effects: what the engine asks the shell to do. Only a leading brain performs them, and only for new inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core.pack.spec import Priority, Scalar
from brain.core.state import AlertFace, Evidence, GroupedAlert, Incident, IncidentState, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt of one rung. For a node's action the id is the command's id."""

    # brain/core/healing/plans.py
    id: str
    run: str
    incident: str
    # that it is about; empty for an action of the brain on a wider scope
    node: str
    action: str
    # who performs it: node | brain
    where: str
    params: Mapping[str, Scalar]
    timeout_s: float
    disrupts: Disrupts
    repeat: Repeat
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer:
    """Publish TimerFired(name, due) when `due` has come. A newer timer of the same name replaces this one."""

    name: str
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteIntent:
    """Publish Intent(step.id, own epoch). When the intent comes back on the log, the engine answers with Perform."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Perform:
    """Perform the step and publish its StepResult (a node publishes its own, as an event)."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLook:
    """Ask the node to look again (`agent.look`). It reports what is there as facts, then the StepResult."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPlan:
    """Ask the node, or the brain's own action, what the step would do; publish the StepPlan. Nothing is done."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """Cancel the step if it can be cancelled. It still has a result, like any other."""

    step: Step
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskJobs:
    """Ask the scheduler which jobs run on the node; publish the JobsAnswer."""

    node: str
    # only so that people know who is hit: it may come later than what a gate waits for, and nothing is decided by it
    people: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainAgain:
    """Drain the node again for these incidents, if this is still the scheduler's record of it; publish a JobsAnswer."""

    node: str
    record: str
    # incident -> why, as in Step
    marks: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSubject:
    """What a page is about: an incident, an alert group, or a problem of the brain itself."""

    # of the incident, the group or the problem
    id: str
    severity: Priority
    cause: str
    state: IncidentState
    scope: str
    # empty for a scope wider than a node
    node: str
    because: str
    # when the oldest fact behind it occurred
    since: float
    # `because` in Chinese; empty: people read the English
    because_zh: str = ""
    # how many nodes show it
    nodes: int = 1
    # the rule that opened it, and whose knowledge the page quotes; empty: none
    rule: str = ""
    runbook: str = ""
    # ids of its runs, in order
    runs: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    # empty: not acknowledged
    acked_by: str = ""
    # all pages with this key are one alert; empty: its id
    key: str = ""
    # severities under which it was paged before it was raised
    severities_before: tuple[Priority, ...] = ()
    # what its alert was before it was this incident's
    before: tuple[AlertFace, ...] = ()
    # places narrower than its scope in which all nodes stand that show it
    common: tuple[str, ...] = ()
    # holds and maintenance windows that keep gpuward from acting on it, as sentences
    stops: tuple[str, ...] = ()
    # no rule matches any more, by facts: what is left is its node, which waits for a person's word
    gone: bool = False
    # whose jobs ran on its nodes, in a line; empty: that is not known
    hit: str = ""
    # of an alert group: its incidents
    listed: tuple[GroupedAlert, ...] = ()
    # channel -> by what its receiver knows the alert, such as the key of a ticket
    tickets: Mapping[str, str] = field(default_factory=dict)
    # the same of the times that it was open before
    tickets_before: Mapping[str, str] = field(default_factory=dict)
    # which time that it is open has `tickets`
    time: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPage:
    """Page people by the channels of `to`; publish the Delivery."""

    # <subject>.p<n>
    id: str
    # as it is when the input that led to the page is completely handled
    subject: PageSubject
    what: Literal["open", "repeat", "update", "ack", "resolve"]
    # channel group: "oncall", or what a runbook's page step names
    to: str
    # one line: why it is sent now
    text: str
    # the channels of `to` that accepted an alert of this subject: a resolution must go to each
    alerted: tuple[str, ...] = ()
    # it was sent before, or one in whose place it is, and may have been delivered although nobody said so
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One audit line."""

    # <input>#<n>
    id: str
    at: float
    # e.g. incident.opened, symptom.started, run.held, step.result, page.sent, operator.hold
    kind: str
    # a sentence with its why
    text: str
    incident: str = ""
    run: str = ""
    scope: str = ""
    # id of the input that led to it
    caused_by: str = ""
    data: Mapping[str, Scalar | list[str]] = field(default_factory=dict)

    def by(self, who: str) -> "Note":
        """Returns it with who said what it is about."""
        return replace(self, data={"who": who} | dict(self.data))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowIncident:
    """The incident changed; the read model keeps its newest form. The engine goes on changing the object: copy it at once."""

    incident: Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRun:
    """The run changed; the same applies."""

    run: Run


Effect = (
    SetTimer
    | WriteIntent
    | Perform
    | AskPlan
    | AskLook
    | CancelStep
    | AskJobs
    | DrainAgain
    | SendPage
    | Note
    | ShowIncident
    | ShowRun
)
