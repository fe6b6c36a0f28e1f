"""Conditions of Node objects that others set (node-problem-detector, NVSentinel, a cloud's agents), as inputs; and its states.

The leading brain lists the nodes now and then. It publishes a report about a node when what is wrong there changes, and again
every AGAIN_S while it lasts. What is on the log it learns from there (`mark_published`), so that the next leader goes on.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.messages import Severity, clip
from brain.actions import kube_states
from brain.actions.kube_api import KubeApi
from brain.actions.kube_options import KubeOptions, tables_of
from brain.actions.witness import NodeSaid, Witness, ours
from brain.core.inputs import Reported
from brain.core.pack.vocabulary import NODE_CONDITION
from brain.polling import ask_on

SOURCE = "kubernetes"
PAGE = 100  # nodes in one response: some 15 KB each
NODES = "/api/v1/nodes"
AGAIN_S = 1800.0
MAX_PAUSE_S = 600.0  # between looks while the API server does not answer
RIGHT = ("list", "nodes", "")
_MOST_TEXT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What the log has of one node."""

    digest: str
    active: bool
    at_s: float


class NodeConditions:
    """Those of one cluster. `run` it as long as the brain runs; it asks only while `leads()`."""

    def __init__(
        self,
        name: str,
        api: KubeApi,
        want: KubeOptions,
        *,
        put: Callable[[Reported], None],
        note: Callable[[str, str], None],
        leads: Callable[[], bool],
        known: Callable[[], Collection[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`put` publishes to the log, `note` writes a note. `known`: the nodes of the cell; of others nothing is told."""
        self._name = name
        self._api = api
        self._want = want
        self._put = put
        self._note = note
        self._leads = leads
        self._known = known
        self._clock = clock
        self._gpus = want.gpu_resources()
        self._told: dict[str, _Told] = {}
        self._witness = Witness(name)

    async def close(self) -> None:
        """Closes the connection."""
        await self._api.close()

    async def run(self) -> None:
        """Until cancelled. A failure is noted once, and retried with growing pauses."""
        await ask_on(
            self.look,
            whom=self._name,
            every_s=self._want.conditions_every_s,
            slowest_s=MAX_PAUSE_S,
            leads=self._leads,
            fails=lambda error: self._note(
                "kubernetes.unreachable", f"{error}: conditions of nodes are not seen"
            ),
            answers=lambda: self._note(
                "kubernetes.reachable", f"{self._name} tells the conditions of nodes again"
            ),
        )

    async def look(self) -> int:
        """Looks once and returns how many reports were published. ActionError: the server does not say."""
        now_s, known = self._clock(), self._known()
        said: dict[str, tuple[NodeSaid, Sequence[Mapping[str, Any]]]] = {}
        async for found in self._api.pages(NODES, most=PAGE):
            object_name = str((found.get("metadata") or {}).get("name") or "")
            name = ours(self._want.node_name, object_name).partition(".")[0]
            if name not in known or not fnmatchcase(name, self._want.nodes):
                continue
            if name in said and object_name != self._want.node_name.replace("{node}", name):
                continue  # two objects for one machine, as after it was renamed: the one that a drain is about counts
            conditions = [
                one
                for one in (found.get("status") or {}).get("conditions") or []
                if one.get("type") in self._want.conditions
            ]
            said[name] = (
                kube_states.node(name, found, self._gpus, now_s),
                sorted(conditions, key=lambda one: str(one["type"])),
            )
        published = sum(self._tell(name, conditions) for name, (_, conditions) in said.items())
        states = [state for state, _ in said.values()]
        if self._want.states:
            pending = [("fieldSelector", "status.phase=Pending")]
            pods = [one async for one in self._api.pages("/api/v1/pods", pending, most=PAGE)]
            waiting = [job for pod in pods if (job := kube_states.waiting(pod, self._gpus, now_s))]
            told = self._witness.nodes(states, now_s) + self._witness.queue(waiting, now_s)
            for report in told:
                self._put(report)
            published += len(told)
        return published

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads."""
        self._witness.learn(given, self._clock())
        source, _, rest = given.id.partition(":")
        name, _, rest = rest.partition(":")
        if source == SOURCE and name == self._name:
            digest = rest.rpartition(":")[0].rpartition(":")[2]
            active = bool(given.data.get("active"))
            self._told[given.node] = _Told(digest=digest, active=active, at_s=self._clock())

    def _tell(self, node: str, conditions: Sequence[Mapping[str, Any]]) -> int:
        wrong = [one for one in conditions if one.get("status") == "True"]
        states = "\n".join(
            f"{one['type']} {one.get('status')} {one.get('lastTransitionTime')}" for one in conditions
        )
        digest = hashlib.sha256(states.encode()).hexdigest()[:16]
        told, now = self._told.get(node), self._clock()
        lasts = told is not None and told.active
        if not lasts and not wrong:
            return 0
        if told is not None and lasts and digest == told.digest and now - told.at_s < AGAIN_S:
            return 0
        text = "; ".join(f"{one['type']}: {one.get('reason')}: {one.get('message')}" for one in wrong)
        report = Reported(
            id=f"{SOURCE}:{self._name}:{node}:{digest}:{int(now // AGAIN_S)}",
            source=SOURCE,
            node=node,
            kind=NODE_CONDITION,
            component="node",
            severity=Severity.ERROR if wrong else Severity.INFO,
            data={
                "active": bool(wrong),
                "conditions": clip(", ".join(str(one["type"]) for one in wrong), _MOST_TEXT),
                "text": clip(text, _MOST_TEXT),
            },
        )
        self._put(report)
        self.mark_published(report)
        return 1


def listeners(
    tables: Mapping[str, Mapping[str, Any]],
    *,
    put: Callable[[Reported], None],
    note: Callable[[str, str], None],
    leads: Callable[[], bool],
    known: Callable[[], Collection[str]],
) -> list[NodeConditions]:
    """One for each table of `[schedulers]` that wants conditions; ConfigError names the key."""
    return [
        NodeConditions(name, KubeApi(want.access(where)), want, put=put, note=note, leads=leads, known=known)
        for name, where, want in tables_of(tables)
        if want.conditions or want.states
    ]
