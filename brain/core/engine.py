"""The engine: a deterministic state machine over the log. `handle(input, now)` returns the effects for the shell.

It reads no clock, draws no random number and does no I/O: the same inputs always give the same effects.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.contract.actions.spec import ActionSpec
from agent.contract.counted import counted
from agent.contract.errors import BugError
from agent.contract.messages import Event
from brain.core import ids, incidents, known
from brain.core.context import Context
from brain.core.effects import Effect
from brain.core.faults import drift, reports, situations, spread, symptoms, twins
from brain.core.healing import drains, jobs, runs, steps, told, validation
from brain.core.incidents import IncidentTrigger
from brain.core.index import Index
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsAnswer,
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    Pulse,
    Reported,
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
    progress_of_node,
    result_of_node,
)
from brain.core.operators import commands, requests
from brain.core.pack.compiled import Compiled
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Pack, Paging
from brain.core.paging import escalation
from brain.core.state import Early, Incident, IncidentState, Node, Run, RunState, State, SymptomState

MAX_RECENT = 4096  # ids of inputs (except events and timers) that are remembered, to ignore repeats
MAX_EARLY = 10_000  # events kept until a new site has its first rules
EARLY_S = 1.0  # how long before its time a timer counts: the clocks of brains differ a little from the log's
RECHECK_S = (
    5.0  # how often an incident that one of our runs may have caused checks whether that run has ended
)
EMPTY = Pack(version="empty", symptoms=(), rules=(), runbooks=())


class Engine:
    """The state machine. `state` is all that it remembers; `close` frees the matcher."""

    def __init__(
        self,
        state: State | None = None,
        *,
        actions: Mapping[str, ActionSpec],
        observe_all: bool = False,
        compile_pack: Callable[[Pack], Compiled] = Compiled,
    ) -> None:
        """Continues from `state`; None: a new, empty one.

        `observe_all` puts every runbook into observe mode. Many engines on one pack share a `CompiledCache` as
        `compile_pack`, so that the pack is compiled once.
        """
        self.state = state if state is not None else State()
        self._actions = actions
        self._observe_all = observe_all
        self._compile = compile_pack
        self._compiled = compile_pack(self.state.pack or EMPTY)
        self._index = self._new_index()

    def close(self) -> None:
        """Frees the matcher. The engine must not be used afterwards."""
        self._compiled.close()

    def handle(self, given: Input, now: float) -> list[Effect]:
        """The effects of one input; none for a repeat.

        `now` is in seconds since 1970 UTC. Time never runs backwards: an earlier `now` than that of the last input
        counts as that one.
        """
        self.state.now = max(self.state.now, now)
        size = len(self.state.nodes)
        if self._is_repeat(given):
            return []
        if self.state.jobs:
            jobs.forget_old(self.state)
        ctx = self._context(given.id)
        match given:
            case EventSeen(event=event):
                self._event(ctx, event)
            case TimerFired(name=name):
                self._timer(ctx, name)
            case StepResult():
                steps.result(ctx, given)
            case StepProgress():
                steps.progress(ctx, given)
            case StepPlan(step=step, lines=lines, ok=ok):
                runs.planned(ctx, step, lines, ok=ok)
            case JobsAnswer():
                jobs.answered(ctx, given)
            case Reported():
                reports.reported(ctx, given)
            case Intent(step=step, epoch=epoch):
                steps.intended(ctx, step, epoch)
            case OperatorCommand():
                commands.handle(ctx, given)
            case NodeState():
                self._node_state(ctx, given)
            case Delivery(page=page, ok=ok, channel=channel, why=why):
                self._delivery(ctx, page, ok=ok, channel=channel, why=why)
            case Leader(epoch=epoch, brain=brain):
                self._leader(ctx, epoch, brain)
            case Malformed():
                reports.malformed(ctx, given)
            case PackLoaded(pack=pack):
                ctx = self._load(ctx, pack)
        if len(self.state.nodes) != size:
            ctx.changed.extend(symptoms.more_nodes(ctx))
        self._propagate(ctx)
        return ctx.finish()

    def _context(self, cause: str) -> Context:
        return Context(
            self.state, self._compiled, self._index, self._actions, cause, observe_all=self._observe_all
        )

    def _new_index(self) -> Index:
        return Index(self.state)

    def _is_repeat(self, given: Input) -> bool:
        """Whether the input was handled before or is out of date; remembers it if not."""
        match given:
            case Pulse():
                return True  # nothing but the time has changed
            case EventSeen(event=event):
                return self._is_repeated_event(event)
            case TimerFired(name=name, due=due):
                if self.state.timers.get(name) != due:
                    return True  # cancelled, or set to another time
                if due > self.state.now + EARLY_S:
                    return True  # by a clock that is wrong; the shell publishes it again while it is set
                del self.state.timers[name]
                return False
            case _:
                recent = self.state.recent
                if given.id in recent:
                    return True
                recent[given.id] = self.state.now
                if len(recent) > MAX_RECENT:
                    del recent[next(iter(recent))]
                return False

    def _is_repeated_event(self, event: Event) -> bool:
        """A spool numbers its events upwards. Two spools are remembered: events of the one before may still come."""
        node = self.state.nodes.get(event.node)
        if node is None:
            node = self.state.nodes[event.node] = Node(name=event.node)
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
            node.boot, node.booted_at = event.boot, self.state.now - event.age_s
        return False

    def _event(self, ctx: Context, event: Event) -> None:
        if (result := result_of_node(event)) is not None:
            steps.result(ctx, result)
        elif (progress := progress_of_node(event)) is not None:
            steps.progress(ctx, progress)
        if ctx.state.pack is None:
            if len(ctx.state.early) < MAX_EARLY:
                ctx.state.early.append(Early(event=event, at=ctx.now))
            else:
                ctx.note("event.unjudged", f"{event.kind} of {event.node} came before there were any rules")
            return
        self._feed(ctx, event)

    def _feed(self, ctx: Context, event: Event) -> None:
        ctx.changed.extend(symptoms.feed(ctx, event))
        ctx.changed.extend(drift.feed(ctx, event))

    def _node_state(self, ctx: Context, given: NodeState) -> None:
        """Nothing is verified on an unreachable node, so its verifications depend on this; and so does what it was told to do."""
        reports.node_state(ctx, given)
        for run in list(ctx.state.runs.values()):
            if run.node == given.node:
                steps.check(ctx, run)
                if given.alive:
                    steps.heard(ctx, run)

    def _delivery(self, ctx: Context, page: str, *, ok: bool, channel: str, why: str) -> None:
        for incident in escalation.delivered(ctx, page, ok=ok, channel=channel, why=why):
            incidents.forget_if_done(ctx, incident)

    def _leader(self, ctx: Context, epoch: int, brain: str) -> None:
        if epoch <= ctx.state.epoch:
            return
        ctx.state.epoch, ctx.state.leader = epoch, brain
        ctx.note("leader", f"{brain} leads with epoch {epoch}")
        for run in list(ctx.state.runs.values()):
            steps.new_leader(ctx, run)
        escalation.resend_all(ctx)

    def _timer(self, ctx: Context, name: str) -> None:
        """A timer's name is `<kind>:<what it is for>`."""
        kind, _, what = name.partition(":")
        match kind:
            case "symptom":
                ctx.changed.extend(symptoms.tick(ctx, what))
            case "incident":
                if (incident := ctx.state.incidents.get(what)) is not None:
                    self._incident_timer(ctx, incident)
            case "run":
                if (run := ctx.state.runs.get(what)) is not None:
                    steps.timer(ctx, run)
            case "tries":
                runs.forget_tries(ctx, what)
            case "recovered":
                ctx.changed.extend(symptoms.recovered_long_ago(ctx, what))
            case "recurred":
                incidents.forget_recurrences(ctx, what)
            case "hold":
                commands.hold_ended(ctx, what)
            case "jobs":
                ctx.state.jobs.pop(what, None)
            case "schedule":
                requests.due(ctx, what)
            case _ if kind in escalation.TIMERS:
                escalation.timer(ctx, kind, what)
            case _:
                raise BugError(f"no such timer: {name}")

    def _incident_timer(self, ctx: Context, incident: Incident) -> None:
        if incident.state is IncidentState.SETTLING:
            self._end_hold_off(ctx, incident)
        elif incident.state is IncidentState.RECOVERED and incident.matching_rules:
            still = ", ".join(incident.matching_rules)
            incidents.transition(ctx, incident, IncidentTrigger.RECURRED, f"it is not over: {still} matches")
            self._remedy(ctx, incident)
        elif incident.state is IncidentState.RECOVERED:
            gone = f"its symptoms have been gone for {ctx.now - incident.clear_since:.0f} s"
            run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
            why = run.why if run is not None and run.requested_by else gone
            left_out = validation.left_out(run) if run else ""
            incidents.transition(ctx, incident, IncidentTrigger.STAYED_CLEAR, f"{why}{left_out}")

    def _end_hold_off(self, ctx: Context, incident: Incident) -> None:
        """Opens the incident, unless a run of ours may have caused it: then it waits until that run has ended."""
        run = runs.run_behind(ctx, incident)
        if run is None:
            incidents.transition(ctx, incident, IncidentTrigger.HOLD_OFF_ENDED, "nothing wider explains it")
            self._remedy(ctx, incident)
            return
        if (why := runs.judged_later(run)) != incident.waits:  # one note, not one for each check
            incident.waits = why
            ctx.show(incident)
            ctx.note("incident.waits", why, incident=incident.id, scope=incident.scope)
        ctx.set_timer(f"incident:{incident.id}", ctx.now + RECHECK_S)

    def _remedy(self, ctx: Context, incident: Incident) -> None:
        """Pages for an open incident and starts its runbook."""
        if incident.page is Paging.OPEN:
            escalation.open_page(ctx, incident, incident.because)
        if incident.runbook in ctx.compiled.runbooks:
            incidents.transition(ctx, incident, IncidentTrigger.RUN_STARTED, f"runbook {incident.runbook}")
            runs.start(ctx, incident)
        elif incident.page is not Paging.NEVER:
            escalation.open_page(ctx, incident, f"no runbook for it: {incident.because}")

    def _propagate(self, ctx: Context) -> None:
        """Handles changed symptoms, ended runs and released incidents; each may lead to more, so until none is left."""
        while ctx.changed or ctx.ended or ctx.let_go or ctx.left or ctx.released or ctx.freed:
            if ctx.changed:
                changed, ctx.changed = ctx.changed, []
                self._judge(ctx, changed)
            elif ctx.ended:
                self._run_ended(ctx, ctx.ended.pop(0))
            elif ctx.let_go:
                self._let_go(ctx, ctx.let_go.pop(0))
            elif ctx.released:
                self._released(ctx, ctx.released.pop(0))
            elif ctx.left:
                self._left_drained(ctx, *ctx.left.pop(0))
            else:
                ctx.freed = False
                self._wake_held(ctx)

    def _judge(self, ctx: Context, changed: list[SymptomState]) -> None:
        """Matches the rules at every scope that sees a changed symptom, then rechecks the runs concerned."""
        for scope in situations.scopes_to_judge(ctx, changed):
            before = list(ctx.state.matched.get(scope, ()))
            ended = self._judge_scope(ctx, scope, "its symptoms are gone")
            for rule in before:
                if rule not in ended:
                    self._match_continues(ctx, rule, scope, changed)
        if any(not symptom.active for symptom in changed):
            for run in list(ctx.state.runs.values()):
                steps.check(ctx, run)
        for symptom in changed:
            if symptom.active:
                self._recheck(ctx, symptom.scope)

    def _judge_scope(self, ctx: Context, scope: str, why: str, *, proven: bool = True) -> list[str]:
        """Matches the rules at a scope. Returns those that matched before and do not any more, because of `why`.

        Unless that is `proven`, their incidents are not proven to be healed.
        """
        began, ended = situations.judge(ctx, scope)
        for rule in began:
            self._match_began(ctx, rule, scope)
        for rule in ended:
            incident = self.state.incidents.get(ctx.index.by_match.get(ids.key(rule, scope), ""))
            if incident is not None and not proven:
                incident.unproven = True
            self._match_ended(ctx, rule, scope, why)
        return ended

    def _match_began(self, ctx: Context, rule: str, scope: str) -> None:
        spec = ctx.compiled.rules.get(rule)
        if spec is not None:
            for wider, place in twins.outgrown(ctx, spec, scope):
                self._match_began(ctx, wider, place)
        incident = incidents.match_began(ctx, spec, scope) if spec is not None else None
        if incident is None:
            return
        if incident.state is IncidentState.SETTLING:
            if ctx.now >= incident.hold_off_until:
                self._end_hold_off(ctx, incident)
            else:
                ctx.set_timer(f"incident:{incident.id}", incident.hold_off_until)
        elif (  # this rule has a runbook; that with which the incident opened had none
            incident.state is IncidentState.OPEN
            and not incident.runs
            and incident.runbook in ctx.compiled.runbooks
        ):
            self._remedy(ctx, incident)
        elif incident.state is IncidentState.RECOVERED:
            ctx.cancel_timer(f"incident:{incident.id}")
            incidents.transition(
                ctx, incident, IncidentTrigger.RECURRED, f"it is back: rule {rule} at {scope}"
            )
            incidents.came(ctx, incident)
            self._remedy(ctx, incident)
        elif incident.page is Paging.OPEN:
            escalation.open_page(ctx, incident, incident.because)

    def _match_ended(self, ctx: Context, rule: str, scope: str, why: str) -> None:
        incident = incidents.match_ended(ctx, rule, scope)
        if incident is None:
            return
        self._recover(ctx, incident, IncidentTrigger.CLEARED, why)
        run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
        if run is not None and run.state in (RunState.HELD, RunState.APPROVAL):
            runs.proceed(ctx, run)  # the reason for which it waits to act is gone

    def _match_continues(self, ctx: Context, rule: str, scope: str, changed: list[SymptomState]) -> None:
        """The rule's incident takes over new facts of the symptoms that the rule names."""
        match = ids.key(rule, scope)
        incident_id = ctx.index.by_match.get(match)
        if incident_id is None and match not in ctx.state.dismissed:
            return
        spec = ctx.compiled.rules.get(rule)
        named = list(symptoms_in(spec.when)) if spec else []
        renewed = [
            symptom
            for symptom in changed
            if symptom.active
            and symptom.name in named
            and ctx.compiled.topology.overlap(scope, symptom.scope)
        ]
        if incident_id is not None:
            for symptom in renewed:
                incidents.renewed(ctx, ctx.state.incidents[incident_id], symptom)
        elif any(symptom.arrived > ctx.state.dismissed[match] for symptom in renewed):
            del ctx.state.dismissed[match]
            self._match_began(ctx, rule, scope)

    def _recheck(self, ctx: Context, scope: str) -> None:
        """After a symptom began or got new facts: a verification may fail, or an approval become void or unnecessary."""
        for rule in ctx.state.matched.get(scope, ()):
            incident = ctx.state.incidents.get(ctx.index.by_match.get(ids.key(rule, scope), ""))
            run = ctx.state.runs.get(incident.runs[-1]) if incident is not None and incident.runs else None
            if run is None:
                continue
            if run.state is RunState.VERIFYING:
                steps.check(ctx, run)
            elif run.state is RunState.APPROVAL or (run.state is RunState.HELD and run.worked):
                runs.proceed(ctx, run)

    def _recover(self, ctx: Context, incident: Incident, trigger: IncidentTrigger, why: str) -> bool:
        """Moves the incident; if it has recovered, which is returned, it closes after its resolve delay.

        Not while it keeps its node out of service: it stays open, and says so, until the node is given back (law 14).
        Nodes that a shared cause has from others are left to incidents of their own when it closes: meanwhile it would
        explain every fault around it.
        """
        drained = drains.owned(ctx, incident) if incident.node else []
        if drained and incident.state is IncidentState.HEALING and trigger is IncidentTrigger.RUN_SUCCEEDED:
            self._run_failed(ctx, incident, f"{why}; {_stays_out(drained)}")
        elif drained and incident.state is IncidentState.NEEDS_HUMAN:
            escalation.gave_up(ctx, incident, f"{why}; {_stays_out(drained)}")
        elif incidents.transition(ctx, incident, trigger, why) and incident.state is IncidentState.RECOVERED:
            incident.clear_since = ctx.now
            ctx.set_timer(f"incident:{incident.id}", ctx.now + incidents.resolve_delay_s(ctx, incident))
            return True
        return False

    def _run_ended(self, ctx: Context, run: Run) -> None:
        ctx.changed.extend(symptoms.run_ended(ctx, run.id))
        for former in requests.ended(ctx, run):
            self._recover(
                ctx, former, IncidentTrigger.CLEARED, f"it was done again ({run.id}), and ended well"
            )
        incident = ctx.state.incidents.get(run.incident)
        if incident is not None and run.state is RunState.SUCCEEDED and not drains.owned(ctx, incident):
            incidents.end_left(ctx, incident)
        if incident is not None and incident.state is IncidentState.HEALING:
            if run.state is RunState.SUCCEEDED:
                recovered = self._recover(ctx, incident, IncidentTrigger.RUN_SUCCEEDED, run.why)
                if recovered and incident.matching_rules and runs.given_back(ctx, run):
                    # The fault came back while its node was given back.
                    ctx.set_timer(f"incident:{incident.id}", ctx.now)
            else:
                self._run_failed(ctx, incident, run.why)
        if incident is not None:
            incidents.forget_if_done(ctx, incident)
        ctx.freed = True

    def _wake_held(self, ctx: Context) -> None:
        for other in self._held(ctx):
            if other.state is RunState.HELD and other.id in ctx.state.runs:
                runs.proceed(ctx, other)

    def _run_failed(self, ctx: Context, incident: Incident, why: str) -> None:
        """People are told that gpuward does nothing more, unless a last resort fences the node first."""
        run = ctx.state.runs[incident.runs[-1]]
        incidents.transition(ctx, incident, IncidentTrigger.RUN_FAILED, why)
        resort = run.runbook.last_resort
        if run.spent and resort in ctx.compiled.runbooks and not drains.owned(ctx, incident):
            incidents.transition(ctx, incident, IncidentTrigger.RUN_STARTED, f"{why}: runbook {resort}")
            if incident.page is not Paging.NEVER:
                escalation.gave_up(ctx, incident, why)
            runs.start(ctx, incident, instead=resort)
            return
        if incident.page is not Paging.NEVER:
            if run.state is RunState.OBSERVED or runs.told_last(run):
                escalation.open_page(ctx, incident, why)
            else:
                drained = run.node in drains.owned(ctx, incident)
                escalation.gave_up(ctx, incident, f"{why}. {told.drained(ctx, run)}" if drained else why)
        keeps = bool(incident.node and drains.owned(ctx, incident))
        if requests.found(run):
            return  # it has no symptoms that could be gone: somebody closes it, or the next one ends well
        if not incident.matching_rules and not incident.unproven and not keeps:
            self._recover(ctx, incident, IncidentTrigger.CLEARED, "its symptoms are gone")

    def _let_go(self, ctx: Context, incident: Incident) -> None:
        """The node that the incident kept out of service was given back by an operator's word."""
        incidents.end_left(ctx, incident)
        if not incident.matching_rules:
            self._recover(ctx, incident, IncidentTrigger.CLEARED, "its node was given back")

    def _left_drained(self, ctx: Context, node: str, former: Incident, by_operator: bool) -> None:
        """An incident is over that had drained a node: another one keeps the drain, and brings the node back if it may.

        Unless the drain is that of a fault which it explained, and which has its own incident again.
        """
        if former.id not in ctx.state.drains.get(node, {}):
            return
        heir = incidents.open_left(ctx, node, former)
        drains.hand_over(ctx, node, former.id, heir.id)
        if by_operator or heir.runbook not in ctx.compiled.runbooks:
            escalation.open_page(ctx, heir, heir.because)
        else:
            incidents.transition(ctx, heir, IncidentTrigger.RUN_STARTED, f"runbook {heir.runbook}")
            runs.start(ctx, heir)

    def _held(self, ctx: Context) -> list[Run]:
        """The runs held by a gate, in the order in which they may try again: most severe first, then oldest first.

        Those of nodes that were disturbed less often lately come before: many faults of one node are no longer queue.
        """
        held = [run for run in ctx.state.runs.values() if run.state is RunState.HELD]
        lately = Counter(each.node for each in ctx.state.began)
        return sorted(
            held,
            key=lambda run: (ctx.state.incidents[run.incident].severity, lately[run.node], run.started_at),
        )

    def _released(self, ctx: Context, incident: Incident) -> None:
        """An incident is over or remedied: matches that it inhibited and that still hold become incidents of their own."""
        if not incident.inhibits:
            return
        here = ctx.index.matched.get(incident.node, ()) if incident.node else ctx.state.matched
        for scope in list(here):
            if ctx.compiled.topology.serves(incident.scope, scope):
                for name in ctx.state.matched[scope]:
                    inhibited = ctx.compiled.cause(name) in incident.inhibits
                    if inhibited and ids.key(name, scope) not in ctx.index.by_match:
                        self._match_began(ctx, name, scope)
        for match in list(incident.known):
            known.hand_on(ctx, incident, match, incidents.standing_for(ctx, match))

    def _load(self, ctx: Context, pack: Pack) -> Context:
        """Puts a pack into force and returns a context on it. Open incidents and runs keep what they began with."""
        previous = self._compiled
        self._compiled = self._compile(pack)
        self.state.pack = pack
        self._index = self._new_index()
        previous.close()
        ctx = self._context(ctx.cause)
        ctx.note(
            "pack.loaded",
            f"rules {pack.version}: {counted(len(pack.rules), 'rule')}, {counted(len(pack.runbooks), 'runbook')}",
            data={"pack": pack.version},
        )
        spread.redefined(ctx, previous.symptoms)
        self._end_removed_symptoms(ctx)
        self._judge_by_new_rules(ctx)
        self._judge_what_matched(ctx)
        ctx.changed.extend(symptom for symptom in self.state.symptoms.values() if symptom.active)
        self._judge_by_new_places(ctx)
        requests.plan_schedules(ctx)
        ctx.freed = True  # the site may have set other modes and limits
        early, self.state.early = self.state.early, []
        for entry in early:
            event = replace(entry.event, age_s=entry.event.age_s + ctx.now - entry.at)
            self._feed(ctx, event)
        return ctx

    def _end_removed_symptoms(self, ctx: Context) -> None:
        for key, symptom in list(self.state.symptoms.items()):
            spec = self._compiled.symptoms.get(symptom.name)
            if spec is not None and (spec.detect == "spread") == bool(symptom.members):
                continue
            why = "its definition was removed" if spec is None else "it is defined in another way now"
            if symptom.active:
                ctx.changed.extend(symptoms.end(ctx, symptom, why, proven=False))
            else:
                symptoms.forget(ctx, key)

    def _judge_by_new_rules(self, ctx: Context) -> None:
        """Open incidents are judged by the new rules: those whose rule was removed or names another cause end so."""
        rules = self._compiled.rules
        for scope, matched in list(self.state.matched.items()):
            left = [rule for rule in matched if rule in rules]
            for rule in left:
                incident = self.state.incidents.get(self._index.by_match.get(ids.key(rule, scope), ""))
                if incident is not None and incident.cause != self._compiled.cause(rule):
                    left = [each for each in left if each != rule]  # it begins anew, for its new cause
                    self._match_ended(ctx, rule, scope, f"rule {rule} names another cause now")
                elif incident is not None:
                    incidents.rejudged(ctx, incident, rules[rule])
            if left:
                self.state.matched[scope] = left
            else:
                del self.state.matched[scope]
                self._index.remove_match(scope)
        kept = (*rules, requests.REQUEST, drains.LEFT)
        for key in [key for key in self._index.by_match if ids.name_of(key) not in kept]:
            rule, scope = ids.split(key)
            self._match_ended(ctx, rule, scope, f"rule {rule} was removed")
        for key in [key for key in self.state.dismissed if ids.name_of(key) not in rules]:
            del self.state.dismissed[key]
        known.rules_removed(ctx)

    def _judge_what_matched(self, ctx: Context) -> None:
        """A rule may have another scope or condition now: where it matched, it may match no more, which proves nothing."""
        for scope in list(self.state.matched):
            why = "the rules that are in force now do not match any more"
            self._judge_scope(ctx, scope, why, proven=False)

    def _judge_by_new_places(self, ctx: Context) -> None:
        """Nodes count in the spreads around them. What explained a fault may be elsewhere now: then it has its own incident."""
        self._judge(ctx, list(symptoms.new_places(ctx)))
        for scope, matched in list(self.state.matched.items()):
            for name in matched:
                rule, match = self._compiled.rules[name], ids.key(name, scope)
                known = match in ctx.index.by_match or match in self.state.dismissed
                if not known and incidents.explained_by(ctx, rule, scope) is None:
                    self._match_began(ctx, name, scope)


def _stays_out(nodes: list[str]) -> str:
    return f"{', '.join(nodes)} stays out of service: `gpuward return {nodes[0]}` gives it back"
