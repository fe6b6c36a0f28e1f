"""Which facts would change what an incident is taken for: how it ends, what wider cause would explain it, what else it would be.

Worked out from the rules in force when somebody asks. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from brain.core import ids, recurrence
from brain.core.context import Context
from brain.core.faults import apart, situations, spread
from brain.core.incidents import OVER
from brain.core.pack import conditions
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spans import span_text
from brain.core.pack.spec import Rule, Symptom, Text
from brain.core.pack.topology import CELL, JOB, WIDE, component_of, node_of, type_of
from brain.core.state import Incident, IncidentState, SymptomState
from brain.core.why import obstacles, standing, words

MOST = 4  # of each kind of change


class Turn(StrEnum):
    """What would become of the incident."""

    ENDS = "ends"  # its fault would be over
    FRESH = "fresh"  # it would count as news
    WIDER = "wider"  # a cause that many nodes share would take it over
    OTHER = "other"  # another rule's incident would stand in its place, or beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One turn that it may take, and the facts that it takes."""

    turn: Turn
    text: Text
    # the cause that it would be; empty: none, or its own
    cause: str = ""
    # where that would be, or where the fact must come from
    scope: str = ""
    # wider: how many nodes show it, and how many it takes; 0: it is not about that
    nodes: int = 0
    takes: int = 0


def of(ctx: Context, incident: Incident) -> tuple[Change, ...]:
    """The facts that would change it, the most likely first; none when it is over."""
    if incident.state in OVER:
        return ()
    found = [*_ends(ctx, incident), *_fresh(incident), *_wider(ctx, incident), *_others(ctx, incident)]
    return tuple(one for number, one in enumerate(found) if one not in found[:number])


def _ends(ctx: Context, incident: Incident) -> Iterator[Change]:
    """Each active symptom without which one of its rules would not match, and what ends that."""
    if incident.state is IncidentState.RECOVERED:
        closes_at = incident.clear_since + recurrence.resolve_delay_s(ctx.state, incident)
        waits = span_text(max(0.0, closes_at - ctx.now))
        yield Change(
            turn=Turn.ENDS,
            scope=incident.scope,
            text=Text(
                en=f"it closes when nothing of it comes again for {waits.en}",
                zh=f"若 {waits.zh}内不再出现，故障即关闭",
            ),
        )
        return
    if not incident.matching_rules:
        yield Change(
            turn=Turn.ENDS,
            scope=incident.scope,
            text=Text(
                en="nothing of it is there any more: it closes when what was done about it has ended well, or somebody closes it",
                zh="相关事实均已消失：处理顺利结束或有人关闭后，故障即关闭",
            ),
        )
        return
    needed: dict[str, SymptomState] = {}
    for match, name in incident.matching_rules.items():
        rule, scope = ctx.compiled.rules.get(name), ids.split(match)[1]
        if rule is None:
            continue
        situation = situations.situation(ctx, scope)
        for part in obstacles.obstacles(rule.when, situation, wanted=False) or ():
            for state in situations.active_at(ctx, scope) if part.symptom else ():
                if state.name == part.symptom:
                    needed[ids.key(state.name, state.scope)] = state
    for state in list(needed.values())[:MOST]:
        spec = ctx.compiled.symptoms.get(state.name)
        if spec is not None:
            yield Change(turn=Turn.ENDS, scope=state.scope, text=_end_of(ctx, spec, state))
    more = len(needed) - MOST
    if more > 0:
        yield Change(
            turn=Turn.ENDS,
            scope=incident.scope,
            text=Text(en=f"and {more} more of its symptoms must be over", zh=f"另外 {more} 个症状也须结束"),
        )


def _end_of(ctx: Context, spec: Symptom, state: SymptomState) -> Text:
    if spec.detect == "spread":
        least = spread.takes(ctx, spec, state)
        few = max(1, -(-least // 2))
        return Text(
            en=f"it ends when fewer than {few} nodes of {state.scope} show {spec.of} "
            f"({len(state.members)} do now), and it no longer spreads",
            zh=f"{state.scope} 中出现 {spec.of} 的节点少于 {few} 个（现有 {len(state.members)} 个）且不再蔓延时结束",
        )
    left = span_text(max(0.0, apart.newest(state) + spec.ttl_s - ctx.now))
    if spec.detect == "flapping":
        calm = span_text(max(0.0, state.arrived + (spec.within_s or spec.ttl_s) - ctx.now))
        return Text(
            en=f"it ends when {spec.name} at {state.scope} does not change again for {calm.en}",
            zh=f"{state.scope} 的 {spec.name} 在 {calm.zh}内不再变化时结束",
        )
    if not spec.clear:
        return Text(
            en=f"it ends when nothing renews {spec.name} at {state.scope} for {left.en}, or a step of a runbook ends it",
            zh=f"{state.scope} 的 {spec.name} 在 {left.zh}内没有新的事实时结束，或由修复步骤结束",
        )
    told = words.facts(spec.clear)
    return Text(
        en=f"it ends when {told.en} comes from {state.scope}, or nothing is told of it for {left.en}",
        zh=f"{state.scope} 报告 {told.zh} 时结束，或 {left.zh}内没有新的事实时结束",
    )


def _fresh(incident: Incident) -> Iterator[Change]:
    if incident.stale:
        yield Change(
            turn=Turn.FRESH,
            scope=incident.scope,
            text=Text(
                en="a fresh fact of it ends its being old news: until then nothing disruptive is done by itself",
                zh="出现新的事实后不再视为旧闻：此前不会自动执行任何有影响的操作",
            ),
        )


def _wider(ctx: Context, incident: Incident) -> Iterator[Change]:
    """The shared causes that are not taken yet, and how many more nodes each takes."""
    told: dict[str, None] = {}
    for key in incident.symptoms:
        name, scope = ids.split(key)
        state = ctx.state.symptoms.get(key)
        if state is None or not state.active:
            continue
        for spec, place, _ in spread.watchers(ctx, name, scope, state.jobs):
            wide_key = ids.key(spec.name, place)
            wide = ctx.state.symptoms.get(wide_key) or SymptomState(name=spec.name, scope=place)
            if wide.active or wide_key in told or len(told) >= MOST:
                continue
            rule = _rule_of(ctx, spec, incident)
            if rule is None:
                continue
            told[wide_key] = None
            takes, shows = spread.takes(ctx, spec, wide), max(1, len(wide.members))
            more = max(1, takes - shows)
            within = span_text(spec.within_s)
            yield Change(
                turn=Turn.WIDER,
                cause=rule.cause or rule.name,
                scope=place,
                nodes=shows,
                takes=takes,
                text=Text(
                    en=f"a cause that {_the(place)} shares is taken when {more} more "
                    f"{'node shows' if more == 1 else 'nodes show'} {name}{f' within {within.en}' if spec.within_s else ''} "
                    f"({shows} of {takes} now)",
                    zh=f"若 {place} 中{f' {within.zh}内' if spec.within_s else ''}再有 {more} 个节点出现 {name}，"
                    f"则视为共同原因（现有 {shows}，需要 {takes}）",
                ),
            )


def _rule_of(ctx: Context, spec: Symptom, incident: Incident) -> Rule | None:
    """The rule that this spread leads to, where it explains the incident's cause."""
    for rule in ctx.compiled.rules.values():
        if rule.when.get("symptom") == spec.name and incident.cause in rule.inhibits:
            return rule
    return None


def _the(place: str) -> str:
    return "the whole cell" if place == CELL else place


def _others(ctx: Context, incident: Incident) -> Iterator[Change]:
    """Rules that one more symptom at the same place would make match: those that share a symptom with it first, then those that
    explain it.
    """
    if not incident.node:
        return
    own = dict.fromkeys(map(ids.name_of, incident.symptoms))
    for name in incident.matching_rules.values():
        if (mine := ctx.compiled.rules.get(name)) is not None:
            own |= dict.fromkeys(symptoms_in(mine.when))
    found: list[tuple[bool, int, Change]] = []
    for number, rule in enumerate(ctx.compiled.rules.values()):
        cause = rule.cause or rule.name
        shares = any(name in own for name in symptoms_in(rule.when))
        if (
            cause == incident.cause
            or rule.scope in (JOB, *WIDE, CELL)
            or not (shares or incident.cause in (*rule.inhibits, *rule.inhibits_on_node))
        ):
            continue
        change = _other(ctx, incident, rule, cause)
        if change is not None:
            found.append((not shares, number, change))
    yield from (change for _, _, change in sorted(found, key=lambda each: each[:2])[:MOST])


def _would_end(ctx: Context, incident: Incident, change: obstacles.Part) -> bool:
    """Whether none of its own rules would match any more with this symptom changed."""
    flag = {conditions.SYMPTOM_PREFIX + change.symptom: int(change.wanted)}
    return bool(incident.matching_rules) and not any(
        name in ctx.compiled.rules
        and conditions.holds(
            ctx.compiled.rules[name].when, situations.situation(ctx, ids.split(match)[1]) | flag
        )
        for match, name in incident.matching_rules.items()
    )


def _other(ctx: Context, incident: Incident, rule: Rule, cause: str) -> Change | None:
    scope = ctx.compiled.topology.at(incident.node, component_of(incident.scope), rule.scope)
    if not scope or node_of(scope) != incident.node:
        return None
    missing = obstacles.obstacles(rule.when, situations.situation(ctx, scope))
    if not missing or len(missing) > 1 or not missing[0].symptom:
        return None
    part = missing[0]
    spec = ctx.compiled.symptoms.get(part.symptom)
    if spec is None:
        return None
    place = standing.place_of(ctx, spec, scope) or (f"a {spec.scope} of {incident.node}")
    serves = ctx.compiled.topology.serves
    if part.wanted and cause in incident.inhibits and serves(incident.scope, scope):
        return None  # this incident would explain it
    takes_over = incident.cause in rule.inhibits_on_node or (
        incident.cause in rule.inhibits and serves(scope, incident.scope)
    )
    end = Text(en=f"{cause} at {scope} would explain it", zh=f"将由 {scope} 的 {cause} 解释")
    beside = Text(en=f"it would also be judged as {cause}", zh=f"还会被判断为 {cause}")
    instead = Text(en=f"it would be judged as {cause} instead", zh=f"将改为判断为 {cause}")
    then = end if takes_over else instead if _would_end(ctx, incident, part) else beside
    if not part.wanted:
        return Change(
            turn=Turn.OTHER,
            cause=cause,
            scope=scope,
            text=Text(
                en=f"{then.en} if {part.symptom} at {place} were over",
                zh=f"若 {place} 的 {part.symptom} 结束，{then.zh}",
            ),
        )
    told = words.begins(spec)
    where = "" if type_of(place) == "node" and place == f"node/{incident.node}" else f" at {place}"
    return Change(
        turn=Turn.OTHER,
        cause=cause,
        scope=scope,
        text=Text(
            en=f"{then.en} if {part.symptom} began{where}: {told.en}",
            zh=f"若{f' {place} ' if where else ' '}出现 {part.symptom}（{told.zh}），{then.zh}",
        ),
    )
