"""Nodes that stand in several places of one kind: two power feeds, a leaf switch for each rail."""

import pytest

from brain.core.operators import scopes
from brain.core.pack.spec import Place, Symptom
from brain.core.pack.topology import WIDE, Topology, unknown
from tests.brain.core.watch import Watch, symptom

FEEDS = Place(leaf="l1", power="a", also=("power/b",))
RAILS = Place(leaf="l1", rack="r1", rails={"mlx5_0": "l1", "mlx5_1": "l2"})
SITE = Topology({"n1": FEEDS, "n2": RAILS})


def test_each_kind_of_place_holds_its_node() -> None:
    """Every kind can be told of a node, is around it, narrowest first, and can be named by people."""
    names = {kind: f"{kind}-1" for kind in WIDE}
    site = Topology({"n1": Place(**names)})  # type: ignore[arg-type]  # a table of names and lists
    assert site.above("n1") == (*(f"{kind}/{kind}-1" for kind in WIDE), "cell")
    for kind in WIDE:
        scope = f"{kind}/{kind}-1"
        assert site.contains(scope, "gpu/n1/0000:3b:00")
        assert site.at("n1", "gpu/0000:3b:00", kind) == scope
        assert scopes.mistake(scope, [], site.places) == ""
        assert "did you mean" in scopes.mistake(f"{kind}/{kind}-2", [], site.places)


@pytest.mark.parametrize(
    ("node", "component", "kind", "expected"),
    [
        ("n1", "node", "power", ["power/a", "power/b"]),
        ("n1", "gpu/0000:3b:00", "leaf", ["leaf/l1"]),
        ("n1", "node", "rack", []),
        ("n2", "node", "leaf", ["leaf/l1", "leaf/l2"]),
        ("n2", "nic/mlx5_1", "leaf", ["leaf/l2"]),
        ("n2", "port/mlx5_1.1", "leaf", ["leaf/l2"]),
        ("n2", "nic/mlx5_7", "leaf", ["leaf/l1", "leaf/l2"]),  # its rail is not known
        ("n2", "port/mlx5_1.1", "rack", ["rack/r1"]),
        ("n2", "port/mlx5_1.1", "nic", ["nic/n2/mlx5_1"]),
        ("n3", "node", "fabric", ["fabric/default"]),
    ],
)
def test_where_a_fact_counts(node: str, component: str, kind: str, expected: list[str]) -> None:
    """In all places of the kind; that of a device on a rail at the rail's leaf switch alone. `at` is the first of them."""
    assert list(SITE.all_at(node, component, kind)) == expected
    assert SITE.at(node, component, kind) == (expected[0] if expected else "")


def test_what_a_place_explains() -> None:
    """Each feed what its node shows; a leaf switch what it connects, and not the device of another rail."""
    assert SITE.above("n1") == ("leaf/l1", "power/a", "power/b", "fabric/default", "cell")
    assert SITE.contains("power/b", "node/n1")
    assert SITE.contains("leaf/l2", "node/n2")
    assert SITE.contains("leaf/l2", "port/n2/mlx5_1.1")
    assert not SITE.contains("leaf/l1", "port/n2/mlx5_1.1")
    assert SITE.size("leaf/l1", 9) == 2
    assert SITE.size("power/b", 9) == 1
    assert SITE.meet("power/b", "leaf/l1")


def test_a_spread_counts_a_node_at_each_feed() -> None:
    """Three nodes fall ill that have only feed B in common: the cause is there, whatever is their feed A."""
    wide = Symptom(name="wide", scope="power", summary="on many", detect="spread", of="sick", at_least=3)
    places = {f"n{number}": Place(power=f"a{number}", also=("power/b",)) for number in (1, 2, 3)}
    watch = Watch(symptom(), wide, places=places)
    changed = [one for at, node in enumerate(places) for one in watch.fact(100 + at, where=f"{node} gpu/0")]
    assert changed == ["+sick@gpu/n1/0", "+sick@gpu/n2/0", "+sick@gpu/n3/0", "+wide@power/b"]
    assert watch.known("wide@power/a1").members.keys() == {"n1"}


def test_a_spread_counts_a_device_at_the_leaf_of_its_rail() -> None:
    """One rail's switch goes: the other rails' switches are not blamed."""
    sick = symptom(scope="nic")
    wide = Symptom(name="wide", scope="leaf", summary="on many", detect="spread", of="sick", at_least=3)
    rails = {"mlx5_0": "l0", "mlx5_1": "l1"}
    watch = Watch(sick, wide, places={f"n{number}": Place(leaf="l0", rails=rails) for number in (1, 2, 3)})
    changed = [one for at in (1, 2, 3) for one in watch.fact(100 + at, where=f"n{at} nic/mlx5_1")]
    assert [one for one in changed if "wide" in one] == ["+wide@leaf/l1"]
    assert "wide@leaf/l0" not in watch.state.symptoms


def test_what_is_not_known_of_a_node() -> None:
    """Only what other nodes have: a site that tells of no racks misses none."""
    assert unknown(SITE.places, "n1") == ["rack"]
    assert unknown(SITE.places, "n2") == ["power"]
    assert unknown(SITE.places, "stranger") == ["leaf", "rack", "power"]
    assert unknown({}, "n1") == []
