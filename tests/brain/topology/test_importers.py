"""What other systems know of places: tables of what each writes, recorded where it runs here."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.errors import ConfigError
from brain.core.pack.spec import Place
from brain.topology import infiniband, kubernetes, lldp, places_file, slurm, write
from brain.topology.merge import merged
from brain.topology.site_map import SiteMap
from tests import manual

RECORDED = manual.EXAMPLES / "topology"  # ibnetdiscover and iblinkinfo of ibsim with opensm
RAILS = Place(leaf="leaf-1", rails={"mlx5_0": "leaf-1", "mlx5_1": "leaf-2"})


def warned(site: SiteMap) -> list[str]:
    """What is told of a source."""
    return [str(one) for one in site.warnings]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SwitchName=l1 Nodes=n[1-2]", {"n1": Place(leaf="l1"), "n2": Place(leaf="l1")}),
        ("switchname=l1 NODES=n1 LinkSpeed=10  # a rack", {"n1": Place(leaf="l1")}),
        ("SwitchName=l1 \\\n  Nodes=n1.site.org", {"n1": Place(leaf="l1")}),
        ("SwitchName=l1 Nodes=n1\nSwitchName=top Switches=l1", {"n1": Place(leaf="l1")}),
        (
            "SwitchName=l1 Nodes=n1\nSwitchName=p1 Switches=l1\nSwitchName=top Switches=p[1-1]",
            {"n1": Place(leaf="l1", pod="p1")},
        ),
        (
            "SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\nSwitchName=a Switches=l1\nSwitchName=b Switches=l2",
            {"n1": Place(leaf="l1", fabric="a"), "n2": Place(leaf="l2", fabric="b")},
        ),
        ("BlockName=b1 Nodes=n1,n2\nBlockSizes=2", {"n1": Place(nvlink="b1"), "n2": Place(nvlink="b1")}),
        ("", {}),
        ("# nothing\n\n", {}),
    ],
)
def test_slurm(text: str, places: dict[str, Place]) -> None:
    """topology/tree and topology/block."""
    site = slurm.read(text, "topology.conf")
    assert site.places == places
    assert warned(site) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\nSwitchName=l1 Nodes=n[1-", "topology.conf:2: not taken: not a list of hosts: 'n[1-'"),
        ("SwitchName=l1 Nodes=[1-9999][1-9999]", "topology.conf:1: not taken: more than 100000 hosts"),
        ("Nodes=n1", "topology.conf:1: has nodes, and no SwitchName or BlockName"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "topology.conf:2: a: occurs twice, first in line 1"),
        ("SwitchName=a Switches=b", "topology.conf:1: a: there is no switch 'b'"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "is above itself, by"),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a",
            "switch a is below b too",
        ),
        ("SwitchName=a Nodes=n1/x", "topology.conf:1: n1/x: not taken: node 'n1/x' must be"),
        (
            "SwitchName=\x1b[2J Nodes=n1",
            "n1.leaf: not taken: the name has a character that cannot be printed",
        ),
    ],
)
def test_what_slurm_says_wrongly(text: str, says: str) -> None:
    """It is told with its line, and left out."""
    site = slurm.read(text, "topology.conf")
    assert any(says in one for one in warned(site)), warned(site)
    assert not any(place.leaf.startswith("\x1b") for place in site.places.values())


@pytest.mark.parametrize("tool", ["ibnetdiscover", "iblinkinfo"])
def test_infiniband_as_it_was_recorded(tool: str) -> None:
    """Two cards of each of four nodes, each on the leaf switch of its rail; the spine switch holds no node."""
    site = infiniband.read([("", tool, (RECORDED / f"{tool}.txt").read_text())])
    assert warned(site) == []
    assert site.places == {f"gpu-0{number}": RAILS for number in range(1, 5)}


def switch(guid: int, name: str, *cards: str) -> str:
    """A switch as ibnetdiscover writes it."""
    ports = "".join(
        f'[{n}]\t"H-{n:016x}"[1](1) \t\t# "{card}" lid {n} 4xNDR\n' for n, card in enumerate(cards, 1)
    )
    return f'switchguid=0x{guid:x}({guid:x})\nSwitch\t64 "S-{guid:016x}"\t\t# "{name}" enhanced port 0 lid 4 lmc 0\n{ports}\n'


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (switch(1, "leaf-1", "n1 mlx5_0"), {"n1": Place(leaf="leaf-1")}),
        (switch(1, "MF0;sw-a:MQM9700/U2", "n1.site.org HCA-1"), {"n1": Place(leaf="sw-a")}),
        (
            switch(1, "a", "n1 HCA-1") + switch(2, "b", "n1 HCA-2"),
            {"n1": Place(leaf="a", also=("leaf/b",))},
        ),
        (
            switch(1, "a", "n1 mlx5_0", "Mellanox Technologies Aggregation Node")
            + switch(2, "b", "n1 mlx5_1"),
            {"n1": Place(leaf="a", rails={"mlx5_0": "a", "mlx5_1": "b"})},
        ),
        (  # nobody has named them
            switch(1, "Quantum Mellanox Technologies", "n1 mlx5_0")
            + switch(2, "Quantum Mellanox Technologies", "n2 mlx5_0"),
            {
                "n1": Place(leaf="Quantum Mellanox Technologies-0000000000000001"),
                "n2": Place(leaf="Quantum Mellanox Technologies-0000000000000002"),
            },
        ),
    ],
)
def test_infiniband_descriptions(text: str, places: dict[str, Place]) -> None:
    """As sites have them."""
    assert infiniband.read([("", "f", text)]).places == places


def test_two_infiniband_fabrics() -> None:
    """A node with cards in both stands in both."""
    compute, storage = switch(1, "c1", "n1 mlx5_0"), switch(2, "s1", "n1 mlx5_4")
    site = infiniband.read([("compute", "c", compute), ("storage", "s", storage)])
    assert site.places["n1"].names("fabric") == ("compute", "storage")
    assert site.places["n1"].rails == {"mlx5_0": "c1", "mlx5_4": "s1"}


def node(name: str, **labels: str) -> dict[str, Any]:
    """A node of Kubernetes; `__` for what a keyword cannot hold."""
    return {
        "metadata": {"name": name, "labels": {key.replace("__", "/"): value for key, value in labels.items()}}
    }


@pytest.mark.parametrize(
    ("labels", "more", "place"),
    [
        ({"topology.kubernetes.io/zone": "h1"}, (), Place(room="h1")),
        ({"nvidia.com/gpu.clique": "8d2c.1", "network.topology.nvidia.com/accelerator": "x"}, (), Place(nvlink="8d2c.1")),
        ({"nvidia.com/gpu.clique": "00000000-0000-0000-0000-000000000000.0"}, (), Place()),
        ({"network.topology.nvidia.com/leaf": "s1", "network.topology.nvidia.com/spine": "s2"}, (), Place(leaf="s1", pod="s2")),
        ({"a.b/rack": "r1"}, ("a.b/rack=rack",), Place(rack="r1")),
        ({"topology.kubernetes.io/zone": "h1"}, ("topology.kubernetes.io/zone=",), Place()),
        ({"topology.kubernetes.io/zone": "h1"}, ("topology.kubernetes.io/zone=row",), Place(row="h1")),
    ],
)  # fmt: skip
def test_kubernetes(labels: dict[str, str], more: tuple[str, ...], place: Place) -> None:
    """Labels that are known, and a site's own."""
    text = json.dumps({"items": [{"metadata": {"name": "n1", "labels": labels}}]})
    assert kubernetes.read(text, "nodes.json", kubernetes.mapping(more)).places == {"n1": place}


def test_one_node_of_kubernetes_and_one_without_labels() -> None:
    """As `kubectl get node n1 -o json` prints it."""
    assert kubernetes.read(json.dumps(node("n1.site.org", rack="r")), "n").places == {"n1": Place()}
    assert kubernetes.read('{"metadata": {"name": "n1"}}', "n").places == {"n1": Place()}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"items": 3}', '{"items": [{}]}', '{"items": [{"metadata": {"name": 3}}]}']
)
def test_what_is_no_list_of_nodes(text: str) -> None:
    """One line says what is wanted."""
    with pytest.raises(ConfigError, match="is not what `kubectl get nodes -o json` prints"):
        kubernetes.read(text, "nodes.json")


@pytest.mark.parametrize("given", ["rack", "=rack", "a/b=desk"])
def test_a_label_that_is_given_wrongly(given: str) -> None:
    """The kinds are named."""
    with pytest.raises(ConfigError, match="want LABEL=KIND, KIND one of chassis,"):
        kubernetes.mapping((given,))


ONE = {
    "lldp": {
        "interface": {"ens1": {"via": "LLDP", "chassis": {"tor-1": {"id": {"type": "mac", "value": "0"}}}}}
    }
}
TWO = {
    "lldp": {
        "interface": [
            {"ens1": {"chassis": {"tor-1.site.org": {"id": {"type": "mac", "value": "0"}}}}},
            {"ens2": {"chassis": {"tor-2": {"id": {"type": "mac", "value": "1"}}}}},
            {"mgmt": {"chassis": {"id": {"type": "mac", "value": "2"}}}},  # has no name
        ]
    }
}
JSON0 = {"lldp": [{"interface": [{"name": "ens1", "chassis": [{"id": [{}], "name": [{"value": "tor-1"}]}]}]}]}


@pytest.mark.parametrize(
    ("said", "interfaces", "place"),
    [
        (ONE, ("*",), Place(leaf="tor-1")),
        (JSON0, ("*",), Place(leaf="tor-1")),
        (TWO, ("*",), Place(leaf="tor-1", rails={"ens1": "tor-1", "ens2": "tor-2"})),
        (TWO, ("ens2",), Place(leaf="tor-2")),
        (TWO, ("ib*",), Place()),
        ({"lldp": {}}, ("*",), Place()),
        ({}, ("*",), Place()),
    ],
)
def test_lldp(said: dict[str, Any], interfaces: tuple[str, ...], place: Place) -> None:
    """Both forms of lldpcli's JSON."""
    assert lldp.read([("n1", json.dumps(said))], "LLDP", interfaces).places == {"n1": place}


def site(source: str, **places: Place) -> SiteMap:
    """A source."""
    return SiteMap(source=source, places=dict(places))


def test_who_decides() -> None:
    """Of each kind the first that knows it; a contradiction is told, another name for the same nodes is none."""
    first = site("a", n1=Place(leaf="l1"), n2=Place(leaf="l1"), n3=Place(leaf="l2"), n4=Place(rack="r1"))
    later = site(
        "b",
        n1=Place(leaf="x1", rack="r1"),
        n2=Place(leaf="x1"),
        n3=Place(leaf="x9"),
        n4=Place(rack="r2", pod="p"),
    )
    whole = merged([first, later], "a, b")
    assert whole.places == {
        "n1": Place(leaf="l1", rack="r1"),
        "n2": Place(leaf="l1"),
        "n3": Place(leaf="l2"),
        "n4": Place(rack="r1", pod="p"),
    }
    assert warned(whole) == [
        "b: n3: leaf is l2 by a and x9 here: l2 is taken",
        "b: n4: rack is r1 by a and r2 here: r1 is taken",
    ]


def test_where_racks_stand_is_told_by_hand_and_who_is_in_them_by_others(tmp_path: Path) -> None:
    """A place's line holds for nodes that only another source puts there; the file goes before what comes later of them."""
    (tmp_path / "by-hand.yaml").write_text(
        "n9: {rack: r1}\nrack/r1: {row: a, power: [feed-a, feed-b], room: hall}\nrow/a: {cooling: loop-1}\nrack/r2: {row: b}\n"
    )
    hand = places_file.read(tmp_path / "by-hand.yaml")
    nodes = {
        "n1": Place(rack="r1", room="zone-1"),
        "n2": Place(rack="r2", room="zone-2"),
        "n3": Place(leaf="l1"),
    }
    site = merged([hand, SiteMap(source="nodes.json", places=nodes)], "all")
    of_r1 = Place(rack="r1", row="a", power="feed-a", room="hall", cooling="loop-1", also=("power/feed-b",))
    assert site.places == {
        "n1": of_r1,
        "n2": Place(rack="r2", row="b", room="zone-2"),
        "n3": Place(leaf="l1"),
        "n9": of_r1,
    }
    (told,) = warned(site)
    assert told.startswith("nodes.json: ")
    assert told.endswith("n1: room is hall by " + hand.source + " and zone-1 here: hall is taken")


def test_a_leaf_switch_of_a_rack_is_told_by_hand(tmp_path: Path) -> None:
    """A switch at the top of the rack, of nodes that the file does not name."""
    (tmp_path / "by-hand.yaml").write_text("rack/r1: {leaf: tor-1}\n")
    nodes = SiteMap(source="nodes.json", places={"n1": Place(rack="r1")})
    site = merged([places_file.read(tmp_path / "by-hand.yaml"), nodes], "all")
    assert site.places == {"n1": Place(rack="r1", leaf="tor-1")}


def test_who_knows_one_of_several_does_not_contradict() -> None:
    """Slurm can name one leaf switch of a node only."""
    assert warned(merged([site("a", n1=RAILS), site("b", n1=Place(leaf="leaf-2"))], "")) == []
    assert merged([site("a", n1=RAILS), site("b", n1=Place(leaf="leaf-2"))], "").places == {"n1": RAILS}


@given(st.text(max_size=300))
def test_no_text_breaks_an_importer(text: str) -> None:
    """Whatever a file holds, its names can be written and read, or it is refused in one line."""
    for found in (
        slurm.read(text, "f"),
        slurm.read(f"SwitchName={text} Nodes=n1", "f"),
        infiniband.read([("", "f", switch(1, text, text, f"n1 {text}"))]),
        kubernetes.read(json.dumps({"items": [node(text, topology__x=text)]}), "f"),
        lldp.read([(text, json.dumps(TWO))], "f"),
    ):
        for place in found.places.values():
            assert write.text_of({"n1": place}).removesuffix("\n").isprintable()
        assert all("\x1b" not in one and "\n" not in one for one in warned(found))
    with suppress(ConfigError):
        kubernetes.read(text, "f")
    with suppress(ConfigError):
        lldp.read([("n1", text)], "f")
