"""What `kubectl describe node` shows of our drain, on a real API server: events and a condition, where a site wants them."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
import yaml

from agent.contract.errors import ConfigError, Refused
from brain.actions import telling
from brain.actions.kube_tell import ADDED, BEGUN, ENDED, REMOVED
from tests.real import kube_plane
from tests.real.kube_plane import Plane
from tests.real.kube_told import BOTH, ROLES, SINCE, Site, cleaned, events, ours, written_by_us

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


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a step waits for it is tested in test_kube_tell_trouble.py."""
    monkeypatch.setattr(telling, "TELL_S", kube_plane.WAIT_S)


async def test_a_drain_is_shown_and_its_end(clean: Plane) -> None:
    """By events and the condition, in kubectl's own words too: when it begins, when another incident joins it, when one lets go,
    when the last one does. The condition keeps its time while its status stays, and no other condition is touched.
    """
    site = Site(clean, *BOTH)
    began = site.later()
    done = await site.drain("inc-1")
    assert done.text == "gpu1 is drained by us; no jobs"
    why = "gpu-off-bus at node/gpu1 (rule of-inc-1) [inc-1]"
    assert events(clean) == {BEGUN: [("Warning", 1, f"gpuward drains the node: {why}")]}
    assert ours(clean) == {
        "type": "GpuwardFault",
        "status": "True",
        "reason": "GpuOffBus",
        "message": why,
        "lastHeartbeatTime": began,
        "lastTransitionTime": began,
    }
    shown = clean.kubectl("describe", "node", "gpu1")
    assert all(word in shown for word in ("GpuwardFault", "GpuOffBus", BEGUN, "gpuward drains the node"))

    joined = site.later()
    await site.drain("inc-2")
    assert [(kind, count) for kind, count, _ in events(clean)[ADDED]] == [("Warning", 1)]
    assert "[inc-1]; " in ours(clean)["message"]
    assert ours(clean)["message"].endswith("[inc-2]")
    assert (ours(clean)["lastTransitionTime"], ours(clean)["lastHeartbeatTime"]) == (began, joined)

    site.later()
    await site.resume("inc-1")
    assert [(kind, count) for kind, count, _ in events(clean)[REMOVED]] == [("Normal", 1)]
    assert (ours(clean)["status"], ours(clean)["lastTransitionTime"]) == ("True", began)
    assert ENDED not in events(clean)

    ended = site.later()
    done = await site.resume("inc-2")
    assert done.text == "gpu1 takes jobs again"
    ((kind, count, text),) = events(clean)[ENDED]
    assert (kind, count) == ("Normal", 1)
    assert "[inc-2] lets the node go" in text
    gone = ours(clean)
    assert (gone["status"], gone["reason"], gone["lastTransitionTime"]) == ("False", "NoGpuwardDrain", ended)
    assert written_by_us(clean) == {"GpuwardFault"}
    await site.kube.close()


async def test_the_same_again_is_counted_and_a_repeat_is_not(clean: Plane) -> None:
    """A fault that comes back drains the node again: its events count 2. A step that is performed twice, also by the next brain,
    which remembers nothing, writes nothing more.
    """
    for round_ in (1, 2):
        site = Site(clean, *BOTH)
        site.now = SINCE + timedelta(hours=round_)
        await site.drain("inc-1")
        site.later()
        await site.drain("inc-1")
        other = Site(clean, *BOTH)
        other.now = site.now + timedelta(seconds=60)
        await other.drain("inc-1")
        assert [count for _, count, _ in events(clean)[BEGUN]] == [round_]
        other.later()
        await other.resume("inc-1")
        site.now = other.now + timedelta(seconds=60)
        await site.resume("inc-1")
        assert [count for _, count, _ in events(clean)[ENDED]] == [round_]
        await site.kube.close()
        await other.kube.close()


async def test_what_a_brain_that_died_has_not_shown_the_next_one_shows(clean: Plane) -> None:
    """It died between the change and its telling: when the step is repeated nothing changes, and what is missing is shown."""
    dead, site = Site(clean), Site(clean, *BOTH)
    await dead.drain("inc-1")
    assert events(clean) == {}
    assert ours(clean) == {}
    await site.drain("inc-1")
    assert set(events(clean)) == {BEGUN}
    assert ours(clean)["status"] == "True"
    site.later()
    await dead.resume("inc-1")
    assert ours(clean)["status"] == "True"
    await site.resume("inc-1")
    assert set(events(clean)) == {BEGUN, ENDED}
    assert ours(clean)["status"] == "False"
    for one in (dead, site):
        await one.kube.close()


async def test_of_what_is_not_ours_nothing_is_shown(clean: Plane) -> None:
    """A node that a person has cordoned; a return of a node that was never drained. What a person takes off our hands is shown
    when the incident lets go.
    """
    site = Site(clean, *BOTH)
    await site.resume("inc-1")
    clean.kubectl("cordon", "gpu1")
    await site.drain("inc-1")
    await site.resume("inc-1")
    assert events(clean) == {}
    assert ours(clean) == {}
    clean.kubectl("uncordon", "gpu1")
    await site.drain("inc-2")
    clean.kubectl("taint", "node", "gpu1", "gpuward/drained-")
    site.later()
    await site.resume("inc-2")
    assert set(events(clean)) == {BEGUN, ENDED}
    assert ours(clean)["status"] == "False"
    await site.kube.close()


async def test_a_drain_that_is_taken_back_is_shown_as_that(clean: Plane) -> None:
    """`then = "undo"`: pods still run, so the node serves on."""
    await asyncio.to_thread(clean.pods, "train", "gpu1")
    site = Site(clean, *BOTH)
    with pytest.raises(Refused, match=r"the drain was taken back$"):
        await site.drain("inc-1", then="undo")
    assert set(events(clean)) == {BEGUN, ENDED}
    assert ours(clean)["status"] == "False"
    await site.kube.close()


async def test_the_roles_are_what_the_code_uses(clean: Plane) -> None:
    """By the server's own audit log: each of the three verbs on events, the one on the status, the list, and no more than
    the roles say."""
    audit = clean.folder / "audit.log"
    said = len(audit.read_text().splitlines())
    site = Site(clean, *BOTH)
    for round_ in (1, 2):
        site.now = SINCE + timedelta(hours=round_)
        await site.drain("inc-1")
        site.later()
        await site.resume("inc-1")
    await site.kube.tell_anew()
    await site.kube.close()
    mine = [json.loads(line) for line in audit.read_text().splitlines()[said:]]
    mine = [one for one in mine if one["user"]["username"] == "system:serviceaccount:gpuward:gpuward"]
    used = {
        (
            one["verb"],
            "/".join(filter(None, (one["objectRef"]["resource"], one["objectRef"].get("subresource")))),
        )
        for one in mine
    }
    roles = [
        rule
        for role in ROLES.values()
        for one in yaml.safe_load_all(role.read_text())
        for rule in one.get("rules", ())
    ]
    allowed = {(verb, what) for rule in roles for what in rule["resources"] for verb in rule["verbs"]}
    assert used - {("get", "nodes"), ("patch", "nodes"), ("list", "pods")} == allowed
    # 409: the kubelet has written its status in between, and the change was decided again
    assert {one["responseStatus"]["code"] for one in mine} <= {200, 201, 404, 409}
    account = "system:serviceaccount:gpuward:gpuward"
    for request in (
        "create events -n kube-system",
        "delete events -n default",
        "update nodes/status",
        "watch nodes",
    ):
        assert clean.kubectl("auth", "can-i", *request.split(), "--as", account, check=False).strip() == "no"


def test_what_gpuward_says_is_not_heard_by_it(plane: Plane) -> None:
    """Or each drain would open an incident about itself."""
    with pytest.raises(
        ConfigError, match=r"schedulers\.k8s\.conditions: GpuwardFault is what gpuward itself says"
    ):
        Site(plane, "conditions", conditions=["KernelDeadlock", "GpuwardFault"])
    with pytest.raises(ConfigError, match="tell"):
        Site(plane, "condition")
