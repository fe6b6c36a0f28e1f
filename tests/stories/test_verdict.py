"""What is not as expected is told: one story, and expectations of it of which each misses one thing."""

from dataclasses import replace
from typing import Any

import pytest

from simulations.scenarios.judge import judge
from simulations.scenarios.names import nodes, places
from simulations.scenarios.spec import Sight, StoryExpect, StoryLine, StorySite, Tale
from tests.stories.page import line, sign

LOST = Sight(cause="gpu-lost", place="gpu/n005/0000:1b:00", state="closed")
RIGHT = StoryExpect(
    incidents=(LOST,),
    disturbed="n005",
    done={"n005": ("scheduler.drain", "scheduler.resume")},
    out="",
    never=("node.isolate",),
    pages=1,
    told=("gpu-lost",),
    held=("asking the scheduler",),
)
TALE = Tale(
    name="one",
    what="A GPU falls off the bus.",
    why="One is one.",
    site=StorySite(nodes=8),
    timeline=(StoryLine(at=60, on="n005", gpu_lost="until power"),),
    until=7200,
    expect=RIGHT,
)


def _unmet(**other: Any) -> str:
    return "\n".join(judge(replace(TALE, expect=replace(RIGHT, **other))).unmet)


def test_what_is_as_expected_is_right() -> None:
    """Cause, place and all else."""
    found = judge(TALE)
    assert (found.cause_right, found.place_right, found.right, found.unmet) == (True, True, True, ())
    assert line([found]).startswith("1 stories: cause right in 1, place in 1, all in 1; 0 needless steps")
    assert sign(found.right) != sign(not found.right)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"incidents": (replace(LOST, cause="gpu-hot"),)}, "expected gpu-hot at gpu/n005"),
        ({"incidents": (replace(LOST, place="node/n005"),)}, "found gpu-lost at gpu/n005/0000:1b:00"),
        ({"incidents": (replace(LOST, state="open"),)}, "gpu-lost ends closed, not open"),
        ({"incidents": ()}, "people see gpu-lost at gpu/n005/0000:1b:00, and should see nothing"),
        ({"most": 0}, "1 incidents are seen, not 0: 1 × gpu-lost of a gpu"),
        ({"disturbed": "n004"}, "needless steps: scheduler.drain on n005 at 6"),
        ({"disturbed": "n005", "disturbed_most": 0}, "needless steps"),
        ({"done": {"n005": ("gpu.reset",)}}, "n005: gpu.reset was not done, but scheduler.drain"),
        ({"never": ("scheduler.resume",)}, "scheduler.resume on n005 was done"),
        ({"out": "n005"}, "out of service at the end: none, not n005"),
        ({"pages": 0}, "1 pages, not at most 0"),
        ({"told": ("a flood",)}, "no page says 'a flood'"),
        ({"held": ("a flood",)}, "no run is held because of 'a flood'"),
    ],
)
def test_each_miss_is_told(other: dict[str, Any], told: str) -> None:
    """And the story is not right."""
    assert told in _unmet(**other)


def test_what_is_as_good_is_right() -> None:
    """`or_incidents` instead of `incidents`; where neither fits, the first is told."""
    wrong = (replace(LOST, place="rack/rack-0"),)
    assert not _unmet(incidents=wrong, or_incidents=(LOST,))
    assert "at rack/rack-0" in _unmet(incidents=wrong, or_incidents=(replace(LOST, cause="gpu-hot"),))


def test_places_are_as_the_site_says() -> None:
    """Neighbours, names, several of one kind, and rails."""
    site = StorySite(
        nodes=8, leaf=4, rack=0, pod=0, rails=2, power={"a": "n[000-003]", "b": "n[002-006/2] n003"}
    )
    found = places(site)
    assert (found["n000"].leaf, found["n000"].power, found["n000"].also) == ("leaf-0-rail-0", "a", ())
    assert (found["n003"].power, found["n003"].also) == ("a", ("power/b",))
    assert dict(found["n005"].rails) == {"mlx5_0": "leaf-1-rail-0", "mlx5_1": "leaf-1-rail-1"}
    assert (found["n007"].power, found["n007"].rack) == ("", "")
    with pytest.raises(ValueError, match="no nodes"):
        nodes("n[1..3]")
