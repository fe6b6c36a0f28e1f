"""gpuward's month: the real engine, its shipped rules, runbooks and gates, on the simulated machines.

People are called as it calls them: for a page about an incident that a machine must not end, or for an approval. They answer
with the commands that operators have.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from agent.contract.actions.spec import Disrupts
from agent.contract.components import NODE
from agent.contract.messages import Severity
from brain.core.effects import Effect, Perform, SendPage, ShowIncident, ShowRun, Step, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input, NodeState, OperatorCommand, Reported, StepResult
from brain.core.pack.actions import ACTIONS
from brain.core.pack.scheduler_kinds import SCHEDULER_LOST
from brain.core.pack.spec import ModeSetting, Pack, Scalar, Settings
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident, IncidentState, Run, RunState
from simulations.infrastructure import SCHEDULER
from simulations.month.draw import FaultCase, Month, RackHold
from simulations.month.laws import LawBrokenError, Watcher, story
from simulations.month.people import People
from simulations.month.profile import Profile
from simulations.month.tally import RunSpan
from simulations.month.terms import AS_SHIPPED, Terms
from simulations.month.world import World
from simulations.state import ActionTimes
from simulations.virtual_time import Simulator

LOOK_S = 40.0  # between two looks of an action that waits: within the time in which the engine wants a sign of life
AGAIN_S = 1800.0  # people look whether what they have repaired is well with gpuward too
GIVES_UP_S = 300.0  # SlurmdTimeout's default: so long a scheduler waits for its daemon
LOST_S = 1800.0  # the site's restart_lost_nodes_s
ANN = "ann"
ENDED = (RunState.SUCCEEDED, RunState.EXHAUSTED, RunState.OBSERVED, RunState.CANCELLED)
_QUIET = ("evidence.collect", "agent.look", "bmc.evidence", "scheduler.idle", "scheduler.jobs")


def times(profile: Profile) -> ActionTimes:
    """How long remedies take."""
    given = profile.times
    return ActionTimes(
        boot_s=given.boot_minutes * 60, reset_s=given.reset_seconds, test_s=given.test_seconds, look_s=LOOK_S
    )


def pack_of(pack: Pack, month: Month, terms: Terms = AS_SHIPPED) -> Pack:
    """The rules on this fleet: every runbook in automatic mode as far as it may be, nodes that their scheduler has lost, too,
    restarted after half an hour, nothing that a schedule begins.
    """
    pack = terms.of_pack(pack)
    runbooks = tuple(replace(runbook, every_s=0) for runbook in pack.runbooks)
    site = Settings(modes=(ModeSetting(mode=terms.mode),), ask_jobs=True, restart_lost_nodes_s=LOST_S)
    settings = terms.of_site(site)
    return replace(pack, runbooks=runbooks, settings=settings, places=dict(month.places))


class _Watched(Timeline):
    """Shows its effects to the fleet before they are taken."""

    def __init__(self, engine: Engine, fleet: "EngineFleet") -> None:
        super().__init__(engine, fleet.perform, copies=False)
        self._fleet = fleet

    def take(self, effect: Effect) -> None:
        self._fleet.shown(effect, self.now)
        super().take(effect)

    def feed(self, given: Input, at: float) -> None:
        """As the timeline."""
        match given:
            case StepResult(step=step):
                self._fleet.watcher.ended(step, at)
            case EventSeen(event=event) if event.kind == "command.result":
                self._fleet.watcher.ended(str(event.data["command"]), at)
        super().feed(given, at)


class EngineFleet(Simulator):
    """A fleet under gpuward."""

    def __init__(
        self, pack: Pack, month: Month, engine: Engine | None = None, *, terms: Terms = AS_SHIPPED
    ) -> None:
        """`engine`: a new one; None: one is made."""
        self._terms = terms
        self._pack = pack_of(pack, month, terms)
        super().__init__(
            engine or Engine(actions=ACTIONS), self._pack, month.nodes, times=times(month.profile)
        )
        for node in (
            month.nodes
        ):  # each is heard before anything happens: what is usual is reckoned by how many there are
            self.timeline.feed(NodeState(id=f"known:{node}", node=node, alive=True), self.start)
        self.world = World(self, month, "gpuward")
        self.world.job_ended = self._job_ended
        self.world.showed = self._showed
        self.world.hold_begins = self._hold
        self.world.returned_broken = self._returned_broken
        self.people = People(self.world)
        self.watcher = Watcher(self.world, self._pack)
        self._called: dict[str, None] = {}  # incidents and runs about which somebody was called
        # incident that is not shown yet -> those that it explains
        self._awaited: dict[str, list[str]] = {}
        self._commands_given = 0
        self._given_up: set[str] = set()  # nodes that the scheduler has given up

    def timeline_of(self, engine: Engine) -> Timeline:
        """See Simulator."""
        return _Watched(engine, self)

    def silent(self, node: str, since: float, now: float) -> None:
        """See VirtualFleet. The scheduler has a daemon of its own there, and gives it up later."""
        super().silent(node, since, now)
        if self._pack.settings.restart_lost_nodes_s:
            self.call(now + GIVES_UP_S, partial(self._scheduler_misses, node, since))

    def heard_again(self, node: str, since: float, now: float) -> None:
        """See VirtualFleet."""
        super().heard_again(node, since, now)
        if node in self._given_up:
            self._given_up.discard(node)
            self._scheduler_says(node, now, lost=False)

    def _scheduler_misses(self, node: str, since: float, now: float) -> None:
        """As its witness does: again and again, as long as it lasts (brain/actions/witness.py)."""
        if self._unreachable_since.get(node) == since:
            self._given_up.add(node)
            self._scheduler_says(node, now, lost=True)
            self.call(now + AGAIN_S, partial(self._scheduler_misses, node, since))

    def _scheduler_says(self, node: str, now: float, *, lost: bool) -> None:
        given = Reported(
            id=f"scheduler:{SCHEDULER}:{node}:{SCHEDULER_LOST}:{now}",
            source="scheduler",
            node=node,
            kind=SCHEDULER_LOST,
            component=NODE,
            severity=Severity.WARNING if lost else Severity.INFO,
            data={"active": lost, "scheduler": SCHEDULER, "text": "NOT_RESPONDING: Not responding"},
        )
        self.timeline.feed(given, now)

    def _job_ended(self, nodes: Sequence[str], now: float) -> None:
        self.look_now(frozenset(nodes), now)

    def _showed(self, case: FaultCase, node: str, now: float) -> None:
        """No fact says it: people find it as they would without gpuward."""
        self.call(
            now + case.notice_s,
            lambda at: self.people.called(node, at, partial(self._repaired, node)),
        )

    def perform(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        """See Simulator."""
        if isinstance(effect, Perform):
            self._obey(self.watcher.leaves(effect.step, now), effect.step.node, now)
            self._performs(effect.step, now)
        return super().perform(effect, now)

    def _obey(self, law: str, node: str, now: float) -> None:
        if law and self._terms.strict:
            raise LawBrokenError(story(law, node, self.timeline.notes, now, self.start))

    def _returned_broken(self, node: str, now: float) -> None:
        self._obey("law 8: the node was given back with a fault that ends jobs", node, now)

    def _hold(self, hold: RackHold, now: float) -> None:
        if "hold" not in self._terms.open_gates:
            self.say("hold", now, scope=f"rack/{hold.rack}", why="people work at it", for_s=hold.for_s)

    def _performs(self, step: Step, now: float) -> None:
        if not step.node or step.id in self._under_way or step.id in self._commands:
            return  # asked again
        spec = ACTIONS[step.action]
        if step.action not in _QUIET:
            self.world.decided(step.node, now)
        if step.disrupts is not Disrupts.NOTHING and not spec.tests:
            self.world.acts(step.node, step.action, now)

    def shown(self, effect: Effect, now: float) -> None:
        """What people see."""
        match effect:
            case ShowIncident(incident=incident):
                for node in (incident.node, *incident.affected) if incident.node else incident.affected:
                    if node in self.world.open:
                        self.world.detected(node, now, incident.id, incident.cause)
                self._explained(incident)
                if incident.state is IncidentState.NEEDS_HUMAN:
                    self._call(incident, now)
            case ShowRun(run=run):
                self.watcher.run_shown(run)
                self._span(run, now)
                if run.state is RunState.APPROVAL:
                    self._ask_people(run, now)
            case WriteIntent(step=step):
                self.watcher.intended(step.id)
            case SendPage(what="open", subject=subject):
                self.world.tally.pages += 1
                if subject.node:
                    self.world.decided(subject.node, now)
            case _:
                pass

    def _explained(self, incident: Incident) -> None:
        """What explains this incident, and those that were waiting for this one: what explains others may be shown after them."""
        for below in self._awaited.pop(incident.id, ()):
            self.world.explained(below, incident.id, incident.cause)
        seen: dict[str, None] = {}
        while incident.state is IncidentState.EXPLAINED and incident.id not in seen:
            seen[incident.id] = None
            other = self.timeline.incidents.get(incident.explained_by)
            if other is None:
                self._awaited.setdefault(incident.explained_by, []).append(incident.id)
                return
            self.world.explained(incident.id, other.id, other.cause)
            incident = other

    def _span(self, run: Run, now: float) -> None:
        """When a run has begun and ended, for the report."""
        if run.node:
            span = self.world.tally.runs.setdefault(
                run.id, RunSpan(node=run.node, runbook=run.runbook.name, since=now)
            )
            if run.state in ENDED and span.until is None:
                span.until = now
                span.gave_up = run.state in (RunState.EXHAUSTED, RunState.OBSERVED)

    def _call(self, incident: Incident, now: float) -> None:
        if incident.id in self._called:
            return
        self._called[incident.id] = None
        run = self.timeline.runs.get(incident.runs[-1]) if incident.runs else None
        self._told(
            incident.node, f"{run.runbook.name}: {run.why}" if run is not None else "no runbook is for it"
        )
        self.call(now + self.people.look_s(incident.node), partial(self._acknowledge, incident.id))
        if incident.node:
            self.people.called(incident.node, now, partial(self._repaired, incident.node))

    def _told(self, node: str, why: str) -> None:
        """The names of nodes are left out, so that like reasons are alike."""
        self.world.people_called(node, re.sub(r"\b(sim|inc)-\w+(\.r\d+)?", "…", why))

    def _acknowledge(self, incident: str, now: float) -> None:
        self.say("ack", now, id=incident)

    def _repaired(self, node: str, now: float) -> None:
        """People say that the node is well, and see to it that gpuward has given it back."""
        self.say("return", now, node=node)
        self.call(now + AGAIN_S, partial(self._look_again, node))

    def _look_again(self, node: str, now: float) -> None:
        left = [
            one
            for one in self.timeline.incidents.values()
            if one.node == node and one.state is IncidentState.NEEDS_HUMAN
        ]
        if left and node not in self.people.at_work:
            self.people.called(node, now, partial(self._repaired, node))

    def _ask_people(self, run: Run, now: float) -> None:
        if run.id in self._called:
            return
        self._called[run.id] = None
        self._told(run.node, f"{run.runbook.name}: {run.why}")
        self.call(now + self.people.look_s(run.node), partial(self._approve, run.id))

    def _approve(self, run_id: str, now: float) -> None:
        """They approve what a fault needs. Where none is left they wait while the node comes back by itself, and say of one
        that is there that it is well.
        """
        run = self.timeline.runs[run_id]
        if run.state is not RunState.APPROVAL:
            self._called.pop(run_id, None)
        elif run.node and all(case.kind.benign for case in self.world.open.get(run.node, {}).values()):
            if not self.machines[run.node].state.unreachable(now):
                self.world.people_act(run.node)
                self.say("return", now, node=run.node)
            self.call(now + AGAIN_S, partial(self._approve, run_id))
        else:
            self._called.pop(run_id, None)
            self.world.people_act(run.node)
            self.say("approve", now, id=run_id)

    def say(self, verb: str, now: float, **args: Scalar) -> None:
        """An operator's command."""
        self._commands_given += 1
        command = OperatorCommand(id=f"{verb}:{self._commands_given}", who=ANN, verb=verb, args=args)
        self.timeline.feed(command, now)
