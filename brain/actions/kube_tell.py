"""What `kubectl describe node` shows of our drain where a site wants it: Event objects, and one condition. Off by default.

    Event      of the Node, as the kubelet's and node-problem-detector's are: in the namespace default, the uid is the node's name
               Warning GpuwardDrainBegun, Warning GpuwardMarkAdded, Normal GpuwardMarkRemoved, Normal GpuwardDrainEnded
    condition  GpuwardFault: True while a mark of ours stands, with the first one's cause as its reason; False afterwards

It is made from what stands on the server (marks, condition, events), whichever brain wrote it, and may be repeated at any time:
what is shown already is not shown again. The server forgets events after an hour; a step that drains later shows it again.

Sources: Kubernetes, "Event v1 core" and "Node Status"; node-problem-detector, pkg/exporters/k8sexporter (a strategic merge patch
of the status, which merges conditions by their type; lastHeartbeatTime is the time of the write).
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.contract.errors import ActionError, Refused, Unreachable
from agent.contract.messages import clip
from brain.actions.kube_api import CONFLICT, MANAGER, NOT_FOUND, STRATEGIC, TOO_MANY, KubeApi, Response
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
    CONDITIONS: (("patch", "nodes", "status"),),
}
_AGAIN = 5  # how often a write is decided again, when somebody else has written in between
_MOST_TEXT = 1000  # characters; the server takes 1024 in an event's message
_QUERY = [("fieldManager", MANAGER)]

Node = Mapping[str, Any]
Look = Callable[[], Awaitable[tuple[Node, Sequence[Mark]]]]  # the Node as it is now, and our marks on it


def rights(tell: Collection[str]) -> tuple[tuple[str, str, str], ...]:
    """Verb, resource and subresource of what is needed for this much of it."""
    return tuple(right for what in (EVENTS, CONDITIONS) if what in tell for right in RIGHTS[what])


def namespace_of(resource: str) -> str:
    """The namespace in which a right is needed; empty: in all of them."""
    return NAMESPACE if resource == "events" else ""


class NodeTeller:
    """That of one cluster."""

    def __init__(
        self, api: KubeApi, tell: Collection[str], clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`tell`: as in the options."""
        self._api = api
        self._tell = frozenset(tell)
        self._clock = clock

    async def tell(self, name: str, look: Look, incidents: Collection[str], before: Sequence[Mark]) -> None:
        """As in Telling; `name` is that of the Node object. What fails does not keep the rest from being shown."""
        failed: list[ActionError] = []
        if CONDITIONS in self._tell:
            try:
                await self._condition(name, look)
            except ActionError as error:
                failed.append(error)
        if EVENTS in self._tell:
            try:
                _, marks = await look()
                for incident in sorted(incidents):
                    await self._event(name, incident, marks, before)
            except ActionError as error:
                failed.append(error)
        if failed:
            raise type(failed[0])("; ".join(map(str, failed)))

    async def _condition(self, name: str, look: Look) -> None:
        for _ in range(_AGAIN):
            found, marks = await look()
            wanted = condition(_condition_of(found), marks, _stamp(self._clock()))
            if wanted is None:
                return
            version = (found.get("metadata") or {}).get("resourceVersion")
            body = {"metadata": {"resourceVersion": version}, "status": {"conditions": [wanted]}}
            path = f"/api/v1/nodes/{name}/status"
            answer = await self._api.request("PATCH", path, query=_QUERY, body=body, patch=STRATEGIC)
            if answer.status != CONFLICT:
                _done(answer, name)
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
                _done(answer, "events")
                return
        raise Unreachable(f"{name} changes so often that nothing could be changed: {answer.message}")

    async def _found(self, folder: str, event: str) -> Mapping[str, Any] | None:
        answer = await self._api.request("GET", f"{folder}/{event}")
        if answer.status == NOT_FOUND:
            return None
        _done(answer, "events")
        return answer.body


def condition(there: Mapping[str, Any] | None, marks: Sequence[Mark], now: str) -> Mapping[str, Any] | None:
    """Our condition as it should be, from the one that is there and our marks; None: there is nothing to write."""
    was = there.get("status") if there else None
    if not marks and was in (None, "False"):
        return None
    status = "True" if marks else "False"
    says = "; ".join(f"{mark.why} [{mark.incident}]" for mark in marks)
    since = there.get("lastTransitionTime") if there and was == status else None
    return {
        "type": CONDITION,
        "status": status,
        "reason": camel(marks[0].why) if marks else "NoGpuwardDrain",
        "message": clip(says, _MOST_TEXT) if marks else "gpuward does not drain the node",
        "lastHeartbeatTime": now,
        "lastTransitionTime": since or now,
    }


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


def _done(answer: Response, what: str) -> None:
    if answer.status == TOO_MANY:
        raise Unreachable(f"{what}: the server is busy: {answer.message}")
    if not 200 <= answer.status < 300:
        raise Refused(f"{what}: {answer.message}")
