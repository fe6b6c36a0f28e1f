"""Both matchers agree with brain/core/pack/conditions.py, within the limits of durable_rules' safe subset."""

import gc
import resource
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from agent.contract.errors import ConfigError
from brain.core.pack.conditions import holds
from brain.core.pack.rulebook import MATCHER, PLAIN, Matcher
from brain.core.pack.spec import Knowledge, Priority, Rule, Scalar, Text
from tests.matchers import MATCHERS, each_matcher
from tests.yardstick import slowness

_NOTHING = Text(en="-", zh="-")
FIELDS = ("a", "b", "job", "s_u")
TEXTS = ("", "a", "ab", "b", "é", "中", '"q"', "x\ny", "\\", "A" * 60)
OPERANDS: tuple[Scalar, ...] = (
    *(0, 1, 2, 3, -1, 3.0, 0.5, -0.5, 2.5, 0.1, 1e-7, 3.3e-5, 1e15, 12345678901, 2**53),
    *(*TEXTS, True, False),
)
# Values that a situation may have and no rule may name: beyond every range, and unpaired surrogates.
ODD: tuple[Scalar, ...] = (
    *(1e300, -1e300, float("inf"), 10**30, -(10**25), 5e-324, -1e-20, 1e-13, 1e-5, 2**53 - 1, 2**60),
    *("\ud800", "a" * 3000, "\x00", "ab\x00", float("nan")),
)


def rule(name: str, when: dict[str, Any], scope: str = "gpu") -> Rule:
    """A rule of which only the condition matters."""
    return Rule(
        name=name,
        scope=scope,
        when=when,
        severity=Priority.P3,
        because="-",
        knowledge=Knowledge(cause=_NOTHING, todo=_NOTHING),
        examples=(),
    )


def _tests() -> st.SearchStrategy[Any]:
    operand = st.sampled_from(OPERANDS)
    many = st.lists(operand, min_size=1, max_size=3)
    return st.one_of(
        operand,
        many,
        st.dictionaries(st.sampled_from(("eq", "ne", "lt", "lte", "gt", "gte")), operand, max_size=2),
        st.builds(lambda items: {"in": items}, st.lists(operand, max_size=3)),
        st.builds(lambda there: {"exists": there}, st.booleans()),
    )


def _leaves() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.builds(lambda name: {"symptom": name}, st.sampled_from("uvw")),
        st.dictionaries(st.sampled_from(FIELDS), _tests(), max_size=2),
    )


CONDITIONS = st.recursive(
    _leaves(),
    lambda inner: st.one_of(
        st.builds(lambda part: {"not": part}, inner),
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda one, parts: {**one, "any": parts}, _leaves(), st.lists(inner, min_size=1, max_size=2)
        ),
    ),
    max_leaves=6,
)
SITUATIONS = st.builds(
    lambda fields, active: fields | {f"s_{name}": 1 for name in active},
    st.dictionaries(st.sampled_from(FIELDS), st.sampled_from((*OPERANDS, *ODD))),
    st.sets(st.sampled_from("uvw")),
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    whens=st.lists(CONDITIONS, min_size=1, max_size=8),
    situations=st.lists(SITUATIONS, min_size=4, max_size=12),
)
def test_the_matchers_and_the_definition_agree(
    whens: list[dict[str, Any]], situations: list[dict[str, Scalar]]
) -> None:
    """For any rules and situations the same rules match, in the same order; and the same rules are refused."""
    rules = [rule(f"r{number}", when) for number, when in enumerate(whens)]
    books, refused = [], []
    for matcher in MATCHERS.values():
        try:
            books.append(matcher.build(rules))
        except ConfigError as error:
            refused.append(str(error))
    if refused:
        assert books == []
        assert len({*refused}) == 1
        assert "at most" in refused[0], "only what is too large may be refused"
        reject()
    for situation in situations:
        there = {field: value for field, value in situation.items() if value == value}
        expected = [one.name for one in rules if holds(one.when, there)]
        for book in books:
            assert book.match("gpu", situation) == expected, situation
    for book in books:
        book.close()


TABLE: tuple[tuple[dict[str, Any], dict[str, Scalar], bool], ...] = (
    ({"code": 79}, {"code": 79}, True),
    ({"code": 79}, {"code": 79.0}, True),
    ({"code": 79}, {"code": "79"}, False),
    ({"code": {"gt": 10}}, {"code": "zzz"}, False),
    ({"code": {"ne": 79}}, {}, False),
    ({"not": {"code": 79}}, {}, True),
    ({"not": {"code": {"ne": 79}}}, {}, True),
    ({"not": {"code": {"lt": 3}}}, {"code": "text"}, True),
    ({"on": True}, {"on": 1}, False),
    ({"on": {"lt": True}}, {"on": False}, False),
    ({"job": {"ne": ""}}, {"job": ""}, False),
    ({"job": {"exists": False}}, {}, True),
    ({"job": {"exists": True}}, {"job": ""}, True),
    ({"rate": {"gte": 1e-6}}, {"rate": 5e-7}, False),
    ({"rate": {"gt": 0}}, {"rate": 1e-300}, True),
    ({"name": 'say "no"\\'}, {"name": 'say "no"\\'}, True),
    ({"name": {"lt": "b"}}, {"name": "azzz"}, True),
    ({"symptom": "u"}, {"s_u": 1}, True),
    ({"not": {"symptom": "u"}}, {"s_v": 1}, True),
    ({"rate": {"exists": True}}, {"rate": float("nan")}, False),
    ({"any": [{"symptom": "u"}, {"code": 79}]}, {"code": 79}, True),
    ({"symptom": "u", "any": [{"symptom": "v"}, {"symptom": "w"}]}, {"s_v": 1}, False),
    ({"not": {"not": {"symptom": "u"}}}, {"s_u": 1}, True),
    ({}, {}, True),
    ({"code": {}}, {}, True),
    (
        {"all": [{"any": [{"a": 1}, {"b": 2}]}, {"not": {"any": [{"c": 1}, {"d": {"gt": 5}}]}}]},
        {"b": 2, "d": 5},
        True,
    ),
)


@each_matcher
@pytest.mark.parametrize(("when", "situation", "true"), TABLE)
def test_meaning(matcher: Matcher, when: dict[str, Any], situation: dict[str, Scalar], true: bool) -> None:
    """The cases that a matcher with untyped fields, without negation, or with too hasty an index, gets wrong."""
    book = matcher.build([rule("r", when)])
    assert book.match("gpu", situation) == (["r"] if true else [])
    assert book.match("gpu", situation) == (["r"] if true else []), "no fact is left behind"
    book.close()


@each_matcher
def test_scopes_do_not_mix(matcher: Matcher) -> None:
    """A rule matches at its own scope type only; a scope without rules has no matches, nor has a closed rulebook."""
    book = matcher.build([rule("g", {"symptom": "u"}, "gpu"), rule("n", {"symptom": "u"}, "node")])
    assert book.match("gpu", {"s_u": 1}) == ["g"]
    assert book.match("node", {"s_u": 1}) == ["n"]
    assert book.match("rack", {"s_u": 1}) == []
    book.close()
    assert book.match("gpu", {"s_u": 1}) == []
    book.close()


@each_matcher
def test_more_rules_than_one_ruleset_takes_may_match_at_once(matcher: Matcher) -> None:
    """durable_rules reports none of 65 rules that match one fact; here all 500 are reported, in order."""
    rules = [rule(f"r{number}", {"symptom": f"y{number}"}) for number in range(500)]
    book = matcher.build(rules)
    assert book.match("gpu", {f"s_y{number}": 1 for number in range(500)}) == [one.name for one in rules]
    assert book.match("gpu", {"s_y3": 1, "s_y499": 1}) == ["r3", "r499"]
    book.close()


LIMITS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"code": {"gt": 2**60}}, "2^53"),
    ({"rate": {"gt": 1e-12}}, "1e-09"),
    ({"rate": {"gt": float("nan")}}, "2^53"),
    ({"name": "x" * 501}, "500 characters"),
    ({"name": {"in": [["a"]]}}, "plain values"),
    ({"code": list(range(1000))}, "1000 tests"),
    ({"all": [{"any": [{"a": n}, {"b": n}]} for n in range(20)]}, "split the rule"),
    ({"all": []}, "list of conditions"),
    ({"code": {"matches": "x"}}, "no test 'matches'"),
)


@each_matcher
@pytest.mark.parametrize(("when", "says"), LIMITS)
def test_limits(matcher: Matcher, when: dict[str, Any], says: str) -> None:
    """What durable_rules cannot compile is refused with the rule's name and a reason, before it is in force; also by the
    plain matcher, as another brain of the cell may have durable_rules."""
    with pytest.raises(ConfigError, match="rule too-much: ") as raised:
        matcher.build([rule("too-much", when)])
    assert says in str(raised.value)


@each_matcher
def test_depth_and_number_are_limited(matcher: Matcher) -> None:
    """The depth of nesting and the number of rules are limited."""
    deep: dict[str, Any] = {"symptom": "u"}
    for _ in range(10):
        deep = {"all": [{"symptom": "v"}, deep]}
    with pytest.raises(ConfigError, match="8 levels"):
        matcher.build([rule("deep", deep)])
    with pytest.raises(ConfigError, match="4001 rules"):
        matcher.build([rule(f"r{number}", {"symptom": "u"}) for number in range(4001)])


@each_matcher
def test_reload_does_not_grow(matcher: Matcher) -> None:
    """300 reloads, closed or just dropped, leave nothing behind."""
    rules = [rule(f"r{number}", {"symptom": f"y{number}", "code": [1, 2, "x"]}) for number in range(100)]

    def reload(times: int) -> None:
        for number in range(times):
            book = matcher.build(rules)
            assert book.match("gpu", {"s_y7": 1, "code": 2}) == ["r7"]
            if number % 2:
                book.close()
                book.close()
        gc.collect()

    reload(100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reload(300)
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096
    )  # KiB; one ruleset takes about 300


@each_matcher
def test_speed(matcher: Matcher) -> None:
    """100 rules and twelve fields: far faster than the brain needs (the benchmark measures it)."""
    rules = [
        rule(f"r{n}", {"symptom": f"y{n}", "not": {"symptom": f"y{n + 1}"}, "code": [n]}) for n in range(100)
    ]
    book = matcher.build(rules)
    common: dict[str, Scalar] = {f"f{n}": n for n in range(8)}
    situations: list[dict[str, Scalar]] = [
        {**common, f"s_y{n}": 1, "code": n, "job": "4711", "node": "n1"} for n in range(100)
    ]
    began = time.process_time()
    for _ in range(50):
        for situation in situations:
            book.match("gpu", situation)
    assert 5000 / (time.process_time() - began) * slowness() > 10_000
    book.close()


def test_which_matcher_is_in_use() -> None:
    """durable_rules wherever its package is for this Python; a quiet fall back to the other one would be a surprise."""
    assert MATCHER.name == ("durable_rules" if sys.version_info < (3, 13) else PLAIN.name)


def test_without_durable_rules_the_plain_matcher_says_so() -> None:
    """On any Python: `gpuward check` runs, names the matcher, and why it is that one."""
    absent = "import sys; sys.modules['durable_rules_engine'] = None; from brain.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", absent, "check"], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "; matched by plain Python (durable_rules cannot be had: import of durable_rules_engine"
        in done.stdout
    )
