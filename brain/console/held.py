"""Which holds are in force at a place."""

from brain.console import shapes
from brain.console.api.status_shapes import HoldShape
from brain.core.operators.scopes import ALL
from brain.core.pack.topology import Topology
from brain.core.state import State


def over(state: State, scope: str, node: str) -> list[HoldShape]:
    """Returns the holds that stop what would be done at this scope. `node`: of the scope; empty: it is wider than one."""
    places = state.pack.places if state.pack and state.holds else {}
    topology = Topology({node: places[node]} if node in places else {} if node else places)
    return [
        shown
        for shown, hold in zip(shapes.holds(state), state.holds.values(), strict=True)
        if hold.scope == ALL or topology.overlap(hold.scope, scope)
    ]
