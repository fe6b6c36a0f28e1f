"""`detect: unlike`: which nodes are compared, when one of them differs, and what is said of it."""

import json
from typing import Any

from brain.core.pack.spec import Match, Symptom
from brain.core.state import Evidence
from tests.brain.core.watch import Watch

KIND = "node.inventory"
DAY = 86400.0
NOTHING: list[str] = []


def unlike(**changes: Any) -> Symptom:
    """Three of four nodes with one product and one set of GPUs have one driver."""
    fields: dict[str, Any] = {
        "name": "other_driver", "scope": "node", "summary": "another driver", "detect": "unlike",
        "on": (Match(kind=KIND),), "alike": ("product", "gpus"), "compare": "driver", "at_least": 3, "share": 0.75,
        "for_s": DAY, "ttl_s": 9 * DAY,
    }  # fmt: skip
    return Symptom(**(fields | changes))


def key(node: str, name: str = "other_driver") -> str:
    """Its symptom."""
    return f"{name}@node/{node}"


def says(watch: Watch, at: float, node: str, driver: str | None = "550", **fields: Any) -> list[str]:
    """The node reports its inventory; None: without a driver."""
    data: dict[str, Any] = {"product": "G593", "gpus": "8 H100", "driver": driver} | fields
    return watch.fact(
        at, KIND, f"{node} node", **{name: one for name, one in data.items() if one is not None}
    )


def fleet(watch: Watch, count: int = 4, driver: str = "550") -> None:
    """Equal nodes, n1 and on."""
    for number in range(1, count + 1):
        assert says(watch, 10, f"n{number}", driver) == NOTHING


def test_a_node_that_differs() -> None:
    """It is known at once, and begins when it has lasted; like its peers again, it ends."""
    watch = Watch(unlike())
    fleet(watch)
    assert says(watch, 100, "odd", "535") == NOTHING
    state = watch.known(key("odd"))
    assert (state.name, state.scope, state.on, state.active) == ("other_driver", "node/odd", True, False)
    assert (state.since, state.last, state.arrived, watch.due(key("odd"))) == (100, 100, 100, 100 + DAY)
    assert state.carried == {"driver_here": "535", "driver_usual": "550"}
    text = "driver is 535; 4 of 5 nodes like it have 550"
    assert state.evidence == [
        Evidence(id="odd:s:100", at=100, node="odd", kind=KIND, component="node", text=text)
    ]
    assert says(watch, 200, "odd", "535") == NOTHING
    assert (state.since, state.last, state.arrived) == (100, 100, 200)
    assert state.evidence[0].id == "odd:s:200"
    assert len(state.evidence) == 1
    assert watch.wait(100 + DAY) == [(100 + DAY, f"+{key('odd')}")]
    assert watch.active == [key("odd")]
    assert says(watch, 101 + DAY, "odd", "535") == NOTHING, "nothing new"
    assert says(watch, 101.5 + DAY, "odd", "525") == [f"+{key('odd')}"], "it differs in another way"
    assert says(watch, 102 + DAY, "odd", "550") == [f"-{key('odd')}"]
    assert watch.told() == [
        ("symptom.started", f"other_driver at node/odd: {text}"),
        ("symptom.ended", "other_driver at node/odd ended: its driver is the usual one, or there is none"),
    ]
    assert (watch.state.symptoms, watch.state.timers) == ({}, {})


def test_a_report_that_comes_just_then() -> None:
    """It need not wait for the timer."""
    watch = Watch(unlike())
    fleet(watch)
    says(watch, 100, "odd", "535")
    assert says(watch, 99.9 + DAY, "odd", "535") == NOTHING
    assert says(watch, 100 + DAY, "odd", "535") == [f"+{key('odd')}"]
    assert watch.due(key("odd")) is not None


def test_a_node_that_comes_into_line_in_time() -> None:
    """Without a word; the next time its time runs anew."""
    watch = Watch(unlike())
    fleet(watch)
    says(watch, 100, "odd", "535")
    assert says(watch, 200, "odd") == NOTHING
    assert (watch.state.symptoms, watch.state.timers, watch.notes) == ({}, {}, [])
    says(watch, 300, "odd", "535")
    assert watch.known(key("odd")).since == 300


def test_at_once_if_so_it_is_wanted() -> None:
    """No time to differ in."""
    watch = Watch(unlike(for_s=0))
    fleet(watch)
    assert says(watch, 100, "odd", "535") == [f"+{key('odd')}"]
    assert watch.due(key("odd")) == 100 + 9 * DAY


def test_only_nodes_alike_are_compared() -> None:
    """Equal in every field; a node that lacks one is like none, and other kinds of events are not read."""
    watch = Watch(unlike(for_s=0))
    fleet(watch)
    assert says(watch, 100, "a", "535", product="G292") == NOTHING
    assert says(watch, 100, "b", "535", gpus="4 H100") == NOTHING
    assert says(watch, 100, "c", "535", gpus=None) == NOTHING
    assert says(watch, 100, "d", None) == NOTHING
    assert watch.fact(100, "node.booted", "e node", product="G593", gpus="8 H100", driver="535") == NOTHING
    assert watch.state.symptoms == {}
    assert f"{KIND} e" not in watch.state.peers


def test_a_node_that_can_be_compared_no_more() -> None:
    """It has lost its driver, or has other GPUs now: its symptom ends, and it no longer counts among its peers."""
    watch = Watch(unlike(for_s=0))
    fleet(watch)
    says(watch, 100, "odd", "535")
    assert says(watch, 110, "odd", None) == [f"-{key('odd')}"]
    says(watch, 120, "odd", "535")
    assert says(watch, 130, "odd", "535", gpus="4 H100") == [f"-{key('odd')}"]
    says(watch, 140, "new", "535")
    assert watch.known(key("new")).evidence[0].text == "driver is 535; 4 of 5 nodes like it have 550"


def test_what_is_kept_of_a_node() -> None:
    """What it reported last of the fields that are compared, as texts, in a fixed order."""
    watch = Watch(unlike(), unlike(name="other_bios", compare="bios", alike=("product",)))
    says(watch, 100, "n1", bios=7, cpu="x")
    reported = {"bios": "7", "driver": "550", "gpus": "8 H100", "product": "G593"}
    assert watch.state.peers == {f"{KIND} n1": json.dumps(reported)}
    says(watch, 110, "n1", "560")
    assert json.loads(watch.state.peers[f"{KIND} n1"])["driver"] == "560"
    assert len(watch.state.peers) == 1


def test_no_baseline_no_verdict() -> None:
    """Too few nodes, or too small a share of them, agree."""
    few = Watch(unlike(for_s=0))
    fleet(few, 2)
    assert says(few, 100, "odd", "535") == NOTHING
    split = Watch(unlike(for_s=0))
    fleet(split, 5)
    assert says(split, 100, "o1", "535") == [f"+{key('o1')}"]
    assert says(split, 100, "o2", "535") == [f"-{key('o1')}"], "five of seven are no three quarters"


def test_the_report_that_makes_a_baseline() -> None:
    """All nodes of the group are judged again, and none of another group or kind."""
    other = unlike(name="other_fans", on=(Match(kind="node.fans"),), compare="fans", alike=(), for_s=0)
    watch = Watch(unlike(for_s=0), other)
    says(watch, 100, "o1", "535")
    says(watch, 100, "x1", "535", product="G292")
    watch.fact(100, "node.fans", "o1 node", fans=4)
    assert says(watch, 101, "n1") == says(watch, 102, "n2") == NOTHING
    assert says(watch, 103, "n3") == [f"+{key('o1')}"]
    assert watch.known(key("o1")).evidence[0].id == "n3:s:103"
    assert list(watch.state.symptoms) == [key("o1")]


def test_the_fleet_changes_sides() -> None:
    """An upgrade: while no driver has most nodes nobody differs; then those that are left behind do."""
    watch = Watch(unlike(for_s=0))
    fleet(watch)
    assert says(watch, 100, "n1", "560") == [f"+{key('n1')}"]
    assert says(watch, 101, "n2", "560") == [f"-{key('n1')}"]
    assert says(watch, 102, "n3", "560") == [f"+{key('n4')}"]
    assert watch.known(key("n4")).carried == {"driver_here": "550", "driver_usual": "560"}
    assert says(watch, 103, "n4", "560") == [f"-{key('n4')}"]
    assert watch.state.symptoms == {}


def test_from_one_group_into_another() -> None:
    """Both groups are judged again: the one that it left has no baseline any more, the other has one now."""
    watch = Watch(unlike(for_s=0))
    for node in ("n1", "n2", "n3"):
        says(watch, 10, node)
    assert says(watch, 11, "n4", "535") == [f"+{key('n4')}"]
    for node, driver in (("x1", "550"), ("x2", "550"), ("x3", "535")):
        assert says(watch, 12, node, driver, product="G292") == NOTHING
    assert sorted(says(watch, 20, "n3", product="G292")) == [f"+{key('x3')}", f"-{key('n4')}"]


def test_a_node_that_leaves_one_baseline_and_differs_from_another() -> None:
    """It is judged where it is now, whatever becomes of those that it left."""
    watch = Watch(unlike(for_s=0))
    for node in ("n1", "n2", "n3"):
        says(watch, 10, node)
    for node in ("x1", "x2", "x3", "x4"):
        says(watch, 10, node, product="G292")
    assert says(watch, 11, "odd", "535") == [f"+{key('odd')}"]
    assert sorted(says(watch, 20, "n3", "535", product="G292")) == [f"+{key('n3')}", f"-{key('odd')}"]


def test_only_those_are_judged_again_whose_baseline_has_changed() -> None:
    """Not the nodes of another group, nor what another kind of event says of the same fields."""
    second = unlike(name="second", on=(Match(kind="node.second"),), for_s=0)
    watch = Watch(unlike(for_s=0), second)
    for node in ("x1", "x2", "x3"):
        says(watch, 10, node, product="G292")
    says(watch, 11, "x4", "535", product="G292")
    watch.fact(12, "node.second", "o2 node", product="G593", gpus="8 H100", driver="535")
    says(watch, 20, "o1", "535")
    assert [says(watch, 21, node) for node in ("n1", "n2", "n3")] == [[], [], [f"+{key('o1')}"]]
    assert watch.known(key("x4")).evidence[0].id == "x4:s:11"
    assert watch.known(key("x4")).arrived == 11
    assert sorted(watch.state.symptoms) == [key("o1"), key("x4")]


def test_each_symptom_compares_by_itself() -> None:
    """One report, two comparisons; a repetition changes nothing."""
    watch = Watch(unlike(for_s=0), unlike(name="other_bios", compare="bios", alike=(), for_s=0))
    for node in ("n1", "n2", "n3"):
        says(watch, 10, node, bios="7")
    assert says(watch, 100, "odd", "535", bios="8") == [f"+{key('odd')}", f"+{key('odd', 'other_bios')}"]
    assert says(watch, 110, "odd", "535", bios="8") == NOTHING
    assert says(watch, 120, "odd", bios="8") == [f"-{key('odd')}"]
    for _ in range(9):
        assert says(watch, 130, "n1", bios="7") == NOTHING
    text = watch.known(key("odd", "other_bios")).evidence[0].text
    assert text == "bios is 8; 3 of 4 nodes like it have 7", "a node that repeats itself counts once"


def test_the_counts_are_made_from_what_is_kept() -> None:
    """After a restart the state has the nodes' reports, and the index is empty."""
    watch = Watch(unlike(for_s=0))
    fleet(watch)
    watch.index.baselines.clear()
    assert says(watch, 100, "odd", "535") == [f"+{key('odd')}"]
    assert watch.known(key("odd")).evidence[0].text == "driver is 535; 4 of 5 nodes like it have 550"
    kept = watch.index.baselines["other_driver"]
    says(watch, 110, "odd", "535")
    assert watch.index.baselines["other_driver"] is kept, "built once"
