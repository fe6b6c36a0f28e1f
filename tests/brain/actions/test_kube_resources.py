"""Which extended resources are GPUs or NPUs, how many a node has and a pod requests, and how the option names them. No I/O."""

from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ConfigError
from brain.actions import kube_options, kube_states
from brain.actions.kube_resources import COMMON, GpuResources, patterns_of
from brain.actions.witness import Witness

NOW_S = 1e9


def node(**counts: tuple[str, str]) -> dict[str, Any]:
    """A Node object: resource (`__` for the slash, `_` for a dot) -> capacity and allocatable."""
    names = {key: key.replace("__", "/").replace("_", ".") for key in counts}
    return {
        "status": {
            "capacity": {"cpu": "64", **{names[key]: have for key, (have, _) in counts.items()}},
            "allocatable": {"cpu": "64", **{names[key]: usable for key, (_, usable) in counts.items()}},
        }
    }


def said(found: dict[str, Any], *patterns: str) -> tuple[tuple[int, int] | None, str, bool]:
    one = kube_states.node("n1", found, GpuResources(patterns or COMMON), NOW_S)
    return one.gpus, one.gpus_text, one.plugin_down


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("nvidia.com/mig-7g.80gb", True),
        ("amd.com/gpu", True),
        ("amd.com/cpx_nps4", True),
        ("amd.com/spx_nps1", True),
        ("huawei.com/Ascend910", True),
        ("huawei.com/Ascend310P", True),
        ("huawei.com/Ascend910-16c", True),
        ("huawei.com/Ascend310P-4c.3cpu", True),
        ("huawei.com/npu", True),
        ("habana.ai/gaudi", True),
        ("gpu.intel.com/xe", True),
        ("nvidia.com/gpumem", False),
        ("nvidia.com/gpucores", False),
        ("huawei.com/Ascend910B-memory", False),
        ("rdma/hca_shared_devices_a", False),
        ("nvidia.com/mlnxnics", False),
        ("cpu", False),
        ("hugepages-1Gi", False),
    ],
)
def test_what_counts_where_nothing_is_said(name: str, *, counts: bool) -> None:
    """The common makers' devices; neither their memory nor network cards, CPUs or pages."""
    asked = {"resources": {"limits": {name: "4"}}}
    assert GpuResources().wanted(asked) == (4 if counts else 0)


def test_a_container_may_want_several() -> None:
    """Each counts, once: limits and requests of extended resources are equal where both are given."""
    both = {"nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "1", "memory": "8Gi"}
    assert GpuResources().wanted({"resources": {"limits": both, "requests": both}}) == 3
    assert GpuResources().wanted({"resources": {"requests": {"amd.com/gpu": "8"}}}) == 8
    assert (
        GpuResources().wanted({"resources": {"limits": {"amd.com/gpu": "8Gi", "nvidia.com/gpu": None}}}) == 0
    )
    assert GpuResources().wanted({}) == GpuResources().wanted({"resources": None}) == 0


def test_a_node_with_several_makers_or_mig() -> None:
    """Sums, and each with its number; a maker without anything usable has lost its plug-in, whatever the others have."""
    assert said(node(nvidia_com__gpu=("8", "7"))) == ((8, 7), "nvidia.com/gpu", False)
    mixed = node(nvidia_com__gpu=("8", "8"), amd_com__gpu=("4", "0"))
    assert said(mixed) == ((12, 8), "0 of 4 amd.com/gpu, 8 of 8 nvidia.com/gpu", True)
    status = {
        "capacity": {"nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "1", "nvidia.com/mig-3g.40gb": "2"},
        "allocatable": {"nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "0", "nvidia.com/mig-3g.40gb": "2"},
    }
    short = "0 of 1 nvidia.com/mig-1g.10gb, 7 of 7 nvidia.com/gpu, 2 of 2 nvidia.com/mig-3g.40gb"
    assert said({"status": status}) == ((10, 9), short, False)
    assert said(mixed, "nvidia.com/gpu") == ((8, 8), "nvidia.com/gpu", False)


def test_what_is_no_longer_offered_proves_nothing() -> None:
    """The kubelet's 0 some minutes after a plug-in is gone ends no incident; after a change to MIG the new ones count."""
    watch, gpus = Witness("k8s"), GpuResources()

    def told(found: dict[str, Any]) -> list[object]:
        return [
            one.data["active"] for one in watch.nodes([kube_states.node("n1", found, gpus, NOW_S)], NOW_S)
        ]

    assert told(node(nvidia_com__gpu=("8", "0"))) == [True]
    assert told(node(nvidia_com__gpu=("0", "0"))) == []
    status = {
        name: {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "56"} for name in ("capacity", "allocatable")
    }
    assert told({"status": status}) == [False]


def test_one_that_fails_while_another_comes_back_is_news() -> None:
    """The sums are the same, and the fact is another one."""
    watch, gpus = Witness("k8s"), GpuResources()
    for found in (
        node(nvidia_com__gpu=("8", "7"), amd_com__gpu=("8", "8")),
        node(nvidia_com__gpu=("8", "8"), amd_com__gpu=("8", "7")),
    ):
        (fact,) = watch.nodes([kube_states.node("n1", found, gpus, NOW_S)], NOW_S)
        assert (fact.data["usable"], fact.data["active"]) == (15, True)
        assert watch.nodes([kube_states.node("n1", found, gpus, NOW_S)], NOW_S + 60) == []


def options(folder: Path, **more: Any) -> kube_options.KubeOptions:
    config = folder / "kubeconfig"
    config.write_text("{}")
    return kube_options.read({"type": "kubernetes", "kubeconfig": str(config), **more}, "schedulers.k8s")


@pytest.mark.parametrize(
    ("given", "patterns"),
    [
        ("nvidia.com/gpu", ("nvidia.com/gpu",)),
        ("nvidia.com/gpu, amd.com/gpu", ("nvidia.com/gpu", "amd.com/gpu")),
        (["huawei.com/Ascend910", "nvidia.com/mig-*"], ("huawei.com/Ascend910", "nvidia.com/mig-*")),
        (COMMON, COMMON),
    ],
)
def test_the_option(given: Any, patterns: tuple[str, ...], tmp_path: Path) -> None:
    """One as before, several with commas, a list; the default is the common ones."""
    assert options(tmp_path, gpu_resource=given).rules().gpu_resources.patterns == patterns
    assert options(tmp_path).rules().gpu_resources.patterns == COMMON == patterns_of(COMMON)


@pytest.mark.parametrize(
    "given", ["gpu", "", "nvidia.com/gpu,", "*/gpu", "nvidia.com/", [], ["amd.com/gpu", ""], 7]
)
def test_what_names_no_resource(given: Any, tmp_path: Path) -> None:
    """The error names the key."""
    with pytest.raises(ConfigError, match=r"schedulers\.k8s\.gpu_resource"):
        options(tmp_path, gpu_resource=given)
