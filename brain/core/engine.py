"""The engine: a deterministic state machine over the log. `handle(input, now)` returns what the shell shall do.

It reads no clock, draws no random number and does no I/O; the same inputs give the same effects, whoever runs it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.contract.actions.spec import ActionSpec
from agent.contract.commands import Outcome
from agent.contract.errors import BugError
from agent.contract.messages import Event, Scalar
from brain.core import incidents, jobs, judge, likes, own, paging, people, requests, runs, steps, symptoms
from brain.core.compiled import Compiled
from brain.core.conditions import symptoms_in
from brain.core.effects import Effect
from brain.core.incidents import Happening
from brain.core.index import Index
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsTold,
    Leader,
    Malformed,
    NodeState,
    PackLoaded,
    Reported,
    Said,
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
)
from brain.core.spec import Pack, Paging
from brain.core.state import Early, Incident, IncidentState, Node, Run, RunState, State, SymptomState
from brain.core.turn import Turn

MAX_RECENT = 4096  # ids of inputs other than events that are remembered to ignore repeats
MAX_EARLY = 10_000  # events that wait for the first rules of a new site
OWN_WORK_S = 5.0  # how often an incident that our own work may have caused looks whether that has ended
EMPTY = Pack(version="empty", symptoms=(), rules=(), runbooks=())


class Engine:
    """See the module's docstring. `state` is all it remembers; `close` frees the matcher."""

    def __init__(
        self,
        state: State | None = None,
        *,
        actions: Mapping[str, ActionSpec],
        observe_all: bool = False,
        books: Callable[[Pack], Compiled] = Compiled,
    ) -> None:
        """`books` makes a pack ready; whoever runs many engines on one pack does it once (`Shelf`)."""
        self.state = state if state is not None else State()
        self._actions = actions
        self._observe_all = observe_all
        self._books = books
        self._book = books(self.state.pack or EMPTY)
        self._index = self._new_index()

    def close(self) -> None:
        """Frees the matcher; the engine is not used after it."""
        self._book.close()

    def handle(self, given: Input, now: float) -> list[Effect]:
        """What follows from one input at `now` (seconds since 1970; earlier than the last one counts as the last one)."""
        state = self.state
        state.now = max(state.now, now)
        if self._seen(given):
            return []
        turn = Turn(state, self._book, self._index, self._actions, given.id, observe_all=self._observe_all)
        match given:
            case EventSeen(event=event):
                self._event(turn, event)
            case TimerFired(name=name):
                self._timer(turn, name)
            case StepResult(step=step, outcome=outcome, why=why):
                steps.result(turn, step, outcome, why)
            case StepProgress(step=step, text=text):
                steps.progress(turn, step, text)
            case StepPlan(step=step, lines=lines, ok=ok):
                runs.planned(turn, step, lines, ok=ok)
            case JobsTold():
                jobs.told(turn, given)
            case Reported():
                own.reported(turn, given)
            case Intent(step=step, epoch=epoch):
                steps.intended(turn, step, epoch)
            case Said():
                people.said(turn, given)
            case NodeState():
                own.node_state(turn, given)
                for run in list(turn.state.runs.values()):
                    if run.node == given.node and run.state is RunState.VERIFYING:
                        steps.check(turn, run)
            case Delivery(page=page, ok=ok, channel=channel, why=why):
                self._delivery(turn, page, ok=ok, channel=channel, why=why)
            case Leader(epoch=epoch, brain=brain):
                self._leader(turn, epoch, brain)
            case Malformed():
                own.malformed(turn, given)
            case PackLoaded(pack=pack):
                turn = self._load(turn, pack)
        self._settle(turn)
        return turn.finish()

    def _seen(self, given: Input) -> bool:
        """Is it a repeat? Remembers it if not."""
        state = self.state
        if isinstance(given, EventSeen):
            event = given.event
            node = state.nodes.get(event.node)
            if node is None:
                node = state.nodes[event.node] = Node(name=event.node)
            spool, seq = event.order
            if spool == node.spool:
                if seq <= node.seq:
                    return True
                node.seq = seq
            elif spool == node.spool_before:
                if seq <= node.seq_before:
                    return True
                node.seq_before = seq
            else:
                node.spool_before, node.seq_before = node.spool, node.seq
                node.spool, node.seq = spool, seq
            if node.boot != event.boot:
                node.boot, node.booted_at = event.boot, state.now - event.age_s
            return False
        if isinstance(given, TimerFired):
            if state.timers.get(given.name) != given.due:
                return True
            del state.timers[given.name]
            return False
        if given.id in state.recent:
            return True
        state.recent[given.id] = state.now
        if len(state.recent) > MAX_RECENT:
            del state.recent[next(iter(state.recent))]
        return False

    def _event(self, turn: Turn, event: Event) -> None:
        if event.kind == "command.result":
            steps.result(
                turn,
                str(event.data.get("command", "")),
                _outcome(event.data.get("outcome")),
                str(event.data.get("why", "")),
            )
        elif event.kind == "command.progress":
            steps.progress(turn, str(event.data.get("command", "")), str(event.data.get("text", "")))
        if turn.state.pack is None:
            if len(turn.state.early) < MAX_EARLY:
                turn.state.early.append(Early(event=event, at=turn.now))
            else:
                turn.note("event.unjudged", f"{event.kind} of {event.node} came before there were any rules")
            return
        self._feed(turn, event)

    def _feed(self, turn: Turn, event: Event) -> None:
        turn.changed.extend(symptoms.feed(turn, event))
        turn.changed.extend(likes.feed(turn, event))

    def _timer(self, turn: Turn, name: str) -> None:
        kind, _, what = name.partition(":")
        if kind == "symptom":
            turn.changed.extend(symptoms.tick(turn, what))
        elif kind == "incident":
            if (incident := turn.state.incidents.get(what)) is not None:
                self._incident_timer(turn, incident)
        elif kind == "run":
            if (run := turn.state.runs.get(what)) is not None:
                steps.timer(turn, run)
        elif kind in paging.TIMERS:
            paging.timer(turn, kind, what)
        elif kind == "tries":
            runs.forget_tries(turn, what)
        elif kind == "hold":
            people.hold_ended(turn, what)
        elif kind == "jobs":
            turn.state.jobs.pop(what, None)
        elif kind == "schedule":
            requests.due(turn, what)
        else:
            raise BugError(f"no such timer: {name}")

    def _incident_timer(self, turn: Turn, incident: Incident) -> None:
        if incident.state is IncidentState.SETTLING:
            self._settling(turn, incident)
        elif incident.state is IncidentState.MENDED:
            incidents.happen(
                turn, incident, Happening.QUIET, f"its symptoms have been gone for {incident.quiet_s:.0f} s"
            )

    def _settling(self, turn: Turn, incident: Incident) -> None:
        """Its time to settle is over. What begins while we work on the node waits until that has ended."""
        run = runs.behind(turn, incident)
        if run is None:
            self._settled(turn, incident)
            return
        if turn.now < incident.settle_until + OWN_WORK_S:
            why = f"{run.id} is at work on {incident.node}: it is judged when that has ended"
            turn.note("incident.waits", why, incident=incident.id, scope=incident.scope)
        turn.set_timer(f"incident:{incident.id}", turn.now + OWN_WORK_S)

    def _settled(self, turn: Turn, incident: Incident) -> None:
        """Nothing explained it: tell people and begin the remedy."""
        incidents.happen(turn, incident, Happening.SETTLED, "nothing wider explains it")
        self._remedy(turn, incident)

    def _remedy(self, turn: Turn, incident: Incident) -> None:
        if incident.page == Paging.OPEN.value:
            paging.open_page(turn, incident, incident.because)
        if incident.runbook in turn.book.runbooks:
            incidents.happen(turn, incident, Happening.RUN_BEGAN, f"runbook {incident.runbook}")
            runs.start(turn, incident)
        elif incident.page != Paging.NEVER.value:
            paging.open_page(turn, incident, f"no runbook for it: {incident.because}")

    def _settle(self, turn: Turn) -> None:
        """Works off what the parts have to tell each other, until nothing is left."""
        while turn.changed or turn.ended or turn.lifted:
            if turn.changed:
                changed, turn.changed = turn.changed, []
                self._judge(turn, changed)
            elif turn.ended:
                self._run_ended(turn, turn.ended.pop(0))
            else:
                self._lifted(turn, turn.lifted.pop(0))

    def _judge(self, turn: Turn, changed: list[SymptomState]) -> None:
        for scope in judge.scopes_to_judge(turn, changed):
            before = list(turn.state.matched.get(scope, ()))
            began, over = judge.judge(turn, scope)
            for rule in began:
                self._match_began(turn, rule, scope)
            for rule in over:
                lost = incidents.match_ended(turn, rule, scope)
                if lost is not None:
                    self._mended(turn, lost, Happening.GONE, "its symptoms are gone")
            for rule in before:
                if rule not in over and (known := turn.index.by_support.get(f"{rule}@{scope}")) is not None:
                    incident = turn.state.incidents[known]
                    spec = turn.book.rules.get(rule)
                    named = list(symptoms_in(spec.when)) if spec else []  # others are no part of this fault
                    for symptom in changed:
                        overlaps = turn.book.topology.overlap(scope, symptom.scope)
                        if symptom.active and symptom.name in named and overlaps:
                            incidents.renewed(turn, incident, symptom)
        for run in list(turn.state.runs.values()) if any(not symptom.active for symptom in changed) else ():
            if run.state is RunState.VERIFYING:
                steps.check(turn, run)
        for symptom in changed:
            if symptom.active:
                self._recheck(turn, symptom.scope)

    def _recheck(self, turn: Turn, scope: str) -> None:
        """A symptom began or has news: a verification on that scope may fail, a stale fault may be fresh."""
        for rule in turn.state.matched.get(scope, ()):
            incident = turn.state.incidents.get(turn.index.by_support.get(f"{rule}@{scope}", ""))
            run = turn.state.runs.get(incident.runs[-1]) if incident is not None and incident.runs else None
            if run is None:
                continue
            if run.state is RunState.VERIFYING:
                steps.check(turn, run)
            elif run.state is RunState.APPROVAL:
                runs.proceed(turn, run)

    def _match_began(self, turn: Turn, rule: str, scope: str) -> None:
        spec = turn.book.rules.get(rule)
        if spec is None:
            return
        incident = incidents.match_began(turn, spec, scope)
        if incident is None:
            return
        if incident.state is IncidentState.SETTLING:
            if turn.now >= incident.settle_until:
                self._settling(turn, incident)
            else:
                turn.set_timer(f"incident:{incident.id}", incident.settle_until)
        elif incident.state is IncidentState.MENDED:
            turn.cancel_timer(f"incident:{incident.id}")
            incidents.happen(turn, incident, Happening.BACK, f"it is back: rule {rule} at {scope}")
            self._remedy(turn, incident)
        elif incident.page == Paging.OPEN.value:
            paging.open_page(turn, incident, incident.because)

    def _mended(self, turn: Turn, incident: Incident, what: Happening, why: str) -> None:
        if incidents.happen(turn, incident, what, why) and incident.state is IncidentState.MENDED:
            turn.set_timer(f"incident:{incident.id}", turn.now + incident.quiet_s)

    def _run_ended(self, turn: Turn, run: Run) -> None:
        requests.ended(turn, run)
        incident = turn.state.incidents.get(run.incident)
        if incident is not None and incident.state is IncidentState.HEALING:
            if run.state is RunState.SUCCEEDED:
                self._mended(turn, incident, Happening.RUN_WORKED, run.why)
            else:
                incidents.happen(turn, incident, Happening.RUN_ENDED, run.why)
                if incident.page != Paging.NEVER.value:
                    paging.open_page(turn, incident, run.why)
                if not incident.support:
                    self._mended(turn, incident, Happening.GONE, "its symptoms are gone")
        if incident is not None:
            incidents.forget_if_done(turn, incident)
        for other in self._waiting(turn):
            if other.state is RunState.HELD and other.id in turn.state.runs:
                runs.proceed(turn, other)

    def _waiting(self, turn: Turn) -> list[Run]:
        """The runs that a gate holds: the worse the incident and the longer it waits, the sooner it is its turn."""
        held = [run for run in turn.state.runs.values() if run.state is RunState.HELD]
        return sorted(held, key=lambda run: (turn.state.incidents[run.incident].severity, run.started_at))

    def _lifted(self, turn: Turn, incident: Incident) -> None:
        """An incident is over: what it explained and is still there must be judged by itself."""
        rule = turn.book.rules.get(incident.rule)
        if rule is None or not rule.inhibits:
            return
        for scope, matched in list(turn.state.matched.items()):
            if turn.book.topology.contains(incident.scope, scope):
                for name in matched:
                    if (
                        turn.book.cause(name) in rule.inhibits
                        and f"{name}@{scope}" not in turn.index.by_support
                    ):
                        self._match_began(turn, name, scope)

    def _delivery(self, turn: Turn, page: str, *, ok: bool, channel: str, why: str) -> None:
        for incident in paging.delivered(turn, page, ok=ok, channel=channel, why=why):
            incidents.forget_if_done(turn, incident)

    def _leader(self, turn: Turn, epoch: int, brain: str) -> None:
        if epoch <= turn.state.epoch:
            return
        turn.state.epoch, turn.state.leader = epoch, brain
        turn.note("leader", f"{brain} leads with epoch {epoch}")
        for run in list(turn.state.runs.values()):
            steps.led_anew(turn, run)
        paging.send_all_again(turn)

    def _load(self, turn: Turn, pack: Pack) -> Turn:
        """Swaps the rules. Open incidents and runs keep what they began with; symptoms are judged anew."""
        before = self._book
        self._book = self._books(pack)
        self.state.pack = pack
        self._index = self._new_index()
        before.close()
        turn = Turn(
            self.state, self._book, self._index, self._actions, turn.cause, observe_all=self._observe_all
        )
        turn.note(
            "pack.loaded",
            f"rules {pack.version}: {len(pack.rules)} rules, {len(pack.runbooks)} runbooks",
            data={"pack": pack.version},
        )
        for key, symptom in list(self.state.symptoms.items()):
            if symptom.name not in self._book.symptoms:
                if symptom.active:
                    turn.changed.extend(symptoms.end(turn, symptom, "its definition was removed"))
                else:
                    turn.state.symptoms.pop(key, None)
                    turn.cancel_timer(f"symptom:{key}")
        for scope in list(self.state.matched):
            self.state.matched[scope] = [
                rule for rule in self.state.matched[scope] if rule in self._book.rules
            ]
        for support in [
            key
            for key in self._index.by_support
            if key.partition("@")[0] not in (*self._book.rules, requests.REQUEST)
        ]:
            rule, _, scope = support.partition("@")
            lost = incidents.match_ended(turn, rule, scope)
            if lost is not None:
                self._mended(turn, lost, Happening.GONE, f"rule {rule} was removed")
        turn.changed.extend(symptom for symptom in self.state.symptoms.values() if symptom.active)
        requests.plan_schedules(turn)
        early, self.state.early = self.state.early, []
        for entry in early:
            event = replace(entry.event, age_s=entry.event.age_s + turn.now - entry.at)
            self._feed(turn, event)
        return turn

    def _new_index(self) -> Index:
        return Index(self.state, {rule.name: rule.inhibits for rule in self._book.rules.values()})


def _outcome(value: Scalar | None) -> Outcome:
    return Outcome(value) if value in {outcome.value for outcome in Outcome} else Outcome.UNKNOWN
