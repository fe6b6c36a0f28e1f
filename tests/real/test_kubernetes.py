"""Kubernetes by its API: a server of our own that the real kubectl accepts, and kubectl asked for the same as we are.

What it cannot prove: that a real API server admits our requests (RBAC, admission webhooks, its own validation), that its
field managers behave as ours do, that the disruption controller counts as it does here, and that evicted pods really
begin again elsewhere. No Kubernetes server can be installed from Debian.
"""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Transient, Unreachable
from brain.actions import kube as module
from brain.actions import scheduler as actions
from brain.actions.base import Job, Order
from brain.actions.kube import Kubernetes
from brain.actions.marks import Mark, ours
from tests.real.kube_fake import Fake

KUBECTL = shutil.which("kubectl") or ""
WHY = Mark(incident="inc-7", why="why")
pytestmark = [
    pytest.mark.component("kubectl"),
    pytest.mark.skipif(not KUBECTL, reason="needs apt-get install kubernetes-client"),
    pytest.mark.timeout(300),
]


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[Fake]:
    """A server with two nodes and no pods."""
    async with Fake(tmp_path) as made:
        yield made


@pytest.fixture
async def kube(fake: Fake) -> AsyncIterator[Kubernetes]:
    """As `[schedulers.k8s]` with a kubeconfig would build it."""
    made = build(fake)
    yield made
    await made.close()


def build(fake: Fake, **more: Any) -> Kubernetes:
    """As `[schedulers.k8s]` would build it."""
    table = {"type": "kubernetes", "kubeconfig": fake.kubeconfig, "evict_wait_s": 60.0, **more}
    return module.build("k8s", table, "schedulers.k8s")


async def kubectl(fake: Fake, *argv: str) -> str:
    """What an administrator types."""
    process = await asyncio.create_subprocess_exec(
        *(KUBECTL, f"--kubeconfig={fake.kubeconfig}", *argv),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "HOME": str(fake.folder)},
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def spec(fake: Fake, node: str) -> list[str]:
    """The node's taints, and whether it is cordoned; in no order, for the API has none."""
    found = fake.nodes[node]["spec"]
    return sorted(
        ["cordoned"] * bool(found.get("unschedulable")) + [taint["key"] for taint in found["taints"]]
    )


def order(node: str, **params: Any) -> Order:
    """What a runbook orders."""
    return Order(id="s1", incident="inc-7", node=node, params=params, timeout_s=300, why="gpu_off_bus")


async def test_kubectl_and_we_ask_for_the_same(fake: Fake, kube: Kubernetes) -> None:
    """Cordon, taint, label, drain with a budget that says no at first, uncordon: the server ends in the same state."""
    for name in ("gpu1", "gpu2"):
        fake.pod(name, f"train-{name}")
        fake.pod(name, f"exporter-{name}", owner="DaemonSet")
    fake.budget_answers = 1
    await kubectl(fake, "taint", "node", "gpu1", "gpuward/drained=true:NoSchedule")
    await kubectl(fake, "label", "node", "gpu1", "gpuward/drained=true")
    drained = await kubectl(fake, "drain", "gpu1", "--ignore-daemonsets", "--force", "--timeout=30s")
    assert "pod/train-gpu1 evicted" in drained
    await kubectl(fake, "uncordon", "gpu1")  # the cordon is for people
    by_kubectl, fake.asked = [one for one in fake.asked if "eviction" in one], []

    fake.budget_answers = 1
    done = await actions.Drain(lambda _: kube).run(order("gpu2", then="requeue"))

    assert (done.data["ours"], done.data["jobs_left"]) == (True, 0)
    assert [one.replace("gpu2", "gpu1") for one in fake.asked if "eviction" in one] == by_kubectl
    assert [name for _, name in fake.pods] == ["exporter-gpu1", "exporter-gpu2"]
    assert spec(fake, "gpu2") == spec(fake, "gpu1")
    assert fake.nodes["gpu2"]["metadata"]["labels"] == fake.nodes["gpu1"]["metadata"]["labels"]
    described = json.loads(await kubectl(fake, "get", "node", "gpu2", "-o", "json"))
    assert "gpu_off_bus [inc-7]" in described["metadata"]["annotations"]["gpuward/reason"]

    await kubectl(fake, "taint", "node", "gpu1", "gpuward/drained-")
    await kubectl(fake, "label", "node", "gpu1", "gpuward/drained-")
    resumed = await actions.Resume(lambda _: kube).run(order("gpu2"))
    assert resumed.data == {"resumed": True, "takes_jobs": True}
    assert spec(fake, "gpu2") == spec(fake, "gpu1") == ["team"]
    assert "gpuward/reason" not in fake.nodes["gpu2"]["metadata"]["annotations"]


async def test_a_cordon_of_somebody_else_is_left_alone(fake: Fake, kube: Kubernetes) -> None:
    """Before ours: nothing is written. After ours: only our marks go."""
    await kubectl(fake, "cordon", "gpu1")
    before = json.dumps(fake.nodes["gpu1"])
    assert (await actions.Drain(lambda _: kube).run(order("gpu1"))).data["ours"] is False
    assert (await actions.Resume(lambda _: kube).run(order("gpu1"))).data["takes_jobs"] is False
    assert json.dumps(fake.nodes["gpu1"]) == before

    await kube.drain("gpu2", WHY)
    assert ours(await kube.drained("gpu2"))
    await kubectl(fake, "cordon", "gpu2")
    assert (await kube.drained("gpu2")).startswith("cordoned by kubectl; gpuward: why [inc-7]")
    assert (await actions.Resume(lambda _: kube).run(order("gpu2"))).data["takes_jobs"] is False
    assert fake.nodes["gpu2"]["spec"]["unschedulable"] is True
    assert "gpuward/reason" not in fake.nodes["gpu2"]["metadata"]["annotations"]


async def test_a_reason_that_somebody_changed_is_his(fake: Fake, kube: Kubernetes) -> None:
    """An administrator who writes into our annotation takes the drain over."""
    await kube.drain("gpu1", WHY)
    await kubectl(fake, "annotate", "--overwrite", "node", "gpu1", "gpuward/reason=gpuward: mine now")
    assert await kube.resume("gpu1", None) is False
    assert spec(fake, "gpu1") == ["gpuward/drained", "team"]


async def test_who_was_quicker_is_not_written_over(fake: Fake, kube: Kubernetes) -> None:
    """409: it is read and decided again; without end, nothing was done."""
    fake.conflicts = 2
    await kube.drain("gpu1", WHY)
    assert ours(await kube.drained("gpu1"))
    fake.conflicts = 100
    with pytest.raises(Unreachable):
        await kube.resume("gpu1", None)
    assert ours(await kube.drained("gpu1"))


async def test_pods_by_gpu_and_those_that_stay(fake: Fake) -> None:
    """Over several pages: what a drain would stop, how many GPUs it has, and which where an annotation says so."""
    kube = build(
        fake, gpu_annotation="gpus", protected={"selector": "app=inference", "priority_classes": ["gold-*"]}
    )
    fake.pod("gpu1", "a", gpus=2, annotations={"gpus": "GPU-1, GPU-2"})
    fake.pod("gpu1", "b", gpus=8, labels={"app": "inference"})
    fake.pod("gpu1", "c", gpus=0, priority="gold-1")
    fake.pod("gpu1", "d", owner="")
    fake.pod("gpu1", "daemon", owner="DaemonSet")
    fake.pod("gpu1", "mirror", owner="Node", annotations={"kubernetes.io/config.mirror": "x"})
    fake.pod("gpu1", "ended", phase="Succeeded")
    fake.pod("gpu2", "elsewhere")
    try:
        found = [(job.id, job.gpus, job.gpu_count, job.protected) for job in await kube.jobs("gpu1")]
        assert found == [
            ("train/a", ("GPU-1", "GPU-2"), 2, ""),
            ("train/b", (), 8, "selector app=inference"),
            ("train/c", (), 0, "priority class gold-1"),
            ("train/d", (), 1, ""),
        ]
        for params in ({"job": "train/b"}, {"job": "train/c"}):
            with pytest.raises(Refused, match="protected"):
                await actions.Requeue(lambda _: kube).run(order("gpu1", **params))
        with pytest.raises(Refused, match="protected"):
            await actions.Drain(lambda _: kube).run(order("gpu1", then="requeue"))
        with pytest.raises(Refused, match="no controller"):
            await kube.requeue(Job(id="train/d"))
        for pod in ("train/daemon", "train/mirror", "train/ended", "train/none", "train/../x", "x"):
            with pytest.raises(Refused):
                await kube.requeue(Job(id=pod))
        assert fake.asked == []
        await actions.Requeue(lambda _: kube).run(order("gpu1", job="train/a"))
        assert ("train", "a") not in fake.pods
        with pytest.raises(Refused, match="does not reboot"):
            await kube.reboot("gpu1", WHY)
    finally:
        await kube.close()


EPHEMERAL: dict[str, Any] = {"name": "scratch", "emptyDir": {}}
SHARED_MEMORY: dict[str, Any] = {"name": "shm", "emptyDir": {"medium": "Memory"}}


@pytest.mark.parametrize(
    ("deletes", "volumes", "refused"),
    [
        (True, [EPHEMERAL], False),
        (False, [EPHEMERAL], True),
        (False, [SHARED_MEMORY], False),
        (False, [SHARED_MEMORY, EPHEMERAL], True),
        (False, [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}], False),
    ],
)
async def test_what_a_pod_has_on_the_nodes_disk(
    fake: Fake, deletes: bool, volumes: list[dict[str, Any]], refused: bool
) -> None:
    """As the site says, which is as kubectl's --delete-emptydir-data does it."""
    kube = build(fake, delete_emptydir_data=deletes)
    fake.pod("gpu1", "a", spec={"volumes": volumes})
    try:
        with pytest.raises(Refused, match="volume scratch") if refused else contextlib.nullcontext():
            await kube.requeue(Job(id="train/a"))
        assert (("train", "a") in fake.pods) is refused
    finally:
        await kube.close()


async def test_gpus_of_sidecars_and_claims(fake: Fake) -> None:
    """What has ended before the pod's work does not count."""
    two = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    fake.pod(
        "gpu1", "a", gpus=1,
        spec={"initContainers": [two | {"name": "side", "restartPolicy": "Always"}, two | {"name": "before"}],
              "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
    )  # fmt: skip
    kube = build(fake)
    try:
        assert [job.gpu_count for job in await kube.jobs("gpu1")] == [1 + 2 + 1]
    finally:
        await kube.close()


async def test_a_budget_that_never_allows_it(fake: Fake) -> None:
    """The pod is left running, and the words of the server are told; one that never ends is told too."""
    kube = build(fake, evict_wait_s=1.0)
    fake.pod("gpu1", "a")
    try:
        fake.budget_answers = 1000
        with pytest.raises(ActionError, match="disruption budget"):
            await kube.requeue(Job(id="train/a"))
        fake.budget_answers, fake.ends_after_s = 0, 60
        with pytest.raises(ActionError, match="has not ended"):
            await kube.requeue(Job(id="train/a"))
        assert [job.state for job in await kube.jobs("gpu1")] == ["terminating"]
    finally:
        await kube.close()


async def test_who_we_are(fake: Fake) -> None:
    """A token file that is renewed, the server's CA, and what happens without them."""
    by_file = {"kubeconfig": None, "url": fake.url, "token_file": fake.token, "ca_file": fake.ca}
    kube, untrusting = build(fake, **by_file), build(fake, **by_file | {"ca_file": None})
    try:
        assert await kube.drained("gpu1") == ""
        fake.token.write_text("wrong")
        with pytest.raises(Transient, match="401"):  # it was let in a moment ago
            await kube.drained("gpu1")
        fake.token.write_text("sesame")
        assert await kube.drained("gpu1") == ""
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await untrusting.drain("gpu1", WHY)
        fake.token.unlink()
        with pytest.raises(Refused, match="token_file"):
            await kube.drained("gpu1")
        late = build(fake)
        whole = fake.kubeconfig.read_text()
        for written in ("", "null", "[]", "users: 3", "clusters: [", whole[: len(whole) // 2], "a\0"):
            fake.kubeconfig.write_text(written)  # somebody is writing it just now
            with pytest.raises(Refused, match=r"schedulers\.k8s: kubeconfig "):
                await late.drained("gpu1")
        fake.kubeconfig.unlink()
        with pytest.raises(Refused, match=r"schedulers\.k8s\.kubeconfig: .* cannot be read: No such file"):
            await late.drained("gpu1")
        with pytest.raises(ConfigError, match=r"kubeconfig: .* cannot be read: No such file"):
            build(fake)
    finally:
        await kube.close()
        await untrusting.close()


async def test_trouble_by_who_must_act(fake: Fake) -> None:
    """Unknown node: refused. Broken while reading: asked again. Broken or silent while changing: nobody knows."""
    kube, hasty = build(fake), build(fake, timeout_s=0.5)
    try:
        for node in ("gpu9", "gpu1/../gpu2", "GPU", ""):
            with pytest.raises(Refused):
                await kube.drain(node, WHY)
        fake.status = 503
        with pytest.raises(Transient):
            await kube.drained("gpu1")
        fake.status, fake.hang = 0, True
        with pytest.raises(TimedOut):
            await hasty.drain("gpu1", WHY)
        assert spec(fake, "gpu1") == ["gpuward/drained", "team"]
    finally:
        await kube.close()
        await hasty.close()


async def test_a_server_that_is_gone(fake: Fake, kube: Kubernetes) -> None:
    """Nothing was done."""
    assert await kube.drained("gpu1") == ""
    await fake.__aexit__(None, None, None)
    with pytest.raises(Unreachable):
        await kube.drain("gpu1", WHY)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({}, "give one of kubeconfig, in_cluster and url"),
        ({"url": "https://k", "in_cluster": True}, "give one of"),
        ({"url": "http://k", "token_file": "t"}, "url: a token is only sent over https"),
        ({"kubeconfig": "k", "node_name": "x"}, "node_name"),
        ({"kubeconfig": "k", "protected": {"selectors": "x"}}, "protected.*selectors: is not an option here"),
        ({"kubeconfig": "k", "timeout": 3}, "timeout: is not an option here"),
    ],
)
def test_tables_that_the_operator_must_mend(table: dict[str, Any], key: str) -> None:
    """The message names the key."""
    with pytest.raises(ConfigError, match=f"schedulers.k8s.*{key}"):
        module.build("k8s", {"type": "kubernetes", **table}, "schedulers.k8s")
