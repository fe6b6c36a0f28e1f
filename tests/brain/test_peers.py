"""`detect: unlike`: a node that differs from its peers, and what the comparison costs."""

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.messages import Event, Severity
from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Leader, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Match, Pack, Paging, Priority, Symptom
from tests.brain.world import Story, pack, rule
from tests.yardstick import slowness

DAY = 86400.0
UNLIKE = Symptom(
    name="driver_unlike", scope="node", summary="another driver", detect="unlike", on=(Match(kind="node.inventory"),),
    alike=("product", "gpu_models"), compare="driver", at_least=3, share=0.75, for_s=DAY, ttl_s=90 * DAY,
)  # fmt: skip


def with_drift(symptom: Symptom = UNLIKE) -> Pack:
    """The small pack and a rule for nodes that differ."""
    small = pack()
    drift = rule("drift", "node", {"symptom": symptom.name}, severity=Priority.P3, page=Paging.OPEN)
    return replace(small, symptoms=(*small.symptoms, symptom), rules=(*small.rules, drift))


def says(story: Story, at: float, node: str, driver: str, product: str = "G593") -> None:
    """A node reports its inventory."""
    story.event(
        at, "node.inventory", "node", node, driver=driver, product=product, gpu_models="8 H100", changed=False
    )


def fleet(story: Story, count: int, driver: str = "550") -> None:
    """`count` equal nodes, in the first second."""
    for number in range(1, count + 1):
        says(story, number / 1000, f"n{number}", driver)


def drifting(story: Story) -> list[str]:
    """Nodes with an open incident."""
    return sorted(one.node for one in story.incidents("drift") if one.state not in ("closed", "recovered"))


def test_a_node_that_differs_for_a_day_has_an_incident_until_it_is_like_its_peers() -> None:
    """The evidence names its value, the baseline, and how many nodes have that."""
    story = Story(with_drift())
    fleet(story, 9)
    says(story, 10, "n10", "535")
    story.run(DAY - 100)
    assert drifting(story) == []
    story.run(DAY + 100)
    assert drifting(story) == ["n10"]
    (incident,) = story.incidents("drift")
    assert incident.evidence[0].text == "driver is 535; 9 of 10 nodes like it have 550"
    says(story, DAY + 200, "n10", "550")
    story.run(DAY + 400)
    assert drifting(story) == []


def test_an_upgrade_opens_no_incident_but_a_node_that_was_left_out_does() -> None:
    """Half way through the upgrade there is no baseline; then it is the new value."""
    story = Story(with_drift())
    fleet(story, 10)
    for number in range(1, 10):
        says(story, 3600.0 * number, f"n{number}", "560")
    story.run(DAY)
    assert story.incidents("drift") == []
    story.run(2.5 * DAY)
    assert drifting(story) == ["n10"]


def test_who_is_not_compared() -> None:
    """Nodes of other products, nodes that do not report the field, and too few nodes for a baseline."""
    story = Story(with_drift())
    fleet(story, 9)
    says(story, 10, "r1", "535", product="R750")
    says(story, 10, "r2", "", product="G593")
    says(story, 10, "s1", "1", product="S")
    says(story, 10, "s2", "2", product="S")
    story.run(2 * DAY)
    assert story.incidents("drift") == []


def test_a_restarted_brain_goes_on_counting() -> None:
    """The counts are derived again from the state. When a canary's value becomes the baseline, the others differ."""
    given = with_drift(replace(UNLIKE, for_s=0))
    engine = Engine(actions=ACTIONS)
    engine.handle(PackLoaded(id="p", pack=given), 0)
    for number in range(1, 5):
        engine.handle(inventory(f"n{number}", 1, "550"), number)
    engine.handle(inventory("n5", 1, "535"), 5)
    assert active(engine) == ["n5"]
    again = Engine(parse(dump(engine.state)), actions=ACTIONS)
    again.handle(Leader(id="l", epoch=1, brain="b"), 6)
    assert active(again) == ["n5"]
    for number in range(1, 5):
        again.handle(inventory(f"n{number}", 2, "535"), 10 + number)
    assert active(again) == []
    again.handle(inventory("n5", 2, "550"), 20)
    assert active(again) == ["n5"]


@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.sampled_from(("a", "b", "c", "")), st.sampled_from(("x", "y"))),
        max_size=60,
    )
)
def test_which_nodes_differ_depends_only_on_their_last_reports(said: list[tuple[int, str, str]]) -> None:
    """After any story the same nodes differ as when each node sent only its last report."""
    engine, fresh = (Engine(actions=ACTIONS) for _ in range(2))
    last: dict[int, tuple[str, str]] = {}
    for one in (engine, fresh):
        one.handle(PackLoaded(id="p", pack=with_drift(replace(UNLIKE, for_s=0))), 0)
    for number, (node, driver, product) in enumerate(said, 1):
        engine.handle(inventory(f"n{node}", number, driver, product), number)
        last[node] = (driver, product)
    for node, (driver, product) in last.items():
        fresh.handle(inventory(f"n{node}", 1, driver, product), node)
    assert active(engine) == active(fresh)


def inventory(node: str, number: int, driver: str, product: str = "x") -> EventSeen:
    """An event with a node's inventory."""
    data: dict[str, Any] = {"driver": driver, "product": product, "gpu_models": "8 H100", "changed": False}
    event = Event(
        id=f"{node}:s:{number}", node=node, kind="node.inventory", component="node", severity=Severity.INFO, at="",
        age_s=0.0, boot="b", count=1, data=data, evidence="",
    )  # fmt: skip
    return EventSeen(event=event)


def active(engine: Engine) -> list[str]:
    """Nodes on which the symptom is active."""
    return sorted(one.scope.removeprefix("node/") for one in engine.state.symptoms.values() if one.active)


@pytest.mark.slow
def test_ten_thousand_nodes_that_start_at_once_are_compared_in_a_moment() -> None:
    """Each reports its inventory; the baseline is kept up to date, not counted again for each."""
    engine = Engine(actions=ACTIONS)
    engine.handle(PackLoaded(id="p", pack=with_drift()), 0)
    began = time.process_time()
    for number in range(10_000):
        engine.handle(inventory(f"n{number}", 1, "535" if number % 100 == 7 else "550"), 1 + number / 1e4)
    assert (time.process_time() - began) / slowness() < 5.0
    assert len(engine.state.symptoms) == 100
