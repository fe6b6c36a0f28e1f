"""Why a rule does not match at a scope now, or why its match leads to nothing that people see. Pure.

First the conditions: the fewest tests that would have to find something else. Then what stands in place of the match's own
incident: another one that explains it, an operator's word, a hold-off. Then what keeps its runbook from acting: mode and gate.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from agent.contract.counted import span
from agent.contract.errors import ConfigError
from brain.core import consequences, explaining, ids, stops
from brain.core.context import Context
from brain.core.faults import situations
from brain.core.healing import modes
from brain.core.operators import scopes
from brain.core.pack.spec import Mode, Place, Rule, Scalar
from brain.core.pack.topology import CELL, JOB, RELEASE, SCOPES, WIDE, component_of, node_of, type_of
from brain.core.people import do
from brain.core.state import Incident, IncidentState, Run, RunState
from brain.core.why import obstacles, standing, words
from brain.core.why.obstacles import Part

_GATE = re.compile(r"\(gate (\w+)\)$")
_BASE = ("scope", "scope_type", "node", "component", "name", "node_alive")  # fields that no symptom carries


class MatchOutcome(StrEnum):
    """What became of the question."""

    NOT_MET = "not_met"  # a condition is not met
    NOT_OWN = "not_own"  # the condition is met by what is around the part, and nothing of its own is active
    EXPLAINED = "explained"  # it matches, and another incident explains it
    DISMISSED = (
        "dismissed"  # it matches, and an operator has closed its incident, or a wider one that explains it
    )
    HELD_OFF = "held_off"  # it matches, and its incident waits in case something wider explains it
    NO_INCIDENT = "no_incident"  # it matches, and nothing stands for it
    OPEN = "open"  # it matches, and its incident is there


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionNow:
    """One test of the rule, as it stands now."""

    # as people read it: `gpu_off_bus`, `not gpu_thermal`, `code ≥ 85`
    test: str
    met: bool
    # whether it is one of the fewest that would have to change
    in_the_way: bool
    # a sentence without its full stop
    text: str
    # of a symptom: its name, and where it is or would be
    symptom: str = ""
    scope: str = ""
    # when the first and the newest fact behind it occurred, in seconds since 1970; 0: there is none
    since: float = 0.0
    last: float = 0.0
    # of a shared cause: the nodes that count for it, and how many it takes; 0: it is none
    nodes: tuple[str, ...] = ()
    takes: int = 0
    # what it takes for the symptom to begin; empty: it is active, or the test is of a field
    begins: str = ""
    # tests that would do in its place
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """The answer. Times in seconds since 1970, by the log's clock; 0: none."""

    rule: str
    scope: str
    at: float
    outcome: MatchOutcome
    # what the outcome is, as sentences; the conditions have theirs
    text: tuple[str, ...]
    # in the rule's order
    conditions: tuple[ConditionNow, ...]
    # its own, or the one that explains it; empty: there is none
    incident: str = ""
    # until when that waits in its hold-off
    until: float = 0.0
    # of the match's runbook; empty: it has none
    runbook: str = ""
    mode: str = ""
    run: str = ""
    # the gate that holds the run; empty: none does
    gate: str = ""
    # when the gate's reason ends by itself, and when it is asked again
    gate_until: float = 0.0
    gate_again: float = 0.0

    @property
    def matches(self) -> bool:
        """Whether the rule matches there now."""
        return self.outcome not in (MatchOutcome.NOT_MET, MatchOutcome.NOT_OWN)


class NotKnown(ConfigError):
    """There is no such rule or scope, or the rule is about another type of scope."""

    def __init__(self, text: str, hint: Callable[[], str]) -> None:
        """`hint` looks for what could be meant: among many names that takes a while, and needs nothing of the engine."""
        super().__init__(text)
        self.hint = hint


def of(ctx: Context, rule: str, scope: str) -> WhyNot:
    """Why the rule does not match at the scope, or what became of its match. NotKnown: there is no such thing."""
    spec = ctx.compiled.rules.get(rule)
    if spec is None:
        names = list(ctx.compiled.rules)
        raise NotKnown(f"no rule {rule!r}", lambda: f"no rule {rule!r}{scopes.have(rule, sorted(names))}")
    scope = _scope(ctx, spec, scope)
    situation = situations.situation(ctx, scope)
    found = obstacles.obstacles(spec.when, situation)
    conditions = _conditions(ctx, spec, scope, situation, found or ())
    if found is None or found:
        text = [f"{rule} does not match at {scope}"]
        if found is None:
            text.append("its condition can never be met")
        return WhyNot(
            rule=rule,
            scope=scope,
            at=ctx.now,
            outcome=MatchOutcome.NOT_MET,
            text=(*text, *_circumstances(ctx, scope)),
            conditions=conditions,
        )
    return _matched(ctx, spec, scope, conditions)


def _scope(ctx: Context, rule: Rule, scope: str) -> str:
    """The scope as the engine writes it: a node's name alone is the node's, and the cell has no name."""
    nodes, places = ctx.state.nodes, ctx.compiled.topology.places
    if scope == scopes.ALL:
        scope = CELL
    if rule.scope == "node" and "/" not in scope and (scope in nodes or scope in places):
        return f"node/{scope}"
    kind = type_of(scope)
    node = node_of(scope) if kind in SCOPES else ""
    if kind == RELEASE:  # what matched there stands in its situation
        known = scope in ctx.index.active
    elif kind == JOB:  # nobody lists them
        known = len(scope) > len(f"{JOB}/")
    elif node:
        known = (node in nodes or node in places) and (kind == "node" or len(scope.split("/", 2)) > 2)
    else:
        default = f"fabric/{Place().fabric}"  # of nodes whose place nobody has told
        known = scope in (CELL, default) or (kind in WIDE and ctx.compiled.topology.size(scope, 0) > 0)
    if not known and not node:  # a release that nodes share has no place of its own
        known = any(state.scope == scope for state in ctx.state.symptoms.values())
    if not known:
        names = list(nodes)
        raise NotKnown(f"no scope {scope!r}", lambda: scopes.mistake(scope, names, places))
    if kind != rule.scope:
        text = f"{rule.name} is about a {rule.scope}, and {scope} is a {kind}{_known(ctx, rule, scope)}"
        raise NotKnown(text, lambda: text)
    return (ctx.compiled.topology.at(node, component_of(scope), kind) or scope) if node else scope


def _known(ctx: Context, rule: Rule, scope: str) -> str:
    """Which scopes of the rule's type may be meant, as the end of a sentence."""
    node = node_of(scope)
    if not node:
        return ""
    here = {state.scope: None for state in ctx.state.symptoms.values() if node_of(state.scope) == node}
    places = [place for place in here if type_of(place) == rule.scope]
    wider = ctx.compiled.topology.at(node, component_of(scope), rule.scope)
    meant = [wider] if wider else sorted(places)
    return f": did you mean {words.listed(meant, 'or')}?" if meant else f": say {rule.scope}/{node}/NAME"


def _conditions(
    ctx: Context, rule: Rule, scope: str, situation: dict[str, Scalar], needed: tuple[Part, ...]
) -> tuple[ConditionNow, ...]:
    every = list(obstacles.parts(rule.when, situation))
    away, around = {part.path for part in needed}, standing.here(ctx, scope)
    return tuple(
        _condition(
            ctx,
            scope,
            part,
            around,
            _instead(rule, situation, part, every, away) if part.path in away else None,
        )
        for part in every
    )


def _instead(
    rule: Rule, situation: dict[str, Scalar], part: Part, every: list[Part], away: set[obstacles.Path]
) -> tuple[str, ...]:
    """The tests that would do in place of one that stands in the way: those of an `any`."""
    others = away - {part.path}
    return tuple(
        _test(one)
        for one in every
        if one.true != one.wanted
        and one.path not in away
        and obstacles.holds_with(rule.when, situation, others | {one.path})
    )


def _test(part: Part) -> str:
    text = part.symptom or f"{part.field} {words.needs(part.want)}"
    return text if part.wanted else f"not {text}"


def _condition(
    ctx: Context, scope: str, part: Part, around: standing.Here, instead: tuple[str, ...] | None
) -> ConditionNow:
    met, away = part.true == part.wanted, instead is not None
    if part.symptom:
        now = standing.of(ctx, part.symptom, scope, around)
        spec = ctx.compiled.symptoms.get(part.symptom)
        return ConditionNow(
            test=_test(part),
            met=met,
            in_the_way=away,
            text=f"{now.text}; the rule matches only while it is not"
            if away and not part.wanted
            else now.text,
            symptom=part.symptom,
            scope=now.scope,
            since=now.since,
            last=now.last,
            nodes=now.nodes,
            takes=now.takes,
            begins="" if now.active or spec is None or spec.detect == "spread" else words.begins(spec).en,
            instead=instead or (),
        )
    carrier = _carrier(ctx, scope, part.field)
    told = f", told {words.ago(ctx.now, carrier[1])} with {carrier[0]}" if carrier else ""
    needs = f"{'needs' if part.wanted else 'must not be'} {words.needs(part.want)}"
    text = f"{part.field} is {words.value(part.value)}{told}"
    if part.value is None:
        text += _carried_by(ctx, part.field)
    return ConditionNow(
        test=_test(part),
        met=met,
        in_the_way=away,
        text=f"{text}, and {needs}" if away else text,
        last=carrier[1] if carrier else 0.0,
        instead=instead or (),
    )


def _carrier(ctx: Context, scope: str, field: str) -> tuple[str, float] | None:
    """The active symptom from which the situation has a field, and when its newest fact occurred."""
    found = None
    for state in situations.active_at(ctx, scope):
        if field in state.carried or (state.members and field == f"{state.name}_nodes"):
            found = (f"{state.name} at {state.scope}", state.last)
    return found


def _carried_by(ctx: Context, field: str) -> str:
    if field in _BASE:
        return ""
    names = [spec.name for spec in ctx.compiled.symptoms.values() if field in spec.carry]
    return f": it comes with {words.listed(names, 'or')}, which is not active there" if names else ""


def _circumstances(ctx: Context, scope: str) -> list[str]:
    """What else keeps the brain from knowing more of the scope."""
    node = ctx.state.nodes.get(node_of(scope))
    if not node_of(scope):
        return []
    if node is None:
        return [f"{node_of(scope)} has never been heard"]
    said = [] if node.alive else [f"{node.name} is not heard now: what happens there is not known"]
    if node.crowded_at:
        said.append(
            f"{node.name} had so many open faults {words.ago(ctx.now, node.crowded_at)} that further ones were left out"
        )
    return said


def _matched(ctx: Context, rule: Rule, scope: str, conditions: tuple[ConditionNow, ...]) -> WhyNot:
    match = ids.key(rule.name, scope)
    answer = partial(WhyNot, rule=rule.name, scope=scope, at=ctx.now, conditions=conditions)
    if rule.name not in ctx.state.matched.get(scope, ()):
        own = any(symptom.scope == scope for symptom in situations.active_at(ctx, scope))
        why = (
            "it is judged with the next fact"
            if own or node_of(scope) == ""
            else f"nothing of {scope} itself is active"
        )
        text = f"{rule.name} does not match at {scope}: its conditions are met, but {why}"
        return answer(outcome=MatchOutcome.NOT_OWN, text=(text, *_circumstances(ctx, scope)))
    met = f"{rule.name} matches at {scope}"
    own_incident = ctx.state.incidents.get(ctx.index.by_match.get(match, ""))
    if own_incident is not None:
        return _with_incident(ctx, rule, scope, conditions, own_incident)
    other = explaining.explained_by(ctx, rule, scope)
    if other is not None:
        why = f"{met}, and {other.cause} at {other.scope} explains it (incident {other.id})"
        since = standing.beside(ctx, rule, scope, other)
        return answer(outcome=MatchOutcome.EXPLAINED, text=(why, *since), incident=other.id)
    closed = match if match in ctx.state.dismissed else explaining.dismissed_around(ctx, rule, scope)
    closed = closed or explaining.closed_elsewhere(ctx, rule, scope)
    left_until = ctx.state.timers.get(f"{consequences.LEFT_TIMER}:{match}", 0.0)
    if closed == match and left_until:
        why = f"{met}, and an operator closed what explained it, which is over: what is left of it"
        told = f"it is told in {span(max(0.0, left_until - ctx.now))} if it is there still, and as soon as there is a newer fact"
        return answer(outcome=MatchOutcome.DISMISSED, text=(why, told), until=left_until)
    if closed:
        when = words.ago(ctx.now, ctx.state.dismissed[closed])
        what = "its incident" if closed == match else f"the incident of {closed}, which explains it,"
        ended = f"an operator closed {what}"
        if closed == match and type_of(scope) == JOB:
            ended = "what explained it was over, or an operator closed its incident,"
        why = f"{met}, and {ended} {when}: a newer fact opens it again"
        return answer(outcome=MatchOutcome.DISMISSED, text=(why,))
    why = f"{met}, and no incident stands for it: the one that did is over, and the facts have not changed since"
    return answer(outcome=MatchOutcome.NO_INCIDENT, text=(why,))


def _with_incident(
    ctx: Context, rule: Rule, scope: str, conditions: tuple[ConditionNow, ...], incident: Incident
) -> WhyNot:
    settling = incident.state is IncidentState.SETTLING
    text = [
        f"{rule.name} matches at {scope}: incident {incident.id} is {incident.state.value.replace('_', ' ')}"
    ]
    if incident.past:
        text.append(incident.past)
    if settling:
        left = max(0.0, incident.hold_off_until - ctx.now)
        text.append(
            incident.waits or f"nobody is told for {span(left)} more, in case something wider explains it"
        )
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    runbook = run.runbook.name if run is not None else incident.runbook
    mode = _mode(ctx, runbook, incident)
    if not runbook:
        text.append("no runbook heals it: people must act")
    elif run is not None and run.state in (RunState.HELD, RunState.APPROVAL, RunState.OBSERVED):
        text.append(run.why)
    elif mode == Mode.OBSERVE:
        text.append(f"{runbook} is in observe mode there: it only plans")
    gate = _gate(run)
    until = _gate_until(ctx, run, gate) if run is not None else (0.0, "")
    if until[1]:
        text.append(until[1])
    return WhyNot(
        rule=rule.name,
        scope=scope,
        at=ctx.now,
        outcome=MatchOutcome.HELD_OFF if settling else MatchOutcome.OPEN,
        text=tuple(text),
        conditions=conditions,
        incident=incident.id,
        until=incident.hold_off_until if settling else 0.0,
        runbook=runbook,
        mode=mode,
        run=run.id if run is not None else "",
        gate=gate,
        gate_until=until[0],
        gate_again=ctx.state.timers.get(f"run:{run.id}", 0.0) if run is not None and gate else 0.0,
    )


def _mode(ctx: Context, runbook: str, incident: Incident) -> str:
    spec = ctx.compiled.runbooks.get(runbook)
    return modes.mode_of(ctx, runbook, incident.node, spec.at_most).value if spec is not None else ""


def _gate(run: Run | None) -> str:
    """The gate that holds a run; its reason names it."""
    if run is None or run.state not in (RunState.HELD, RunState.APPROVAL):
        return ""
    found = _GATE.search(run.why)
    return found[1] if found else ""


def _gate_until(ctx: Context, run: Run, gate: str) -> tuple[float, str]:
    """(when what people arranged ends by itself, 0: never; the same as a sentence, empty: nothing is known)."""
    if gate == "hold":
        holds = [one for one in stops.holds(ctx) if ctx.compiled.topology.meet(one.scope, run.scope)]
        if not holds:
            return 0.0, ""
        if any(not one.until for one in holds):
            return (
                0.0,
                f"{do(holds[0].who, 'holds')} it until somebody releases it: gpuward release {holds[0].id}",
            )
        last = max(one.until for one in holds)
        return last, f"the hold ends in {span(last - ctx.now)}"
    if gate == "maintenance":
        windows = [one for one in stops.windows(ctx) if ctx.compiled.topology.contains(one.scope, run.scope)]
        last = max((one.until for one in windows), default=0.0)
        return last, f"the window ends in {span(last - ctx.now)}" if windows else ""
    return 0.0, ""
