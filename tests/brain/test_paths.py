"""Where a bad path of the data network has its fault, by what the nodes at both ends of each path tell.

A fleet whose agents probe as `agent/probes/hosts.py` lets them: a fault drops packets, each node tells of its own paths what it
would see, in any order and a minute apart, and a person who knows the fault says what ought to be told.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent.contract.messages import Severity
from agent.probes.hosts import ProbePart, read
from brain.adapters.snapshot import dump, parse
from brain.core.faults import paths
from brain.core.inputs import NodeState
from brain.core.pack.spec import Place
from brain.core.state import IncidentState
from tests.brain.world import Story
from tests.shipped import shipped_pack

LEAVES, ON_EACH = 5, 6
LEAF_OF = {f"n{number:02}": f"leaf-{number // ON_EACH}" for number in range(LEAVES * ON_EACH)}
PLACES = {node: Place(leaf=leaf) for node, leaf in LEAF_OF.items()}
OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


@cache
def parts(folder: Path) -> dict[str, ProbePart]:
    """Node → whom it probes."""
    file = folder / "hosts"
    lines = [f"{node} 10.0.0.{number} {leaf}" for number, (node, leaf) in enumerate(LEAF_OF.items())]
    file.write_text("\n".join(lines), encoding="utf-8")
    return {node: read(file, node, near=2, far=2)[0] for node in LEAF_OF}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is broken: a node's interface, a leaf switch, its uplinks, one path, or a node that is off."""

    # node | leaf | uplinks | path | off
    what: str
    where: tuple[str, ...]

    def hits(self, one: str, other: str) -> bool:
        """Whether packets between the two are lost."""
        if self.what == "path":
            return {one, other} == set(self.where)
        if self.what in ("node", "off"):
            return self.where[0] in (one, other)
        behind = {LEAF_OF[one] == self.where[0], LEAF_OF[other] == self.where[0]}
        return True in behind and (self.what == "leaf" or behind == {True, False})


def view(part: ProbePart, faults: Iterable[Fault]) -> dict[str, Any]:
    """What a node would tell of its paths."""
    own = part.own.node
    ill = {end.node: [one for one in faults if one.hits(own, end.node)] for end in (*part.near, *part.far)}
    silent = [peer for peer, hit in ill.items() if any(one.what == "off" for one in hit)]
    return {
        "active": any(ill.values()),
        "near": len(part.near),
        "far": len(part.far),
        "near_ill": ", ".join(end.node for end in part.near if ill[end.node]),
        "far_ill": ", ".join(end.node for end in part.far if ill[end.node]),
        "silent": ", ".join(silent),
        "lost_percent": 12.0,
    }


class Fleet:
    """A story with all nodes heard, which tell of their paths when that changes and every ten minutes."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.story = Story(shipped_pack(places=PLACES))
        self.parts = parts(folder)
        self.chance = random.Random(seed)
        for node in LEAF_OF:
            self.story.time.feed(NodeState(id=f"known-{node}", node=node, alive=True), 1)
        self.story.run(1)

    def tells(self, at: float, *faults: Fault, kind: str = "probe.loss") -> None:
        """All nodes do, within a minute and in any order. Those that are off are silent, and the brain knows it."""
        off = {one.where[0] for one in faults if one.what == "off"}
        for node in sorted(off):
            self.story.time.feed(NodeState(id=f"off-{node}-{at}", node=node, alive=False, silent_s=10.0), at)
        for node, part in self.parts.items():
            if node not in off:
                data = view(part, faults)
                severity = Severity.WARNING if data["active"] else Severity.INFO
                when = at + 1 + self.chance.uniform(0, 60)
                self.story.event(when, kind, "link/eth2", node, severity=severity, **data)

    def open(self) -> dict[str, str]:
        """Scope → cause, of the incidents that stand now."""
        return {one.scope: one.cause for one in self.told() if one.state not in OVER}

    def told(self) -> list[Any]:
        """The incidents of paths of which somebody was told."""
        causes = ("path-", "shared-probe")
        return [one for one in self.story.incidents() if one.pages.sent and one.cause.startswith(causes)]

    def ends(self, one: str, other: str) -> str:
        """The end at which a path between the two is told: that which probes it; of two the first."""
        found = [own for own, peer in ((one, other), (other, one)) if peer in self.probed(own)]
        return lone(min(found))

    def probed(self, node: str) -> list[str]:
        """Its peers."""
        return [end.node for end in (*self.parts[node].near, *self.parts[node].far)]


def lone(node: str) -> str:
    return f"link/{node}/eth2"


def test_one_node_that_is_bad_with_all_its_peers_is_that_node(tmp_path: Path) -> None:
    """Those that probe it are not told. When it is well again, the incident closes by itself."""
    fleet = Fleet(tmp_path)
    fleet.tells(100, Fault(what="node", where=("n07",)))
    fleet.story.run(400)
    assert fleet.open() == {lone("n07"): "path-loss"}
    (one,) = fleet.told()
    assert (one.rule, one.severity) == ("probe-loss-link", "P2")
    assert {action for _, action in fleet.story.actions()} <= {"evidence.collect"}
    fleet.tells(500)
    fleet.story.run(1200)
    assert fleet.open() == {}
    assert fleet.story.engine.state.paths == {}


@pytest.mark.parametrize("what", ["leaf", "uplinks"])
def test_all_pairs_that_cross_a_leaf_are_the_leaf(tmp_path: Path, what: str) -> None:
    """One incident; the nodes behind other leaf switches, whose paths into it are bad, are not told."""
    fleet = Fleet(tmp_path)
    fleet.tells(100, Fault(what=what, where=("leaf-2",)))
    fleet.story.run(400)
    rule = "shared-probe-loss-link-leaf" if what == "leaf" else "shared-probe-loss-across-leaf"
    assert fleet.open() == {"leaf/leaf-2": rule}


def test_one_pair_only_is_a_path_and_told_once(tmp_path: Path) -> None:
    """Of its two ends the one whose name comes first has the incident. Nothing is done but to keep the evidence."""
    fleet = Fleet(tmp_path)
    pair = ("n00", fleet.parts["n00"].far[0].node)
    fleet.tells(100, Fault(what="path", where=pair))
    fleet.story.run(400)
    assert fleet.open() == {fleet.ends(*pair): "path-loss"}
    (one,) = fleet.told()
    assert (one.rule, one.severity) == ("probe-loss-path", "P3")
    assert {action for _, action in fleet.story.actions()} <= {"evidence.collect"}


def test_peers_that_are_down_are_no_loss_of_the_others(tmp_path: Path) -> None:
    """Not while they are unreachable, nor in the minutes after their return; only a path that is cut for longer."""
    fleet = Fleet(tmp_path)
    peers = [end.node for end in fleet.parts["n00"].near]
    gone = [Fault(what="off", where=(peer,)) for peer in peers]
    fleet.tells(100, *gone)
    fleet.story.run(400)
    assert fleet.open() == {}
    for peer in peers:
        fleet.story.time.feed(NodeState(id=f"back-{peer}", node=peer, alive=True), 450)
    data = view(fleet.parts["n00"], gone)
    fleet.story.event(500, "probe.loss", "link/eth2", "n00", **data)
    fleet.story.run(700)
    assert lone("n00") not in fleet.open()
    fleet.story.event(1100, "probe.loss", "link/eth2", "n00", **data)
    fleet.story.run(1300)
    assert lone("n00") in fleet.open()


def test_a_node_beside_dead_peers_is_judged_by_those_that_live(tmp_path: Path) -> None:
    """Two of its four peers are off and the other two lose packets: it is its own end."""
    fleet = Fleet(tmp_path)
    dead = [Fault(what="off", where=(end.node,)) for end in fleet.parts["n00"].near]
    fleet.tells(100, Fault(what="node", where=("n00",)), *dead)
    fleet.story.run(400)
    assert fleet.open() == {lone("n00"): "path-loss"}


def test_whoever_is_told_of_by_others_only_is_not_accused(tmp_path: Path) -> None:
    """A node that lies of its peer opens an incident of its own, on itself (law 15)."""
    fleet = Fleet(tmp_path)
    peer = fleet.parts["n09"].far[0].node
    data = view(fleet.parts["n09"], [Fault(what="path", where=("n09", peer))])
    fleet.story.event(100, "probe.loss", "link/eth2", "n09", **data)
    fleet.story.run(400)
    assert fleet.open() == {lone("n09"): "path-loss"}


def test_what_is_not_told_again_is_over(tmp_path: Path) -> None:
    """Its agent may have been told to probe no more; nothing stays in the state."""
    fleet = Fleet(tmp_path)
    fleet.tells(100, Fault(what="node", where=("n07",)))
    fleet.story.run(400)
    later = 400 + paths.HOLDS_S
    fleet.story.event(
        later, "probe.loss", "link/eth2", "n20", severity=Severity.INFO, **view(fleet.parts["n20"], ())
    )
    fleet.story.run(later + 900)
    assert fleet.open() == {}
    assert fleet.story.engine.state.paths == {}


def test_one_node_has_a_bounded_share_of_the_state(tmp_path: Path) -> None:
    """However many interfaces it tells of, and whatever it tells of them."""
    fleet = Fleet(tmp_path)
    for number in range(paths.MAX_LINKS * 3):
        fleet.story.event(
            100 + number, "probe.loss", f"link/e{number}", "n03", active=True, near="x", far=-4, near_ill=7, far_ill=", ,",
            silent=True, lost_percent="no",
        )  # fmt: skip
    fleet.story.run(600)
    assert len(fleet.story.engine.state.paths) == paths.MAX_LINKS


def _faults(chance: random.Random, fleet: Fleet) -> Iterator[tuple[Fault, str, str]]:
    """One to three faults on different leaf switches that do not hide each other → the scope and the cause to be told."""
    leaves = chance.sample(range(LEAVES), LEAVES)
    taken: set[str] = set()
    for leaf in leaves[: chance.randrange(1, 4)]:
        here = [node for node, name in LEAF_OF.items() if name == f"leaf-{leaf}"]
        what = chance.choice(("node", "path", "off"))
        node = chance.choice(here)
        near = fleet.parts[node].near[0].node
        involved = {node, near, *fleet.probed(node), *fleet.probed(near)}
        if involved & taken:
            continue
        taken |= involved
        if what == "node":
            yield Fault(what=what, where=(node,)), lone(node), "path-loss"
        elif what == "path":
            yield Fault(what=what, where=(node, near)), fleet.ends(node, near), "path-loss"
        else:
            yield Fault(what=what, where=(node,)), "", ""


@pytest.mark.parametrize("seed", range(12))
def test_several_faults_at_once_are_each_told_at_their_place(tmp_path: Path, seed: int) -> None:
    """In any order of the words; told twice, or from a snapshot in between, they are the same."""
    fleet = Fleet(tmp_path, seed)
    made = list(_faults(fleet.chance, fleet))
    faults = [fault for fault, _, _ in made]
    wanted = {scope: cause for _, scope, cause in made if scope}
    for round_ in range(2):
        fleet.tells(100 + 600 * round_, *faults)
        fleet.story.run(400 + 600 * round_)
        assert fleet.open() == wanted, faults
    state = fleet.story.engine.state
    assert parse(dump(state)).paths == state.paths
    fleet.tells(1300)
    fleet.story.run(2400)
    assert fleet.open() == {}
    assert state.paths == {}


def test_slow_paths_are_placed_likewise(tmp_path: Path) -> None:
    """And beside lost packets they are another fault."""
    fleet = Fleet(tmp_path)
    fleet.tells(100, Fault(what="node", where=("n07",)), kind="probe.slow")
    fleet.story.run(400)
    assert fleet.open() == {lone("n07"): "path-slow"}
