"""A Node object is deleted under our drain, and its node joins anew, on a real API server (decision 112)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.errors import ActionError, Refused
from agent.shared.tasks import Tasks
from brain import fence
from brain.actions import scheduler as actions
from brain.actions.base import Order
from brain.actions.kube import Kubernetes
from brain.core.context import Context
from brain.core.effects import DrainAgain, Note
from brain.core.healing import jobs as answers
from brain.core.inputs import JobsAnswer
from brain.core.state import OwnedDrain, State
from brain.leader.jobs import JobQuestions
from brain.leader.lost_drains import AGAIN_S, LostDrains
from tests.brain.core.cell import Cell
from tests.real import kube_plane
from tests.real.kube_plane import Plane

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]


def order(**params: Any) -> Order:
    """What a runbook orders."""
    return Order(id="s1", incident="inc-1", node="gpu1", params=params, timeout_s=90, why="gpu-lost")


def uid(plane: Plane) -> str:
    """Of the Node object that is there now; empty: there is none."""
    return plane.kubectl(
        "get", "node", "gpu1", "-o", "jsonpath={.metadata.uid}", "--ignore-not-found"
    ).strip()


def rejoined(plane: Plane) -> str:
    """Its object is deleted, and its kubelet makes another one within seconds; returns the uid."""
    before = uid(plane)
    plane.kubectl("delete", "node", "gpu1")
    plane.until(lambda: uid(plane) not in ("", before), "it has not joined again")
    return uid(plane)


async def test_a_drain_that_waits_is_made_again(plane: Plane, kube: Kubernetes) -> None:
    """While a pod runs on: the step does not take it for a person's word, and its record is the new object."""
    (pod,) = await asyncio.to_thread(plane.pods, "train", "gpu1")
    said: list[str] = []
    waits = asyncio.create_task(
        actions.Drain(lambda _: kube).run(replace(order(wait_s=60), progress=said.append))
    )
    await asyncio.to_thread(plane.until, lambda: bool(plane.taints("gpu1")), "it is not drained")
    new = await asyncio.to_thread(rejoined, plane)
    await asyncio.to_thread(plane.until, lambda: bool(plane.taints("gpu1")), "it is not drained again")
    await asyncio.to_thread(plane.kubectl, "delete", "replicaset", "train", "--cascade=foreground")
    done = await waits
    assert (done.data["ours"], done.data["record"]) == (True, new)
    assert [mark.incident for mark in await kube.marks("gpu1")] == ["inc-1"]
    assert "gpu1 is another object in k8s than was drained: drained again" in said
    assert pod


async def test_a_node_that_goes_while_its_drain_waits_fails_the_step(plane: Plane, kube: Kubernetes) -> None:
    """It is not refused, by which the incident would lose the drain: when the node joins again, its mark is wanted."""
    silent = plane.folder / "silent/gpu1"
    silent.parent.mkdir(exist_ok=True)
    await asyncio.to_thread(plane.pods, "train", "gpu1")
    waits = asyncio.create_task(actions.Drain(lambda _: kube).run(order(wait_s=6)))
    await asyncio.to_thread(plane.until, lambda: bool(plane.taints("gpu1")), "it is not drained")
    silent.touch()
    try:
        await asyncio.to_thread(plane.kubectl, "delete", "node", "gpu1")
        with pytest.raises(ActionError, match="gpu1 has been removed since it was drained") as raised:
            await waits
        assert not isinstance(raised.value, Refused)
    finally:
        silent.unlink()
    await asyncio.to_thread(plane.until, lambda: bool(uid(plane)), "it has not joined again")


async def test_evictions_go_on_when_the_node_has_joined_again(plane: Plane, kube: Kubernetes) -> None:
    """A budget holds them up while the Node object is deleted, is not there, and is made anew."""
    (pod,) = await asyncio.to_thread(plane.pods, "kept", "gpu1")
    await asyncio.to_thread(plane.budget, "kept", "kept", at_least=1)
    begun = asyncio.Event()
    given = replace(
        order(then="requeue"),
        timeout_s=200.0,
        progress=lambda text: begun.set() if text.startswith("requeueing") else None,
    )
    drain = asyncio.create_task(actions.Drain(lambda _: kube).run(given))
    await begun.wait()
    await asyncio.to_thread(rejoined, plane)
    await asyncio.to_thread(plane.until, lambda: bool(plane.taints("gpu1")), "it is not drained again")
    await asyncio.to_thread(plane.kubectl, "delete", "poddisruptionbudget", "kept")
    done = await drain
    assert (done.data["ours"], done.data["jobs_left"]) == (True, 0)
    assert pod not in plane.running("kept")


async def test_of_a_node_that_is_not_there_nobody_knows_that_it_is_idle(kube: Kubernetes) -> None:
    """Its Node object may have another name, as after it was renamed, and its jobs run."""
    nowhere = replace(order(wait_s=1), node="gpu77")
    for action in (actions.Idle, actions.Jobs, actions.Drain):
        with pytest.raises(ActionError, match="Kubernetes has no node gpu77"):
            await action(lambda _: kube).run(nowhere)


class Brain:
    """What the leader looks at: the engine's state with one drain of gpu1, and the log."""

    def __init__(self, kube: Kubernetes, record: str) -> None:
        self.cell = Cell()
        self.cell.incident.node = "gpu1"
        drain = OwnedDrain(since=0, marks=["inc-1"], sure=True, record=record)
        self.cell.state.drains["gpu1"] = {"inc-1": drain}
        self.leading, self.now_s, self.epoch = True, 0.0, 1
        self.answers: list[JobsAnswer] = []
        self.notes: list[str] = []
        self.background = Tasks()
        self.lost = LostDrains(
            schedulers=lambda _: kube,
            leadership=self,  # type: ignore[arg-type]  # three of its members
            replica=self,  # type: ignore[arg-type]  # two of its members
            questions=JobQuestions(
                schedulers=lambda _: kube,
                leadership=self,  # type: ignore[arg-type]  # as above
                writer=self,  # type: ignore[arg-type]  # one of its methods
                background=self.background,
            ),
            notes=self,  # type: ignore[arg-type]  # one of its methods
            background=self.background,
            clock=lambda: self.now_s,
        )

    @property
    def state(self) -> State:
        """As in Replica."""
        return self.cell.state

    def look(self) -> Context:
        """As in Replica."""
        return self.cell.ctx()

    def leads(self) -> bool:
        """As in Leadership."""
        return self.leading

    def fence(self) -> fence.Fence:
        """As in Leadership."""
        return fence.CHANGES_NOTHING if self.leading else fence.outside

    def write(self, kind: str, text: str) -> None:
        """As in BrainNotes."""
        self.notes.append(f"{kind}: {text}")

    def append_or_drop(self, given: JobsAnswer) -> None:
        """The log, the engine and its executor."""
        self.answers.append(given)
        ctx = self.cell.ctx()
        answers.answered(ctx, given)
        for effect in ctx.effects:
            if isinstance(effect, DrainAgain):
                self.lost.again(effect)
            elif isinstance(effect, Note):
                self.notes.append(f"{effect.kind}: {effect.text}")

    async def looked(self) -> int:
        """One look, and all that follows from it; how often the scheduler's answer went on the log."""
        count = len(self.answers)
        await self.lost.look()
        async with asyncio.timeout(30):
            while self.background._tasks:
                await asyncio.sleep(0.02)
        return len(self.answers) - count


async def test_a_drain_of_hours_ago_is_made_again_and_it_is_said(plane: Plane, kube: Kubernetes) -> None:
    """No step is under way. Twice: what stands is looked at, and nothing goes on the log; a person's cordon stays."""
    done = await actions.Drain(lambda _: kube).run(order())
    brain = Brain(kube, str(done.data["record"]))
    async with brain.background:
        assert await brain.looked() == 0
        for cordoned in (False, True):
            new = await asyncio.to_thread(rejoined, plane)
            if cordoned:
                await asyncio.to_thread(plane.kubectl, "cordon", "gpu1")
            assert await brain.looked() == 2
            assert plane.taints("gpu1") == ["gpuward/drained"]
            assert bool(plane.node("gpu1")["spec"].get("unschedulable")) is cordoned
            assert [mark.incident for mark in await kube.marks("gpu1")] == ["inc-1"]
            assert brain.state.drains["gpu1"]["inc-1"].record == new
            kinds = [note.partition(":")[0] for note in brain.notes]
            assert kinds == ["drain.lost", "drain.renewed"]
            brain.notes.clear()
            assert await brain.looked() == 0


async def test_what_a_person_takes_off_is_not_made_again(plane: Plane, kube: Kubernetes) -> None:
    """Nor when the node joins anew afterwards."""
    done = await actions.Drain(lambda _: kube).run(order())
    brain = Brain(kube, str(done.data["record"]))
    async with brain.background:
        await asyncio.to_thread(plane.kubectl, "taint", "node", "gpu1", "gpuward/drained-")
        assert await brain.looked() == 1
        await asyncio.to_thread(rejoined, plane)
        assert await brain.looked() == 0
    assert (plane.taints("gpu1"), brain.notes) == ([], [])


async def test_who_does_not_lead_or_is_held_changes_nothing(plane: Plane, kube: Kubernetes) -> None:
    """Laws 2 and 16. Once it may, the node is drained again; a look that says the same is told a minute later."""
    done = await actions.Drain(lambda _: kube).run(order())
    brain = Brain(kube, str(done.data["record"]))
    async with brain.background:
        await asyncio.to_thread(rejoined, plane)
        brain.leading = False
        assert await brain.looked() == 0
        brain.leading, brain.cell.observe_all = True, True
        assert await brain.looked() == 1
        assert plane.taints("gpu1") == []
        brain.cell.observe_all = False
        assert await brain.looked() == 0
        brain.now_s += AGAIN_S
        assert await brain.looked() == 2
        assert plane.taints("gpu1") == ["gpuward/drained"]


async def test_a_drain_that_is_given_up_meanwhile_is_not_made_again(plane: Plane, kube: Kubernetes) -> None:
    """The node was given back between the engine's word and the request: else its mark would stay, and nobody know of it."""
    done = await actions.Drain(lambda _: kube).run(order())
    brain = Brain(kube, str(done.data["record"]))
    async with brain.background:
        new = await asyncio.to_thread(rejoined, plane)
        brain.state.drains.clear()
        brain.lost.again(DrainAgain(node="gpu1", record=new, marks={"inc-1": "why"}))
        await brain.looked()
        assert plane.taints("gpu1") == []
        assert brain.notes == ["drain.not_renewed: gpu1: it is not wanted any more"]
