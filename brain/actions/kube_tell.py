"""What `kubectl describe node` shows of our drain where a site wants it: Event objects, and one condition. Off by default.

    Event      of the Node, as the kubelet's and node-problem-detector's are: in the namespace default, the uid is the node's name
               Warning GpuwardDrainBegun, Warning GpuwardMarkAdded, Normal GpuwardMarkRemoved, Normal GpuwardDrainEnded
    condition  GpuwardFault: True while a mark of ours stands, with the first one's cause as its reason; False afterwards; Unknown
               where the node was forgotten, and its drain, which only a person may take off, still stands

It is made from what stands on the server (marks, condition, events), whichever brain wrote it, and may be repeated at any time:
what is shown already is not shown again. The server forgets events after an hour; a step that drains later shows it again. A
condition stands until somebody changes it: all of them are compared with the marks now and then (brain/leader/shown_drains.py).

Sources: Kubernetes, "Event v1 core" and "Node Status"; node-problem-detector, pkg/exporters/k8sexporter (a strategic merge patch
of the status, which merges conditions by their type; lastHeartbeatTime is the time of the write).
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.contract.errors import ActionError, Unreachable
from agent.contract.messages import clip
from brain.actions.kube_api import CONFLICT, MANAGER, NOT_FOUND, STRATEGIC, KubeApi, ok
from brain.actions.kube_options import CONDITION
from brain.actions.marks import Mark, owns

EVENTS, CONDITIONS = "events", "conditions"
NAMESPACE = "default"  # of the events of what is in no namespace
BEGUN, ADDED, REMOVED, ENDED = (
    "GpuwardDrainBegun",
    "GpuwardMarkAdded",
    "GpuwardMarkRemoved",
    "GpuwardDrainEnded",
)
RIGHTS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    EVENTS: (("get", "events", ""), ("create", "events", ""), ("patch", "events", "")),
    CONDITIONS: (("patch", "nodes", "status"), ("list", "nodes", "")),
}
_AGAIN = 5  # how often a write is decided again, when somebody else has written in between
_MOST_TEXT = 1000  # characters; the server takes 1024 in an event's message
_PAGE = 100  # Node objects in one response: some 15 KB each
_QUERY = [("fieldManager", MANAGER)]

Node = Mapping[str, Any]


def rights(tell: Collection[str]) -> tuple[tuple[str, str, str], ...]:
    """Verb, resource and subresource of what is needed for this much of it."""
    return tuple(right for what in (EVENTS, CONDITIONS) if what in tell for right in RIGHTS[what])


def namespace_of(resource: str) -> str:
    """The namespace in which a right is needed; empty: in all of them."""
    return NAMESPACE if resource == "events" else ""


class NodeTeller:
    """That of one cluster."""

    def __init__(
        self,
        api: KubeApi,
        tell: Collection[str],
        look: Callable[[str], Awaitable[Node]],
        marks: Callable[[Node], Sequence[Mark]],
        ours: Callable[[str], bool],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`tell`: as in the options. `look` gets a Node object by its name as it is now, `marks` finds our marks on it, `ours`
        says by its name whether this table manages it: a mark on another is another cell's, which may not want that it is shown.
        """
        self._api = api
        self._tell = frozenset(tell)
        self._look = look
        self._marks = marks
        self._ours = ours
        self._clock = clock

    async def tell(self, name: str, incidents: Collection[str], before: Sequence[Mark]) -> None:
        """As in Telling; `name` is that of the Node object. What fails does not keep the rest from being shown."""
        failed: list[ActionError] = []
        if CONDITIONS in self._tell:
            try:
                await self._condition(name)
            except ActionError as error:
                failed.append(error)
        if EVENTS in self._tell:
            try:
                marks = self._marks(await self._look(name))
                for incident in sorted(incidents):
                    await self._event(name, incident, marks, before)
            except ActionError as error:
                failed.append(error)
        _raise(failed)

    async def tell_anew(self, forgotten: Callable[[str], bool] = lambda _: False) -> list[str]:
        """As in Telling; `forgotten` takes the name of a Node object. What fails of one node does not keep the others from it."""
        wrong = (
            [
                name
                async for one in self._api.pages("/api/v1/nodes", most=_PAGE)
                if (name := str((one.get("metadata") or {}).get("name") or ""))
                and not is_shown(_condition_of(one), marks := self._marks(one), forgotten=forgotten(name))
                and (not marks or self._ours(name))
            ]
            if CONDITIONS in self._tell
            else []
        )
        failed: list[ActionError] = []
        for name in wrong:
            try:
                await self._condition(name, only_over=not self._ours(name), forgotten=forgotten(name))
            except ActionError as error:
                failed.append(error)
        _raise(failed)
        return wrong

    async def _condition(self, name: str, *, only_over: bool = False, forgotten: bool = False) -> None:
        """`only_over`: nothing is shown of a mark that stands."""
        for _ in range(_AGAIN):
            found = await self._look(name)
            there, marks = _condition_of(found), self._marks(found)
            wanted = condition(there, marks, _stamp(self._clock()), forgotten=forgotten)
            if wanted is None or (only_over and wanted["status"] != "False"):
                return
            version = (found.get("metadata") or {}).get("resourceVersion")
            body = {"metadata": {"resourceVersion": version}, "status": {"conditions": [wanted]}}
            path = f"/api/v1/nodes/{name}/status"
            answer = await self._api.request("PATCH", path, query=_QUERY, body=body, patch=STRATEGIC)
            if answer.status != CONFLICT:
                ok(answer, name)
                return
        raise Unreachable(f"{name} changes so often that nothing could be changed: {answer.message}")

    async def _event(self, name: str, incident: str, marks: Sequence[Mark], before: Sequence[Mark]) -> None:
        """Writes that the incident's mark stands, or stands no more, unless that is what was written last."""
        stands = owns(marks, incident)
        folder = f"/api/v1/namespaces/{NAMESPACE}/events"
        for _ in range(_AGAIN):
            on, off = [await self._found(folder, _name(name, incident, kind)) for kind in ("on", "off")]
            was = _last(on) > _last(off)  # what was written last of it: that it stands?
            if was == stands and (stands or not owns(before, incident)):
                return
            says = _says(incident, stands, marks, before)
            there, now = on if stands else off, _stamp(self._clock())
            if there is None:
                event = _name(name, incident, "on" if stands else "off")
                body = {**_new(name, event, now), **says}
                answer = await self._api.request("POST", folder, query=_QUERY, body=body)
            else:
                meta = there["metadata"]
                body = {
                    "metadata": {"resourceVersion": meta["resourceVersion"]},
                    **says,
                    "lastTimestamp": now,
                    "count": int(there.get("count") or 1) + 1,
                }
                path = f"{folder}/{meta['name']}"
                answer = await self._api.request("PATCH", path, query=_QUERY, body=body)
            if answer.status not in (CONFLICT, NOT_FOUND):  # somebody was quicker; it has just expired
                ok(answer, "events")
                return
        raise Unreachable(f"{name} changes so often that nothing could be changed: {answer.message}")

    async def _found(self, folder: str, event: str) -> Mapping[str, Any] | None:
        answer = await self._api.request("GET", f"{folder}/{event}")
        if answer.status == NOT_FOUND:
            return None
        ok(answer, "events")
        return answer.body


def condition(
    there: Mapping[str, Any] | None, marks: Sequence[Mark], now: str, *, forgotten: bool = False
) -> Mapping[str, Any] | None:
    """Our condition as it should be, from the one that is there and our marks; None: there is nothing to write."""
    if not marks and is_shown(there, marks):
        return None
    says = _state(marks, forgotten=forgotten)
    since = there.get("lastTransitionTime") if there and there.get("status") == says["status"] else None
    return {"type": CONDITION, **says, "lastHeartbeatTime": now, "lastTransitionTime": since or now}


def is_shown(there: Mapping[str, Any] | None, marks: Sequence[Mark], *, forgotten: bool = False) -> bool:
    """Does our condition say what our marks say? One that says that there is none needs no further word."""
    if not marks:
        return there is None or there.get("status") == "False"
    return there is not None and {**there, **_state(marks, forgotten=forgotten)} == there


def _state(marks: Sequence[Mark], *, forgotten: bool) -> Mapping[str, str]:
    """What our condition says, without its times. Of a node that we have forgotten nobody knows whether its fault is still there,
    as the node controller knows nothing of a node whose kubelet is silent: Unknown.
    """
    if not marks:
        return {
            "status": "False",
            "reason": "NoGpuwardDrain",
            "message": "gpuward does not drain the node",
        }
    says = "; ".join(f"{mark.why} [{mark.incident}]" for mark in marks)
    if forgotten:
        text = (
            f"gpuward has forgotten the node: its drain stands until somebody takes it off; it was for {says}"
        )
        return {"status": "Unknown", "reason": "NodeForgotten", "message": clip(text, _MOST_TEXT)}
    return {"status": "True", "reason": camel(marks[0].why), "message": clip(says, _MOST_TEXT)}


def camel(why: str) -> str:
    """The cause with which a mark begins ("gpu-off-bus at node/gpu1 (rule ...)"), as conditions have reasons: GpuOffBus."""
    parts = re.findall(r"[A-Za-z0-9]+", re.split(r" at | on ", why, maxsplit=1)[0])[:6]
    text = "".join(part[:1].upper() + part[1:] for part in parts)
    return text if text[:1].isalpha() else f"Fault{text}"


def _says(incident: str, stands: bool, marks: Sequence[Mark], before: Sequence[Mark]) -> Mapping[str, str]:
    whys = [mark.why for mark in (marks if stands else before) if owns([mark], incident)]
    named = clip(f"{whys[0]} [{incident}]" if whys else f"[{incident}]", _MOST_TEXT - 100)
    if not stands and marks:
        text = f"{named} lets the node go; other incidents still want its drain"
        return {"type": "Normal", "reason": REMOVED, "message": text}
    if not stands:
        return {
            "type": "Normal",
            "reason": ENDED,
            "message": f"{named} lets the node go: gpuward drains it no longer",
        }
    if owns(marks[:1], incident):
        return {"type": "Warning", "reason": BEGUN, "message": f"gpuward drains the node: {named}"}
    return {"type": "Warning", "reason": ADDED, "message": f"another incident wants the drain: {named}"}


def _new(node: str, event: str, now: str) -> dict[str, Any]:
    """A new event, without what it says."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event, "namespace": NAMESPACE},
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _name(node: str, incident: str, kind: str) -> str:
    """The same for the same, so that what is repeated is found and counted."""
    digest = hashlib.sha256(f"{node} {incident} {kind}".encode()).hexdigest()[:16]
    return f"{node[:200].rstrip('.-')}.{digest}"


def _last(event: Mapping[str, Any] | None) -> str:
    """When it was last written; empty: never. In UTC, so that these texts have the order of the times."""
    return str(event.get("lastTimestamp") or "") if event else ""


def _condition_of(node: Node) -> Mapping[str, Any] | None:
    conditions = (node.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == CONDITION), None)


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _raise(failed: Sequence[ActionError]) -> None:
    if failed:
        raise type(failed[0])("; ".join(map(str, failed)))
