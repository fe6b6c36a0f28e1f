"""Figures that nodes measured of themselves, compared with those of their peers.

A node's figure is refused when it is far from those of its peers, the nodes that are made of the same parts: beyond
the median by more than MADS times the median absolute deviation, and by more than SHARE of the median. Both, because in
a uniform fleet the deviation is next to nothing, and in a mixed one SHARE alone would refuse every fifth node. Without
PEERS peers nothing is refused. The median bears a few bad nodes, so every value is kept, a refused one too; after a change
of the whole fleet (a driver that is slower) the first nodes are refused, and a person decides.

Only the newest value of each node counts: a node's own history is no peer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from agent.contract.figures import MAX_ALIKE, Figure
from brain.core.state import State

PEERS = 5  # other nodes that must have measured it
MADS = 5.0
SHARE = 0.05
# figures (one for each kind of node) that are kept; beyond it the first goes that one node alone has filled, or, where there
# is none, that was begun first
MAX_TABLES = 500
MAX_OF_NODE = 128  # of them of one node; beyond it the node leaves the one that was begun first
MAX_NODES = 2000  # nodes of one figure; beyond it the one that was measured longest ago goes


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure beside those of its peers."""

    figure: Figure
    peers: int
    # of the peers; 0 when there are too few
    median: float
    # it is far worse than theirs
    refused: bool

    @property
    def text(self) -> str:
        """`nccl.bus_gb_per_s 180 (median of 40 peers 371)`."""
        value = f"{self.figure.name} {self.figure.value:g}"
        if self.peers < PEERS:
            return f"{value} ({self.peers} peers: not compared)"
        return f"{value} (median of {self.peers} peers {self.median:g})"


def take(state: State, node: str, alike: str, figures: Iterable[Figure]) -> list[Comparison]:
    """Compares a node's figures with its peers' and keeps them. `alike`: equal for nodes that may be compared; empty:
    nothing is compared or kept.
    """
    found = []
    for figure in figures if alike else ():
        key = f"{figure.name} {alike[:MAX_ALIKE]}"
        values = state.figures.setdefault(key, {})
        values.pop(node, None)  # it comes back as the newest
        found.append(compare(figure, list(values.values())))
        values[node] = figure.value
        if len(values) > MAX_NODES:
            del values[next(iter(values))]
        _make_room(state, node, key)
    return found


def _make_room(state: State, node: str, newest: str) -> None:
    """Bounds what is kept, and what one node alone has filled goes first: it cannot push out what the others measured."""
    mine = [key for key, values in state.figures.items() if node in values and key != newest]
    if len(mine) >= MAX_OF_NODE:
        del state.figures[mine[0]][node]
        if not state.figures[mine[0]]:
            del state.figures[mine[0]]
    if len(state.figures) > MAX_TABLES:
        others = [key for key in state.figures if key != newest]
        del state.figures[next((key for key in others if len(state.figures[key]) < 2), others[0])]


def compare(figure: Figure, peers: list[float]) -> Comparison:
    """Whether the figure is far worse than `peers`, the values of other nodes.

    >>> compare(Figure(name="x", value=180), [371, 372, 369, 370, 371]).refused
    True
    """
    if len(peers) < PEERS:
        return Comparison(figure=figure, peers=len(peers), median=0.0, refused=False)
    usual = median(peers)
    deviation = median(abs(value - usual) for value in peers)
    worse_by = figure.value - usual if figure.lower_is_better else usual - figure.value
    return Comparison(
        figure=figure,
        peers=len(peers),
        median=usual,
        refused=worse_by > MADS * deviation and worse_by > SHARE * abs(usual),
    )
