"""Feeds leave out only what could not have passed, and a storm's work grows with its nodes, not with their square."""

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.contract.messages import Event, Severity
from brain.core.faults import facts
from brain.core.pack import conditions
from brain.core.pack.feeds import Feeds, field_of
from brain.core.pack.spec import Match, Symptom
from tests.benchmarks.engine import FAULTS, event_of, leading_engine, pack

NAMES = ("code", "name", "severity", "component_type", "count")
VALUES = st.sampled_from([0, 1, 2, 1.0, True, False, "1", "error", "gpu", "x"])
TESTS: st.SearchStrategy[Any] = st.one_of(
    VALUES,
    st.lists(VALUES, min_size=1, max_size=3),
    VALUES.map(lambda value: {"ne": value}),
    st.just({"exists": False}),
    st.just({"gte": 1}),
    st.just({"eq": 1}),
    st.just({"in": ["x", 2]}),
    st.just({"gt": 0, "lte": 2}),
)
WHERE = st.dictionaries(st.sampled_from(NAMES), TESTS, max_size=3)
DATA = st.dictionaries(st.sampled_from(("code", "name")), VALUES)


def event(data: dict[str, Any], severity: Severity, count: int) -> Event:
    """An event of one kind."""
    return Event(
        id="n:s:1", node="n", kind="k", component="gpu/0000:3b:00", severity=severity, at="", age_s=0, boot="b",
        count=count, data=data, evidence="",
    )  # fmt: skip


@given(
    wheres=st.lists(WHERE, max_size=8), data=DATA, severity=st.sampled_from(Severity), count=st.integers(1, 3)
)
def test_what_passes_is_found_in_its_order(
    wheres: list[dict[str, Any]], data: dict[str, Any], severity: Severity, count: int
) -> None:
    """The same as asking every one, of which the documentation speaks."""
    feeds = [
        (Symptom(name=f"s{number}", scope="gpu", summary="", ttl_s=1), Match(kind="k", where=where), True)
        for number, where in enumerate(wheres)
    ]
    seen = event(data, severity, count)

    def passes(match: Match) -> bool:
        return all(conditions.test(want, field_of(seen, name)) for name, want in match.where.items())

    found = [symptom.name for symptom, where, _ in Feeds(feeds).of(seen) if facts.matches(where, seen)]
    assert found == [symptom.name for symptom, match, _ in feeds if passes(match)]


def test_a_storm_of_four_times_the_nodes_is_about_four_times_the_work() -> None:
    """Processor time, the better of two: what runs beside it takes the processor's caches, too."""
    rules = pack()

    def spent(nodes: int) -> float:
        engine = leading_engine(rules, nodes)
        stream = [(event_of(number, 2, FAULTS[1]), 10 + number / nodes) for number in range(nodes)]
        began = time.process_time()
        for given_input, at in stream:
            engine.handle(given_input, at)
        took = time.process_time() - began
        engine.close()
        return took

    assert min(spent(8000), spent(8000)) < 10 * min(spent(2000), spent(2000))
