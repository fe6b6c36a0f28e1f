"""The matcher: situations -> matching rules. The only module that imports durable_rules, and only for its safe subset.

durable_rules is used as a pure matcher: a fact is asserted, the rules that fired are read, and the fact is retracted.
The C module is called directly, so there is no thread, timer or callback. What the subset lacks is compiled away:
`not` by De Morgan (a test on a missing field is false, so its negation is true when the field is missing), types by
one column for each field and type, and texts by hex, so that quotes, order and encoding cannot differ.

brain/core/pack/conditions.py defines what a condition means; tests compare the two on random rules and situations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import durable_rules_engine as engine

from agent.contract.errors import BugError, ConfigError
from brain.core.pack.conditions import SYMPTOM_PREFIX, check
from brain.core.pack.spec import Rule, Scalar

MAX_RULES: Final = 4000  # in one rulebook
MAX_TESTS: Final = 400  # in one ruleset; the matcher accepts 500 under one parent
MAX_TOGETHER: Final = 60  # rules in one ruleset: if 65 match one fact, the matcher reports none of them
MAX_DEPTH: Final = 8  # nested all, any, not
MAX_GROUPS: Final = 14  # $and and $or in one rule, nesting folded; the matcher accepts 15, with the guard's
MAX_OPERAND: Final = 2**53  # beyond it a float is not exact
MIN_OPERAND: Final = 1e-9  # a smaller operand, except 0, is a mistake in every unit that is used here
MAX_TEXT: Final = 500  # characters of a text in a rule
_INT: Final = (
    2**62
)  # the matcher's integers have 64 bits; larger ones compare with any operand as this one does
_TINY: Final = "0.000000000001"  # the matcher reads no exponents; smaller numbers compare as this one does
_CUT: Final = 2000  # characters of a situation's text that are compared; an operand has at most MAX_TEXT

_NEGATED: Final = {"$eq": "$neq", "$neq": "$eq", "$lt": "$gte", "$gte": "$lt", "$gt": "$lte", "$lte": "$gt"}
_OPERATORS: Final = {"eq": "$eq", "ne": "$neq", "lt": "$lt", "lte": "$lte", "gt": "$gt", "gte": "$gte"}

# A column is what the matcher sees of a field, one for each (field, sort). Sorts: number, text, bool, symptom (1 while
# the symptom is active), any (1 if the situation has the field).
_Columns = dict[str, dict[str, str]]  # field -> sort -> column name


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition for the matcher: one test, or a group of them."""

    # of the one test; of a group empty
    json: str
    # of a group: $and | $or
    operator: str = ""
    parts: tuple["_Test", ...] = ()

    @property
    def groups(self) -> int:
        return bool(self.operator) + sum(part.groups for part in self.parts)

    def render(self) -> str:
        if not self.operator:
            return self.json
        return f'{{"{self.operator}":[{",".join(part.render() for part in self.parts)}]}}'


_Term = _Test | bool  # bool: a condition that is always true or always false
# Every situation has this field. A rule needs one positive test: with only negations the matcher would not end.
_GUARD: Final = _Test('{"_e":1}')


class Rulebook:
    """Compiled rules: one or more rulesets of the matcher for each scope type."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Raises ConfigError when a rule is malformed or breaks a limit of the safe subset."""
        if len(rules) > MAX_RULES:
            raise ConfigError(f"{len(rules)} rules: the matcher takes {MAX_RULES} at most")
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
        self._columns: _Columns = {}
        self._rules: dict[int, str] = {}  # number -> JSON of its condition
        self._always: list[int] = []
        self._tests = 0
        self._size = 0

    def add(self, number: int, rule: Rule) -> bool:
        """Adds a rule. False, and nothing added, when the ruleset has no room for it."""
        check(rule.when, f"rule {rule.name}: when")
        tests = [0]
        compiler = _Compiler(rule.name, self._columns, tests, self._size)
        term = compiler.condition(rule.when, yes=True, depth=0)
        if tests[0] > MAX_TESTS:
            raise ConfigError(
                f"rule {rule.name}: {tests[0]} tests in one rule, the matcher takes {MAX_TESTS} at most"
            )
        if not isinstance(term, bool) and term.groups > MAX_GROUPS:
            raise ConfigError(
                f"rule {rule.name}: when: {term.groups} groups of alternatives or negations, the matcher "
                f"takes {MAX_GROUPS} at most: split the rule"
            )
        if self._tests + tests[0] > MAX_TESTS or len(self._rules) + len(self._always) >= MAX_TOGETHER:
            return False
        self._tests += tests[0]
        self._size = compiler.size
        if term is True:
            self._always.append(number)
        elif term is not False:
            self._rules[number] = _group([_GUARD, term], "$and").render()
        return True

    def ruleset(self) -> "_Ruleset":
        # "p" fires once after building: deleting a state whose rules never fired crashes.
        rules = ['"p":{"all":[{"m":{"_p":1}}]}']
        rules += [f'"{number}":{{"all":[{{"m":{term}}}]}}' for number, term in self._rules.items()]
        return _Ruleset(self._name, "{" + ",".join(rules) + "}", self._columns, self._always)


class _Compiler:
    """Compiles one rule's condition to the matcher's JSON."""

    def __init__(self, rule: str, columns: _Columns, tests: list[int], size: int) -> None:
        self._rule = rule
        self._columns = columns
        self._tests = tests
        self.size = size  # number of columns so far

    def condition(self, condition: Mapping[str, Any], *, yes: bool, depth: int) -> _Term:
        """A term that is true when `condition` is true (`yes`), or when it is false (not `yes`)."""
        if depth > MAX_DEPTH:
            raise ConfigError(f"rule {self._rule}: when: more than {MAX_DEPTH} levels of all, any and not")
        return _join([self._part(key, want, yes, depth) for key, want in condition.items()], all_of=yes)

    def _part(self, key: str, want: Any, yes: bool, depth: int) -> _Term:
        if key in ("all", "any"):
            parts = [self.condition(part, yes=yes, depth=depth + 1) for part in want]
            return _join(parts, all_of=(key == "all") == yes)
        if key == "not":
            return self.condition(want, yes=not yes, depth=depth + 1)
        if key == "symptom":
            return self._there(SYMPTOM_PREFIX + want, "symptom", yes)
        if isinstance(want, Mapping):
            return _join([self._test(key, name, operand, yes) for name, operand in want.items()], all_of=yes)
        if isinstance(want, (list, tuple)):
            return self._test(key, "in", want, yes)
        return self._test(key, "eq", want, yes)

    def _test(self, field: str, name: str, operand: Any, yes: bool) -> _Term:
        if name == "exists":
            return self._there(field, "any", operand == yes)
        if name == "in":
            return _join([self._test(field, "eq", item, yes) for item in operand], all_of=not yes)
        if isinstance(operand, bool):
            if name not in ("eq", "ne"):
                return not yes  # there is no order of booleans
            return self._compare(field, "bool", _OPERATORS[name], "1" if operand else "0", yes)
        if isinstance(operand, str):
            if len(operand) > MAX_TEXT:
                raise ConfigError(
                    f"rule {self._rule}: when.{field}: a text of more than {MAX_TEXT} characters"
                )
            return self._compare(field, "text", _OPERATORS[name], _text(operand), yes)
        if not isinstance(operand, (int, float)):
            raise ConfigError(f"rule {self._rule}: when.{field}: `{name}` wants plain values")
        if not (operand == 0 or MIN_OPERAND <= abs(operand) <= MAX_OPERAND):
            raise ConfigError(
                f"rule {self._rule}: when.{field}: {operand} is not 0 nor {MIN_OPERAND:g} to 2^53 in size"
            )
        return self._compare(field, "number", _OPERATORS[name], _number(operand), yes)

    def _compare(self, field: str, sort: str, operator: str, operand: str, yes: bool) -> _Term:
        column = self._column(field, sort)
        if yes:
            return _Test(_operation(operator, column, operand))
        missing, other = f'{{"$nex":{{"{column}":1}}}}', _operation(_NEGATED[operator], column, operand)
        return _group([_Test(missing), _Test(other)], "$or")

    def _there(self, field: str, sort: str, yes: bool) -> _Test:
        column = self._column(field, sort)
        return _Test(f'{{"{column}":1}}' if yes else f'{{"$nex":{{"{column}":1}}}}')

    def _column(self, field: str, sort: str) -> str:
        self._tests[0] += 1
        sorts = self._columns.setdefault(field, {})
        if sort not in sorts:
            sorts[sort] = f"c{self.size}"
            self.size += 1
        return sorts[sort]


class _Ruleset:
    """One handle of the C module."""

    def __init__(self, name: str, source: str, columns: _Columns, always: list[int]) -> None:
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
                if (text := _value(sort, value)) is not None:
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


def _join(parts: Iterable[_Term], *, all_of: bool) -> _Term:
    """All (`all_of`) or any of the parts, with constants folded."""
    tests: list[_Test] = []
    for part in parts:
        if isinstance(part, _Test):
            tests.append(part)
        elif part is not all_of:
            return part
    return _group(tests, "$and" if all_of else "$or") if tests else all_of


def _group(tests: Iterable[_Test], operator: str) -> _Test:
    """One group, without repeated tests; groups of the same operator are merged into it."""
    flat: dict[_Test, None] = {}
    for test in tests:
        flat.update(dict.fromkeys(test.parts if test.operator == operator else (test,)))
    return next(iter(flat)) if len(flat) == 1 else _Test("", operator, tuple(flat))


def _operation(operator: str, column: str, operand: str) -> str:
    return f'{{"{column}":{operand}}}' if operator == "$eq" else f'{{"{operator}":{{"{column}":{operand}}}}}'


def _value(sort: str, value: Scalar) -> str | None:
    """The value as JSON for a column of this sort; None: the column has no value."""
    if sort == "symptom":
        return "1" if value == 1 else None
    if sort == "any":
        return "1"
    if isinstance(value, bool):
        return ("1" if value else "0") if sort == "bool" else None
    if isinstance(value, str):
        return _text(value) if sort == "text" else None
    return _number(value) if sort == "number" else None


def _text(value: str) -> str:
    return f'"x{value[:_CUT].encode("utf-8", "surrogatepass").hex()}"'


def _number(value: float) -> str:
    """The number without exponent. One beyond the matcher's range is replaced; it compares with every operand as before."""
    if abs(value) >= _INT:
        return str(_INT if value > 0 else -_INT)
    if isinstance(value, int):
        return str(value)
    if value.is_integer():
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    if abs(value) < 1e-12:
        return _TINY if value > 0 else f"-{_TINY}"
    return f"{value:.40f}"
