"""A rule's condition as durable_rules takes it, and how much of it one rule may have. Pure; it does not need durable_rules.

What the matcher's safe subset lacks is compiled away: `not` by De Morgan (a test on a missing field is false, so its
negation is true when the field is missing), types by one column for each field and type, and texts by hex, so that
quotes, order and encoding cannot differ.

The limits hold wherever a rule is matched: what one brain of a cell loads, every other one loads.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.contract.errors import ConfigError
from brain.core.pack.conditions import SYMPTOM_PREFIX, check
from brain.core.pack.spec import Rule, Scalar

MAX_RULES: Final = 4000  # in one rulebook
MAX_TESTS: Final = 400  # in one ruleset; the matcher accepts 500 under one parent
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
Columns = dict[str, dict[str, str]]  # field -> sort -> column name


@dataclass(frozen=True, slots=True)
class Test:
    """A condition for the matcher: one test, or a group of them."""

    # of the one test; of a group empty
    json: str
    # of a group: $and | $or
    operator: str = ""
    parts: tuple["Test", ...] = ()

    @property
    def groups(self) -> int:
        return bool(self.operator) + sum(part.groups for part in self.parts)

    def render(self) -> str:
        if not self.operator:
            return self.json
        return f'{{"{self.operator}":[{",".join(part.render() for part in self.parts)}]}}'


Term = Test | bool  # bool: a condition that is always true or always false


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """A rule's condition, compiled."""

    term: Term
    # in it
    tests: int
    # that there are, with this rule's new ones
    columns: int


def check_number(rules: Sequence[Rule]) -> None:
    """Raises ConfigError when there are too many rules for one rulebook."""
    if len(rules) > MAX_RULES:
        raise ConfigError(f"{len(rules)} rules: the matcher takes {MAX_RULES} at most")


def compile_rule(rule: Rule, columns: Columns, size: int) -> CompiledRule:
    """Compiles a rule; `columns`, of which there are `size`, get those that it needs besides.

    Raises ConfigError when the rule is malformed or breaks a limit of the safe subset.
    """
    check(rule.when, f"rule {rule.name}: when")
    compiler = _Compiler(rule.name, columns, size)
    term = compiler.condition(rule.when, yes=True, depth=0)
    if compiler.tests > MAX_TESTS:
        raise ConfigError(
            f"rule {rule.name}: {compiler.tests} tests in one rule, the matcher takes {MAX_TESTS} at most"
        )
    if not isinstance(term, bool) and term.groups > MAX_GROUPS:
        raise ConfigError(
            f"rule {rule.name}: when: {term.groups} groups of alternatives or negations, the matcher "
            f"takes {MAX_GROUPS} at most: split the rule"
        )
    return CompiledRule(term=term, tests=compiler.tests, columns=compiler.size)


class _Compiler:
    """Compiles one rule's condition to the matcher's JSON."""

    def __init__(self, rule: str, columns: Columns, size: int) -> None:
        self._rule = rule
        self._columns = columns
        self.size = size  # number of columns so far
        self.tests = 0  # in this rule

    def condition(self, condition: Mapping[str, Any], *, yes: bool, depth: int) -> Term:
        """A term that is true when `condition` is true (`yes`), or when it is false (not `yes`)."""
        if depth > MAX_DEPTH:
            raise ConfigError(f"rule {self._rule}: when: more than {MAX_DEPTH} levels of all, any and not")
        return _join([self._part(key, want, yes, depth) for key, want in condition.items()], all_of=yes)

    def _part(self, key: str, want: Any, yes: bool, depth: int) -> Term:
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

    def _test(self, field: str, name: str, operand: Any, yes: bool) -> Term:
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
            return self._compare(field, "text", _OPERATORS[name], text_json(operand), yes)
        if not isinstance(operand, (int, float)):
            raise ConfigError(f"rule {self._rule}: when.{field}: `{name}` wants plain values")
        if not (operand == 0 or MIN_OPERAND <= abs(operand) <= MAX_OPERAND):
            raise ConfigError(
                f"rule {self._rule}: when.{field}: {operand} is not 0 nor {MIN_OPERAND:g} to 2^53 in size"
            )
        return self._compare(field, "number", _OPERATORS[name], number_json(operand), yes)

    def _compare(self, field: str, sort: str, operator: str, operand: str, yes: bool) -> Term:
        column = self._column(field, sort)
        if yes:
            return Test(_operation(operator, column, operand))
        missing, other = f'{{"$nex":{{"{column}":1}}}}', _operation(_NEGATED[operator], column, operand)
        return group([Test(missing), Test(other)], "$or")

    def _there(self, field: str, sort: str, yes: bool) -> Test:
        column = self._column(field, sort)
        return Test(f'{{"{column}":1}}' if yes else f'{{"$nex":{{"{column}":1}}}}')

    def _column(self, field: str, sort: str) -> str:
        self.tests += 1
        sorts = self._columns.setdefault(field, {})
        if sort not in sorts:
            sorts[sort] = f"c{self.size}"
            self.size += 1
        return sorts[sort]


def _join(parts: Iterable[Term], *, all_of: bool) -> Term:
    """All (`all_of`) or any of the parts, with constants folded."""
    tests: list[Test] = []
    for part in parts:
        if isinstance(part, Test):
            tests.append(part)
        elif part is not all_of:
            return part
    return group(tests, "$and" if all_of else "$or") if tests else all_of


def group(tests: Iterable[Test], operator: str) -> Test:
    """One group, without repeated tests; groups of the same operator are merged into it."""
    flat: dict[Test, None] = {}
    for test in tests:
        flat.update(dict.fromkeys(test.parts if test.operator == operator else (test,)))
    return next(iter(flat)) if len(flat) == 1 else Test("", operator, tuple(flat))


def _operation(operator: str, column: str, operand: str) -> str:
    return f'{{"{column}":{operand}}}' if operator == "$eq" else f'{{"{operator}":{{"{column}":{operand}}}}}'


def value_json(sort: str, value: Scalar) -> str | None:
    """The value as JSON for a column of this sort; None: the column has no value."""
    if sort == "symptom":
        return "1" if value == 1 else None
    if sort == "any":
        return "1"
    if isinstance(value, bool):
        return ("1" if value else "0") if sort == "bool" else None
    if isinstance(value, str):
        return text_json(value) if sort == "text" else None
    return number_json(value) if sort == "number" else None


def text_json(value: str) -> str:
    return f'"x{value[:_CUT].encode("utf-8", "surrogatepass").hex()}"'


def number_json(value: float) -> str:
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
