"""What the engine asks the shell to do. The shell performs them only while it leads and only for new inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core.spec import Scalar
from brain.core.state import Incident, Listed, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt of one rung. For a node's action the id is the command's id."""

    id: str  # <run>.s<rung>.a<attempt>
    run: str
    incident: str
    node: str  # the node it is about; for a brain action it may be empty
    action: str
    where: str  # node | brain
    params: Mapping[str, Scalar]
    timeout_s: float
    disrupts: Disrupts
    repeat: Repeat
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer:
    """Publish TimerFired(name, due) when `due` has come. A newer one of the same name replaces it."""

    name: str
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteIntent:
    """Publish Intent(step.id, own epoch). The step is performed only when that comes back (Perform)."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Perform:
    """Do it, and publish the StepResult (a node publishes its own as an event)."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPlan:
    """Ask who would do it what it would do; publish the StepPlan. Nothing is done."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """The step is not wanted any more: stop it if it can be stopped. Its result comes as for any other."""

    step: Step
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskJobs:
    """Ask the scheduler what runs on the node; publish the JobsTold."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPage:
    """Tell people, by the channels of `to`; publish the Delivery."""

    id: str  # <incident>.p<n>
    incident: Incident
    what: Literal["open", "repeat", "update", "ack", "resolve"]
    to: str  # channel group: "oncall", or what a runbook's page step names
    text: str  # one line that says why now
    listed: tuple[
        Listed, ...
    ] = ()  # a bundle's page: the incidents that it tells (`incident` stands for them)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One audit line."""

    id: str  # <input>#<n>
    at: float
    kind: str  # e.g. incident.opened, symptom.started, gate.hold, run.planned, step.result, page.sent, said
    text: str  # a sentence with its why
    incident: str = ""
    run: str = ""
    scope: str = ""
    caused_by: str = ""  # id of the input that led to it
    data: Mapping[str, Scalar | list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowIncident:
    """The incident changed; the read model keeps its newest form. The object lives on in the engine: copy at once."""

    incident: Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRun:
    """The run changed; as above."""

    run: Run


Effect = (
    SetTimer
    | WriteIntent
    | Perform
    | AskPlan
    | CancelStep
    | AskJobs
    | SendPage
    | Note
    | ShowIncident
    | ShowRun
)
