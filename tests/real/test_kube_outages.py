"""A real Kubernetes control plane that restarts, hangs and refuses while a node is drained, emptied and given back."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError, Refused
from brain.actions import kube as module
from brain.actions import scheduler as actions
from brain.actions.base import Order
from brain.actions.kube import Kubernetes
from tests.real import kube_plane
from tests.real.kube_plane import Plane

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]


@pytest.fixture
async def kube(plane: Plane) -> AsyncIterator[Kubernetes]:
    """As `[schedulers.k8s]` would build it."""
    table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "timeout_s": 3.0}
    made = module.build("k8s", table, "schedulers.k8s")
    yield made
    await made.close()


def order(node: str, *, incident: str = "inc-7", timeout_s: float = 120.0, **params: Any) -> Order:
    """What a runbook orders."""
    return Order(id="s1", incident=incident, node=node, params=params, timeout_s=timeout_s, why="gpu_off_bus")


async def off_and_on(plane: Plane) -> None:
    """The API server dies and is started again."""
    await asyncio.to_thread(plane.stop_api)
    await asyncio.to_thread(plane.start_api)


async def test_an_eviction_outlasts_a_restart_of_the_api_server(plane: Plane, kube: Kubernetes) -> None:
    """It dies once while the pod ends, and once while a budget does not allow the eviction yet."""
    (ending,) = await asyncio.to_thread(plane.pods, "ending", "gpu1", ends_after_s=4)
    (kept,) = await asyncio.to_thread(plane.pods, "kept", "gpu2")
    await asyncio.to_thread(plane.budget, "kept", "kept", at_least=1)
    evictions = [
        asyncio.create_task(actions.Requeue(lambda _: kube).run(order(node, job=f"default/{pod}")))
        for node, pod in (("gpu1", ending), ("gpu2", kept))
    ]
    await asyncio.to_thread(plane.until, lambda: not plane.running("ending"), "it is not evicted")

    await off_and_on(plane)
    await asyncio.to_thread(plane.kubectl, "delete", "poddisruptionbudget", "kept")

    for eviction, pod in zip(evictions, (ending, kept), strict=True):
        assert (await eviction).data["job"] == f"default/{pod}"
    assert not {ending, kept} & {*plane.running("ending"), *plane.running("kept")}


@pytest.mark.parametrize(
    "word",
    [
        ("taint", "node", "gpu1", "gpuward/drained-"),
        ("annotate", "node", "gpu1", "--overwrite", "gpuward/reason=ann: let it finish"),
    ],
    ids=["takes the node back", "takes the drain over"],
)
async def test_pods_run_on_once_a_person_has_the_node(
    plane: Plane, kube: Kubernetes, word: tuple[str, ...]
) -> None:
    """A budget holds an eviction up; a person has the node by the time that it would allow it. Nothing is drained again."""
    (kept,) = await asyncio.to_thread(plane.pods, "kept", "gpu1")
    await asyncio.to_thread(plane.budget, "kept", "kept", at_least=1)
    begun = asyncio.Event()
    given = replace(
        order("gpu1", timeout_s=200.0, then="requeue"),
        progress=lambda text: begun.set() if text.startswith("requeueing") else None,
    )
    drain = asyncio.create_task(actions.Drain(lambda _: kube).run(given))
    await begun.wait()
    await asyncio.sleep(1.0)  # it asks some times
    await asyncio.to_thread(plane.kubectl, *word)
    await asyncio.to_thread(plane.kubectl, "delete", "poddisruptionbudget", "kept")
    with pytest.raises(Refused, match="someone has taken the drain of gpu1 off, or over"):
        await drain
    assert plane.running("kept") == [kept]
    assert bool(plane.taints("gpu1")) is (word[0] == "annotate")


async def test_an_eviction_ends_within_its_steps_time(plane: Plane, kube: Kubernetes) -> None:
    """The budget's words reach the operator before the step is cut off, whatever the configuration waits."""
    (pod,) = await asyncio.to_thread(plane.pods, "held", "gpu1")
    await asyncio.to_thread(plane.budget, "held", "held", at_least=1)
    with pytest.raises(ActionError, match=r"was not evicted in .* disruption budget"):
        await actions.Requeue(lambda _: kube).run(order("gpu1", job=f"default/{pod}", timeout_s=8))
    assert plane.running("held") == [pod]


async def test_drain_and_resume_outlast_restarts_of_the_api_server(plane: Plane, kube: Kubernetes) -> None:
    """Each is asked while nobody answers, and does not say that nothing was done."""
    for action in (actions.Drain, actions.Resume):
        await asyncio.to_thread(plane.stop_api)
        task = asyncio.create_task(action(lambda _: kube).run(order("gpu1", timeout_s=60)))
        await asyncio.to_thread(plane.start_api)
        assert (await task).text.startswith(
            "gpu1 is drained by us" if action is actions.Drain else "gpu1 takes"
        )
    assert plane.taints("gpu1") == []


async def test_a_denial_after_a_restart_is_asked_again(plane: Plane, kube: Kubernetes) -> None:
    """The server listens before it has read who may do what: every step that is under way then is done."""

    async def drained_and_back(n: int) -> None:
        until_s = time.monotonic() + 12
        while time.monotonic() < until_s:
            mine = f"inc-{n}"
            await actions.Drain(lambda _: kube).run(order("gpu1", incident=mine, timeout_s=60))
            await actions.Resume(lambda _: kube).run(order("gpu1", incident=mine, timeout_s=60))

    work = [asyncio.create_task(drained_and_back(n)) for n in range(8)]
    for _ in range(2):
        await off_and_on(plane)
    await asyncio.gather(*work)
    assert plane.taints("gpu1") == []


async def test_a_lost_answer_is_read_back(plane: Plane, kube: Kubernetes) -> None:
    """A server that hangs for longer than a request may take: the drain is there once, and the step says so."""
    assert (await actions.Drain(lambda _: kube).run(order("gpu1"))).data["ours"] is True
    task = asyncio.create_task(actions.Drain(lambda _: kube).run(order("gpu2", timeout_s=60)))
    await asyncio.to_thread(plane.freeze_api)
    await asyncio.sleep(4)
    await asyncio.to_thread(plane.thaw_api)
    assert (await task).data["ours"] is True
    assert plane.taints("gpu2") == ["gpuward/drained"]


async def test_an_answered_500_is_a_failure_with_the_servers_words(plane: Plane) -> None:
    """A pod under two budgets: the server never evicts it, and says why."""
    table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "evict_wait_s": 3.0}
    kube = module.build("k8s", table, "schedulers.k8s")
    (pod,) = await asyncio.to_thread(plane.pods, "twice", "gpu1")
    for budget in ("one", "two"):
        await asyncio.to_thread(plane.budget, budget, "twice", at_least=0)
    try:
        with pytest.raises(ActionError, match="more than one PodDisruptionBudget") as raised:
            await actions.Requeue(lambda _: kube).run(order("gpu1", job=f"default/{pod}"))
        assert type(raised.value) is ActionError, "not unknown: the server has answered"
    finally:
        await kube.close()


async def test_a_ca_that_was_rotated_is_read_again(plane: Plane, tmp_path: Path) -> None:
    """While a step asks: the brain needs no restart, by which every step that is under way would be unknown."""
    ca, key = tmp_path / "ca.crt", tmp_path / "key"
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=old")
    await (await asyncio.create_subprocess_exec(*new, "-keyout", key, "-out", ca)).wait()
    table = {
        "type": "kubernetes",
        "url": (plane.folder / "url").read_text().strip(),
        "ca_file": ca,
        "token_file": plane.folder / "gpuward.token",
    }
    kube = module.build("k8s", table, "schedulers.k8s")
    denied = asyncio.Event()
    given = replace(order("gpu1"), progress=lambda text: denied.set() if "not trusted" in text else None)
    try:
        drain = asyncio.create_task(actions.Drain(lambda _: kube).run(given))
        await denied.wait()
        ca.write_bytes((plane.folder / "ca.crt").read_bytes())
        assert (await drain).data["ours"] is True
    finally:
        await kube.close()
