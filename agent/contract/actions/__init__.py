"""Every action that a node can do, by name: what it needs, what it disrupts, and whether it may be repeated.

A new one is a row in the area where it belongs, a file in `agent/actions/` and a simulated action in
`simulations/actions/`. What the brain does itself is declared in `brain/core/pack/actions.py`.
"""

from agent.contract.actions import gpu, network, node
from agent.contract.actions.spec import ActionSpec

ACTIONS: dict[str, ActionSpec] = {spec.name: spec for area in (node, network, gpu) for spec in area.ACTIONS}
