"""What each action does to a simulated machine. Pure.

The counterpart of an action is one function, and one line in the table `ACTIONS` at the end of its file:

of a node, declared in `agent/contract/actions/<area>.py`        `simulations/actions/<area>.py`
of the brain, declared in `brain/core/pack/actions.py`           `simulations/actions/infrastructure.py`
of the brain, about a whole fabric                               `simulations/actions/fabric.py`

`tests/simulations/test_registration.py` names the line that is missing.
"""

from collections.abc import Mapping

from simulations.actions import fabric, gpu, infrastructure, network, node
from simulations.actions.base import FabricAction, SimulatedAction

NODE_AREAS = (node, network, gpu)
NODE_ACTIONS: Mapping[str, SimulatedAction] = {
    name: action for area in NODE_AREAS for name, action in area.ACTIONS.items()
}
INFRASTRUCTURE_ACTIONS: Mapping[str, SimulatedAction] = infrastructure.ACTIONS
FABRIC_ACTIONS: Mapping[str, FabricAction] = fabric.ACTIONS
