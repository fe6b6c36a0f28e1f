"""A small part of the Kubernetes API over TLS, held to account by the real kubectl: nodes, pods, evictions, budgets.

    async with Fake(folder) as fake:
        fake.pod("gpu1", "train-0", gpus=2); fake.budget_answers = 2     # two evictions are answered 429
        subprocess.run(["kubectl", f"--kubeconfig={fake.kubeconfig}", "cordon", "gpu1"])

It has what the tests need of the real one: resource versions and 409, merge and strategic merge patches, field managers,
field and label selectors, pages, bearer tokens, and pods that take a moment to end.
"""

import asyncio
import copy
import json
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

TOKEN = "sesame"  # of the only account
Json = dict[str, Any]


class Fake:
    """The server and what it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.ca, self.key, self.token = folder / "ca.pem", folder / "key.pem", folder / "token"
        self.url = ""
        self.nodes: dict[str, Json] = {}
        self.pods: dict[tuple[str, str], Json] = {}
        self.asked: list[str] = []  # method and path of each change
        self.budget_answers = 0  # so many evictions are answered 429
        self.conflicts = 0  # so many changes of nodes find that somebody was quicker
        self.status = 0  # everything is answered with it, when it is not 0
        self.hang = False  # changes are done and never answered
        self.ends_after_s = 0.1  # how long an evicted pod takes to end
        self._version = 1
        self._runner: web.AppRunner | None = None
        for name in ("gpu1", "gpu2"):
            self.node(name)

    def node(self, name: str) -> None:
        """A node that is ready."""
        self.nodes[name] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"team": "a"}},
            "spec": {"taints": [{"key": "team", "value": "a", "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }

    def pod(
        self,
        node: str,
        name: str,
        *,
        owner: str = "ReplicaSet",
        gpus: int = 1,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        priority: str = "",
        phase: str = "Running",
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        """Puts a pod of namespace `train` on a node; `owner`: kind of its controller, empty for none; `spec`: more of it."""
        owners = (
            [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}]
            if owner
            else []
        )
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
        self.pods["train", name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "train",
                "uid": f"uid-{name}-{len(self.asked)}",
                "resourceVersion": "1",
                "ownerReferences": owners,
                "annotations": dict(annotations or {}),
                "labels": dict(labels or {}),
            },
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i", **limits}]}
            | ({"priorityClassName": priority} if priority else {})
            | dict(spec or {}),
            "status": {"phase": phase},
        }

    async def __aenter__(self) -> "Fake":
        await asyncio.to_thread(self._certificate)
        app = web.Application(middlewares=[self._guard])
        get, post = app.router.add_get, app.router.add_post
        get("/version", self._version_info)
        get("/api", _fixed({"kind": "APIVersions", "versions": ["v1"]}))
        get("/apis", _fixed(_GROUPS))
        get("/api/v1", _fixed(_CORE))
        get("/apis/{group}/{version}", self._group)
        get("/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}", _fixed(_DAEMON_SET))
        get("/api/v1/nodes", self._list_nodes)
        app.router.add_route("*", "/api/v1/nodes/{name}", self._node)
        get("/api/v1/pods", self._list_pods)
        get("/api/v1/namespaces/{namespace}/pods/{name}", self._pod)
        post("/api/v1/namespaces/{namespace}/pods/{name}/eviction", self._evict)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.ca, self.key)
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"
        self._write_kubeconfig()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def _certificate(self) -> None:
        argv = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        argv += ["-keyout", str(self.key), "-out", str(self.ca), "-days", "2", "-subj", "/CN=kubernetes"]
        argv += [
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "keyUsage=critical,digitalSignature,keyCertSign",
        ]
        subprocess.run(argv, check=True, capture_output=True, timeout=20)
        self.token.write_text(f"{TOKEN}\n")

    def _write_kubeconfig(self) -> None:
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        self.kubeconfig.write_text(json.dumps(config))  # JSON is YAML

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _status(401, "Unauthorized", "Unauthorized")
        if self.status:
            return _status(self.status, "InternalError", "out of order")
        if request.method != "GET":
            self.asked.append(f"{request.method} {request.path}")
        answer: web.StreamResponse = await handler(request)
        if self.hang and request.method != "GET":
            await asyncio.sleep(60)
        return answer

    async def _version_info(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "30", "gitVersion": "v1.30.0"})

    async def _group(self, request: web.Request) -> web.Response:
        name = f"{request.match_info['group']}/{request.match_info['version']}"
        return web.json_response(
            {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": []}
        )

    async def _list_nodes(self, request: web.Request) -> web.Response:
        return _list("NodeList", list(self.nodes.values()))

    async def _node(self, request: web.Request) -> web.Response:
        node = self.nodes.get(request.match_info["name"])
        if node is None:
            return _status(404, "NotFound", "nodes not found")
        if request.method == "PATCH":
            if self.conflicts:
                self.conflicts -= 1
                self._bump(node)
            patch = json.loads(await request.read())
            wanted = (patch.get("metadata") or {}).get("resourceVersion")
            if wanted not in (None, node["metadata"]["resourceVersion"]):
                return _status(409, "Conflict", "the object has been modified")
            before = copy.deepcopy(node["spec"])
            _merge(node, patch)
            if not node["spec"].get("unschedulable"):
                node["spec"].pop("unschedulable", None)
            if before.get("unschedulable") != node["spec"].get("unschedulable"):
                self._owned(
                    node, request.query.get("fieldManager") or request.headers["User-Agent"].split("/")[0]
                )
            self._bump(node)
        return web.json_response(node)

    def _owned(self, node: Json, manager: str) -> None:
        fields: Json = {"f:spec": {"f:unschedulable": {}}}
        node["metadata"]["managedFields"] = (
            [{"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}]
            if node["spec"].get("unschedulable")
            else []
        )

    def _bump(self, thing: Json) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)

    async def _list_pods(self, request: web.Request) -> web.Response:
        fields = dict(part.split("=") for part in request.query.get("fieldSelector", "").split(",") if part)
        labels = dict(part.split("=") for part in request.query.get("labelSelector", "").split(",") if part)
        pods = [
            pod
            for pod in self.pods.values()
            if fields.get("spec.nodeName") in (None, pod["spec"]["nodeName"])
            and labels.items() <= pod["metadata"]["labels"].items()
        ]
        # Pages of two, whatever was asked for: the server may do so.
        at = int(request.query.get("continue") or 0)
        more = str(at + 2) if at + 2 < len(pods) and "limit" in request.query else ""
        return _list("PodList", pods[at : at + 2] if "limit" in request.query else pods, more)

    async def _pod(self, request: web.Request) -> web.Response:
        pod = self.pods.get((request.match_info["namespace"], request.match_info["name"]))
        return web.json_response(pod) if pod else _status(404, "NotFound", "pods not found")

    async def _evict(self, request: web.Request) -> web.Response:
        key = (request.match_info["namespace"], request.match_info["name"])
        pod = self.pods.get(key)
        if pod is None:
            return _status(404, "NotFound", "pods not found")
        body = json.loads(await request.read())
        wanted = ((body.get("deleteOptions") or {}).get("preconditions") or {}).get("uid")
        if wanted not in (None, pod["metadata"]["uid"]):
            return _status(409, "Conflict", "the UID in the precondition does not match")
        if self.budget_answers:
            self.budget_answers -= 1
            return _status(
                429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."
            )
        pod["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        asyncio.get_running_loop().call_later(self.ends_after_s, self._end, key, pod)
        return _status(201, "", "")

    def _end(self, key: tuple[str, str], pod: Json) -> None:
        if self.pods.get(key) is pod:
            del self.pods[key]


def _fixed(body: Json) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body)

    return answer


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Success" if code < 300 else "Failure"}
    return web.json_response(body | {"reason": reason, "message": message, "code": code}, status=code)


def _list(kind: str, items: list[Json], more: str = "") -> web.Response:
    return web.json_response(
        {
            "kind": kind,
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1", "continue": more},
            "items": items,
        }
    )


def _merge(into: Json, patch: Json) -> None:
    """A merge patch, and as far as nodes go a strategic one: their taints have no merge key."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        elif not key.startswith("$"):
            into[key] = value


_DAEMON_SET: Json = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "o", "namespace": "train"},
}
_POLICY = {"groupVersion": "policy/v1", "version": "v1"}
_GROUPS: Json = {
    "kind": "APIGroupList",
    "apiVersion": "v1",
    "groups": [{"name": "policy", "versions": [_POLICY], "preferredVersion": _POLICY}],
}
_CORE: Json = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {
            "name": "nodes",
            "singularName": "",
            "namespaced": False,
            "kind": "Node",
            "verbs": ["get", "list", "patch"],
        },
        {
            "name": "pods",
            "singularName": "",
            "namespaced": True,
            "kind": "Pod",
            "verbs": ["get", "list", "delete"],
        },
        {
            "name": "pods/eviction",
            "singularName": "",
            "namespaced": True,
            "group": "policy",
            "version": "v1",
            "kind": "Eviction",
            "verbs": ["create"],
        },
    ],
}
