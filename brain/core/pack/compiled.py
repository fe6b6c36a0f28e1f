"""A compiled pack: lookups by kind and name, the matcher, and generated rules for shared causes.

Law 6: when many nodes show one symptom at once, the cause is taken to be shared. So each symptom of a node or of a
component gets, for leaf, rack and cell, a symptom that counts its nodes and a rule that inhibits the single incidents.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import replace

from brain.core.pack.conditions import symptoms_in
from brain.core.pack.feeds import Feeds, Where
from brain.core.pack.rulebook import MATCHER, Matcher
from brain.core.pack.spec import (
    Knowledge,
    Match,
    Override,
    Pack,
    Paging,
    Priority,
    Rule,
    Runbook,
    Symptom,
    Text,
)
from brain.core.pack.topology import CELL, NODELESS, Topology, type_of

_SHARED = "shared-"  # how the names of generated rules begin
_SHARED_TODO = Text(
    en="Look for what these nodes share: switch, subnet manager, power, storage, driver or agent release, a rule of ours. "
    "gpuward holds every per-node action for this symptom until it is over.",
    zh="检查这些节点的共同点：交换机、子网管理器、供电、存储、驱动或代理版本、规则变更。"
    "该症状结束之前，gpuward 不会对单个节点执行任何操作。",
)
LEAF_SHARE = 0.5  # of the nodes of a leaf or rack: so many with one symptom share a cause
LEAF_HOLD_OFF_S = 2.0  # hold-off of a leaf's or rack's shared cause: one of the cell would explain it


class Compiled:
    """Everything that the engine looks up in a pack. Derived from the pack, so a snapshot does not keep it."""

    def __init__(self, pack: Pack, *, matcher: Matcher = MATCHER) -> None:
        symptoms, rules = _with_shared(pack)
        self.pack = pack
        self.settings = pack.settings
        self.topology = Topology(pack.places)
        self.symptoms: dict[str, Symptom] = {symptom.name: symptom for symptom in symptoms}
        self.rules: dict[str, Rule] = {rule.name: rule for rule in rules}
        self.runbooks: dict[str, Runbook] = {runbook.name: runbook for runbook in pack.runbooks}
        feeds: dict[str, list[tuple[Symptom, Match, bool]]] = {}
        self.spreads: dict[str, list[Symptom]] = {}  # symptom -> `spread` symptoms that count its nodes
        self.unlikes: dict[str, list[Symptom]] = {}  # event kind -> `unlike` symptoms that compare its fields
        for symptom in symptoms:
            if symptom.detect == "unlike":
                self.unlikes.setdefault(symptom.on[0].kind, []).append(symptom)
                continue
            for match in symptom.on:
                feeds.setdefault(match.kind, []).append((symptom, match, True))
            for match in symptom.clear:
                feeds.setdefault(match.kind, []).append((symptom, match, False))
            if symptom.detect == "spread":
                self.spreads.setdefault(symptom.of, []).append(symptom)
        self.feeds = {kind: Feeds(found) for kind, found in feeds.items()}  # event kind -> what it feeds
        # event kind -> overrides; the first that fits an event counts
        self.overrides = _by_kind(pack.overrides)
        self.rule_scopes: dict[str, list[str]] = {}  # symptom -> scope types of the rules that name it
        self.named_by: dict[str, list[Rule]] = {}  # symptom -> the rules that name it
        for rule in rules:
            for name in symptoms_in(rule.when):
                self.named_by.setdefault(name, []).append(rule)
                scopes = self.rule_scopes.setdefault(name, [])
                if rule.scope not in scopes:
                    scopes.append(rule.scope)
        self._rulebook = matcher.build(rules)

    def match(self, scope: str, situation: dict[str, str | int | float | bool]) -> list[str]:
        """Names of the rules that match the situation of `scope`, in the pack's order."""
        return self._rulebook.match(type_of(scope), situation)

    def cause(self, rule: str) -> str:
        """The cause that a rule names; by default its own name."""
        spec = self.rules[rule]
        return spec.cause or spec.name

    def close(self) -> None:
        """Frees the matcher."""
        self._rulebook.close()


class CompiledCache:
    """Compiles each pack once for many engines. Only the cache's `close` frees the matchers, not the engines'."""

    def __init__(self, *, matcher: Matcher = MATCHER) -> None:
        self._matcher = matcher
        self._packs: dict[tuple[object, ...], _Shared] = {}

    def __call__(self, pack: Pack) -> Compiled:
        """The compiled pack. Packs of one version may differ in their places, settings and overrides only."""
        settings = pack.settings
        counters = (
            settings.shared_nodes,
            settings.shared_share,
            settings.shared_leaf_nodes,
            settings.shared_within_s,
        )
        key = (pack.version, *counters)  # what the counters of shared causes are made of
        if key not in self._packs:
            self._packs[key] = _Shared(pack, matcher=self._matcher)
        shared = self._packs[key]
        if shared.topology.places is not pack.places:
            shared.topology = Topology(pack.places)
        compiled = copy.copy(shared)  # the same matcher and lookups
        compiled.pack, compiled.settings, compiled.overrides = pack, pack.settings, _by_kind(pack.overrides)
        return compiled

    def close(self) -> None:
        """Frees the matchers."""
        for compiled in self._packs.values():
            Compiled.close(compiled)
        self._packs.clear()


class _Shared(Compiled):
    """A compiled pack that belongs to a cache."""

    def close(self) -> None:
        """Does nothing: the cache frees the matcher."""


def _by_kind(overrides: Iterable[Override]) -> dict[str, list[tuple[Override, Where]]]:
    found: dict[str, list[tuple[Override, Where]]] = {}
    for override in overrides:
        found.setdefault(override.on.kind, []).append((override, Where(override.on.where)))
    return found


def rule_named(pack: Pack | None, name: str) -> Rule | None:
    """A rule of the pack, or the generated one for a shared cause; None: there is none of this name (any more)."""
    if pack is None:
        return None
    rules = _with_shared(pack)[1] if name.startswith(_SHARED) else pack.rules
    return next((rule for rule in rules if rule.name == name), None)


def _with_shared(pack: Pack) -> tuple[list[Symptom], list[Rule]]:
    """The pack's symptoms and rules, and the generated ones for shared causes."""
    symptoms, rules = list(pack.symptoms), list(pack.rules)
    covered = {symptom.of for symptom in symptoms if symptom.detect == "spread"}
    naming: dict[str, list[Rule]] = {}  # symptom -> the rules that name it
    for rule in pack.rules:
        for name in dict.fromkeys(symptoms_in(rule.when)):
            naming.setdefault(name, []).append(rule)
    for symptom in pack.symptoms:
        causes = tuple(dict.fromkeys(rule.cause or rule.name for rule in naming.get(symptom.name, ())))
        # Many nodes that differ from their peers at once are an upgrade under way, not a shared fault.
        if symptom.scope in NODELESS or symptom.name in covered or not causes or symptom.detect == "unlike":
            continue
        further = _explained(pack, causes)
        # People are told of many nodes no sooner than of one: what passes by itself passes on all of them.
        hold_off_s = min(rule.hold_off_s for rule in naming[symptom.name])
        for scope in ("leaf", "rack", CELL):
            counter = _counter(pack, symptom, scope)
            symptoms.append(counter)
            rules.append(_shared_rule(symptom, counter, (*causes, *further), hold_off_s))
    return symptoms, rules


def _explained(pack: Pack, causes: tuple[str, ...]) -> tuple[str, ...]:
    """What the causes explain on their nodes, and the shared causes of that: many nodes change nothing in it."""
    further = [cause for rule in pack.rules if (rule.cause or rule.name) in causes for cause in rule.inhibits]
    named = [
        name
        for rule in pack.rules
        if (rule.cause or rule.name) in further and rule.scope not in NODELESS
        for name in symptoms_in(rule.when)
    ]
    shared = [f"{_base(name)}-{scope}" for name in named for scope in ("leaf", "rack", CELL)]
    return tuple(dict.fromkeys(one for one in (*further, *shared) if one not in causes))


def _base(symptom: str) -> str:
    """How the names of the rules for a shared cause of a symptom begin."""
    return f"{_SHARED}{symptom.replace('_', '-')}"


def _counter(pack: Pack, symptom: Symptom, scope: str) -> Symptom:
    """The symptom that counts the nodes with `symptom` within one leaf, rack or cell."""
    whole, settings = scope == CELL, pack.settings
    return Symptom(
        name=f"shared_{symptom.name}_{scope}",
        scope=scope,
        summary=f"many nodes of one {scope} at once: {symptom.summary}",
        detect="spread",
        of=symptom.name,
        at_least=settings.shared_nodes if whole else settings.shared_leaf_nodes,
        share=settings.shared_share if whole else LEAF_SHARE,
        within_s=settings.shared_within_s,
        # Under one leaf or in one rack a few that come one after the other will do.
        enough=math.inf if whole else settings.shared_leaf_nodes,
        ttl_s=symptom.ttl_s,
    )


def _shared_rule(symptom: Symptom, counter: Symptom, causes: tuple[str, ...], hold_off_s: float) -> Rule:
    """The rule for a shared cause. It inhibits the causes of the single nodes; that of the cell also the narrower ones."""
    whole = counter.scope == CELL
    base = _base(symptom.name)
    rule = Rule(
        name=f"{base}-{counter.scope}",
        scope=counter.scope,
        when={"symptom": counter.name},
        severity=Priority.P0 if whole else Priority.P1,
        because=f"so many nodes of one {counter.scope} show it at once that the cause is taken to be shared, not theirs",
        knowledge=Knowledge(
            cause=Text(en=f"Shared cause of: {symptom.summary}", zh=f"共同原因：{symptom.summary}"),
            todo=_SHARED_TODO,
        ),
        examples=(),
        inhibits=causes,
        hold_off_s=hold_off_s if whole else max(LEAF_HOLD_OFF_S, hold_off_s),
        page=Paging.OPEN,
    )
    return replace(rule, inhibits=(*causes, f"{base}-leaf", f"{base}-rack")) if whole else rule
