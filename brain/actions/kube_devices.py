"""Tainted devices of dynamic resource allocation as facts of their nodes, where the site wants it and the cluster has it.

The leading brain asks the API server what it offers (discovery), lists ResourceSlices, and DeviceTaintRules where there are such,
and tells what `witness` tells of a state: that it begins, changes, lasts, and is over. It ends only by the word of the driver
whose devices were tainted: a driver that is gone proves nothing.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.errors import ActionError, Transient
from brain.actions import kube_device_taints
from brain.actions.kube_api import KubeApi, ok
from brain.actions.kube_device_taints import NodeDevices
from brain.actions.kube_options import KubeOptions, tables_of
from brain.actions.witness import Witness, ours
from brain.core.inputs import Reported
from brain.core.pack import scheduler_kinds
from brain.polling import ask_on

GROUP = "resource.k8s.io"
SLICES, RULES = "resourceslices", "devicetaintrules"
# In the words of `Kubernetes.lacking`.
RIGHTS = (("list", f"{SLICES}.{GROUP}", ""), ("list", f"{RULES}.{GROUP}", ""))
VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")  # the first one that has a resource is asked for it
OFFERS_S = 600.0  # so long it is taken that the server offers what it did
MAX_PAUSE_S = 600.0
PAGE = 100  # slices in one response: some 30 KB each


class DeviceTaints:
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
        """As NodeConditions."""
        self._name = name
        self._api = api
        self._want = want
        self._put = put
        self._note = note
        self._leads = leads
        self._known = known
        self._clock = clock
        self._witness = Witness(name)
        self._drivers: dict[str, set[str]] = {}  # node -> drivers of the devices that were tainted
        self._offers: Mapping[str, str] = {}  # resource -> its address
        self._asked_s = float("-inf")
        self._told_none = False

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
            fails=self._unseen,
            answers=lambda: self._note("kubernetes.devices", f"{self._name} tells taints of devices again"),
        )

    async def look(self) -> int:
        """Looks once and returns how many reports were published. ActionError: the server does not say."""
        now_s, known = self._clock(), self._known()
        offers = await self._offered()
        if SLICES not in offers:
            return 0
        try:
            rules = (
                [one async for one in self._api.pages(offers[RULES], most=PAGE)] if RULES in offers else []
            )
            pages = self._api.pages(offers[SLICES], most=PAGE)
            slices = [kube_device_taints.slim(one) async for one in pages]
        except ActionError:
            self._asked_s = float("-inf")  # it may have become another version, with other offers
            raise
        told: list[Reported] = []
        for object_name, said in kube_device_taints.by_node(slices, rules).items():
            node = ours(self._want.node_name, object_name).partition(".")[0]
            if node in known and fnmatchcase(node, self._want.nodes) and self._proves(node, said):
                told += self._witness.devices(node, said.taints, now_s)
        for report in told:
            self._put(report)
            self.mark_published(report)
        return len(told)

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads."""
        self._witness.learn(given, self._clock())
        if given.kind == scheduler_kinds.SCHEDULER_DEVICES and given.data.get("scheduler") == self._name:
            drivers = str(given.data.get("driver", "")).split(", ") if given.data.get("active") else []
            self._drivers[given.node] = set(filter(None, drivers))

    def _proves(self, node: str, said: NodeDevices) -> bool:
        """Is anything known by this? Not that all is well, without the drivers whose devices were not."""
        return bool(said.taints) or self._drivers.get(node, set()) <= said.drivers

    async def _offered(self) -> Mapping[str, str]:
        """What of DRA the server offers; nothing is asked of one that has none."""
        if self._clock() - self._asked_s < OFFERS_S:
            return self._offers
        groups = await self._discovered("/apis", "APIGroupList", "groups")
        mine = [one for one in groups if one.get("name") == GROUP]
        there = {str(one.get("version")) for group in mine for one in group.get("versions") or []}
        found: dict[str, str] = {}
        for version in (one for one in VERSIONS if one in there):
            where = f"/apis/{GROUP}/{version}"
            for one in await self._discovered(where, "APIResourceList", "resources"):
                if one.get("name") in (SLICES, RULES):
                    found.setdefault(str(one["name"]), f"{where}/{one['name']}")
        self._offers, self._asked_s = found, self._clock()
        if SLICES not in found and not self._told_none:
            self._note("kubernetes.devices", f"{self._name} offers no {SLICES}: it has no devices to look at")
        self._told_none = SLICES not in found
        return found

    async def _discovered(self, path: str, kind: str, key: str) -> Sequence[Mapping[str, Any]]:
        """Transient: something else has answered, which says nothing of what the server offers."""
        body = ok(await self._api.request("GET", path), path)
        if body.get("kind") != kind or not isinstance(found := body.get(key), list):
            raise Transient(f"GET {path}: the answer is no discovery")
        return found

    def _unseen(self, error: ActionError) -> None:
        right = "deploy/kubernetes/rbac/devices.yaml"
        self._note("kubernetes.devices", f"{error}: taints of devices are not seen; the right is in {right}")


def listeners(
    tables: Mapping[str, Mapping[str, Any]],
    *,
    put: Callable[[Reported], None],
    note: Callable[[str, str], None],
    leads: Callable[[], bool],
    known: Callable[[], Collection[str]],
) -> list[DeviceTaints]:
    """One for each table of `[schedulers]` that wants devices; ConfigError names the key."""
    return [
        DeviceTaints(name, KubeApi(want.access(where)), want, put=put, note=note, leads=leads, known=known)
        for name, where, want in tables_of(tables)
        if want.devices
    ]
