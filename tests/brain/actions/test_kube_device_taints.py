"""Tainted devices of dynamic resource allocation: which they are, whose taints count, and what ends them. No I/O."""

from typing import Any

import pytest

from agent.contract.messages import Severity
from brain.actions.kube_device_taints import DeviceTaint, NodeDevices, by_node, slim
from brain.actions.witness import AGAIN_S, Witness
from brain.core.pack import scheduler_kinds

NOW_S = 1e9
ILL = {"key": "gpu.nvidia.com/unhealthy", "value": "xid79", "effect": "NoExecute"}
KIND = next(one for one in scheduler_kinds.KINDS if one.name == scheduler_kinds.SCHEDULER_DEVICES)


def piece(*devices: dict[str, Any], node: str = "gpu1", **spec: Any) -> dict[str, Any]:
    """A ResourceSlice of v1."""
    where = {"nodeName": node} if node else {}
    pool = {"name": node or "fabric", "generation": 1, "resourceSliceCount": 1}
    return slim(
        {"spec": {"driver": "gpu.nvidia.com", "pool": pool, **where, **spec, "devices": list(devices)}}
    )


def rule(name: str = "rma", effect: str = "NoSchedule", **selector: str) -> dict[str, Any]:
    taint = {"key": "admin/broken", "effect": effect}
    return {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}}


def texts(found: Any) -> dict[str, list[str]]:
    return {node: [one.text for one in said.taints] for node, said in found.items() if said.taints}


def test_a_driver_taints_a_device() -> None:
    """With its key, value and effect, and the device's UUID where the driver says it; by the form of each version."""
    known = {"attributes": {"uuid": {"string": "GPU-1"}, "cores": {"int": 132}}}
    says = (
        "gpu-1 (GPU-1) of gpu.nvidia.com, pool gpu1: gpu.nvidia.com/unhealthy=xid79:NoExecute, by its driver"
    )
    new = piece({"name": "gpu-0"}, {"name": "gpu-1", "taints": [ILL], **known})
    old = piece({"name": "gpu-0", "basic": {}}, {"name": "gpu-1", "basic": {"taints": [ILL], **known}})
    assert texts(by_node([new], [])) == texts(by_node([old], [])) == {"gpu1": [says]}
    assert by_node([new], [])["gpu1"].drivers == {"gpu.nvidia.com"}


def test_whose_devices() -> None:
    """Of a node, named by the slice or the device; what belongs to no one node, or to a pool's past, is nobody's."""
    bad = {"name": "d", "taints": [ILL]}
    each = piece(
        {**bad, "nodeName": "gpu2"}, {"name": "e", "nodeName": "gpu3"}, node="", perDeviceNodeSelection=True
    )
    assert list(texts(by_node([each], []))) == ["gpu2"]
    assert not by_node([piece(bad, node="", allNodes=True), piece(bad, node="", nodeSelector={})], [])
    pool = {"name": "gpu1", "generation": 2}
    assert not texts(by_node([piece(bad), piece({"name": "d"}, pool=pool)], []))
    assert not texts(by_node([piece({"name": "d"}, pool=pool), piece(bad)], []))
    assert texts(by_node([piece({"name": "d"}), piece({**bad, "name": "e"})], [])), (
        "slices of one generation add up"
    )


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({"driver": "gpu.nvidia.com", "pool": "gpu1", "device": "gpu-0"}, ["gpu-0"]),
        ({"pool": "gpu1"}, ["gpu-0", "gpu-1"]),
        ({}, ["gpu-0", "gpu-1"]),
        ({"driver": "other"}, []),
        ({"device": "gpu-9"}, []),
        ({"device": "gpu-0", "deviceClassName": "gpu"}, []),
        (None, []),
    ],
)
def test_an_administrators_rule(selector: dict[str, str] | None, fits: list[str]) -> None:
    """All that it names must fit; without a selector it fits none, and what we cannot evaluate fits none."""
    one = rule(**(selector or {}))
    if selector is None:
        del one["spec"]["deviceSelector"]
    (said,) = by_node([piece({"name": "gpu-0"}, {"name": "gpu-1"})], [one]).values()
    assert [(taint.device, taint.rule) for taint in said.taints] == [(name, "rma") for name in fits]


def test_what_is_no_taint() -> None:
    """The effect "None" is a note, and one that nobody knows is not ours to judge."""
    devices = [
        {"name": "d", "taints": [{"key": "k", "effect": effect}]}
        for effect in ("None", "", "PreferNoSchedule")
    ]
    assert not texts(by_node([piece(*devices)], [rule(effect="None")]))


def taints(*rules: str) -> list[DeviceTaint]:
    return [
        DeviceTaint(driver="d", pool="p", device=f"gpu-{index}", key="k", effect="NoSchedule", rule=name)
        for index, name in enumerate(rules)
    ]


def test_they_are_one_fact_of_the_node() -> None:
    """Told once, again when they change or last, and at their end; an administrator's alone are an information."""
    watch = Witness("k8s")
    (fact,) = watch.devices("gpu1", taints("", "rma"), NOW_S)
    assert set(fact.data) == {field.name for field in KIND.fields}
    assert (fact.data["devices"], fact.data["device"], fact.data["by_driver"]) == (2, "gpu-0, gpu-1", True)
    assert (fact.data["driver"], fact.data["effect"], fact.severity) == ("d", "NoSchedule", Severity.ERROR)
    assert watch.devices("gpu1", taints("", "rma"), NOW_S + 60) == []
    (admins,) = watch.devices("gpu1", taints("rma"), NOW_S + 60)
    assert (admins.data["by_driver"], admins.severity) == (False, Severity.INFO)
    assert len(watch.devices("gpu1", taints("rma"), NOW_S + 60 + AGAIN_S)) == 1
    (end,) = watch.devices("gpu1", [], NOW_S + 5000)
    assert (end.data["active"], end.data["devices"], end.data["device"]) == (False, 0, "")
    assert watch.devices("gpu1", [], NOW_S + 5060) == []


def test_a_thousand_taints_are_one_bounded_fact() -> None:
    """A driver may taint whatever it likes; what is told of its node has its limits."""
    many = [{"name": f"d{n}", "taints": [{**ILL, "key": f"k{m}/x"} for m in range(16)]} for n in range(128)]
    (said,) = by_node([piece(*many)], []).values()
    (fact,) = Witness("k8s").devices("gpu1", said.taints, NOW_S)
    assert fact.data["devices"] == 128
    assert max(len(value) for value in fact.data.values() if isinstance(value, str)) <= 400
    assert NodeDevices().taints == []
