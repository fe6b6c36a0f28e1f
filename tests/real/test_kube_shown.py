"""What a cluster shows of our drains is set right by the brain that leads, on a real API server."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from brain import fence
from brain.actions.marks import Mark
from brain.leader.shown_drains import AGAIN_S, AWAY_S, ShownDrains
from tests.real import kube_plane
from tests.real.kube_plane import Plane
from tests.real.kube_told import BOTH, Site, cleaned, events, ours

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """One control plane for all."""
    with kube_plane.plane() as made:
        yield made


@pytest.fixture
def clean(plane: Plane) -> Plane:
    """Nothing of an earlier test on nodes, and both rights."""
    return cleaned(plane)


class Brain:
    """Of the brain only what the comparison asks: whether it leads, its notes and its time."""

    def __init__(self, site: Site) -> None:
        self.leading = True
        self.now_s = 0.0
        self.notes: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self.shown = ShownDrains(
            {"k8s": site.kube},
            leadership=self,  # type: ignore[arg-type]  # two of its methods
            notes=self,  # type: ignore[arg-type]  # one of its methods
            forgotten=lambda: self.forgotten,
            clock=lambda: self.now_s,
        )

    def leads(self) -> bool:
        """As in Leadership."""
        return self.leading

    def fence(self) -> fence.Fence:
        """As in Leadership."""
        return fence.CHANGES_NOTHING if self.leading else fence.outside

    def write(self, kind: str, text: str) -> None:
        """As in BrainNotes."""
        self.notes.append((kind, text))


async def stale(clean: Plane) -> Site:
    """A brain that shows drains has drained gpu1; the drain ended, and the brain died before it could show that."""
    site, mute = Site(clean, *BOTH), Site(clean)
    await site.drain("inc-1")
    await mute.resume("inc-1")
    await mute.kube.close()
    assert ours(clean)["status"] == "True"
    return site


async def test_who_begins_to_lead_sets_it_right_and_who_follows_does_not(clean: Plane) -> None:
    """No step need come: the next leader looks at once. What is right is left as it is, without a word."""
    site = await stale(clean)
    brain = Brain(site)
    brain.leading = False
    await brain.shown.look()
    assert ours(clean)["status"] == "True"
    brain.leading = True
    ended = site.later()
    await brain.shown.look()
    gone = ours(clean)
    assert (gone["status"], gone["reason"], gone["lastTransitionTime"]) == ("False", "NoGpuwardDrain", ended)
    assert brain.notes == [("scheduler.shown", "k8s: what it showed of our drains was set right on gpu1")]
    site.later()
    brain.now_s += AGAIN_S
    await brain.shown.look()
    assert (ours(clean), len(brain.notes)) == (gone, 1)
    await site.kube.close()


async def test_a_drain_that_was_never_shown_is_and_one_that_is_shown_is_left(clean: Plane) -> None:
    """Of a brain that died before it showed it, or could not: with the first mark's cause, from when it is seen."""
    site, mute = Site(clean, *BOTH), Site(clean)
    brain = Brain(site)
    await mute.kube.drain("gpu1", Mark(incident="inc-1", why="gpu-off-bus at node/gpu1"))
    await brain.shown.look()
    there = ours(clean)
    assert (there["status"], there["reason"]) == ("True", "GpuOffBus")
    assert events(clean) == {}, "when it began is not known any more"
    site.later()
    brain.now_s += AGAIN_S
    await brain.shown.look()
    assert ours(clean) == there
    await mute.kube.drain("gpu1", Mark(incident="inc-2", why="link-down at node/gpu1"))
    brain.now_s += AGAIN_S
    await brain.shown.look()
    assert ours(clean)["message"].endswith("[inc-2]")
    assert ours(clean)["lastTransitionTime"] == there["lastTransitionTime"]
    for one in (site, mute):
        await one.kube.close()


async def test_after_an_outage_it_is_set_right_and_the_outage_is_told_once(clean: Plane) -> None:
    """The server is away when the brain begins to lead; it is asked until it answers, and says so once."""
    site = await stale(clean)
    brain = Brain(site)
    await asyncio.to_thread(clean.stop_api)
    try:
        for _ in range(3):
            await brain.shown.look()
            brain.now_s += AWAY_S
        assert [kind for kind, _ in brain.notes] == ["scheduler.not_shown"]
    finally:
        await asyncio.to_thread(clean.start_api)
    for _ in range(100):  # a server that has just started denies for a moment
        await brain.shown.look()
        brain.now_s += AWAY_S
        if ours(clean)["status"] == "False":
            break
        await asyncio.sleep(0.2)
    assert ours(clean)["status"] == "False"
    assert brain.notes[-1][0] == "scheduler.shown"
    await site.kube.close()


async def test_a_node_that_left_the_cell_and_one_that_left_the_cluster(
    clean: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Node objects are asked, not the cell's list: none that no pattern names is forgotten. One that is deleted in between keeps
    no other from being set right.
    """
    site = await stale(clean)
    other = Site(clean, *BOTH, nodes="other-*")
    brain = Brain(other)
    pages = other.kube._teller._api.pages

    async def with_a_ghost(path: str, *more: Any, **most: Any) -> Any:
        yield {"metadata": {"name": "gpu0"}, "status": {"conditions": [ours(clean)]}}
        async for one in pages(path, *more, **most):
            yield one

    monkeypatch.setattr(other.kube._teller._api, "pages", with_a_ghost)
    await brain.shown.look()
    assert ours(clean)["status"] == "False"
    assert brain.notes == [
        (
            "scheduler.not_shown",
            "k8s: what it shows of our drains is not known to be right: Kubernetes has no node gpu0",
        )
    ]
    for one in (site, other):
        await one.kube.close()


async def test_a_node_that_was_forgotten_while_it_was_drained(clean: Plane) -> None:
    """Nobody looks at its fault any more, so the condition says that it is not known, at once; what drains it is left to people:
    mark, cordon and taint stay. When the node is heard again it is True, and when a person has taken the drain off it is over.
    """
    site = Site(clean, *BOTH)
    brain = Brain(site)
    await site.drain("inc-1")
    await brain.shown.look()
    before, since = clean.node("gpu1"), ours(clean)["lastTransitionTime"]
    forgotten_at = site.later()
    brain.forgotten.append("gpu1")
    await brain.shown.look()
    there = ours(clean)
    assert (there["status"], there["reason"]) == ("Unknown", "NodeForgotten")
    assert there["message"].startswith(
        "gpuward has forgotten the node: its drain stands until somebody takes it"
    )
    assert "[inc-1]" in there["message"]
    assert there["lastTransitionTime"] == forgotten_at != since
    assert clean.node("gpu1")["spec"] == before["spec"]
    assert clean.node("gpu1")["metadata"]["annotations"] == before["metadata"]["annotations"]
    site.later()
    brain.now_s += AGAIN_S
    await brain.shown.look()
    assert (ours(clean), len(brain.notes)) == (there, 1)
    brain.forgotten.clear()
    await brain.shown.look()
    assert (ours(clean)["status"], ours(clean)["reason"]) == ("True", "GpuOffBus")
    brain.forgotten.append("gpu1")
    await brain.shown.look()
    assert ours(clean)["status"] == "Unknown"
    mute = Site(clean)
    await mute.resume("inc-1")  # in place of the person who takes it off
    await mute.kube.close()
    brain.now_s += AGAIN_S
    await brain.shown.look()
    assert ours(clean)["status"] == "False"
    await site.kube.close()


async def test_a_drain_of_another_cell_is_not_shown_for_it(clean: Plane) -> None:
    """It has not switched that on, and something there may act on the condition. Its nodes are others by their pattern."""
    site, mute = Site(clean, *BOTH, nodes="other-*"), Site(clean, nodes="gpu*")
    brain = Brain(site)
    await mute.kube.drain("gpu1", Mark(incident="inc-1", why="gpu-off-bus at node/gpu1"))
    await brain.shown.look()
    assert (ours(clean), brain.notes) == ({}, [])
    for one in (site, mute):
        await one.kube.close()


async def test_without_a_wish_to_show_nothing_is_asked(clean: Plane) -> None:
    """Nor is the right to list nodes needed."""
    site = await stale(clean)
    mute = Site(clean)
    brain = Brain(mute)
    await brain.shown.look()
    assert (ours(clean)["status"], brain.notes) == ("True", [])
    for one in (site, mute):
        await one.kube.close()
