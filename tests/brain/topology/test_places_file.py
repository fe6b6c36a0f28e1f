"""topology.yaml: what it says, and the errors that name file, line and key."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.errors import ConfigError
from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.topology import places_file, write
from brain.topology.site_map import MAX_NAME, SiteMap, placed, wrong_name


def read(tmp_path: Path, text: str) -> SiteMap:
    """A file with this text."""
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    return places_file.read(tmp_path / "t.yaml", "t.yaml")


@pytest.mark.parametrize(
    ("text", "node", "place"),
    [
        ("n1: {leaf: l1, rack: r1}", "n1", Place(leaf="l1", rack="r1")),
        ("n1:", "n1", Place()),
        ("n1: {rack: 机柜-1}", "n1", Place(rack="机柜-1")),
        ("n1: {rack: A/12}", "n1", Place(rack="A/12")),
        ("n[08-11]: {leaf: l1}", "n10", Place(leaf="l1")),
        ("n1,m[1-2]: {leaf: l1}", "m2", Place(leaf="l1")),
        ("n1: {power: [a, b, a]}", "n1", Place(power="a", also=("power/b",))),
        ("n1: {fabric: [compute, storage]}", "n1", Place(fabric="compute", also=("fabric/storage",))),
        (
            "n1: {leaf: {mlx5_0: l0, mlx5_1: l1}}",
            "n1",
            Place(leaf="l0", rails={"mlx5_0": "l0", "mlx5_1": "l1"}),
        ),
        ("n1: {leaf: {mlx5_0: l0, mlx5_1: l0}}", "n1", Place(leaf="l0")),
        ("n[1-9]: {leaf: l1}\nn1: {rack: r1}", "n1", Place(leaf="l1", rack="r1")),
        ("n1: {rack: r1}\nrack/r1: {row: a}\nrow/a: {room: h}", "n1", Place(rack="r1", row="a", room="h")),
        ("n1: {rack: r1, row: b}\nrack/r1: {row: a}", "n1", Place(rack="r1", row="b")),
        (
            "n1: {rack: r1, leaf: l1}\nrack/r1: {pod: p}\nleaf/l1: {pod: q}",
            "n1",
            Place(leaf="l1", rack="r1", pod="p", also=("pod/q",)),
        ),
        ("n1: {rack: r1}\nrack/r1: {power: [a, b]}", "n1", Place(rack="r1", power="a", also=("power/b",))),
    ],
)
def test_what_it_says(tmp_path: Path, text: str, node: str, place: Place) -> None:
    """Lines for nodes, for several of them, and for the places in which they stand."""
    site = read(tmp_path, text)
    assert (site.errors, site.warnings) == ([], [])
    assert site.places[node].rails == place.rails
    for kind in WIDE:
        assert set(site.places[node].names(kind)) == set(place.names(kind))


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    """And is no mistake."""
    assert read(tmp_path, "").places == {}
    assert read(tmp_path, "# later\n").errors == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n1: {laef: l1}", "t.yaml:1: n1.laef: unknown key: did you mean leaf?"),
        ("n1: {desk: l1}", "t.yaml:1: n1.desk: unknown key (have: chassis, nvlink, leaf,"),
        ("n1: {leaf: l1}\nn2: {leaf: 7}", "t.yaml:2: n2.leaf: is no text: write it in quotes"),
        ("n1: {leaf: [l1, [l2]]}", "t.yaml:1: n1.leaf: is no text"),
        ("n1: {rack: {mlx5_0: r1}}", "t.yaml:1: n1.rack: is no text"),
        ("n1: l1", "t.yaml:1: n1: wants {leaf: NAME, rack: NAME}"),
        ("- n1", "t.yaml:1: wants `NODE: {leaf: NAME, rack: NAME}`"),
        ("n1: {leaf: l1}\nn1: {leaf: l2}", "t.yaml:2: n1: occurs twice, first in line 1"),
        ("n[1-3]: {leaf: l1}\nn2: {leaf: l2}", "t.yaml:2: n2.leaf: is l2 here and l1 in line 1"),
        ("n[1-3]: {leaf: l1}\nn2: {leaf: l1}", "t.yaml:2: n2.leaf: occurs twice, first in line 1"),
        ("n[1-: {leaf: l1}", "t.yaml:1: n[1-: not a list of hosts"),
        ("n[1-99999][1-99999]: {}", "t.yaml:1: n[1-99999][1-99999]: more than 100000 hosts"),
        ("n1: {rack: r1}\nrack/r1: {row: a}\nrow/a: {rack: r1}", "stands in itself: rack/r1 in row/a in rack/r1"),
        ("rack/r1: {rack: r2}", "t.yaml:1: rack/r1.rack: a rack stands in no rack"),
        ("desk/r1: {row: a}", "t.yaml:1: desk/r1: there is no kind of place 'desk'"),
        ("rack/: {row: a}", "t.yaml:1: rack/: the name is empty"),
        ("rack/r1: {leaf: {mlx5_0: l1}}", "t.yaml:1: rack/r1.leaf: devices belong to nodes"),
        ('n1: {rack: ""}', "t.yaml:1: n1.rack: is empty"),
        ('n1: {rack: " r1"}', "t.yaml:1: n1.rack: begins or ends with a blank"),
        ('n1: {rack: "r\\e[2J1"}', r"t.yaml:1: n1.rack: has a character that cannot be printed: 'r\x1b[2J1'"),
        ('n1: {rack: "r\\u202e1"}', "t.yaml:1: n1.rack: has a character that cannot be printed"),
        (f"n1: {{rack: {'x' * 101}}}", "t.yaml:1: n1.rack: is longer than 100 characters"),
        ("n1: {rack: *x}", "t.yaml:1: is not YAML: found undefined alias"),
        ("[" * 6000, "is not YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    """File, line, key, and what is to be done; the brain does not start with it."""
    site = read(tmp_path, text)
    assert any(says in str(error) for error in site.errors) or ("[[[" in text and site.errors), site.errors
    with pytest.raises(ConfigError):
        places_file.read_places(tmp_path / "t.yaml")


def test_a_name_that_no_node_has_is_told_and_left_out(tmp_path: Path) -> None:
    """A brain that ran with such a file before still does."""
    site = read(tmp_path, "n1.example.org: {rack: r1}\nn2: {rack: r1}\n")
    assert list(site.places) == ["n2"]
    assert [str(one) for one in site.warnings] == [
        "t.yaml:1: n1.example.org: no node can have this name: node 'n1.example.org' must be 1 to 63 letters, digits, '-' or "
        "'_' (no dots)"
    ]
    assert site.errors == []


def test_not_every_error_of_a_large_file_is_told(tmp_path: Path) -> None:
    """Twenty, and how many more."""
    (tmp_path / "t.yaml").write_text("".join(f"n{n}: {{x: y}}\n" for n in range(100)))
    with pytest.raises(ConfigError, match="and 80 more errors") as told:
        places_file.read_places(tmp_path / "t.yaml")
    assert len(str(told.value).splitlines()) == 21


def test_a_large_site_is_read_in_seconds(tmp_path: Path) -> None:
    """20,000 nodes with a line each: measured 3 s of processor time; PyYAML without libyaml would take 50 s."""
    lines = (
        f"gpu{n:05}: {{leaf: leaf{n // 32}, rack: rack{n // 8}, power: [a{n // 64}, b{n // 64}], pod: pod{n // 512}}}\n"
        for n in range(20_000)
    )
    (tmp_path / "t.yaml").write_text("".join(lines))
    began = time.process_time()
    places = places_file.read_places(tmp_path / "t.yaml")
    assert time.process_time() - began < 15
    assert len(places) == 20_000
    assert places["gpu00064"].names("power") == ("a1", "b1")


NAMES = st.text(min_size=1, max_size=MAX_NAME).filter(lambda name: not wrong_name(name))
KINDS = st.dictionaries(
    st.sampled_from(WIDE), st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple)
)
RAILS = st.dictionaries(st.sampled_from(["mlx5_0", "mlx5_1", "eth 0", "on"]), NAMES, max_size=4)
NODES = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)


@st.composite
def some_place(draw: st.DrawFn) -> Place:
    """Any place that a file can say."""
    kinds, rails = draw(KINDS), draw(RAILS)
    if rails:
        kinds["leaf"] = tuple(dict.fromkeys(rails.values()))
    return placed({"fabric": ("default",)} | kinds, rails)


@given(st.dictionaries(NODES, some_place(), max_size=12))
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, places: dict[str, Place]
) -> None:
    """Any names: words and numbers of YAML, brackets, quotes, Chinese."""
    path = tmp_path_factory.mktemp("t") / "t.yaml"
    path.write_text(write.text_of(places, ["a comment"]), encoding="utf-8")
    assert places_file.read_places(path) == places


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, body: bytes) -> None:
    """It says what is wrong, or reads it."""
    path = tmp_path_factory.mktemp("t") / "t.yaml"
    path.write_bytes(body)
    site = places_file.read(path)
    assert site.errors or all(isinstance(place, Place) for place in site.places.values())
