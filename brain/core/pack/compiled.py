"""A compiled pack: lookups by kind and name, the matcher, and the generated rules for shared causes (shared.py)."""

import copy
from collections.abc import Iterable
from dataclasses import replace

from brain.core.pack.conditions import SYMPTOM_PREFIX, symptoms_in
from brain.core.pack.feeds import Feeds, Where
from brain.core.pack.rulebook import MATCHER, Matcher
from brain.core.pack.shared import ORDER, generated, together, with_jobs
from brain.core.pack.spec import Match, Override, Pack, Rule, Runbook, Symptom
from brain.core.pack.topology import CELL, JOB, WIDE, Topology, type_of


class Compiled:
    """Everything that the engine looks up in a pack. Derived from the pack, so a snapshot does not keep it."""

    def __init__(self, pack: Pack, *, matcher: Matcher = MATCHER, topology: Topology | None = None) -> None:
        """`topology`: that of the pack's places, if it is known already."""
        self.pack = pack
        self.settings = pack.settings
        self.topology = topology or Topology(pack.places)
        pack_rules = together(with_jobs(pack.rules))
        shared = list(generated(replace(pack, rules=pack_rules), self.topology.kinds))
        symptoms = [*pack.symptoms, *(symptom for symptom, _ in shared)]
        rules = [*pack_rules, *(rule for _, rule in shared)]
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
        # the symptoms whose nodes are counted by jobs: those that the logs of jobs tell; and those of GPUs, where schedulers are
        # asked who is hit -> what counts them
        counted = {one.of: one for one, _ in shared if one.scope == JOB}
        self.by_scheduler: dict[str, Symptom] = counted
        self.by_job = tuple(
            name
            for name, counting in self.spreads.items()
            if name not in counted and any(one.scope == JOB for one in counting)
        )
        for counting in self.spreads.values():
            counting.sort(
                key=lambda symptom: ORDER.get(symptom.scope, -1)
            )  # a narrower place is judged first
        # wide rule -> the symptoms whose nodes it counts, and each of these -> the rules that do
        self.families: dict[str, tuple[str, ...]] = {}
        self.counting: dict[str, list[Rule]] = {}
        self.counting_at: dict[str, dict[str, list[Rule]]] = {}  # the same by the kind of place
        for rule in rules:
            if rule.scope in (JOB, *WIDE, CELL):
                named = [self.symptoms[name] for name in symptoms_in(rule.when) if name in self.symptoms]
                of = tuple(dict.fromkeys(one.of for one in named if one.detect == "spread"))
                if of:
                    self.families[rule.name] = of
                for name in of:
                    self.counting.setdefault(name, []).append(rule)
                    self.counting_at.setdefault(name, {}).setdefault(rule.scope, []).append(rule)
        self._rulebook = matcher.build(pack.rules)
        # A generated rule matches while its symptom is active: the matcher has nothing to add to that.
        self._generated = {
            scope: {
                f"{SYMPTOM_PREFIX}{symptom.name}": rule.name
                for symptom, rule in shared
                if rule.scope == scope
            }
            for scope in dict.fromkeys(rule.scope for _, rule in shared)
        }

    def match(self, scope: str, situation: dict[str, str | int | float | bool]) -> list[str]:
        """Names of the rules that match the situation of `scope`, in the pack's order."""
        kind = type_of(scope)
        found = self._rulebook.match(kind, situation)
        if (here := self._generated.get(kind)) is not None:
            found += [here[field] for field in situation if field in here]
        return found

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
        self._topology = Topology({})
        self._packs: dict[tuple[object, ...], _Shared] = {}

    def __call__(self, pack: Pack) -> Compiled:
        """The compiled pack. Packs of one version may differ in their places, settings and overrides only."""
        settings = pack.settings
        counters = (
            settings.shared_nodes,
            settings.shared_share,
            settings.shared_leaf_nodes,
            settings.shared_within_s,
            settings.shared_at_once_s,
            settings.ask_who_is_hit,
        )
        if self._topology.places is not pack.places:
            self._topology = Topology(pack.places)
        key = (
            pack.version,
            *counters,
            *self._topology.kinds,
        )  # what the counters of shared causes are made of
        if key not in self._packs:
            self._packs[key] = _Shared(pack, matcher=self._matcher, topology=self._topology)
        compiled = copy.copy(self._packs[key])  # the same matcher and lookups
        compiled.topology = self._topology
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
