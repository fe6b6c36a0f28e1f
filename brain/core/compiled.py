"""A pack made ready: lookups by kind and name, the matcher, and the rules for shared causes that nobody has to write.

Law 6: when many nodes show one symptom at once, the cause is taken to be shared. So each symptom of a node or of a
part of it gets, for leaf, rack and cell, a symptom that counts its nodes and a rule that explains the single ones.
"""

import copy
from dataclasses import replace

from brain.core.conditions import symptoms_in
from brain.core.rulebook import Rulebook
from brain.core.spec import Knowledge, Match, Override, Pack, Paging, Priority, Rule, Runbook, Symptom, Text
from brain.core.topology import CELL, WIDE, Topology, type_of

_SHARED_TODO = Text(
    en="Look for what these nodes share: switch, subnet manager, power, storage, driver or agent release, a rule of ours. "
    "gpuward holds every per-node action for this symptom until it is over.",
    zh="检查这些节点的共同点：交换机、子网管理器、供电、存储、驱动或代理版本、规则变更。"
    "该症状结束之前，gpuward 不会对单个节点执行任何操作。",
)
LEAF_NODES = 4  # so many nodes of one leaf or rack, and half of it, share a cause
LEAF_SHARE = 0.5
LEAF_SETTLE_S = (
    2.0  # a shared cause of a leaf or rack waits so long for one of the cell, which would explain it
)


class Compiled:
    """Everything that the engine looks up in a pack. Derived: a snapshot keeps the pack alone."""

    def __init__(self, pack: Pack) -> None:
        symptoms, rules = _with_shared(pack)
        self.pack = pack
        self.settings = pack.settings
        self.topology = Topology(pack.places)
        self.symptoms: dict[str, Symptom] = {symptom.name: symptom for symptom in symptoms}
        self.rules: dict[str, Rule] = {rule.name: rule for rule in rules}
        self.runbooks: dict[str, Runbook] = {runbook.name: runbook for runbook in pack.runbooks}
        self.feeds: dict[str, list[tuple[Symptom, Match, bool]]] = {}  # kind -> (symptom, match, is it `on`)
        self.spreads: dict[str, list[Symptom]] = {}  # symptom -> those that count its nodes
        self.unlikes: dict[str, list[Symptom]] = {}  # kind -> symptoms that compare nodes by it
        for symptom in symptoms:
            if symptom.detect == "unlike":
                self.unlikes.setdefault(symptom.on[0].kind, []).append(symptom)
                continue
            for match in symptom.on:
                self.feeds.setdefault(match.kind, []).append((symptom, match, True))
            for match in symptom.clear:
                self.feeds.setdefault(match.kind, []).append((symptom, match, False))
            if symptom.detect == "spread":
                self.spreads.setdefault(symptom.of, []).append(symptom)
        self.overrides: dict[
            str, list[Override]
        ] = {}  # kind -> the site's verdicts, the first that fits counts
        for override in pack.overrides:
            self.overrides.setdefault(override.on.kind, []).append(override)
        self.rule_scopes: dict[str, list[str]] = {}  # symptom -> scope types of the rules that name it
        for rule in rules:
            for name in symptoms_in(rule.when):
                scopes = self.rule_scopes.setdefault(name, [])
                if rule.scope not in scopes:
                    scopes.append(rule.scope)
        self._book = Rulebook(rules)

    def match(self, scope: str, situation: dict[str, str | int | float | bool]) -> list[str]:
        """Names of the rules that are true of a situation at `scope`, in the pack's order."""
        return self._book.match(type_of(scope), situation)

    def cause(self, rule: str) -> str:
        """The cause that a rule stands for."""
        spec = self.rules[rule]
        return spec.cause or spec.name

    def close(self) -> None:
        """Frees the matcher."""
        self._book.close()


class Shelf:
    """Packs made ready once for many engines one after the other. `close` frees them; their engines' `close` does not."""

    def __init__(self) -> None:
        self._books: dict[str, _Lent] = {}

    def __call__(self, pack: Pack) -> Compiled:
        """The pack made ready; of two of one version only places and settings may differ."""
        if pack.version not in self._books:
            self._books[pack.version] = _Lent(pack)
        book = copy.copy(self._books[pack.version])  # the same matcher and lookups
        book.pack, book.settings, book.topology = pack, pack.settings, Topology(pack.places)
        return book

    def close(self) -> None:
        """Frees the matchers."""
        for book in self._books.values():
            Compiled.close(book)
        self._books.clear()


class _Lent(Compiled):
    """One that its readers do not free."""

    def close(self) -> None:
        """Its shelf does."""


def _with_shared(pack: Pack) -> tuple[list[Symptom], list[Rule]]:
    """The pack's symptoms and rules, and those for shared causes."""
    symptoms, rules = list(pack.symptoms), list(pack.rules)
    covered = {symptom.of for symptom in symptoms if symptom.detect == "spread"}
    for symptom in pack.symptoms:
        causes = tuple(
            dict.fromkeys(
                rule.cause or rule.name for rule in pack.rules if symptom.name in symptoms_in(rule.when)
            )
        )
        # What differs from the fleet on many nodes at once is an upgrade under way.
        if (
            symptom.scope in (*WIDE, CELL)
            or symptom.name in covered
            or not causes
            or symptom.detect == "unlike"
        ):
            continue
        for scope in ("leaf", "rack", CELL):
            counter = _counter(pack, symptom, scope)
            symptoms.append(counter)
            rules.append(_shared_rule(symptom, counter, causes))
    return symptoms, rules


def _counter(pack: Pack, symptom: Symptom, scope: str) -> Symptom:
    whole = scope == CELL
    return Symptom(
        name=f"shared_{symptom.name}_{scope}",
        scope=scope,
        summary=f"many nodes of one {scope} at once: {symptom.summary}",
        detect="spread",
        of=symptom.name,
        at_least=pack.settings.shared_nodes if whole else LEAF_NODES,
        share=pack.settings.shared_share if whole else LEAF_SHARE,
        within_s=pack.settings.shared_within_s,
        ttl_s=symptom.ttl_s,
    )


def _shared_rule(symptom: Symptom, counter: Symptom, causes: tuple[str, ...]) -> Rule:
    whole = counter.scope == CELL
    base = f"shared-{symptom.name.replace('_', '-')}"
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
        settle_s=0 if whole else LEAF_SETTLE_S,
        page=Paging.OPEN,
    )
    return replace(rule, inhibits=(*causes, f"{base}-leaf", f"{base}-rack")) if whole else rule
