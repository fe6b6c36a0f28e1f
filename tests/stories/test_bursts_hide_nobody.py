"""Whatever falls ill by itself long after a burst of faults all over the cell has an incident of its own."""

import random

import pytest

from simulations.scenarios.judge import judge
from simulations.scenarios.spec import Sight, StoryExpect, StoryLine, StorySite, Tale

NODES = 192
LATER = {  # what the node shows: the cause, and the kind of part
    "lost": ("gpu-lost", "gpu"),
    "reset": ("gpu-fatal-xid", "gpu"),
    "port": ("ib-port-down", "port"),
}


@pytest.mark.parametrize("seed", range(24))
def test_a_later_fault_is_told(seed: int) -> None:
    """Eight or more nodes lose a GPU within seconds, which people know as one cause that is not over. Minutes or hours later
    another GPU, or a port, of any node fails: of one of theirs or of another one, told by NVML or by the kernel alone.
    """
    chance = random.Random(seed)
    burst = chance.sample(range(NODES), chance.choice((8, 9, 12)))
    node = chance.choice(burst) if seed % 2 else chance.choice([n for n in range(NODES) if n not in burst])
    what = list(LATER)[seed // 2 % 3]
    cause, kind = LATER[what]
    name, at = f"n{node:03}", 300 + chance.choice((400.0, 1500.0, 4000.0, 9000.0))
    gpu = chance.choice((0, 3, 7))
    later = {
        "lost": StoryLine(at=at, on=name, gpu_lost="until power", gpu=gpu),
        "reset": StoryLine(at=at, on=name, wants_reset=True, gpu=gpu),
        "port": StoryLine(at=at, on=name, port_down="mlx5_0"),
    }[what]
    hit = " ".join(f"n{n:03}" for n in burst)
    tale = Tale(
        name="burst",
        what="A burst, and one fault later.",
        why="It is its own.",
        site=StorySite(nodes=NODES),
        timeline=(
            StoryLine(at=300, on=hit, every=chance.choice((0.0, 0.5)), gpu_lost="for good", gpu=1),
            later,
        ),
        until=at + 3600,
        expect=StoryExpect(
            incidents=(
                Sight(cause="*gpu*", place="cell"),
                Sight(cause=cause, place=(f"{kind}/{name}/*", f"node/{name}")),
            ),
            disturbed=f"{hit} {name}",
            pages=12,
        ),
    )
    found = judge(tale)
    assert not found.unmet, found.line
