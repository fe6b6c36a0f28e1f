"""The generated symptoms and rules for shared causes.

Law 6: when many nodes show one symptom at once, the cause is taken to be shared. So each symptom of a node or of a component
gets, for each kind of place that the site has and for the cell, a symptom that counts its nodes and a rule that explains the
single incidents. Which place it is when several are reached at once is judged by brain/core/faults/places.py.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Knowledge, Pack, Paging, Priority, Rule, Settings, Symptom, Text
from brain.core.pack.topology import CELL, JOB, NODELESS, WIDE

_SHARED = "shared-"  # how the names of generated rules begin
GENERATED = "shared_"  # and those of generated symptoms
_SHARED_TODO = Text(
    en="Look for what these nodes share: switch, subnet manager, power, storage, driver or agent release, a rule of ours. "
    "gpuward holds every per-node action for this symptom until it is over.",
    zh="检查这些节点的共同点：交换机、子网管理器、供电、存储、驱动或 agent 版本、规则变更。"
    "该症状结束之前，gpuward 不会对单个节点执行任何操作。",
)
NARROW_HOLD_OFF_S = 2.0  # hold-off of a shared cause narrower than the cell: a wider one would explain it
CHASSIS_WITHIN_S = 300.0  # the nodes of one chassis must begin within this time
ALWAYS = ("leaf", "rack")  # kinds that have counters on every site
# of the nodes of a place: so many with one symptom share a cause
SMALL_SHARE, LARGE_SHARE, CHASSIS_SHARE = 0.5, 0.25, 0.75
SMALL = ("nvlink", "leaf", "rack")  # a few nodes one after the other will do
SUPPLIES = ("power", "cooling")
ORDER = {kind: number for number, kind in enumerate((*WIDE, CELL))}  # the narrowest first
NAMES = {
    "nvlink": "NVLink domain",
    "power": "power feed",
    "cooling": "cooling loop",
    "storage": "file server",
}
_ZH = {
    "chassis": "同一机箱", "nvlink": "同一 NVLink 域", "leaf": "同一叶交换机", "rack": "同一机架", "power": "同一路供电",
    "cooling": "同一冷却回路", "storage": "同一文件服务器", "row": "同一排", "pod": "同一 pod", "room": "同一机房",
    "fabric": "同一网络", CELL: "同一 cell", JOB: "同一作业",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """How many nodes of one place make a cause shared; the fields are those of a symptom."""

    at_least: float
    share: float
    enough: float
    within_s: float
    at_once_s: float = 0.0


def _limits(kind: str, settings: Settings) -> _Limits:
    leaf, cell, within_s = settings.shared_leaf_nodes, settings.shared_nodes, settings.shared_within_s
    at_once_s = settings.shared_at_once_s
    if kind == "chassis":  # of two or four nodes, (nearly) all, at about the same time
        return _Limits(at_least=2, share=CHASSIS_SHARE, enough=0, within_s=min(within_s, CHASSIS_WITHIN_S))
    if kind in SMALL:
        return _Limits(at_least=leaf, share=SMALL_SHARE, enough=leaf, within_s=within_s)
    if (
        kind == JOB
    ):  # half of it, as a job on a tenth of the cell would have a tenth of its faults; or at once
        return _Limits(at_least=cell, share=SMALL_SHARE, enough=0, within_s=within_s, at_once_s=at_once_s)
    if kind in SUPPLIES:
        return _Limits(at_least=leaf, share=LARGE_SHARE, enough=math.inf, within_s=within_s)
    share = settings.shared_share if kind == CELL else max(LARGE_SHARE, settings.shared_share)
    return _Limits(at_least=cell, share=share, enough=math.inf, within_s=within_s, at_once_s=at_once_s)


def rule_named(pack: Pack | None, name: str) -> Rule | None:
    """A rule of the pack, or the generated one for a shared cause; None: there is none of this name (any more)."""
    if pack is None:
        return None
    own = next((rule for rule in pack.rules if rule.name == name), None)
    if own is not None or not name.startswith(_SHARED):
        return own
    return next((rule for _, rule in generated(pack, WIDE, only=name)), None)


def generated(pack: Pack, kinds: Iterable[str], *, only: str = "") -> Iterator[tuple[Symptom, Rule]]:
    """The counting symptoms and their rules, for the kinds of places that the site has and for the cell.

    `only`: the one rule of this name.
    """
    there = tuple(kind for kind in WIDE if kind in kinds or kind in ALWAYS)
    hand: dict[str, list[Symptom]] = {}  # symptom -> the pack's own symptoms that count its nodes
    for symptom in pack.symptoms:
        if symptom.detect == "spread":
            hand.setdefault(symptom.of, []).append(symptom)
    naming: dict[str, list[Rule]] = {}  # symptom -> the rules that name it
    for rule in pack.rules:
        for name in dict.fromkeys(symptoms_in(rule.when)):
            naming.setdefault(name, []).append(rule)
    for symptom in pack.symptoms:
        rules = naming.get(symptom.name, ())
        # Many nodes that differ from their peers at once are an upgrade under way, not a shared fault.
        if symptom.scope in NODELESS or not rules or symptom.detect == "unlike":
            continue
        if only and not only.startswith(f"{base(symptom.name)}-"):
            continue
        wanted = _wanted((*there, CELL), hand.get(symptom.name, ()))
        if (
            symptom.scope == "gpu" and pack.settings.ask_who_is_hit
        ):  # a program may break the GPUs that it uses
            wanted.append(JOB)
        wanted = [kind for kind in wanted if not only or only == f"{base(symptom.name)}-{kind}"]
        if not wanted:
            continue
        causes = _explains(pack, symptom, (*there, CELL), rules, hand.get(symptom.name, ()), naming)
        # People are told of many nodes no sooner than of one: what passes by itself passes on all of them.
        hold_off_s = min(rule.hold_off_s for rule in rules)
        # What calls nobody on one node, as a roll-out that people make, calls nobody on many.
        page = Paging.NEVER if all(rule.page is Paging.NEVER for rule in rules) else Paging.OPEN
        for kind in wanted:
            counter = _counter(symptom, kind, pack.settings)
            yield counter, _rule(symptom, counter, causes, hold_off_s, there, page)


def with_jobs(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules as they are meant: what explains a cause on a node of a job explains it of the whole job, as a lost GPU that all
    ranks wait for.
    """
    own = list(rules)
    of_jobs = {rule.cause or rule.name: rule.inhibits for rule in own if rule.scope == JOB}

    def more(rule: Rule, causes: tuple[str, ...]) -> tuple[str, ...]:
        on_nodes = [cause for cause in causes if cause not in of_jobs]
        found = [job for job, there in of_jobs.items() if any(cause in there for cause in on_nodes)]
        return tuple(dict.fromkeys((*causes, *found))) if rule.scope != JOB else causes

    return (
        tuple(
            replace(
                rule,
                inhibits=more(rule, rule.inhibits),
                inhibits_on_node=more(rule, rule.inhibits_on_node),
            )
            for rule in own
        )
        if of_jobs
        else tuple(own)
    )


def together(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules for a place explain what many nodes of it share, by the names of the generated rules (`inhibits_together`)."""

    def shared(rule: Rule) -> Rule:
        named = [
            name
            for one in rules
            if (one.cause or one.name) in rule.inhibits_together and one.scope not in NODELESS
            for name in symptoms_in(one.when)
        ]
        found = tuple(f"{base(name)}-{rule.scope}" for name in dict.fromkeys(named))
        return replace(rule, inhibits_on_node=(*rule.inhibits_on_node, *found)) if found else rule

    return tuple(map(shared, rules))


def scope_zh(kind: str) -> str:
    """What the nodes of a place share, in Chinese: `同一机架`."""
    return _ZH.get(kind, f"同一 {kind}")


def base(symptom: str) -> str:
    """How the names of the rules for a shared cause of a symptom begin."""
    return f"{_SHARED}{symptom.replace('_', '-')}"


def _wanted(kinds: Sequence[str], hand: Sequence[Symptom]) -> list[str]:
    """The kinds of places where the nodes are counted. Where the pack counts them itself, only narrower ones are added; what it
    counts in a fabric alone is a fault of the fabric, such as of its subnet manager.
    """
    own = [symptom.scope for symptom in hand]
    if own and all(kind == "fabric" for kind in own):
        return []
    widest = max((ORDER[kind] for kind in own if kind in ORDER), default=len(ORDER))
    return [kind for kind in kinds if kind not in own and ORDER[kind] < widest]


def _explains(
    pack: Pack,
    symptom: Symptom,
    kinds: Sequence[str],
    rules: Sequence[Rule],
    hand: Sequence[Symptom],
    naming: dict[str, list[Rule]],
) -> tuple[str, ...]:
    """What the shared cause explains: the causes of the single nodes, what these explain on their nodes, and the shared causes of
    that, and of what else tells the same: many nodes change nothing in it.
    """
    wide = {rule.name: rule for counter in hand for rule in naming.get(counter.name, ())}
    family = {rule.cause or rule.name for rule in wide.values()}
    causes = dict.fromkeys(rule.cause or rule.name for rule in rules if rule.name not in wide)
    causes |= dict.fromkeys(cause for rule in wide.values() for cause in rule.inhibits if cause not in family)
    further = [
        cause
        for rule in pack.rules
        if (rule.cause or rule.name) in causes
        for cause in (*rule.inhibits, *rule.inhibits_on_node)
    ]
    named = [
        name
        for rule in pack.rules
        if (rule.cause or rule.name) in (*causes, *further) and rule.scope not in NODELESS
        for name in symptoms_in(rule.when)
    ]
    shared = [
        f"{base(name)}-{kind}" for name in dict.fromkeys(named) if name != symptom.name for kind in kinds
    ]
    return tuple(dict.fromkeys((*causes, *further, *shared)))


def _counter(symptom: Symptom, kind: str, settings: Settings) -> Symptom:
    """The symptom that counts the nodes with `symptom` within one place of a kind."""
    limits = _limits(kind, settings)
    return Symptom(
        name=f"{GENERATED}{symptom.name}_{kind}",
        scope=kind,
        summary=f"many nodes of one {NAMES.get(kind, kind)} at once: {symptom.summary}",
        detect="spread",
        of=symptom.name,
        at_least=limits.at_least,
        share=limits.share,
        within_s=limits.within_s,
        enough=limits.enough,
        at_once_s=limits.at_once_s,
        ttl_s=symptom.ttl_s,
    )


def _rule(
    symptom: Symptom,
    counter: Symptom,
    causes: tuple[str, ...],
    hold_off_s: float,
    narrower: Sequence[str],
    page: Paging,
) -> Rule:
    """The rule for a shared cause. That of the cell also explains the narrower ones."""
    kind, start = counter.scope, base(symptom.name)
    few = kind in ("chassis", JOB) or kind in SMALL or kind in SUPPLIES
    whole = tuple(f"{start}-{other}" for other in narrower) if kind == CELL else ()
    return Rule(
        name=f"{start}-{kind}",
        scope=kind,
        when={"symptom": counter.name},
        severity=Priority.P1 if few else Priority.P0,
        because=f"so many nodes of one {NAMES.get(kind, kind)} show it at once that the cause is taken to be shared, not theirs",
        because_zh=f"{scope_zh(kind)}有这么多节点同时出现该症状，因此认定原因是它们共有的，而不在各自",
        knowledge=Knowledge(
            cause=Text(en=f"Shared cause of: {symptom.summary}", zh=f"共同原因：{symptom.summary}"),
            todo=_SHARED_TODO,
        ),
        examples=(),
        inhibits=(*causes, *whole),
        hold_off_s=hold_off_s if kind == CELL else max(NARROW_HOLD_OFF_S, hold_off_s),
        page=page,
    )
