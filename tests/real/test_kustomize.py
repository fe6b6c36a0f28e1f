"""deploy/kubernetes on a real API server: what it takes, which pods its controllers make, and what the brain's account may do."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent import __version__
from brain import config as brain_config
from tests.real import kube_plane
from tests.real.kube_plane import Plane
from tests.real.kube_pods import IMAGES

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]
FOLDER = Path(__file__).resolve().parents[2] / "deploy/kubernetes"
ACCOUNT = "system:serviceaccount:gpuward:gpuward"
MAY = ("get nodes", "patch nodes", "get pods", "list pods", "create pods/eviction")
MAY_NOT = (
    *(
        "get secrets",
        "list secrets",
        "get configmaps",
        "delete pods",
        "create pods",
        "patch pods",
        "watch pods",
    ),
    *(
        "list nodes",
        "delete nodes",
        "update nodes",
        "patch nodes/status",
        "create pods/exec",
        "get nodes/proxy",
    ),
    *("create serviceaccounts/token", "patch clusterroles", "impersonate users", "create daemonsets.apps"),
)


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """A control plane with two GPU nodes and one without GPUs, and with all that we have applied."""
    with kube_plane.plane() as made:
        for name in ("gpu1", "gpu2"):
            made.kubectl("label", "node", name, "nvidia.com/gpu.present=true")
        made.types("kubectl apply -f deploy/kubernetes/agent/namespace.yaml")
        yield made


def said(plane: Plane, *argv: str) -> list[str]:
    """The lines that kubectl prints, its warnings too; it must succeed."""
    done = subprocess.run(
        ["kubectl", f"--kubeconfig={plane.folder}/admin.kubeconfig", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return (done.stdout + done.stderr).splitlines()


def pods(plane: Plane, namespace: str) -> dict[str, dict[str, Any]]:
    """Name → pod."""
    listed = json.loads(plane.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
    return {one["metadata"]["name"]: one for one in listed}


def nodes_of_agents(plane: Plane) -> set[str]:
    """The nodes for which the DaemonSet's controller has made pods that go on."""
    return {
        str(one["spec"].get("nodeName"))
        for one in pods(plane, "gpuward-agent").values()
        if "deletionTimestamp" not in one["metadata"]
    }


@pytest.mark.parametrize("name", ["single", "agent"])
def test_it_is_applied_without_a_warning_and_the_second_time_changes_nothing(plane: Plane, name: str) -> None:
    """The API server takes every field, admission finds nothing to warn of, and a second apply would change
    nothing."""
    folder = str(FOLDER / name)
    for how in (("--dry-run=server",), ()):
        lines = said(plane, "apply", "-k", folder, *how)
        assert not [line for line in lines if "Warning" in line], lines
    # kubectl itself says `configured` of each StatefulSet's claims and each budget, whatever changes.
    assert said(plane, "diff", "-k", folder) == []


def test_the_controllers_make_the_pods(plane: Plane) -> None:
    """One brain, which admission holds to `restricted`; an agent on each GPU node and on no other, also while gpuward drains the
    node and a person has cordoned it; a label of our own decides before others.
    """
    for name in ("single", "agent"):
        said(plane, "apply", "-k", str(FOLDER / name))
    plane.until(lambda: "gpuward-0" in pods(plane, "gpuward"), "there is no brain")
    plane.until(lambda: nodes_of_agents(plane) == {"gpu1", "gpu2"}, "there is no agent on each GPU node")
    brain = pods(plane, "gpuward")["gpuward-0"]
    assert brain["spec"]["serviceAccountName"] == "gpuward"
    agent = next(iter(pods(plane, "gpuward-agent").values()))
    assert agent["spec"]["priority"] > 2_000_000_000, "node-critical"
    plane.kubectl("taint", "node", "gpu1", "gpuward/drained=:NoSchedule")
    plane.kubectl("cordon", "gpu1")
    gone = next(
        name for name, one in pods(plane, "gpuward-agent").items() if one["spec"].get("nodeName") == "gpu1"
    )
    plane.kubectl("delete", "pod", "-n", "gpuward-agent", gone)
    plane.until(
        lambda: gone not in pods(plane, "gpuward-agent") and nodes_of_agents(plane) == {"gpu1", "gpu2"},
        "the agent does not come back on a node that is drained",
    )
    plane.kubectl("label", "node", "gpu2", "gpuward/agent=false")
    plane.kubectl("label", "node", "gpu3", "gpuward/agent=true")
    plane.until(lambda: nodes_of_agents(plane) == {"gpu1", "gpu3"}, "the label of our own does not decide")


def test_a_privileged_pod_does_not_come_into_the_brains_namespace(plane: Plane) -> None:
    """Pod Security admission refuses it there; that is why agents have a namespace of their own."""
    said(plane, "apply", "-k", str(FOLDER / "single"))
    container = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    assert plane.kubectl("create", "-n", "gpuward", "-f", "-", given=pod, check=False) == ""
    assert "p" not in pods(plane, "gpuward")


def test_the_account_may_do_its_five_things_and_nothing_else(plane: Plane) -> None:
    """`kubectl auth can-i` as the brain."""
    said(plane, "apply", "-k", str(FOLDER / "single"))
    for wanted, requests in (("yes", MAY), ("no", MAY_NOT)):
        for request in requests:
            verb, what = request.split()
            resource, _, sub = what.partition("/")
            also = (f"--subresource={sub}",) if sub else ()
            argv = ("auth", "can-i", verb, resource, *also, "--as", ACCOUNT, "--all-namespaces")
            assert plane.kubectl(*argv, check=False).strip() == wanted, request


@pytest.mark.parametrize(
    ("name", "images"),
    [("single", {"gpuward/brain"}), ("ha", {"gpuward/brain"}), ("agent", {"gpuward/agent"})],
)
def test_one_line_of_an_overlay_changes_the_image(tmp_path: Path, name: str, images: set[str]) -> None:
    """A site names its registry once, for init containers and NATS too."""
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(
        json.dumps(
            {
                "resources": [os.path.relpath(FOLDER / name, overlay)],
                "images": [{"name": one, "newName": f"registry.example.com/{one}"} for one in images],
            }
        )
    )
    done = subprocess.run(
        ["kubectl", "kustomize", str(overlay)], capture_output=True, text=True, timeout=60, check=True
    )
    named = {line.split("image: ")[1] for line in done.stdout.splitlines() if " image: " in line}
    assert named == {f"registry.example.com/{one}:{__version__}" for one in images}


def test_another_namespace_as_the_page_says(plane: Plane, tmp_path: Path) -> None:
    """Nothing names the old one any more, the certificate is made for the pod's own, and the first cell keeps its rights."""
    page = (FOLDER.parents[1] / "docs/kubernetes.md").read_text()
    overlay = yaml.safe_load(page.partition("**Another namespace**")[2].split("```yaml\n")[1].split("```")[0])
    overlay["resources"] = [os.path.relpath(FOLDER / "single", tmp_path)]
    (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))
    shipped = (FOLDER / "single/brain.toml").read_text()
    (tmp_path / "brain.toml").write_text(shipped.replace("gpuward.gpuward.svc", "gpuward.fleet.svc"))
    said(plane, "apply", "-k", str(FOLDER / "single"))
    said(plane, "apply", "-k", str(tmp_path))
    made = plane.kubectl("kustomize", str(tmp_path))
    assert "gpuward.gpuward" not in made
    (brain,) = (one for one in yaml.safe_load_all(made) if one["kind"] == "StatefulSet")
    (init,) = brain["spec"]["template"]["spec"]["initContainers"]
    assert [one["name"] for one in init["env"]] == ["NAMESPACE"]
    done = subprocess.run(
        [*init["command"][:2], init["command"][2].replace("exec gpuward", "echo")],
        env={**os.environ, "NAMESPACE": "fleet"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "--name gpuward.fleet.svc --name gpuward.fleet.svc.cluster.local" in done.stdout
    for namespace in ("gpuward", "fleet"):
        account = f"system:serviceaccount:{namespace}:gpuward"
        assert plane.kubectl("auth", "can-i", "patch", "nodes", "--as", account).strip() == "yes"


@pytest.mark.parametrize(("name", "embedded"), [("single", True), ("ha", False)])
def test_the_configuration_is_one_that_the_brain_takes(name: str, embedded: bool) -> None:
    """Every key of the ConfigMap, and no mode but observe."""
    config = brain_config.load(FOLDER / name / "brain.toml")
    assert (config.embedded, config.modes, config.console.loopback) == (embedded, (), False)


@pytest.mark.parametrize("name", ["single", "ha"])
def test_every_port_that_is_named_is_there(name: str) -> None:
    """A service or a policy for a port that no container has would be taken, and do nothing."""
    rendered = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / name)], capture_output=True, text=True, timeout=60, check=True
    )
    found = [one for one in yaml.safe_load_all(rendered.stdout) if "spec" in one]
    pods = [one["spec"]["template"] for one in found if "template" in one["spec"]]
    looked = 0
    for one in found:
        spec = one["spec"]
        if one["kind"] == "Service":
            labels, ports = spec["selector"], [port["targetPort"] for port in spec["ports"]]
        elif one["kind"] == "NetworkPolicy":
            labels = spec["podSelector"]["matchLabels"]
            rules = (*spec["ingress"], *spec.get("egress", ()))
            ports = [port["port"] for rule in rules for port in rule["ports"]]
        else:
            continue
        own = {key: text for key, text in labels.items() if not key.startswith("statefulset.kubernetes.io/")}
        (pod,) = [one for one in pods if own.items() <= one["metadata"]["labels"].items()]
        there = {port["name"] for each in pod["spec"]["containers"] for port in each["ports"]}
        assert {port for port in ports if port != 53} <= there, one["metadata"]["name"]
        looked += 1
    assert looked == {"single": 2, "ha": 5}[name]


def test_the_right_to_ask_nvme_disks_is_one_line_of_an_overlay(tmp_path: Path) -> None:
    """The container starts as its image does, but for one right more."""
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    resources, components = ([os.path.relpath(FOLDER / name, overlay)] for name in ("agent", "nvme"))
    (overlay / "kustomization.yaml").write_text(
        json.dumps({"resources": resources, "components": components})
    )
    rendered = subprocess.run(
        ["kubectl", "kustomize", str(overlay)], capture_output=True, text=True, timeout=60, check=True
    )
    (agent,) = (one for one in yaml.safe_load_all(rendered.stdout) if one["kind"] == "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    images = (FOLDER.parent / "release/images.sh").read_text()
    rights = [*re.findall(r"^rights=(\S+)$", images, re.MULTILINE)[0].split(","), "sys_admin"]
    caps = ",".join(["-all", *(f"+{right}" for right in rights)])
    assert container["command"] == [
        *IMAGES["gpuward/agent"][0][:-1],
        *(f"--{kind}={caps}" for kind in ("inh-caps", "ambient-caps", "bounding-set")),
        IMAGES["gpuward/agent"][0][-1],
    ]
    assert container["args"][0] == "run"
