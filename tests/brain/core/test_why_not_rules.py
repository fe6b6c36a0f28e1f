"""Why a rule does not match, over all rules that gpuward comes with and each of their examples: the reason given is true."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brain.core.context import Context
from brain.core.faults import situations
from brain.core.incidents import OVER
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Example, Rule, Scalar
from brain.core.pack.topology import node_of, type_of
from brain.core.rehearsal import examples
from brain.core.why import changes, sureness, why_not
from brain.core.why.why_not import MatchOutcome
from tests.brain.world import GPU, Story
from tests.brain.world import pack as small_pack
from tests.shipped import shipped_pack

PACK = shipped_pack()
CACHE = CompiledCache()


def scopes_of(ctx: Context, rule: Rule, example: Example) -> Iterator[str]:
    """Where the rule could match in this example: at each part and place that the example names."""
    topology = ctx.compiled.topology
    found: dict[str, None] = {}
    for fact in example.given:
        nodes = [fact.node] if fact.nodes == 1 else [f"n{n}" for n in range(1, min(fact.nodes, 3) + 1)]
        for node in nodes:
            if node not in ctx.state.nodes:
                continue  # nothing of the example means anything: the answer is that there is no such node
            if scope := topology.at(node, fact.component, rule.scope):
                found[scope] = None
            for state in ctx.state.symptoms.values():
                if type_of(state.scope) == rule.scope and node_of(state.scope) in (node, ""):
                    found[state.scope] = None
    yield from list(found)[:8]


def flipped(situation: dict[str, Scalar], condition: why_not.ConditionNow, rule: Rule) -> dict[str, Scalar]:
    """The situation in which one condition of a shipped rule finds the opposite; written without the code under test."""
    changed = dict(situation)
    if condition.symptom:
        if condition.test.startswith("not "):
            del changed[f"s_{condition.symptom}"]
        else:
            changed[f"s_{condition.symptom}"] = 1
        return changed
    field = condition.test.removeprefix("not ").partition(" ")[0]
    want = _test_of(rule.when, field)
    assert isinstance(want, str), "shipped rules test fields for equality with a text only"
    changed[field] = "something else" if condition.test.startswith("not ") else want
    return changed


def _test_of(when: Any, field: str) -> Any:
    if isinstance(when, (list, tuple)):
        return next((one for part in when if (one := _test_of(part, field)) is not None), None)
    for key, want in when.items():
        if key == field:
            return want
        if key in ("all", "any", "not") and (one := _test_of(want, field)) is not None:
            return one
    return None


def judged(ctx: Context, rule: Rule, scope: str) -> MatchOutcome:
    """Asks, and holds the answer against the situation, the matcher and the state."""
    answer = why_not.of(ctx, rule.name, scope)
    situation = situations.situation(ctx, answer.scope)
    now = ctx.compiled.match(answer.scope, situation)
    away = [one for one in answer.conditions if one.in_the_way]
    assert (answer.outcome is MatchOutcome.NOT_MET) == (rule.name not in now), (rule.name, scope, answer)
    assert bool(away) == (answer.outcome is MatchOutcome.NOT_MET)
    assert all(not one.met for one in away)
    for count in range(len(away) + 1):
        for some in combinations(away, count):
            changed = situation
            for one in some:
                changed = flipped(changed, one, rule)
            matches = rule.name in ctx.compiled.match(answer.scope, changed)
            assert matches == (count == len(away) or not away), (rule.name, scope, some)
    for one in away:
        _true_of(ctx, one, rule, situation, away)
    incident = ctx.state.incidents.get(answer.incident)
    match answer.outcome:
        case MatchOutcome.OPEN | MatchOutcome.HELD_OFF:
            assert incident is not None
            assert f"{rule.name}@{answer.scope}" in incident.matching_rules
        case MatchOutcome.EXPLAINED:
            assert incident is not None
            around = [ctx.compiled.rules[name] for name in incident.matching_rules.values()]
            named = {*incident.inhibits, *(cause for one in around for cause in one.inhibits_on_node)}
            assert (rule.cause or rule.name) in named or incident.cause.startswith("shared-")
        case MatchOutcome.NOT_OWN:
            active = situations.active_at(ctx, answer.scope)
            assert not any(symptom.scope == answer.scope for symptom in active)
    assert all(answer.text)
    return answer.outcome


def _true_of(
    ctx: Context,
    one: why_not.ConditionNow,
    rule: Rule,
    situation: dict[str, Scalar],
    away: list[why_not.ConditionNow],
) -> None:
    if one.symptom:
        active = situation.get(f"s_{one.symptom}") == 1
        assert active == one.test.startswith("not "), one
        states = [
            state
            for state in ctx.state.symptoms.values()
            if (state.name, state.scope) == (one.symptom, one.scope)
        ]
        if states and states[0].last:
            assert one.last == states[0].last
        assert bool(one.begins) == (not active and not one.takes)
        if one.takes:
            assert len(one.nodes) < one.takes
    for other in one.instead:
        replaced = [each for each in away if each is not one]
        changed = situation
        for each in replaced:
            changed = flipped(changed, each, rule)
        changed = flipped(changed, replace(one, test=other, symptom=other.removeprefix("not ")), rule)
        assert rule.name in ctx.compiled.match(str(situation["scope"]), changed), (rule.name, other)


@pytest.mark.parametrize("rule", PACK.rules, ids=lambda rule: rule.name)
def test_the_reason_is_true_at_each_moment_of_each_example(rule: Rule) -> None:
    """After each fact, and when all has settled: what is named stands in the way, all of it does, and nothing less."""
    asked = 0
    for example in rule.examples:
        timeline, last = examples.begun(PACK, ACTIONS, example, CACHE)
        moments = sorted({example.given[0].at, last, last + 3.0, last + examples.patience(PACK)})
        for moment in moments:
            timeline.run(examples.START + moment)
            ctx = timeline.engine.look()
            before = repr(ctx.state) if moment == last else ""
            for scope in scopes_of(ctx, rule, example):
                judged(ctx, rule, scope)
                asked += 1
            assert not before or repr(ctx.state) == before, "a question changes nothing"
        timeline.engine.close()
    assert asked, "an example names no scope at which the rule could match"


def test_every_outcome_of_the_examples_is_met() -> None:
    """The table above is not all of one kind."""
    seen: dict[MatchOutcome, int] = {}
    for rule in PACK.rules[::6]:
        for example in rule.examples[:2]:
            timeline, last = examples.begun(PACK, ACTIONS, example, CACHE)
            timeline.run(examples.START + last + 0.5)
            ctx = timeline.engine.look()
            for scope in scopes_of(ctx, rule, example):
                outcome = judged(ctx, rule, scope)
                seen[outcome] = seen.get(outcome, 0) + 1
    assert {MatchOutcome.NOT_MET, MatchOutcome.OPEN, MatchOutcome.HELD_OFF} <= seen.keys(), seen


EVENTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("gpu.xid", GPU, {"code": 79}),
    ("gpu.returned", GPU, {}),
    ("gpu.idle", GPU, {"unit": "u", "job": ""}),
    ("gpu.idle", GPU, {"unit": "", "job": "17"}),
    ("gpu.busy", GPU, {}),
    ("link.state", "link/ib0", {"up": False}),
    ("link.state", "link/ib0", {"up": True}),
    ("ib.sm_lid", "node", {}),
    ("service.state", "service/a.service", {"active": "failed"}),
    ("node.unreachable", "node", {}),
    ("node.returned", "node", {}),
)
STEP = st.tuples(
    st.sampled_from((0.5, 3.0, 40.0)),
    st.sampled_from(EVENTS),
    st.sampled_from(("n1", "n2", "n3", "n4")),
    st.sampled_from(("", "close", "hold")),
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, min_size=1, max_size=12))
def test_the_reason_is_true_in_random_stories(steps: list[tuple[float, Any, str, str]]) -> None:
    """Whatever came in which order: each rule at each scope has a true answer, and asking twice gives the same one."""
    story, now = Story(small_pack()), 1.0
    for pause, (kind, component, data), node, said in steps:
        now += pause
        story.event(now, kind, component, node, **data)
        if said == "hold":
            story.say(now, "hold", scope=f"node/{node}", why="x")
        elif said and (open_now := list(story.engine.state.incidents)):
            story.say(now, "close", id=open_now[0])
        story.run(now)
        ctx = story.engine.look()
        for rule in story.engine.look().compiled.rules.values():
            for scope in [
                *(
                    state.scope
                    for state in list(ctx.state.symptoms.values())
                    if type_of(state.scope) == rule.scope
                ),
                *(["fabric/default"] if rule.scope == "fabric" else ["cell"] if rule.scope == "cell" else []),
            ]:
                judged(ctx, rule, scope)
                assert why_not.of(ctx, rule.name, scope) == why_not.of(ctx, rule.name, scope)
        for incident in list(ctx.state.incidents.values()):
            told = changes.of(ctx, incident)
            ends = [one for one in told if one.turn is changes.Turn.ENDS]
            assert bool(ends) == (incident.state not in OVER), incident
            assert sureness.of(ctx, incident).level in sureness.Level
