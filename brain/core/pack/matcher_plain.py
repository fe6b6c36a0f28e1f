"""The matcher in plain Python, for where durable_rules cannot be had (decision 34).

A rule is judged by the definition of its condition (conditions.py). Most rules can be true only while one of a few
symptoms is active: they are looked at only when a situation shows one of those.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from brain.core.pack import matcher_terms as terms
from brain.core.pack.conditions import SYMPTOM_PREFIX, holds
from brain.core.pack.spec import Rule, Scalar

_Numbered = tuple[int, Rule]  # a rule and its place among all


class PlainRulebook:
    """Rules by the symptoms without which they cannot match, for each scope type."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Raises ConfigError when a rule is malformed or breaks a limit of durable_rules' safe subset: another brain of
        the cell may have durable_rules, and must load the same rules.
        """
        terms.check_number(rules)
        self._scopes: dict[str, _Scope] = {}
        for number, rule in enumerate(rules):
            terms.compile_rule(rule, {}, 0)
            self._scopes.setdefault(rule.scope, _Scope()).add(number, rule)

    def match(self, scope: str, situation: Mapping[str, Scalar]) -> list[str]:
        """Names of the rules of scope type `scope` whose `when` is true of the situation, in the rules' order.

        A field that is NaN counts as missing.
        """
        rules = self._scopes.get(scope)
        return rules.match(situation) if rules else []

    def close(self) -> None:
        """Forgets the rules; afterwards `match` finds nothing. May be called again."""
        self._scopes = {}


class _Scope:
    """The rules of one scope type."""

    def __init__(self) -> None:
        self._always: list[_Numbered] = []  # those that need no symptom
        self._by_symptom: dict[str, list[_Numbered]] = {}  # field of a symptom -> the rules that may need it

    def add(self, number: int, rule: Rule) -> None:
        needed = _needed(rule.when)
        if needed is None:
            self._always.append((number, rule))
            return
        for symptom in needed:
            self._by_symptom.setdefault(SYMPTOM_PREFIX + symptom, []).append((number, rule))

    def match(self, situation: Mapping[str, Scalar]) -> list[str]:
        looked_at = dict(self._always)
        for field in situation:
            if field in self._by_symptom:
                looked_at.update(self._by_symptom[field])
        if not looked_at:
            return []
        known = {field: value for field, value in situation.items() if value == value}
        return [rule.name for _, rule in sorted(looked_at.items()) if holds(rule.when, known)]


def _needed(condition: Mapping[str, Any]) -> frozenset[str] | None:
    """Symptoms of which the condition needs at least one to be true; None: it may be true without any."""
    best: frozenset[str] | None = None
    for key, want in condition.items():
        found = _needed_by(key, want)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
    return best


def _needed_by(key: str, want: Any) -> frozenset[str] | None:
    if key == "symptom":
        return frozenset({want})
    parts = [_needed(part) for part in want] if key in ("all", "any") else []
    needed = [part for part in parts if part is not None]
    if key == "all":
        return min(needed, key=len, default=None)
    return frozenset().union(*needed) if needed and len(needed) == len(parts) else None
