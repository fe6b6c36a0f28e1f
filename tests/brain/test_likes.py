"""A node that differs from the nodes like it: `unlike`, and what it costs."""

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.messages import Event, Severity
from brain.adapters.snapshot import dump, parse
from brain.core.actions import ACTIONS
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Leader, PackLoaded
from brain.core.spec import Match, Pack, Paging, Priority, Symptom
from tests.brain.world import Story, pack, rule

DAY = 86400.0
UNLIKE = Symptom(
    name="driver_unlike", scope="node", summary="another driver", detect="unlike", on=(Match(kind="node.inventory"),),
    alike=("product", "gpu_models"), compare="driver", at_least=3, share=0.75, for_s=DAY, ttl_s=90 * DAY,
)  # fmt: skip


def with_drift(symptom: Symptom = UNLIKE) -> Pack:
    """The small pack and a rule on drift."""
    small = pack()
    drift = rule("drift", "node", {"symptom": symptom.name}, severity=Priority.P3, page=Paging.OPEN)
    return replace(small, symptoms=(*small.symptoms, symptom), rules=(*small.rules, drift))


def says(story: Story, at: float, node: str, driver: str, product: str = "G593") -> None:
    """A node's inventory."""
    story.event(
        at, "node.inventory", "node", node, driver=driver, product=product, gpu_models="8 H100", changed=False
    )


def fleet(story: Story, count: int, driver: str = "550") -> None:
    """So many equal nodes, in the first second."""
    for number in range(1, count + 1):
        says(story, number / 1000, f"n{number}", driver)


def drifting(story: Story) -> list[str]:
    """Nodes with a live incident."""
    return sorted(one.node for one in story.incidents("drift") if one.state not in ("closed", "mended"))


def test_one_that_was_left_behind_is_told_after_a_day_and_until_it_is_as_the_others() -> None:
    """With its value, the usual one, and how many have that."""
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


def test_an_upgrade_goes_through_a_fleet_without_a_word_and_then_who_was_left_behind_is_told() -> None:
    """Half way through nothing is usual; then the new one is."""
    story = Story(with_drift())
    fleet(story, 10)
    for number in range(1, 10):
        says(story, 3600.0 * number, f"n{number}", "560")
    story.run(DAY)
    assert story.incidents("drift") == []
    story.run(2.5 * DAY)
    assert drifting(story) == ["n10"]


def test_who_is_not_compared() -> None:
    """Other products, nodes that do not say it, and too few for a rule."""
    story = Story(with_drift())
    fleet(story, 9)
    says(story, 10, "r1", "535", product="R750")
    says(story, 10, "r2", "", product="G593")
    says(story, 10, "s1", "1", product="S")
    says(story, 10, "s2", "2", product="S")
    story.run(2 * DAY)
    assert story.incidents("drift") == []


def test_a_restarted_brain_goes_on_counting() -> None:
    """The counts are made again from what nodes said; a canary that becomes the rule turns the tables."""
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
def test_who_is_unlike_does_not_depend_on_the_way_there(said: list[tuple[int, str, str]]) -> None:
    """After any story the same nodes are unlike as when each node said only its last word."""
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
    """A node's inventory."""
    data: dict[str, Any] = {"driver": driver, "product": product, "gpu_models": "8 H100", "changed": False}
    event = Event(
        id=f"{node}:s:{number}", node=node, kind="node.inventory", component="node", severity=Severity.INFO, at="",
        age_s=0.0, boot="b", count=1, data=data, evidence="",
    )  # fmt: skip
    return EventSeen(event=event)


def active(engine: Engine) -> list[str]:
    """Nodes of which the symptom is active."""
    return sorted(one.scope.removeprefix("node/") for one in engine.state.symptoms.values() if one.active)


@pytest.mark.slow
def test_ten_thousand_nodes_that_start_at_once_are_compared_in_a_moment() -> None:
    """Each says its inventory; the usual value is found once and not each time anew."""
    engine = Engine(actions=ACTIONS)
    engine.handle(PackLoaded(id="p", pack=with_drift()), 0)
    began = time.process_time()
    for number in range(10_000):
        engine.handle(inventory(f"n{number}", 1, "535" if number % 100 == 7 else "550"), 1 + number / 1e4)
    assert time.process_time() - began < 5.0
    assert len(engine.state.symptoms) == 100
