"""An API server, or what stands in its place, that answers anything: the brain gets an error, soon, and goes on."""

import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ActionError, TimedOut, Transient
from brain import fence
from brain.actions import kube, kube_api
from brain.actions.base import Job
from brain.actions.kube import Kubernetes
from brain.actions.kube_conditions import NodeConditions
from brain.actions.kube_conditions import listeners as conditions
from brain.actions.kube_devices import listeners as devices
from brain.actions.marks import Mark
from brain.core.inputs import Reported
from brain.leader import jobs
from brain.unreadable import answered_by
from tests.bent import bent
from tests.fences import Open

Lie = Callable[[web.Request], web.StreamResponse]
MARK = Mark(incident="inc-1", why="gpu_off_bus at node/n1 (rule r)")
NODE: dict[str, Any] = {
    "metadata": {
        "name": "n1",
        "uid": "n",
        "resourceVersion": "1",
        "annotations": {"gpuward/reason": "x", "gpuward/kept": "a/b"},
        "labels": {"a": "b"},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}],
    },
    "spec": {
        "unschedulable": True,
        "taints": [{"key": "gpuward/drained", "value": "true", "effect": "NoSchedule"}],
    },
    "status": {
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "r",
                "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
            {
                "type": "XidError",
                "status": "True",
                "reason": "r",
                "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
        ],
        "capacity": {"nvidia.com/gpu": "8"},
        "allocatable": {"nvidia.com/gpu": "7"},
    },
}
POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "train",
        "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"job-name": "j"},
        "annotations": {"a": "b"},
        "ownerReferences": [{"kind": "Job", "name": "j", "controller": True}],
    },
    "spec": {
        "nodeName": "n1",
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        "initContainers": [{"restartPolicy": "Always", "resources": {}}],
        "resourceClaims": [{"name": "c"}],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
        "priorityClassName": "low",
    },
    "status": {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ],
    },
}  # fmt: skip


def _list(*items: Any) -> dict[str, Any]:
    return {"metadata": {}, "items": list(items)}


class Liar:
    """A server that answers as `lie` says."""

    def __init__(self) -> None:
        self.lie: Lie = lambda _: web.json_response({})
        self.url = ""
        self.asked = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """As it likes."""
        await request.read()
        self.asked += 1
        return self.lie(request)


@contextlib.asynccontextmanager
async def liar() -> AsyncIterator[Liar]:
    """It serves."""
    made = Liar()
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()


def _table(url: str) -> dict[str, Any]:
    return {
        "type": "kubernetes", "url": url, "timeout_s": 5.0, "evict_wait_s": 0.1, "states": True,
        "conditions": ["XidError"], "conditions_every_s": 1.0, "gpu_annotation": "a", "keep_annotations": ["a/b"],
        "tell": ["conditions", "events"],
    }  # fmt: skip


def _witness(table: dict[str, Any], put: list[object]) -> NodeConditions:
    (found,) = conditions(
        {"k": table}, put=put.append, note=lambda *_: None, leads=lambda: True, known=lambda: ["n1"]
    )
    return found


async def _all_of(cluster: Kubernetes, witness: NodeConditions) -> None:
    """Everything that is asked of a cluster: an ActionError is an answer, and nothing else is."""
    said = await jobs.answer(cluster, "n1", "j:1", people=True)
    assert isinstance(said.known, bool)
    calls: list[Callable[[], Any]] = [
        lambda: cluster.drain("n1", MARK),
        lambda: cluster.resume("n1", None),
        lambda: cluster.say_off("n1", "inc-1"),
        lambda: cluster.tell("n1", ["inc-1"]),
        cluster.tell_anew,
        cluster.lacking,
        lambda: cluster.requeue(Job(id="train/p", user="a", run="u"), within_s=0.1),
        witness.look,
    ]
    for call in calls:
        with contextlib.suppress(ActionError), fence.around(Open()), answered_by("k"):
            await call()


def _answers(body: Any, at: str) -> Lie:
    """The body where `at` stands in the path, and what is right elsewhere."""

    def lie(request: web.Request) -> web.StreamResponse:
        path = request.path
        if path.endswith(at):
            return web.Response(body=json.dumps(body), content_type="application/json")
        right: Any = (
            NODE
            if "/nodes/" in path
            else POD
            if "/pods/" in path
            else _list(NODE if path.endswith("nodes") else POD)
        )
        return web.json_response(right)

    return lie


@pytest.mark.parametrize(
    ("at", "right"),
    [
        ("/nodes/n1", NODE),
        ("/pods/p", POD),
        ("/nodes", _list(NODE)),
        ("/pods", _list(POD)),
        ("/selfsubjectaccessreviews", {"status": {"allowed": True}}),
    ],
)
async def test_any_form_of_answer(at: str, right: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something odd in many places of each answer."""
    monkeypatch.setattr(kube, "CONFLICTS", 1)
    async with liar() as server:
        table = _table(server.url)
        cluster, witness = kube.build("k", table, "schedulers.k"), _witness(table, [])
        for body in itertools.islice(bent(right), 0, None, 53):
            server.lie = _answers(body, at)
            await _all_of(cluster, witness)
        await cluster.close()
        await witness.close()


def _endless(_: web.Request) -> web.StreamResponse:
    return web.json_response({"metadata": {"continue": "again"}, "items": [POD] * 3})


def _ever_new(request: web.Request) -> web.StreamResponse:
    at = int(request.query.get("continue", "0"))
    return web.json_response({"metadata": {"continue": str(at + 1)}, "items": [POD] * 3})


@pytest.mark.parametrize("lie", [_endless, _ever_new])
async def test_a_list_without_an_end_ends(lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache in between that knows no pages gives the first one again and again: the memory of the brain has an end."""
    monkeypatch.setattr(kube_api, "MAX_LISTED", 60)
    async with liar() as server:
        server.lie = lie
        table = _table(server.url)
        cluster, witness = kube.build("k", table, "schedulers.k"), _witness(table, [])
        for call in (lambda: cluster.jobs("n1"), cluster.tell_anew, witness.look):
            before = server.asked
            with pytest.raises(ActionError, match="its list has no end"):
                await call()
            assert server.asked - before <= 21
        await cluster.close()
        await witness.close()


async def test_a_list_that_goes_on_too_late_is_asked_for_again() -> None:
    """410: etcd no longer has what the list began with. It passes."""
    async with liar() as server:
        server.lie = lambda _: web.json_response(
            {"message": "too old resource version", "code": 410}, status=410
        )
        cluster = kube.build("k", _table(server.url), "schedulers.k")
        with pytest.raises(Transient, match="too old resource version"):
            await cluster.jobs("n1")
        await cluster.close()


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"null", b"9" * 10_000, b"{" * 5]
)
@pytest.mark.parametrize("status", [200, 401, 404, 409, 410, 429, 500, 504])
async def test_what_is_no_json(body: bytes, status: int) -> None:
    """With any status, and a Retry-After that is no number."""
    async with liar() as server:
        server.lie = lambda _: web.Response(body=body, status=status, headers={"Retry-After": "²"})
        table = _table(server.url)
        cluster, witness = kube.build("k", table, "schedulers.k"), _witness(table, [])
        await _all_of(cluster, witness)
        await cluster.close()
        await witness.close()


PAGE = "<html><title>Sign in</title></html>"
JSON = "application/json"
FOREIGN = [
    pytest.param(200, "text/html", PAGE, id="a login page"),
    pytest.param(200, JSON, "{}", id="nothing"),
    pytest.param(200, JSON, '{"kind": "Status", "status": "Success"}', id="a word of success"),
    pytest.param(200, JSON, '[{"ok": true}]', id="a list"),
    pytest.param(200, JSON, '{"metadata": {"name": "other", "uid": "u"}, "spec": {}}', id="another object"),
    pytest.param(404, "text/html", "<h1>default backend - 404</h1>", id="an ingress that knows no such host"),
    pytest.param(404, JSON, '{"error": "no route"}', id="a gateway without a route"),
]


@pytest.mark.parametrize(("status", "kind", "text"), FOREIGN)
async def test_what_something_in_between_answers_is_no_answer(status: int, kind: str, text: str) -> None:
    """Not that no jobs run there, that nobody has drained the node, that a pod has ended, or that a right is lacking: it is
    asked again, and it is said that nothing is known. Each was believed: silence proves nothing (law 8).
    """
    async with liar() as server:
        server.lie = lambda _: web.Response(status=status, text=text, content_type=kind)
        cluster = kube.build("k", _table(server.url), "schedulers.k")
        said = await jobs.answer(cluster, "n1", "j:1")
        assert (said.known, said.jobs) == (False, ())
        assert said.why
        for call in (cluster.drained, cluster.marks, cluster.standing, cluster.jobs):
            with pytest.raises(Transient):
                await call("n1")
        with pytest.raises((Transient, TimedOut)):
            await cluster.lacking()
        with pytest.raises(ActionError):
            await cluster.requeue(Job(id="train/p", user="a", run="u"), within_s=0.1)
        await cluster.close()


@pytest.mark.parametrize(("status", "kind", "text"), FOREIGN)
async def test_a_pod_has_not_ended_because_something_else_answers(status: int, kind: str, text: str) -> None:
    """The eviction was taken, and then a proxy answers what it likes."""
    async with liar() as server:

        def lie(request: web.Request) -> web.StreamResponse:
            if request.method == "POST":
                return web.json_response({"kind": "Status", "status": "Success"}, status=201)
            if server.asked == 1:
                return web.json_response(POD)
            return web.Response(status=status, text=text, content_type=kind)

        server.lie = lie
        cluster = kube.build("k", _table(server.url), "schedulers.k")
        with fence.around(Open()), pytest.raises(ActionError, match="was evicted and has not ended"):
            await cluster.requeue(Job(id="train/p", user="a", run="u"), within_s=0.5)
        await cluster.close()


GROUPS = {
    "kind": "APIGroupList",
    "groups": [{"name": "resource.k8s.io", "versions": [{"version": "v1"}, {"version": "v1beta2"}]}],
}
OFFERS = {"kind": "APIResourceList", "resources": [{"name": "resourceslices"}, {"name": "devicetaintrules"}]}
TAINT = {"key": "k/x", "value": "v", "effect": "NoExecute"}
SLICE: dict[str, Any] = {
    "spec": {
        "driver": "d",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1},
        "devices": [{"name": "gpu-0", "attributes": {"uuid": {"string": "u"}}, "taints": [TAINT]}],
    }
}
RULE = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": "d"}, "taint": TAINT}}
DEVICES = {
    "/apis": GROUPS,
    "/v1": OFFERS,
    "/v1beta2": OFFERS,
    "/resourceslices": _list(SLICE),
    "/devicetaintrules": _list(RULE),
}


def _said(bodies: dict[str, Any], request: web.Request) -> web.StreamResponse:
    body = next(body for end, body in bodies.items() if request.path.endswith(end))
    return web.Response(body=json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("at", DEVICES)
async def test_any_form_of_devices(at: str) -> None:
    """Something odd in each place of each answer: an ActionError, or facts of a node that we know; never the brain's end."""
    async with liar() as server:
        for body in bent(DEVICES[at]):
            server.lie = partial(_said, {**DEVICES, at: body})
            put: list[Reported] = []
            (watch,) = devices(
                {"k": {**_table(server.url), "devices": True}},
                put=put.append, note=lambda *_: None, leads=lambda: True, known=lambda: {"n1"},
            )  # fmt: skip
            with contextlib.suppress(ActionError), answered_by("k"):
                await watch.look()
            assert {one.node for one in put} <= {"n1"}
            await watch.close()


@pytest.mark.parametrize(("status", "kind", "text"), FOREIGN)
async def test_what_something_in_between_answers_ends_no_taint(status: int, kind: str, text: str) -> None:
    """Not that the server offers no devices, nor that none is tainted any more."""
    async with liar() as server:
        server.lie = partial(_said, DEVICES)
        put: list[Reported] = []
        notes: list[str] = []
        (watch,) = devices(
            {"k": {**_table(server.url), "devices": True}},
            put=put.append, note=lambda *said: notes.append(said[1]), leads=lambda: True, known=lambda: {"n1"},
        )  # fmt: skip
        assert await watch.look() == 1
        server.lie = lambda _: web.Response(status=status, text=text, content_type=kind)
        for _ in range(2):
            with pytest.raises(ActionError):
                await watch.look()
            watch._asked_s = float("-inf")
        assert (len(put), notes) == (1, [])
        await watch.close()
