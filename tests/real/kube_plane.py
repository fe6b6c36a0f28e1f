"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, and nodes without machines.

    with plane() as kube:
        kube.pods("train", "gpu1", count=2, ends_after_s=3)
        kube.kubectl("cordon", "gpu1")
        kube.stop_api(); kube.start_api()

No package has the binaries: GPUWARD_KUBE_ASSETS names a folder with them (or with NAME.xz, or a folder bin with either),
and etcd may come from Debian (etcd-server). It starts in 7 to 13 s; all of it ends with the block.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FILES = Path(__file__).resolve().parent / "kubernetes"
ROOT = FILES.parents[2]
NODES = ("gpu1", "gpu2", "gpu3")
BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager")
WAIT_S = 60.0
KEPT = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")


def missing() -> str:
    """Why there can be no control plane here; empty when there can."""
    assets = Path(os.environ.get("GPUWARD_KUBE_ASSETS") or "/nonexistent")
    places = [assets / each / f"{{}}{end}" for each in ("", "bin") for end in ("", ".xz")]
    absent = [
        name
        for name in BINARIES
        if shutil.which(name) is None and not any(Path(str(place).format(name)).exists() for place in places)
    ]
    if absent:
        return (
            f"needs {', '.join(absent)} in the folder GPUWARD_KUBE_ASSETS (etcd: apt-get install etcd-server)"
        )
    tools = [tool for tool in ("kubectl", "openssl", "curl", "xz") if shutil.which(tool) is None]
    return f"needs {', '.join(tools)}" if tools else ""


class Plane:
    """A running control plane."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "gpuward.kubeconfig"  # get and patch nodes, get and list pods, evict
        self._nodes: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when all nodes are Ready."""
        self._control("start")
        with (self.folder / "log/nodes.log").open("wb") as log:
            self._nodes = subprocess.Popen(
                [sys.executable, str(FILES / "fake_nodes.py"), str(self.folder), *NODES],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.until((self.folder / "fake-nodes.ready").exists, "the nodes are not ready")

    def stop(self) -> None:
        """Ends everything."""
        if self._nodes is not None:
            self._nodes.terminate()
            self._nodes.wait(30)
        for name in reversed(BINARIES):
            if (self.folder / f"{name}.pid").exists():
                with suppress(ProcessLookupError):  # it has ended by itself; the others have not
                    self._signal(name, signal.SIGKILL)

    def stop_api(self) -> None:
        """The API server dies, without a word to its clients."""
        self._signal("kube-apiserver", signal.SIGKILL)
        (self.folder / "kube-apiserver.pid").unlink()

    def start_api(self) -> None:
        """Starts it again; returns when it is ready."""
        self._control("start")

    def freeze_api(self) -> None:
        """It answers nothing until `thaw_api`."""
        self._signal("kube-apiserver", signal.SIGSTOP)

    def thaw_api(self) -> None:
        """It goes on, also with the requests that it got meanwhile."""
        self._signal("kube-apiserver", signal.SIGCONT)

    def kubectl(self, *argv: str, given: object = None, check: bool = True) -> str:
        """What an administrator types; `given` goes to its standard input as JSON."""
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self.folder}/admin.kubeconfig", *argv],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "HOME": str(self.folder)},
        )
        assert done.returncode == 0 or not check, (argv, done.stdout, done.stderr)
        return done.stdout

    def types(self, command: str) -> str:
        """What an administrator types in a checkout, as a page has it; the same as `kubectl` besides."""
        program, *argv = shlex.split(command)
        assert program == "kubectl", command
        return self.kubectl(*(str(ROOT / one) if one.startswith("deploy/") else one for one in argv))

    def node(self, name: str) -> dict[str, Any]:
        """The Node object."""
        return dict(json.loads(self.kubectl("get", "--raw", f"/api/v1/nodes/{name}")))

    def taints(self, name: str) -> list[str]:
        """Keys of its taints, without those that Kubernetes derives from a cordon."""
        taints = self.node(name)["spec"].get("taints") or []
        return [one["key"] for one in taints if one["key"] != "node.kubernetes.io/unschedulable"]

    def pods(self, name: str, node: str, *, count: int = 1, ends_after_s: float = 0.3) -> list[str]:
        """Starts pods of a ReplicaSet on a node; their names, once they run. Those that follow them stay pending."""
        labels = {"app": name}
        containers = [{"name": "c", "image": "i"}]
        ends = {"fake-nodes/ends-after-s": str(ends_after_s)}
        template = {
            "metadata": {"labels": labels, "annotations": ends},
            "spec": {"containers": containers, "nodeSelector": {"kubernetes.io/hostname": node}},
        }
        spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
        self.apply("apps/v1", "ReplicaSet", name, spec)
        self.until(lambda: len(self.running(name)) == count, f"the pods of {name} do not run")
        return self.running(name)

    def running(self, app: str) -> list[str]:
        """The running pods of an app."""
        found = json.loads(self.kubectl("get", "pods", "-l", f"app={app}", "-o", "json"))["items"]
        return [
            one["metadata"]["name"]
            for one in found
            if one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"]
        ]

    def budget(self, name: str, app: str, *, at_least: int) -> None:
        """A disruption budget: so many pods of the app must run."""
        spec = {"minAvailable": at_least, "selector": {"matchLabels": {"app": app}}}
        self.apply("policy/v1", "PodDisruptionBudget", name, spec)

    def apply(self, version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Creates or changes an object of namespace default."""
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.kubectl("apply", "-f", "-", given=body)

    def clean(self) -> None:
        """No pods and no budgets; nodes without cordon, marks and taints."""
        everything = ("replicasets,pods,poddisruptionbudgets", "--all", "--force", "--grace-period=0")
        self.kubectl("delete", *everything, "--ignore-not-found")
        for name in NODES:
            clear = {
                "metadata": {
                    "annotations": dict.fromkeys(("gpuward/reason", "gpuward/kept", *KEPT)),
                    "labels": {"gpuward/drained": None},
                },
                "spec": {"taints": None, "unschedulable": None},
            }
            self.kubectl("patch", "node", name, "--type=merge", "-p", json.dumps(clear))

    def until(self, true: Callable[[], bool], why: str, within_s: float = WAIT_S) -> None:
        """Waits for it."""
        end = time.monotonic() + within_s
        while not true():
            assert self._nodes is None or self._nodes.poll() is None, f"the nodes have ended: {self._logs()}"
            assert time.monotonic() < end, f"{why}: {self._logs()}"
            time.sleep(0.05)

    def _control(self, *argv: str) -> None:
        verb, *names = argv
        done = subprocess.run(
            [str(FILES / "control-plane.sh"), verb, str(self.folder), *names],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr

    def _signal(self, name: str, which: signal.Signals) -> None:
        pid = int((self.folder / f"{name}.pid").read_text())
        os.kill(pid, which)
        while which is signal.SIGKILL and Path(f"/proc/{pid}").exists():
            if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
                break
            time.sleep(0.01)

    def _logs(self) -> str:
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-600:]}" for log in logs)


@contextmanager
def plane() -> Iterator[Plane]:
    """A control plane; gone when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="gw-kube-"))
    made = Plane(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
