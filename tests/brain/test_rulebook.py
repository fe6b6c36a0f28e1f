"""The matcher agrees with brain/core/pack/conditions.py, within the limits of its safe subset."""

import gc
import resource
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from agent.contract.errors import ConfigError
from brain.core.pack import rulebook
from brain.core.pack.conditions import holds
from brain.core.pack.rulebook import Rulebook
from brain.core.pack.spec import Knowledge, Priority, Rule, Scalar, Text
from tests.yardstick import slowness

ENGINE: Any = vars(rulebook)["engine"]  # the C module
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
    *("\ud800", "a" * 3000, "\x00", "ab\x00"),
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
def test_the_matcher_and_the_oracle_agree(
    whens: list[dict[str, Any]], situations: list[dict[str, Scalar]]
) -> None:
    """For any rules and situations the same rules match, in the same order."""
    rules = [rule(f"r{number}", when) for number, when in enumerate(whens)]
    try:
        book = Rulebook(rules)
    except ConfigError as error:
        if "at most" not in str(error):  # only what is too large may be refused
            raise
        reject()
    for situation in situations:
        expected = [one.name for one in rules if holds(one.when, situation)]
        assert book.match("gpu", situation) == expected, situation
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
    ({}, {}, True),
    ({"code": {}}, {}, True),
    (
        {"all": [{"any": [{"a": 1}, {"b": 2}]}, {"not": {"any": [{"c": 1}, {"d": {"gt": 5}}]}}]},
        {"b": 2, "d": 5},
        True,
    ),
)


@pytest.mark.parametrize(("when", "situation", "true"), TABLE)
def test_meaning(when: dict[str, Any], situation: dict[str, Scalar], true: bool) -> None:
    """The cases that a matcher with untyped fields, or without negation, gets wrong."""
    assert holds(when, situation) is true
    book = Rulebook([rule("r", when)])
    assert book.match("gpu", situation) == (["r"] if true else [])
    assert book.match("gpu", situation) == (["r"] if true else []), "no fact is left behind"
    book.close()


def test_scopes_do_not_mix() -> None:
    """A rule matches at its own scope type only; a scope without rules has no matches."""
    book = Rulebook([rule("g", {"symptom": "u"}, "gpu"), rule("n", {"symptom": "u"}, "node")])
    assert book.match("gpu", {"s_u": 1}) == ["g"]
    assert book.match("node", {"s_u": 1}) == ["n"]
    assert book.match("rack", {"s_u": 1}) == []
    book.close()


def test_more_rules_than_one_ruleset_takes_may_match_at_once() -> None:
    """durable_rules reports none of 65 rules that match one fact; here all 500 are reported, in order."""
    rules = [rule(f"r{number}", {"symptom": f"y{number}"}) for number in range(500)]
    book = Rulebook(rules)
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


@pytest.mark.parametrize(("when", "says"), LIMITS)
def test_limits(when: dict[str, Any], says: str) -> None:
    """What the matcher cannot compile is refused with the rule's name and a reason, before it is in force."""
    with pytest.raises(ConfigError, match="rule too-much: ") as raised:
        Rulebook([rule("too-much", when)])
    assert says in str(raised.value)


def test_depth_and_number_are_limited() -> None:
    """The depth of nesting and the number of rules are limited."""
    deep: dict[str, Any] = {"symptom": "u"}
    for _ in range(10):
        deep = {"all": [{"symptom": "v"}, deep]}
    with pytest.raises(ConfigError, match="8 levels"):
        Rulebook([rule("deep", deep)])
    with pytest.raises(ConfigError, match="4001 rules"):
        Rulebook([rule(f"r{number}", {"symptom": "u"}) for number in range(4001)])


def test_reload_does_not_grow() -> None:
    """300 reloads, closed or just dropped, leave nothing behind."""
    rules = [rule(f"r{number}", {"symptom": f"y{number}", "code": [1, 2, "x"]}) for number in range(100)]

    def reload(times: int) -> None:
        for number in range(times):
            book = Rulebook(rules)
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


class _Flaky:
    """The C module, failing once after `calls` evaluations."""

    def __init__(self, real: Any, calls: int, times: int = 1) -> None:
        self._real, self._calls, self._times = real, calls, times
        self.error = real.error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def assert_fact(self, handle: int, fact: str) -> Any:
        self._calls -= '"_e"' in fact
        if self._calls < 0 < self._times and '"_e"' in fact:
            self._times -= 1
            self._real.assert_fact(
                handle, fact
            )  # the fact stays in the matcher: the handle is not safe to use
            raise self._real.error("out of luck")
        return self._real.assert_fact(handle, fact)


def test_a_failing_matcher_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error a new handle matches the same situation, with the right result."""
    monkeypatch.setattr(rulebook, "engine", _Flaky(ENGINE, calls=3))
    book = Rulebook([rule("r", {"symptom": "u"})])
    assert [book.match("gpu", {"s_u": 1}) for _ in range(5)] == [["r"]] * 5
    book.close()


def test_an_interrupted_evaluation_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between two calls of the C module leaves a fact behind; the next evaluation uses a new handle."""
    book = Rulebook([rule("r", {"symptom": "u"})])
    real = rulebook._evaluate

    def interrupted(handle: int, fact: str) -> list[str]:
        ENGINE.assert_fact(handle, fact)
        raise KeyboardInterrupt

    monkeypatch.setattr(rulebook, "_evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.match("gpu", {"s_u": 1})
    monkeypatch.setattr(rulebook, "_evaluate", real)
    assert book.match("gpu", {"s_u": 1}) == ["r"]
    book.close()


def test_speed() -> None:
    """100 rules and twelve fields: far faster than the brain needs (the benchmark measures it)."""
    rules = [
        rule(f"r{n}", {"symptom": f"y{n}", "not": {"symptom": f"y{n + 1}"}, "code": [n]}) for n in range(100)
    ]
    book = Rulebook(rules)
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
