"""durable_rules as the matcher: the only module that imports it, and only for its safe subset (decision 3).

It is used as a pure matcher: a fact is asserted, the rules that fired are read, and the fact is retracted. The C module is
called directly, so there is no thread, timer or callback. What a condition becomes for it: matcher_terms.py.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import durable_rules_engine as engine

from agent.contract.errors import BugError
from brain.core.pack import matcher_terms as terms
from brain.core.pack.matcher_terms import Columns, Test
from brain.core.pack.spec import Rule, Scalar

MAX_TOGETHER: Final = 60  # rules in one ruleset: if 65 match one fact, the matcher reports none of them
# Every situation has this field. A rule needs one positive test: with only negations the matcher would not end.
_GUARD: Final = Test('{"_e":1}')


class DurableRulebook:
    """Compiled rules: one or more rulesets of the matcher for each scope type."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Raises ConfigError when a rule is malformed or breaks a limit of the safe subset."""
        terms.check_number(rules)
        self._names = [rule.name for rule in rules]
        self._rulesets: dict[str, list[_Ruleset]] = {}
        by_scope: dict[str, list[tuple[int, Rule]]] = {}
        for number, rule in enumerate(rules):
            by_scope.setdefault(rule.scope, []).append((number, rule))
        for scope, numbered in by_scope.items():
            builders: list[_Builder] = []
            for number, rule in numbered:
                if not (builders and builders[-1].add(number, rule)):
                    builders.append(_Builder(f"{id(self):x}.{scope}.{len(builders)}"))
                    builders[-1].add(number, rule)
            self._rulesets[scope] = [builder.ruleset() for builder in builders]

    def match(self, scope: str, situation: Mapping[str, Scalar]) -> list[str]:
        """Names of the rules of scope type `scope` whose `when` is true of the situation, in the rules' order.

        A field that is NaN counts as missing. Raises BugError when the matcher fails twice.
        """
        numbers: list[int] = []
        for ruleset in self._rulesets.get(scope, ()):
            numbers.extend(ruleset.match(situation))
        return [self._names[number] for number in numbers]

    def close(self) -> None:
        """Frees the matcher's memory; afterwards `match` finds nothing. May be called again."""
        for rulesets in self._rulesets.values():
            for ruleset in rulesets:
                ruleset.close()
        self._rulesets = {}

    def __del__(self) -> None:
        """Frees what was dropped without close(): Python does not know the C module's memory."""
        if hasattr(self, "_rulesets"):
            self.close()


class _Builder:
    """Collects rules for one ruleset until it is full."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns: Columns = {}
        self._rules: dict[int, str] = {}  # number -> JSON of its condition
        self._always: list[int] = []
        self._tests = 0
        self._size = 0

    def add(self, number: int, rule: Rule) -> bool:
        """Adds a rule. False, and nothing added, when the ruleset has no room for it."""
        compiled = terms.compile_rule(rule, self._columns, self._size)
        full = len(self._rules) + len(self._always) >= MAX_TOGETHER
        if full or self._tests + compiled.tests > terms.MAX_TESTS:
            return False
        self._tests += compiled.tests
        self._size = compiled.columns
        if compiled.term is True:
            self._always.append(number)
        elif compiled.term is not False:
            self._rules[number] = terms.group([_GUARD, compiled.term], "$and").render()
        return True

    def ruleset(self) -> "_Ruleset":
        # "p" fires once after building: deleting a state whose rules never fired crashes.
        rules = ['"p":{"all":[{"m":{"_p":1}}]}']
        rules += [f'"{number}":{{"all":[{{"m":{term}}}]}}' for number, term in self._rules.items()]
        return _Ruleset(self._name, "{" + ",".join(rules) + "}", self._columns, self._always)


class _Ruleset:
    """One handle of the C module."""

    def __init__(self, name: str, source: str, columns: Columns, always: list[int]) -> None:
        self._name = name
        self._source = source
        self._columns = {field: tuple(sorts.items()) for field, sorts in columns.items()}
        self._always = always
        self._built = 0
        self._handle = self._build()
        self._busy = (
            False  # still set at the next call: an evaluation failed half way, the handle is not safe to use
        )
        self._empty = self._fire('{"_e":1}')  # the rules that match a situation with none of the columns

    def match(self, situation: Mapping[str, Scalar]) -> list[int]:
        """Numbers of the rules that match the situation, ascending."""
        fields = []
        for field, value in situation.items():
            sorts = self._columns.get(field)
            if sorts is None or value != value:
                continue
            for sort, column in sorts:
                if (text := terms.value_json(sort, value)) is not None:
                    fields.append(f'"{column}":{text}')
        if not fields:
            return self._empty
        return self._fire(f'{{"_e":1,{",".join(fields)}}}')

    def close(self) -> None:
        engine.delete_state(self._handle, "0")
        engine.delete_ruleset(self._handle)

    def _build(self) -> int:
        self._built += 1
        handle: int = engine.create_ruleset(f"{self._name}.{self._built}", self._source)
        if list(_evaluate(handle, '{"_p":1}')) != ["p"]:
            raise BugError(f"ruleset {self._name}: the primer rule did not fire")
        return handle

    def _fire(self, fact: str) -> list[int]:
        for attempt in (1, 2):
            if self._busy:
                # The old handle is leaked on purpose: freeing one in an unknown state can crash.
                self._handle = self._build()
            self._busy = True
            try:
                fired = _evaluate(self._handle, fact)
            except engine.error as error:
                if attempt == 2:
                    raise BugError(
                        f"the matcher failed twice on one situation: {error}: {fact[:300]}"
                    ) from error
                continue
            self._busy = False
            return sorted({*self._always, *map(int, fired)})
        raise BugError("not reached")


def _evaluate(handle: int, fact: str) -> list[str]:
    """Asserts the fact, reads which rules fired, and retracts it."""
    code, state = engine.assert_fact(handle, fact)
    fired = []
    if code == 0:
        started = engine.start_action_for_state(handle, state)
        message = started[1] if started else None
        while message:
            fired.append(message[2 : message.index('"', 2)])  # {"<rule>":{"m":...}}
            message = engine.complete_and_start_action(handle, state)
    elif code != 1:  # 1: no rule matched
        raise engine.error(f"fact was not taken, code {code}")
    engine.retract_fact(handle, fact)
    return fired
