"""deploy/kubernetes/ha at work: what the API server made of it runs as processes, with the keys that the page's commands make.

A real API server, its controllers and admission; three real nats-servers, two brains and agents from the pods' own command lines,
ConfigMaps, Secrets, users and probes (tests/real/kube_pods.py).
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.contract import subjects
from tests.real import kube_plane, kube_pods
from tests.real.kube_plane import Plane
from tests.real.kube_pods import PROGRAMS, ROOT, Machines, Pod, machines
from tests.real.test_kustomize import MAY, MAY_NOT

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.skipif(bool(kube_pods.missing()), reason=kube_pods.missing() or "-"),
    pytest.mark.timeout(600),
]
ACCOUNT = "system:serviceaccount:gpuward:{}"
SERVERS = tuple(f"gpuward-nats-{number}" for number in range(3))
BRAINS = ("gpuward-0", "gpuward-1")
PAGE = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """A control plane."""
    with kube_plane.plane() as made:
        yield made


def commands(section: str, begins: str) -> str:
    """The block of a section of the page that begins so, without its indent."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?m)(?:^    .*\n)+", text)
    (found,) = [block for block in blocks if block.lstrip().startswith(begins)]
    return re.sub(r"(?m)^    ", "", found)


class Site:
    """A checkout with an operator in front of it."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self.folder = folder
        self._plane = plane
        shutil.copytree(ROOT / "deploy/kubernetes", folder / "deploy/kubernetes")
        for name, what in (("brain", "ha"), ("agent", "agent")):
            overlay = folder / "site" / name
            overlay.mkdir(parents=True)
            text = json.dumps({"resources": [f"../../deploy/kubernetes/{what}"]})
            (overlay / "kustomization.yaml").write_text(text)

    def type(self, text: str) -> str:
        """What a shell prints; it must succeed."""
        env = {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "KUBECONFIG": f"{self._plane.folder}/admin.kubeconfig",
            "HOME": str(self.folder),
        }
        done = subprocess.run(
            ["bash", "-euc", text], cwd=self.folder, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout + done.stderr


class Cell:
    """The pods, as processes."""

    def __init__(self, site: Site, at: Machines) -> None:
        self.site = site
        self.at = at
        self.servers = [at.pod("gpuward", name) for name in SERVERS]
        self.brains = [at.pod("gpuward", name) for name in BRAINS]

    def said(self, brain: Pod, *argv: str) -> Any:
        """What a brain answers somebody in its pod."""
        at = ("--url", "https://127.0.0.1:8470", "--ca-file", "/var/lib/gpuward/cell/ca.pem")
        return json.loads(brain.exec("gpuward", *at, *argv, "--json"))

    def leader(self) -> Pod | None:
        """The brain that leads; None: nobody does, or it is just changing."""
        leads = [
            one for one in self.brains if one.running and one.is_well() and self.said(one, "status")["leads"]
        ]
        # They are asked one after the other: the lease may have moved meanwhile.
        return leads[0] if len(leads) == 1 else None

    def until_led(self) -> Pod:
        """Until one of them leads."""
        self.at.until(self.leader, "nobody leads")
        found = self.leader()
        assert found is not None
        return found

    def until_well(self, *pods: Pod) -> None:
        """Until their readiness probes say so."""
        for pod in pods:
            self.at.until(pod.is_well, f"{pod.name} is not ready", pods)

    def other(self, brain: Pod) -> Pod:
        """The brain beside it."""
        return next(one for one in self.brains if one is not brain)

    def join(self, node: str) -> Pod:
        """The agent of a node: by the token of the page, and the DaemonSet's pod."""
        argv = commands("From nothing to observing", "kubectl apply -f deploy/kubernetes/agent").splitlines()[
            1
        ]
        token = self.brains[0].exec(*argv.partition(" -- ")[2].partition(" >")[0].replace("'", "").split())
        self.site.type(
            f"kubectl -n gpuward-agent create secret generic gpuward-join --from-literal=token={token.strip()} "
            "--dry-run=client -o yaml | kubectl apply -f -"
        )
        self.site.type(f"kubectl label node {node} --overwrite nvidia.com/gpu.present=true")
        names: list[str] = []

        def is_there() -> bool:
            found = json.loads(self.site.type("kubectl -n gpuward-agent get pods -o json"))["items"]
            names[:] = [one["metadata"]["name"] for one in found if one["spec"].get("nodeName") == node]
            return bool(names)

        self.at.until(is_there, f"no pod for {node}")
        pod = self.at.pod("gpuward-agent", names[0])
        pod.start()
        return pod

    def hears(self, brain: Pod, *nodes: str) -> bool:
        """Does this brain hear these nodes, and no others?"""
        return [one["name"] for one in self.said(brain, "nodes") if one["alive"]] == list(nodes)

    def accounts(self, server: Pod) -> dict[str, str]:
        """Account -> its JWT, as a server has it on its disk."""
        return {
            file.name: file.read_text() for file in (server.folder("/var/lib/nats") / "jwt").glob("*.jwt")
        }

    def until_same(self, before: Collection[str], count: int) -> None:
        """Until all servers have the same that were not there before, so many."""

        def same() -> bool:
            first, *others = [
                {name: jwt for name, jwt in self.accounts(server).items() if name not in before}
                for server in self.servers
            ]
            return all(one == first for one in others) and len(first) == count

        self.at.until(same, "the servers do not have the same accounts")

    def leads_the_log(self) -> Pod:
        """The server that leads the stream of the log."""
        for server in self.servers:
            told = json.loads(server.answers("http://{}:8222/jsz?accounts=true&streams=true") or b"{}")
            for stream in [
                one for of in told.get("account_details", []) for one in of.get("stream_detail", [])
            ]:
                if stream["name"] == subjects.stream("default"):
                    return next(one for one in self.servers if one.name == stream["cluster"]["leader"])
        raise AssertionError("nobody has the log")


@pytest.fixture
def cell(plane: Plane, tmp_path: Path) -> Iterator[Cell]:
    """As the page has it: keys, Secrets, apply; then the pods that the controllers have made."""
    site = Site(plane, tmp_path / "checkout")
    section = "Two brains and a NATS of three"
    site.type(commands(section, "umask"))
    lines = site.type(
        commands(section, "kubectl apply -f") + "kubectl apply -k site/brain\nkubectl apply -k site/agent"
    )
    assert "Warning" not in lines
    wanted = {*SERVERS, *BRAINS}
    names = "kubectl -n gpuward get pods -o jsonpath='{.items[*].metadata.name}'"
    plane.until(lambda: set(site.type(names).split()) == wanted, "not all pods are made")
    folder = tmp_path / "machines"
    folder.mkdir()
    with machines(plane, folder) as at:
        yield Cell(site, at)


def test_what_the_api_server_makes_of_it(plane: Plane, tmp_path: Path) -> None:
    """Nothing to warn of, and a second apply would change nothing. Servers have no token and their account no right; the brains
    have the five of one brain. Two drains at once leave two servers and one brain.
    """
    site = Site(plane, tmp_path / "checkout")
    for how in (" --dry-run=server", ""):
        if how:  # in a namespace that is not there yet nothing can be tried
            site.type("kubectl apply -f deploy/kubernetes/rbac/rbac.yaml")
        assert "Warning" not in site.type(f"kubectl apply -k site/brain{how}")
    assert site.type("kubectl diff -k site/brain") == ""
    wanted = {*SERVERS, *BRAINS}
    plane.until(lambda: healthy(site) == (3, 2), "not all pods are ready")
    for name in wanted:
        (pod,) = [json.loads(site.type(f"kubectl -n gpuward get pod {name} -o json"))]
        tokens = [one for one in pod["spec"]["volumes"] if one["name"].startswith("kube-api-access")]
        assert bool(tokens) is (name in BRAINS), name
    for account, may in (("gpuward", MAY), ("default", ())):
        for request in (*MAY, *MAY_NOT, "get secrets", "update configmaps"):
            verb, what = request.split()
            resource, _, sub = what.partition("/")
            argv = ("auth", "can-i", verb, resource, *((f"--subresource={sub}",) if sub else ()))
            said = plane.kubectl(*argv, "--as", ACCOUNT.format(account), "--all-namespaces", check=False)
            assert said.strip() == ("yes" if request in may else "no"), (account, request)

    site.type("kubectl cordon gpu1 gpu2 gpu3")  # who is evicted finds no other node
    for first, second in ((SERVERS[0], SERVERS[1]), BRAINS):
        assert "TooManyRequests" not in evicted(plane, first)
        plane.until(lambda: min(left(site)) == 0, "the budget does not count")
        assert "violate the pod's disruption budget" in evicted(plane, second)
        site.type("kubectl uncordon gpu1 gpu2 gpu3")
        plane.until(lambda: healthy(site) == (3, 2) and min(left(site)) == 1, "it does not come back")
        assert "violate" not in evicted(plane, second)
        site.type("kubectl cordon gpu1 gpu2 gpu3")
    site.type("kubectl uncordon gpu1 gpu2 gpu3")


def signs(brain: Pod) -> str:
    """A name for the key by which a brain signs commands."""
    return brain.exec("sha256sum", "/var/lib/gpuward/signing.key").split()[0]


def budgets(site: Site, key: str) -> tuple[int, int]:
    """What the disruption budgets of servers and brains say."""
    found = json.loads(site.type("kubectl -n gpuward get poddisruptionbudgets -o json"))["items"]
    named = {one["metadata"]["name"]: one.get("status", {}).get(key, 0) for one in found}
    return named["gpuward-nats"], named["gpuward"]


def healthy(site: Site) -> tuple[int, int]:
    """So many servers and brains are ready."""
    return budgets(site, "currentHealthy")


def left(site: Site) -> tuple[int, int]:
    """So many of either may be evicted now."""
    return budgets(site, "disruptionsAllowed")


def evicted(plane: Plane, pod: str) -> str:
    """As `kubectl drain` asks for it; what the server says against it."""
    at = f"/api/v1/namespaces/gpuward/pods/{pod}/eviction"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "gpuward"}}
    done = subprocess.run(
        ["kubectl", f"--kubeconfig={plane.folder}/admin.kubeconfig", "create", "--raw", at, "-f", "-"],
        input=json.dumps(body),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr


def test_two_brains_three_servers_and_what_dies(cell: Cell) -> None:
    """A node joins; the leader dies; the server that leads the log dies, a node joins meanwhile; one is revoked. Nobody writes
    a file or an object of the API server for it, and the node that was there is heard by whoever leads.
    """
    for pod in (*cell.servers, *cell.brains):
        pod.start()
    cell.until_well(*cell.servers, *cell.brains)
    first = cell.until_led()
    assert len({signs(brain) for brain in cell.brains}) == 1, "both brains sign with one key"
    began = set(cell.accounts(cell.servers[0]))

    agent = cell.join("gpu1")
    cell.at.until(partial(cell.hears, first, "gpu1"), "gpu1 is not heard", [agent])
    cell.until_same(began, 1)

    first.kill()
    killed_s = time.monotonic()
    second = cell.until_led()
    print(f"the other brain leads after {time.monotonic() - killed_s:.1f} s")
    assert second is cell.other(first)
    cell.at.until(partial(cell.hears, second, "gpu1"), "gpu1 is not heard by the standby", [agent])
    first.start()
    cell.until_well(first)
    assert "nothing is new" in first.log
    assert cell.until_led().running, "two brains again, and one leads"

    dead = cell.leads_the_log()
    dead.kill()
    killed_s = time.monotonic()
    other = cell.join("gpu2")

    def both_heard() -> bool:
        leads = cell.leader()
        return leads is not None and cell.hears(leads, "gpu1", "gpu2")

    cell.at.until(both_heard, "not both are heard", [agent, other])
    print(f"without {dead.name}: both are heard after {time.monotonic() - killed_s:.1f} s")
    dead.start()
    cell.until_well(*cell.servers, *cell.brains)

    leads = cell.until_led()
    standby = cell.other(leads)
    old = signs(standby)
    leads.exec("gpuward", "cell", "rotate", "signing", "--now")
    cell.at.until(
        lambda: "rotation of signing" not in leads.exec("gpuward", "cell", "show"), "it does not end"
    )
    told = standby.exec("gpuward", "cell", "take", "-", given=leads.exec("gpuward", "cell", "share", "-"))
    assert "signing.key, trust.json" in told
    assert signs(standby) == signs(leads) != old, "as the page says it"

    cell.brains[0].exec("gpuward", "cell", "revoke", "gpu2")
    for brain in cell.brains:
        cell.at.until(partial(cell.hears, brain, "gpu1"), f"gpu2 is still there for {brain.name}", [agent])
    cell.until_same(began, 2)
