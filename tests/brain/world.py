"""A small pack, and a simulated world for stories about the engine."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.adapters.readmodel import ReadModel
from brain.core.effects import AskLook, Effect, Perform, SendPage
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Leader,
    NodeState,
    OperatorCommand,
    PackLoaded,
    StepResult,
)
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import (
    Knowledge,
    Match,
    Mode,
    ModeSetting,
    Pack,
    Paging,
    Place,
    Priority,
    Rule,
    Runbook,
    Rung,
    Settings,
    Symptom,
    Text,
    Verify,
)
from brain.core.rehearsal.timeline import Timeline

GPU = "gpu/0000:3b:00"
STATES = ("link.state", "service.state")  # kinds that tell how something is, not that something happened
KNOWN = Knowledge(cause=Text(en="a cause", zh="原因"), todo=Text(en="do something", zh="处理"))


def rule(name: str, scope: str, when: dict[str, Any], **more: Any) -> Rule:
    """A rule without examples."""
    return Rule(
        name=name, scope=scope, when=when, severity=more.pop("severity", Priority.P2), because=f"because of {name}",
        knowledge=KNOWN, examples=(), **more,
    )  # fmt: skip


SYMPTOMS = (
    Symptom(
        name="off_bus", scope="gpu", summary="a GPU is off the bus", ttl_s=600,
        on=(Match(kind="gpu.xid", where={"code": 79}), Match(kind="gpu.off_bus"), Match(kind="gpu.lost")),
        clear=(Match(kind="gpu.returned"),),
    ),
    Symptom(
        name="device_removed", scope="node", summary="a job lost its GPU", ttl_s=600,
        on=(Match(kind="job.cuda_error", where={"name": "CUDA_ERROR_DEVICE_REMOVED"}),),
    ),
    Symptom(
        name="phy_errors", scope="port", summary="errors grow", detect="sum", sum_of="delta", at_least=100, within_s=60,
        ttl_s=120, on=(Match(kind="ib.errors", where={"counter": ["symbol_error", "port_rcv_errors"]}),),
    ),
    Symptom(
        name="link_down", scope="link", summary="a link is down", on=(Match(kind="link.state", where={"up": False}),),
        clear=(Match(kind="link.state", where={"up": True}),),
    ),
    Symptom(
        name="link_flaps", scope="link", summary="a link flaps", detect="flapping", at_least=5, within_s=60,
        on=(Match(kind="link.state", where={"up": False}),), clear=(Match(kind="link.state", where={"up": True}),),
    ),
    Symptom(
        name="sm_moved", scope="node", summary="the subnet manager changed", ttl_s=60, on=(Match(kind="ib.sm_lid"),),
    ),
    Symptom(
        name="sm_moved_widely", scope="fabric", summary="on many nodes", detect="spread", of="sm_moved", at_least=3,
        share=0.2, within_s=30, ttl_s=60,
    ),
    Symptom(
        name="gpu_idle", scope="gpu", summary="a GPU idles", detect="lasting", for_s=60, on=(Match(kind="gpu.idle"),),
        clear=(Match(kind="gpu.busy"),), carry={"unit": "unit", "job": "job"},
    ),
    Symptom(
        name="service_failed", scope="service", summary="a service failed",
        on=(Match(kind="service.state", where={"active": "failed"}),),
        clear=(Match(kind="service.state", where={"active": "active"}),),
    ),
    Symptom(
        name="silent", scope="node", summary="silent", on=(Match(kind="node.unreachable"),),
        clear=(Match(kind="node.returned"),),
    ),
)  # fmt: skip

RULES = (
    rule(
        "gpu-lost", "gpu", {"symptom": "off_bus"}, severity=Priority.P1, runbook="gpu-lost", page=Paging.OPEN
    ),
    rule(
        "gpu-lost-by-job",
        "node",
        {"symptom": "device_removed"},
        cause="gpu-lost",
        severity=Priority.P1,
        runbook="gpu-lost",
    ),
    rule("phy-errors", "port", {"symptom": "phy_errors"}, runbook="bounce-port"),
    rule(
        "link-down",
        "link",
        {"symptom": "link_down"},
        runbook="bounce",
        hold_off_s=1,
        resolve_delay_s=5,
        page=Paging.OPEN,
    ),
    rule("link-flapping", "link", {"symptom": "link_flaps"}),
    rule("sm-moved", "node", {"symptom": "sm_moved"}, hold_off_s=10, severity=Priority.P3),
    rule(
        "sm-failover",
        "fabric",
        {"symptom": "sm_moved_widely"},
        severity=Priority.P1,
        inhibits=("sm-moved",),
        page=Paging.OPEN,
    ),
    rule(
        "gpu-idle",
        "gpu",
        {"all": [{"symptom": "gpu_idle"}, {"job": ""}, {"not": {"unit": ""}}]},
        runbook="restart-unit",
    ),
    rule("service-failed", "service", {"symptom": "service_failed"}, runbook="restart"),
    rule("node-unreachable", "node", {"symptom": "silent"}, severity=Priority.P1, page=Paging.OPEN),
)

RUNBOOKS = (
    Runbook(
        name="gpu-lost", summary="collect, tell",
        rungs=(Rung(name="collect", do="evidence.collect", params={"component": "$component"}), Rung(name="tell", do="page")),
    ),
    Runbook(
        name="bounce", summary="down and up",
        rungs=(
            Rung(name="bounce", do="link.bounce", params={"link": "$component"}, retries=1, verify=Verify(within_s=10, for_s=3)),
            Rung(name="tell", do="page"),
        ),
    ),
    Runbook(
        name="bounce-port", summary="collect, bounce, tell",
        rungs=(
            Rung(name="collect", do="evidence.collect", params={"component": "$component"}),
            Rung(name="bounce", do="link.bounce", params={"link": "$component"}, verify=Verify(within_s=5, for_s=30)),
        ),
    ),
    Runbook(
        name="restart", summary="restart it",
        rungs=(Rung(name="restart", do="service.restart", params={"unit": "$name"}, verify=Verify(within_s=10, for_s=2)),),
    ),
    Runbook(
        name="restart-unit", summary="restart its owner",
        rungs=(Rung(name="restart", do="service.restart", params={"unit": "$unit"}, verify=Verify(within_s=10, for_s=2)),),
    ),
)  # fmt: skip


def pack(
    mode: Mode = Mode.AUTO, places: dict[str, Place] | None = None, version: str = "p1", **settings: Any
) -> Pack:
    """The small pack, with every runbook in one mode."""
    settings.setdefault("shared_small_share", 2)  # the stories' few nodes are no site
    return Pack(
        version=version, symptoms=SYMPTOMS, rules=RULES, runbooks=RUNBOOKS,
        settings=Settings(modes=(ModeSetting(mode=mode),), **settings), places=places or {},
    )  # fmt: skip


Answers = Callable[[Perform], Iterable[tuple[float, "Input | tuple[str, str, dict[str, Any]]"]]]


class Story:
    """Feeds events to an engine, answers its effects, and keeps what came of them.

    `heals`: whether actions help. `undelivered`: how many pages fail before the first one is delivered.
    """

    def __init__(self, given: Pack | None = None, *, heals: bool = True, undelivered: int = 0) -> None:
        self.engine = Engine(actions=ACTIONS)
        self.time = Timeline(self.engine, self._answer)
        self.performed: list[Perform] = []
        self.heals = heals
        self.undelivered = undelivered
        self._seq: dict[str, int] = {}
        self._states: dict[tuple[str, str, str], dict[str, Any]] = {}  # what a look tells again
        self.time.feed(PackLoaded(id="pack-1", pack=given or pack()), 0)
        self.time.feed(Leader(id="leader-1", epoch=1, brain="b1"), 0)
        self.time.feed(NodeState(id="n1-known", node="n1", alive=True), 0)
        self.time.run(0)

    def event(
        self,
        at: float,
        kind: str,
        component: str = "node",
        node: str = "n1",
        *,
        age_s: float = 0.0,
        severity: Severity = Severity.ERROR,
        **data: Any,
    ) -> Event:
        """A node sends an event, which arrives at `at`."""
        seq = self._seq[node] = self._seq.get(node, 0) + 1
        event = Event(
            id=f"{node}:s1:{seq}", node=node, kind=kind, component=component, severity=severity, at="", age_s=age_s,
            boot="b", count=1, data=data, evidence=f"{kind} on {component}",
        )  # fmt: skip
        self.time.feed(EventSeen(event=event), at)
        if kind in STATES and not age_s:
            self._states[node, kind, component] = data
        return event

    def say(self, at: float, verb: str, **args: Any) -> None:
        """An operator's command."""
        self._seq["said"] = self._seq.get("said", 0) + 1
        self.time.feed(OperatorCommand(id=f"said-{self._seq['said']}", who="ann", verb=verb, args=args), at)

    def run(self, until: float) -> Self:
        """Lets time pass."""
        self.time.run(until)
        return self

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, SendPage):
            self.undelivered -= 1
            ok = self.undelivered < 0
            yield (
                now + 0.1,
                Delivery(
                    id=f"d:{effect.id}:{now}",
                    page=effect.id,
                    ok=ok,
                    channel="test",
                    why="" if ok else "refused",
                    tickets={"desk": _ticket(effect)} if ok and effect.to == "tickets" else {},
                ),
            )
        elif isinstance(effect, AskLook):
            step = effect.step
            for (node, kind, component), data in list(self._states.items()):
                if node == step.node:
                    self.event(now, kind, component, node, **data)
            yield (
                now,
                StepResult(id=f"k:{step.id}", step=step.id, outcome=Outcome.OK, why="looked", node=step.node),
            )
        elif isinstance(effect, Perform):
            self.performed.append(effect)
            step = effect.step
            yield now + 1, StepResult(id=f"r:{step.id}:{now}", step=step.id, outcome=Outcome.OK, why="did it")
            if self.heals and step.action == "link.bounce" and str(step.params["link"]).startswith("link/"):
                self.event(now + 0.9, "link.state", str(step.params["link"]), step.node, up=True)
            if self.heals and step.action == "service.restart":
                self.event(
                    now + 0.9, "service.state", f"service/{step.params['unit']}", step.node, active="active"
                )
                self.event(now + 0.9, "gpu.busy", GPU, step.node)

    def incidents(self, cause: str = "") -> list[Any]:
        """The incidents in their newest form, in the order in which they opened."""
        return [incident for incident in self.time.incidents.values() if not cause or incident.cause == cause]

    def notes(self, kind: str = "") -> list[str]:
        """Texts of the notes of a kind."""
        return [note.text for note in self.time.notes if not kind or note.kind == kind]

    def actions(self) -> list[tuple[str, str]]:
        """(node, action) of each step performed, in order."""
        return [(perform.step.node, perform.step.action) for perform in self.performed]


def history_of(story: Story, file: Path) -> ReadModel:
    """The history that a brain would have of a story."""
    made = ReadModel(file)
    made.begin("log-1")
    notes = list(enumerate(story.time.notes, 1))
    made.write(len(notes), notes, story.time.incidents.values(), story.time.runs.values())
    return made


def _ticket(page: SendPage) -> str:
    """What a ticket system would say: the ticket that the page has, or a new one."""
    return page.subject.tickets.get("desk") or f"T-{page.subject.time}"
