"""Which devices of a node are tainted in dynamic resource allocation (DRA), by their drivers or by an administrator's rule. Pure.

Sources: Kubernetes, "Dynamic Resource Allocation", "Device taints and tolerations"; the API resource.k8s.io: ResourceSlice (v1,
v1beta2: `taints` of a device; v1beta1: the same in its `basic`) and DeviceTaintRule (v1beta2, v1alpha3). A pool's slices of an
older generation are about to be deleted, and count no more. Devices that belong to no one node (`nodeSelector`, `allNodes`) are
left out, and so are rules of 1.33 and 1.34 that select by a class or an expression. The effect "None" is somebody's note.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

EFFECTS = ("NoSchedule", "NoExecute")
_IDS = ("uuid", "resource.kubernetes.io/pciBusID", "pciBusID")  # attributes by which people know a device
_SELECTS = ("driver", "pool", "device")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class DeviceTaint:
    """One taint of one device."""

    driver: str
    pool: str
    device: str
    key: str
    effect: str
    value: str = ""
    # Of the administrator's rule; empty: the driver has set it
    rule: str = ""
    # What the device is called elsewhere, where its driver says it
    id: str = ""

    @property
    def text(self) -> str:
        """For people, in the form of kubectl's taints."""
        value = f"={self.value}" if self.value else ""
        by = f"rule {self.rule}" if self.rule else "its driver"
        known = f" ({self.id})" if self.id else ""
        return f"{self.device}{known} of {self.driver}, pool {self.pool}: {self.key}{value}:{self.effect}, by {by}"


@dataclass(slots=True, kw_only=True)
class NodeDevices:
    """What is said of the devices of one node."""

    # Those that say what the node has: of another one nothing is known
    drivers: set[str] = field(default_factory=set)
    taints: list[DeviceTaint] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    selects: Mapping[str, str]
    taint: Mapping[str, Any]

    def fits(self, **device: str) -> bool:
        return all(device[key] == wanted for key, wanted in self.selects.items())


def slim(found: Mapping[str, Any]) -> dict[str, Any]:
    """A ResourceSlice with what is needed of it: its devices may have dozens of attributes each."""
    spec = found.get("spec") or {}
    devices = []
    for one in spec.get("devices") or []:
        inner = one.get("basic") or one
        kept = {key: inner[key] for key in ("nodeName", "taints") if inner.get(key)}
        devices.append({"name": one.get("name"), "attributes": {"uuid": {"string": _id(inner)}}, **kept})
    keys = ("driver", "pool", "nodeName", "perDeviceNodeSelection")
    return {"spec": {**{key: spec[key] for key in keys if key in spec}, "devices": devices}}


def by_node(
    slices: Iterable[Mapping[str, Any]], rules: Iterable[Mapping[str, Any]]
) -> Mapping[str, NodeDevices]:
    """The devices of each node, by the name of its Node object. `slices`: slim ones."""
    admins = list(_rules(rules))
    newest: dict[tuple[str, str], tuple[int, list[Mapping[str, Any]]]] = {}
    for one in slices:
        spec = one.get("spec") or {}
        pool = spec.get("pool") or {}
        key, generation = (str(spec.get("driver")), str(pool.get("name"))), int(pool.get("generation") or 0)
        known = newest.get(key)
        if known is None or generation > known[0]:
            newest[key] = (generation, [spec])
        elif generation == known[0]:
            known[1].append(spec)
    found: defaultdict[str, NodeDevices] = defaultdict(NodeDevices)
    for (driver, pool_name), (_, specs) in newest.items():
        for spec in specs:
            for node, device in _devices(spec):
                found[node].drivers.add(driver)
                found[node].taints += _taints(driver, pool_name, device, admins)
    for each in found.values():
        each.taints.sort()
    return found


def _devices(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each device that belongs to one node."""
    for one in spec.get("devices") or []:
        name = spec.get("nodeName") or (one.get("nodeName") if spec.get("perDeviceNodeSelection") else "")
        if name:
            yield str(name), one


def _taints(
    driver: str, pool: str, device: Mapping[str, Any], admins: Sequence[_Rule]
) -> Iterator[DeviceTaint]:
    name = str(device.get("name"))
    set_by = [("", one) for one in device.get("taints") or []]
    set_by += [(one.name, one.taint) for one in admins if one.fits(driver=driver, pool=pool, device=name)]
    for rule, taint in set_by:
        if taint.get("effect") in EFFECTS:
            yield DeviceTaint(
                driver=driver,
                pool=pool,
                device=name,
                key=str(taint.get("key") or ""),
                effect=str(taint["effect"]),
                value=str(taint.get("value") or ""),
                rule=rule,
                id=_id(device),
            )


def _rules(found: Iterable[Mapping[str, Any]]) -> Iterator[_Rule]:
    for one in found:
        spec = one.get("spec") or {}
        selector, taint = spec.get("deviceSelector"), spec.get("taint") or {}
        if selector is None or taint.get("effect") not in EFFECTS:
            continue  # without a selector it fits no device; an empty one fits all
        wanted = {key: str(value) for key, value in selector.items() if value}
        if set(wanted) <= set(_SELECTS):
            yield _Rule(str((one.get("metadata") or {}).get("name") or "?"), wanted, taint)


def _id(device: Mapping[str, Any]) -> str:
    attributes = device.get("attributes") or {}
    return next((str(attributes[key].get("string") or "") for key in _IDS if attributes.get(key)), "")
