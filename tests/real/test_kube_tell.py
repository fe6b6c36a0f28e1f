"""What `kubectl describe node` shows of our drain, on a real API server: events and a condition, where a site wants them."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut
from brain import fence
from brain.actions import kube as module
from brain.actions import kube_tell, telling
from brain.actions import scheduler as actions
from brain.actions.base import Done, Order
from brain.actions.kube import Kubernetes
from brain.actions.kube_options import CONDITION
from brain.actions.kube_tell import ADDED, BEGUN, ENDED, REMOVED
from brain.actions.marks import Mark
from tests.real import kube_plane
from tests.real.kube_plane import Plane

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]
RBAC = Path(__file__).resolve().parents[2] / "deploy/kubernetes/rbac"
ROLES = {"events": RBAC / "tell-events.yaml", "conditions": RBAC / "tell-conditions.yaml"}
BOTH = ("events", "conditions")
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """One control plane for all."""
    with kube_plane.plane() as made:
        yield made


@pytest.fixture
def clean(plane: Plane) -> Plane:
    """Nothing of an earlier test on nodes, and both rights."""
    plane.clean()
    plane.kubectl("delete", "events", "--all", "--namespace", "default")
    for role in ROLES.values():
        plane.kubectl("apply", "-f", str(role))
    for name in kube_plane.NODES:
        forget = {"status": {"conditions": [{"type": CONDITION, "$patch": "delete"}]}}
        plane.kubectl("patch", "node", name, "--subresource=status", "-p", json.dumps(forget))
    return plane


class Site:
    """One brain's scheduler, at a time that we set."""

    def __init__(self, plane: Plane, *tell: str, **more: Any) -> None:
        table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "tell": list(tell), **more}
        self.kube: Kubernetes = module.build("k8s", table, "schedulers.k8s")
        self.now = SINCE
        self.kube._teller._clock = lambda: self.now

    def later(self, seconds: float = 60.0) -> str:
        """So much later; the time as the API writes it."""
        self.now += timedelta(seconds=seconds)
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    async def drain(self, incident: str, **params: Any) -> Done:
        """As a runbook orders it."""
        return await actions.Drain(lambda _: self.kube).run(order(incident, **params))

    async def resume(self, incident: str, **params: Any) -> Done:
        """As a runbook orders it."""
        return await actions.Resume(lambda _: self.kube).run(order(incident, **params))


def order(incident: str, **params: Any) -> Order:
    """What a runbook orders."""
    why = f"gpu-off-bus at node/gpu1 (rule of-{incident})"
    return Order(id="s1", incident=incident, node="gpu1", params=params, timeout_s=60, why=why)


def events(plane: Plane) -> dict[str, list[tuple[str, int, str]]]:
    """Those of gpu1 by the uid under which `kubectl describe node` asks: reason -> (type, how often, message) of each."""
    which = "involvedObject.kind=Node,involvedObject.name=gpu1,involvedObject.uid=gpu1,source=gpuward"
    found = json.loads(
        plane.kubectl("get", "events", "-n", "default", "--field-selector", which, "-o", "json")
    )
    told: dict[str, list[tuple[str, int, str]]] = {}
    for one in found["items"]:
        told.setdefault(one["reason"], []).append((one["type"], one["count"], one["message"]))
    return told


def conditions(plane: Plane) -> dict[str, dict[str, str]]:
    """Those of gpu1 by their type."""
    return {one["type"]: one for one in plane.node("gpu1")["status"]["conditions"]}


def ours(plane: Plane) -> dict[str, str]:
    """Our own one; empty: there is none."""
    return conditions(plane).get(CONDITION, {})


async def test_a_drain_is_shown_and_its_end(clean: Plane) -> None:
    """By events and the condition, in kubectl's own words too: when it begins, when another incident joins it, when one lets go,
    when the last one does. The condition keeps its time while its status stays, and no other condition is touched.
    """
    site = Site(clean, *BOTH)
    before = {kind: one["lastTransitionTime"] for kind, one in conditions(clean).items()}
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
    after = {kind: one["lastTransitionTime"] for kind, one in conditions(clean).items()}
    assert {**after} == {**before, "GpuwardFault": ended}
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


@pytest.mark.parametrize("lacking", BOTH)
async def test_without_the_right_it_is_said_and_the_drain_goes_on(clean: Plane, lacking: str) -> None:
    """The other half is shown all the same; what is missing is named by the doctor, and only where it is switched on."""
    clean.kubectl("delete", "-f", str(ROLES[lacking]))
    site, silent = Site(clean, *BOTH), Site(clean)
    names = {
        "events": ["get events", "create events", "patch events"],
        "conditions": ["patch nodes/status"],
    }
    assert await site.kube.lacking() == names[lacking]
    assert await silent.kube.lacking() == []
    drained, returned = (await site.drain("inc-1")).text, (await site.resume("inc-1")).text
    assert drained.startswith("gpu1 is drained by us; no jobs; k8s does not show it: ")
    assert f" to {names[lacking][0]}: " in drained
    # Of a condition that was never written there is nothing to take back.
    assert ("; k8s does not show it: " in returned) == (lacking == "events")
    assert returned.startswith("gpu1 takes jobs again")
    assert clean.taints("gpu1") == []
    if lacking == "events":
        assert events(clean) == {}
        assert ours(clean)["status"] == "False"
    else:
        assert BEGUN in events(clean)
        assert ENDED in events(clean)
        assert ours(clean) == {}
    for one in (site, silent):
        await one.kube.close()


async def test_a_server_that_hangs_holds_up_neither_drain_nor_return(
    clean: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the taint stands, and once it is gone: what cannot be shown is said after a while, and shown by the next step."""
    monkeypatch.setattr(telling, "TELL_S", 1.0)
    site = Site(clean, *BOTH)
    request = site.kube._api.request
    answers = asyncio.Event()

    async def hangs(method: str, path: str, **more: Any) -> Any:
        if not answers.is_set() and ("/events" in path or "/status" in path):
            await answers.wait()
        return await request(method, path, **more)

    monkeypatch.setattr(site.kube._api, "request", hangs)
    assert (
        await site.drain("inc-1")
    ).text == "gpu1 is drained by us; no jobs; k8s does not show it: no answer within 1 s"
    assert (
        await site.resume("inc-1")
    ).text == "gpu1 takes jobs again; k8s does not show it: no answer within 1 s"
    assert events(clean) == {}
    assert ours(clean) == {}
    answers.set()
    await site.drain("inc-2")
    assert set(events(clean)) == {BEGUN}
    assert ours(clean)["status"] == "True"
    site.later()
    await site.resume("inc-2")
    assert ours(clean)["status"] == "False"
    await site.kube.close()


class Deposing:
    """The fence of a brain whose lease is taken by another one as soon as it has changed one thing."""

    left = 1

    async def confirm(self) -> bool:
        """As in Fence."""
        self.left -= 1
        return self.holds()

    def holds(self) -> bool:
        """As in Fence."""
        return self.left >= 0


async def test_a_brain_that_leads_no_longer_shows_nothing(clean: Plane) -> None:
    """It was deposed once the taint stood. The next leader, which repeats the step, shows it."""
    site = Site(clean, *BOTH)
    with fence.around(Deposing()), pytest.raises(fence.Deposed):
        await site.drain("inc-1")
    assert clean.taints("gpu1") == ["gpuward/drained"]
    assert events(clean) == {}
    assert ours(clean) == {}
    await site.drain("inc-1")
    assert set(events(clean)) == {BEGUN}
    assert ours(clean)["status"] == "True"
    await site.kube.close()


async def test_two_that_write_at_once_leave_what_is_true(clean: Plane) -> None:
    """Each write is decided on what it was read from: one that is late does not put back what is over."""
    site, late = Site(clean, *BOTH), Site(clean, *BOTH)
    await site.drain("inc-1")
    request, once = late.kube._api.request, [True]

    async def overtaken(method: str, path: str, **more: Any) -> Any:
        if once and path.endswith("/status"):
            once.clear()
            site.later()
            await site.resume("inc-1")
        return await request(method, path, **more)

    late.kube._api.request = overtaken  # type: ignore[method-assign]
    await late.kube.tell("gpu1", {"inc-1"})
    assert once == []
    assert ours(clean)["status"] == "False"
    for one in (site, late):
        await one.kube.close()


async def test_a_failed_drain_says_so_on_its_way(clean: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is that of the pods; what is not shown stands in its progress."""
    clean.kubectl("delete", "-f", str(ROLES["events"]))
    await asyncio.to_thread(clean.pods, "train", "gpu1")
    site, said = Site(clean, "events"), list[str]()
    drain = actions.Drain(lambda _: site.kube)
    with pytest.raises(ActionError, match="there still run"):
        await drain.run(replace(order("inc-1"), progress=said.append))
    assert any(text.startswith("k8s does not show it: ") for text in said)
    await site.kube.close()


async def test_the_roles_are_what_the_code_uses(clean: Plane) -> None:
    """By the server's own audit log: each of the three verbs on events, the one on the status, and no more than the roles say."""
    audit = clean.folder / "audit.log"
    said = len(audit.read_text().splitlines())
    site = Site(clean, *BOTH)
    for round_ in (1, 2):
        site.now = SINCE + timedelta(hours=round_)
        await site.drain("inc-1")
        site.later()
        await site.resume("inc-1")
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
        "list nodes",
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


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("gpu_off_bus on gpu/0000:3b:00 (rule gpu-off-bus)", "GpuOffBus"),
        ("xid-79 at gpu/0000:3b:00", "Xid79"),
        ("79 at gpu/0000:3b:00", "Fault79"),
        ("", "Fault"),
    ],
)
def test_reasons_of_conditions(why: str, reason: str) -> None:
    """In CamelCase, and never empty: the server wants neither spaces nor nothing."""
    assert kube_tell.camel(why) == reason
    made = kube_tell.condition(None, [Mark(incident="inc-1", why=why)], "2026-01-01T00:00:00Z")
    assert made is not None
    assert made["reason"] == reason


def test_errors_of_both_halves_are_told_together() -> None:
    """The first one's kind decides whether it is asked again."""

    class Api:
        """Refuses everything."""

        async def request(self, method: str, path: str, **_: object) -> None:
            raise TimedOut(path)

    async def look() -> tuple[dict[str, Any], list[Mark]]:
        return {"metadata": {}}, [Mark(incident="inc-1", why="x")]

    teller = kube_tell.NodeTeller(Api(), BOTH)  # type: ignore[arg-type]
    with pytest.raises(TimedOut, match=r"/status; /api/v1/namespaces/default/events"):
        asyncio.run(teller.tell("gpu1", look, {"inc-1"}, ()))
