"""Small months by hand: four nodes, one job on three of them, one fault whose luck is given."""

from typing import Any

from simulations.month.draw import FaultCase, Month, RackHold, places
from simulations.month.kinds import ALWAYS
from simulations.month.profile import KINDS, Profile

FAULT_AT_S = 2700.0  # the job has worked for 45 minutes, and saved what the first 30 have done
ON = "sim-001"  # the second node of the job
LOOK_S, NOTICE_S, HANDS_S = 600.0, 1200.0, 7200.0


def profile(**parts: Any) -> Profile:
    """A profile of one cause."""
    given: dict[str, Any] = {
        "title": "by hand",
        "source": "by hand",
        "fleet": {"nodes": 4, "days": 1, "nodes_per_rack": 2},
        "faults_per_1000_node_days": 1.0,
        "causes": {"gpu": {"count": 1, "kinds": {"gpu-uncontained": 1}}},
        "holds": {"per_1000_node_days": 0},
    }
    return Profile.model_validate(given | parts)


def case(kind: str = "gpu-uncontained", *, cured: bool = True, **parts: Any) -> FaultCase:
    """A fault of the kit's node; `cured`: by every remedy of its kind, otherwise by none."""
    given = KINDS[kind]
    fixes = (tuple(given.cures) if cured else ()) + ALWAYS[given.cured]
    made: dict[str, Any] = {
        "id": "f1",
        "at_s": FAULT_AT_S,
        "cause": "gpu",
        "kind": given,
        "nodes": (ON,),
        "fixes": fixes,
        "part": 0,
        "lasts_s": 600.0,
        "found": True,
        "notice_s": NOTICE_S,
        "look_s": LOOK_S,
        "hands_s": HANDS_S,
    }
    return FaultCase(**(made | parts))


def month(*cases: FaultCase, holds: tuple[RackHold, ...] = (), nodes: int = 4, **parts: Any) -> Month:
    """A month of a day, with these faults."""
    given = profile(**parts)
    return Month(profile=given, seed=1, days=1.0, places=places(given, nodes), cases=cases, holds=holds)
