"""The engine: a deterministic state machine over the log. `handle(input, now)` returns the effects for the shell.

It reads no clock, draws no random number and does no I/O: the same inputs always give the same effects.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.contract.actions.spec import ActionSpec
from agent.contract.counted import counted
from agent.contract.errors import BugError
from agent.contract.messages import Event
from brain.core import consequences, hit, incidents, left_drained, recurrence, reloading
from brain.core.context import Context
from brain.core.effects import Effect
from brain.core.faults import (
    at_once,
    cards,
    drift,
    late,
    passing,
    paths,
    reports,
    rollouts,
    stragglers,
    suspects,
    symptoms,
    wider,
)
from brain.core.healing import jobs, observing, patience, run_states, steps
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
from brain.core.pack.spec import Pack
from brain.core.paging import escalation, quiet
from brain.core.state import Early, Node, State

MAX_RECENT = 4096  # ids of inputs (except events and timers) that are remembered, to ignore repeats
MAX_EARLY = 10_000  # events kept until a new site has its first rules
EARLY_S = 1.0  # how long before its time a timer counts: the clocks of brains differ a little from the log's
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

        `now` is in seconds since 1970 UTC, by the server's clock. Time never runs backwards, whatever that does
        (State.time_at).
        """
        self.state.heard(now)
        size = len(self.state.nodes)
        if self.state.over and not isinstance(given, EventSeen):  # a pulse at the latest
            late.forget_old(self.state)
        if self._is_repeat(given):
            return []
        if self.state.jobs or self.state.asked:
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
                observing.planned(ctx, step, lines, ok=ok)
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
            case Delivery():
                self._delivery(ctx, given)
            case Leader(epoch=epoch, brain=brain):
                self._leader(ctx, epoch, brain)
            case Malformed():
                reports.malformed(ctx, given)
            case PackLoaded(pack=pack):
                ctx = self._load(ctx, pack)
        if len(self.state.nodes) != size:
            ctx.changed.extend(symptoms.more_nodes(ctx))
        consequences.propagate(ctx)
        hit.follow(ctx)
        return ctx.finish()

    def look(self) -> Context:
        """What is known now, for questions: whoever asks changes nothing, and effects go nowhere."""
        return self._context("look")

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
            node = self.state.nodes[event.node] = Node(name=event.node, started_at=self.state.now)
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
        if event.kind == late.AGENT_STARTED:
            at_once.agent_started(node, self.state.now - event.age_s)
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
        self._heard(ctx, event.node)
        self._feed(ctx, event)

    def _heard(self, ctx: Context, node: str) -> None:
        if node in ctx.state.left_behind and ctx.state.pack is not None:
            left_drained.heard_again(ctx, node)

    def _feed(self, ctx: Context, event: Event) -> None:
        if event.kind == late.AGENT_STARTED and event.data.get("in_order") is True:
            passing.in_order(ctx, event.node, ctx.now - event.age_s)
        cards.feed(ctx, event)
        ctx.changed.extend(symptoms.feed(ctx, event))
        ctx.changed.extend(drift.feed(ctx, event))
        ctx.changed.extend(stragglers.feed(ctx, event))
        ctx.changed.extend(paths.feed(ctx, event))

    def _node_state(self, ctx: Context, given: NodeState) -> None:
        """Nothing is verified on an unreachable node, so its verifications depend on this; and so does what it was told to do."""
        reports.node_state(ctx, given)
        if given.alive:
            self._heard(ctx, given.node)
        for run in list(ctx.state.runs.values()):
            if run.node == given.node:
                steps.check(ctx, run)
                if given.alive:
                    patience.heard(ctx, run)

    def _delivery(self, ctx: Context, given: Delivery) -> None:
        for incident in escalation.delivered(ctx, given):
            incidents.forget_if_done(ctx, incident)

    def _leader(self, ctx: Context, epoch: int, brain: str) -> None:
        if epoch <= ctx.state.epoch:
            return
        ctx.state.epoch, ctx.state.leader = epoch, brain
        ctx.note("leader", f"{brain} leads with epoch {epoch}")
        for run in list(ctx.state.runs.values()):
            patience.new_leader(ctx, run)
        hit.new_leader(ctx)
        escalation.resend_all(ctx)

    def _timer(self, ctx: Context, name: str) -> None:
        """A timer's name is `<kind>:<what it is for>`."""
        kind, _, what = name.partition(":")
        match kind:
            case "symptom":
                ctx.changed.extend(symptoms.tick(ctx, what))
            case "incident":
                if (incident := ctx.state.incidents.get(what)) is not None:
                    consequences.incident_timer(ctx, incident)
            case consequences.LEFT_TIMER:
                consequences.still_left(ctx, what)
            case "run":
                if (run := ctx.state.runs.get(what)) is not None:
                    patience.timer(ctx, run)
            case "tries":
                run_states.forget_tries(ctx, what)
            case "recovered":
                ctx.changed.extend(symptoms.recovered_long_ago(ctx, what))
            case "releases":
                ctx.changed.extend(suspects.judge(ctx, what))
            case rollouts.TIMER:
                rollouts.forget(ctx, what)
            case "recurred":
                recurrence.forget(ctx, what)
            case "hold":
                commands.hold_ended(ctx, what)
            case hit.TIMER:
                if (incident := ctx.state.incidents.get(what)) is not None:
                    hit.ask_again(ctx, incident)
            case "jobs":
                ctx.state.jobs.pop(what, None)
            case "schedule":
                requests.due(ctx, what)
            case _ if kind in escalation.TIMERS:
                if kind == quiet.TIMER:
                    self._window_ended(ctx, what)
                escalation.timer(ctx, kind, what)
            case _:
                raise BugError(f"no such timer: {name}")

    def _window_ended(self, ctx: Context, what: str) -> None:
        """What people had announced is no less urgent any more than elsewhere."""
        incident = ctx.state.incidents.get(what)
        rule = ctx.compiled.rules.get(incident.rule) if incident is not None else None
        if incident is None or rule is None:
            return
        if wider.urgency(ctx, rule, incident.scope)[0] < incident.severity:
            incidents.rejudged(ctx, incident, rule)

    def _load(self, ctx: Context, pack: Pack) -> Context:
        """Puts a pack into force and returns a context on it. Open incidents and runs keep what they began with."""
        previous, before = self._compiled, self.state.pack
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
        if before is not None:
            reloading.tell_of_moves(ctx, before.places)
        reloading.reloaded(ctx, previous.symptoms)
        early, self.state.early = self.state.early, []
        for entry in early:
            event = replace(entry.event, age_s=entry.event.age_s + ctx.now - entry.at)
            self._feed(ctx, event)
        return ctx
