"""Which tests stand in the way of a condition: changing them makes it true, and nothing less does. On random conditions."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from brain.core.pack.conditions import holds
from brain.core.why.obstacles import holds_with, obstacles, parts

NAMES = ("a", "b", "c", "d", "e")


def _leaf(number: int) -> dict[str, Any]:
    return {"symptom": f"x{number}"}


def numbered(condition: Any, count: list[int]) -> Any:
    """The same condition with a symptom of its own at each leaf: then each test can be changed alone."""
    if isinstance(condition, str):
        count.append(len(count))
        return _leaf(len(count) - 1)
    key, value = condition
    if key == "not":
        return {"not": numbered(value, count)}
    return {key: [numbered(one, count) for one in value]}


CONDITIONS = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(("all", "any")), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


@given(drawn=CONDITIONS, active=st.lists(st.booleans(), min_size=8, max_size=8), wanted=st.booleans())
def test_the_fewest_tests_whose_change_makes_it_so(drawn: Any, active: list[bool], wanted: bool) -> None:
    """The matcher's own definition is the judge: with all of them changed it is as wanted, with fewer of any it is not."""
    count: list[int] = []
    condition: Mapping[str, Any] = numbered(drawn, count)
    situation = {f"s_x{number}": 1 for number in range(len(count)) if active[number]}
    found = obstacles(condition, situation, wanted=wanted)
    assert found is not None, "each test of its own can be changed"

    def changed(names: Any) -> dict[str, Any]:
        return {
            f"s_{name}": 1 for name in _symptoms(len(count)) if (f"s_{name}" in situation) != (name in names)
        }

    assert holds(condition, changed([part.symptom for part in found])) is wanted
    for fewer in range(len(found)):
        for names in combinations(_symptoms(len(count)), fewer):
            assert holds(condition, changed(names)) is not wanted, (names, found)
    every = list(parts(condition, situation))
    for part in found:
        (same,) = [one for one in every if one.path == part.path]
        assert same.true == active[int(part.symptom[1:])]
    assert holds_with(condition, situation, [part.path for part in found]) is wanted
    assert holds_with(condition, situation, ()) is holds(condition, situation)


def _symptoms(count: int) -> list[str]:
    return [f"x{number}" for number in range(count)]


def test_fields() -> None:
    """A field that is missing, is another value, or is not a number stands in the way, with what it is."""
    condition = {
        "all": [{"temp": {"gte": 85}}, {"not": {"name": "b"}}, {"code": [1, 2]}, {"job": {"exists": True}}]
    }
    found = obstacles(condition, {"temp": 71, "name": "b", "code": 2})
    assert found is not None
    assert [(part.field, part.value, part.wanted) for part in found] == [
        ("temp", 71, True),
        ("name", "b", False),
        ("job", None, True),
    ]
    (nan,) = obstacles({"temp": {"gte": 85}}, {"temp": float("nan")}) or ()
    assert nan.value is None
    assert obstacles({"temp": {"gte": 85}}, {"temp": 90}) == ()
    assert obstacles({}, {}, wanted=False) is None, "an empty condition is always true"
    assert obstacles({"not": {}}, {}) is None
