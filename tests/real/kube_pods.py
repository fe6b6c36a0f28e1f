"""Runs pods of a real API server as processes, as a kubelet would: their own command lines, ConfigMaps, Secrets, claims, users,
read-only roots and probes, each with a network namespace on one bridge.

There is no container runtime: a pod's root is this machine's, below an overlay, with our programs where the images have them.
"""

import base64
import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.real import netns
from tests.real.kube_plane import Plane
from tests.real.nats import nats_binary
from tests.real.netns import Namespace, namespace

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
USERS = {"gpuward": 65530, "gpuward-agent": 65531}
_GIVES_UP = ("/usr/bin/setpriv", "--reuid=65531", "--regid=65531", "--clear-groups", "--no-new-privs")
# Image -> its entry point and its user; how the image itself starts: tests/real/test_images.py.
IMAGES: Mapping[str, tuple[tuple[str, ...], int]] = {
    "gpuward/brain": (("/usr/bin/gpuward",), 65530),
    "gpuward/agent": ((*_GIVES_UP, "/usr/bin/gpuward-agent"), 0),
}
WITHIN_S = 180.0

Json = Mapping[str, Any]


def missing() -> str:
    """Why there can be no pods here; empty when there can."""
    return netns.missing() or ("" if shutil.which("nsenter") else "needs apt-get install util-linux")


class Pod:
    """One pod. It keeps its claims, its name and its address over `kill` and `start`."""

    def __init__(self, nodes: "Machines", spec: Json, space: Namespace, address: str) -> None:
        self.name = str(spec["metadata"]["name"])
        self.spec = spec
        self.address = address
        self._nodes = nodes
        self._space = space
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = nodes.folder / self.name
        self._folder.mkdir()
        self._mounts = nodes.volumes(spec, self._folder)

    @property
    def log(self) -> str:
        """What its containers have printed."""
        return (self._folder / "log").read_text(errors="replace")

    @property
    def running(self) -> bool:
        """Is its container running?"""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Its init containers to their end, then its container."""
        for one in self.spec["spec"].get("initContainers") or []:
            status = self._run(one).wait(WITHIN_S)
            assert status == 0, f"{self.name}: {one['name']} ended with {status}: {self.log[-2000:]}"
        (container,) = self.spec["spec"]["containers"]
        self._process = self._run(container)
        self._nodes.publish()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def is_well(self, probe: str = "readinessProbe") -> bool:
        """What the kubelet's probe says."""
        (container,) = self.spec["spec"]["containers"]
        assert self.running, f"{self.name} has ended: {self.log[-3000:]}"
        asks = container[probe]["httpGet"]
        port = next(one["containerPort"] for one in container["ports"] if one["name"] == asks["port"])
        return self.answers(f"{asks.get('scheme', 'HTTP').lower()}://{{}}:{port}{asks['path']}") is not None

    def answers(self, url: str) -> bytes | None:
        """What somebody on the bridge, where a kubelet would be, gets from a URL with `{}` for its address; None: no 200."""
        nobody = ssl.create_default_context()
        nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
        with self._nodes.switch.inside():
            try:
                with urllib.request.urlopen(url.format(self.address), timeout=5, context=nobody) as answer:  # noqa: S310  a pod's
                    return bytes(answer.read())
            except OSError:
                return None

    def exec(self, *argv: str, given: str = "", check: bool = True) -> str:
        """What `kubectl exec` prints; `given` goes to its standard input."""
        assert self._process is not None
        into = ("nsenter", f"--target={self._process.pid}", "--net", "--mount", "--uts", "--root", "--wd")
        (container,) = self.spec["spec"]["containers"]
        done = subprocess.run(
            [*into, *self._as(container), *argv],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0 or not check, (
            self.name,
            argv,
            done.stdout,
            done.stderr,
            self.log[-2000:],
        )
        return done.stdout

    def folder(self, at: str) -> Path:
        """Where the volume that is mounted there lies on this machine."""
        (container,) = self.spec["spec"]["containers"]
        name = next(one["name"] for one in container["volumeMounts"] if one["mountPath"] == at)
        return self._mounts[name]

    def _run(self, container: Json) -> subprocess.Popen[bytes]:
        entry, _ = IMAGES[container["image"].partition(":")[0]]
        argv = [*(container.get("command") or entry), *(container.get("args") or [])]
        script = self._folder / f"{container['name']}.sh"
        script.write_text(self._script(container))
        inside = ["ip", "netns", "exec", self._space.name, "unshare", "--mount", "--uts", "sh", str(script)]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*inside, *self._as(container), *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _as(self, container: Json) -> list[str]:
        """Its environment and its user, without any right."""
        _, user = IMAGES[container["image"].partition(":")[0]]
        limits = {**self.spec["spec"].get("securityContext", {}), **container.get("securityContext", {})}
        user = limits.get("runAsUser", user)
        names = {
            "metadata.name": self.name,
            "spec.nodeName": self.spec["spec"].get("nodeName", ""),
        }
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/var/lib/gpuward", "LANG": "C.UTF-8"}
        for one in container.get("env") or []:
            field = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            env[one["name"]] = names[field] if field else one["value"]
        who = [f"--reuid={user}", f"--regid={limits.get('runAsGroup', user)}", "--clear-groups"]
        if user:
            who += ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
        return [
            "setpriv",
            *who,
            "--pdeathsig=KILL",
            "env",
            "-i",
            *(f"{key}={text}" for key, text in env.items()),
        ]

    def _script(self, container: Json) -> str:
        """Makes the root, and becomes what its arguments say."""
        root = f"{self._folder}/root"
        lines = [
            "set -eu",
            f"hostname {self.name}",
            f"mkdir -p {root}",
            f"mount -t tmpfs tmpfs {root}",
            f"cd {root}; mkdir up work all",
            "mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=work all",
            "cd all; chmod 755 root; mkdir -p usr/lib/gpuward/bin",
            f"ln -sf {nats_binary()} usr/lib/gpuward/bin/nats-server",
            *(f"ln -sf {PROGRAMS}/{name} usr/bin/{name}" for name in ("gpuward", "gpuward-agent")),
            *(f"echo {name}:x:{at}:{at}::/:/bin/false >> etc/passwd" for name, at in USERS.items()),
            *(f"echo {name}:x:{at}: >> etc/group" for name, at in USERS.items()),
            "mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev",
            f"mount --bind {self._nodes.hosts} etc/hosts",
        ]
        for one in container["volumeMounts"]:
            at = one["mountPath"].lstrip("/")
            lines += [f"mkdir -p {at}; mount --rbind {self._mounts[one['name']]} {at}"]
            if one.get("readOnly"):
                lines += [f"mount -o remount,bind,ro {at}"]
        # A volume may lie over the folder that we are in.
        lines += [f"mkdir -p .{ROOT}; mount --bind {ROOT} .{ROOT}"]
        if container.get("securityContext", {}).get("readOnlyRootFilesystem"):
            lines += ["mount -o remount,ro ."]
        lines += [f'exec chroot . env -C "{container.get("workingDir", "/")}" "$@"']
        return "\n".join(lines) + "\n"


class Machines:
    """What runs the pods of a cluster."""

    def __init__(self, plane: Plane, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.hosts = folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.pods: dict[str, Pod] = {}
        self._plane = plane
        self._stack = stack
        self.switch = stack.enter_context(namespace())
        self.switch.ip("link", "add", "br0", "type", "bridge")
        self.switch.ip("addr", "add", "10.77.0.1/24", "dev", "br0")
        for link in ("lo", "br0"):
            self.switch.ip("link", "set", link, "up")

    def pod(self, where: str, name: str) -> Pod:
        """A pod that the API server has, not started yet."""
        spec = self._get(where, "pod", name)
        number = len(self.pods) + 2
        space = self._stack.enter_context(namespace())
        space.ip(
            "link", "add", "eth0", "type", "veth", "peer", "name", f"p{number}", "netns", self.switch.name
        )
        space.ip("addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            space.ip("link", "set", link, "up")
        self.switch.ip("link", "set", f"p{number}", "master", "br0", "up")
        self.pods[name] = made = Pod(self, spec, space, f"10.77.0.{number}")
        self._stack.callback(made.kill)
        return made

    def publish(self) -> None:
        """Names, as the cluster's DNS has them: of pods with a headless service, and of services."""
        lines = ["127.0.0.1 localhost"]
        for service in json.loads(self._plane.kubectl("get", "services", "-A", "-o", "json"))["items"]:
            meta, spec = service["metadata"], service["spec"]
            full = f"{meta['name']}.{meta['namespace']}.svc"
            for pod in self.pods.values():
                labels = pod.spec["metadata"].get("labels", {})
                if not pod.running or not (spec.get("selector") or {"": ""}).items() <= labels.items():
                    continue
                lines.append(f"{pod.address} {full}")
                if spec["clusterIP"] == "None" and pod.spec["spec"].get("subdomain") == meta["name"]:
                    lines.append(f"{pod.address} {pod.name}.{full}")
        self.hosts.write_text("\n".join(lines) + "\n")

    def volumes(self, pod: Json, scratch: Path) -> dict[str, Path]:
        """Volume -> its folder on this machine."""
        where, spec = pod["metadata"]["namespace"], pod["spec"]
        group = spec.get("securityContext", {}).get("fsGroup", 0)
        found = {}
        for one in spec.get("volumes") or []:
            folder = scratch / "volumes" / one["name"]
            if claim := one.get("persistentVolumeClaim"):
                folder = self.folder / "claims" / claim["claimName"]
            elif host := one.get("hostPath"):
                own = self.folder / "nodes" / spec["nodeName"] / host["path"].lstrip("/")
                there = Path(host["path"])
                folder = there if host["type"] == "Directory" and there.is_dir() else own
            folder.mkdir(parents=True, exist_ok=True)
            found[one["name"]] = folder
            if "persistentVolumeClaim" in one or "emptyDir" in one:
                os.chown(folder, 0, group)
                folder.chmod(0o2775)
            for source in one.get("projected", {}).get("sources", [one]):
                self._fill(where, pod, source, folder, group)
        return found

    def _fill(self, where: str, pod: Json, source: Json, folder: Path, group: int) -> None:
        """A ConfigMap, a Secret or a token: files that its group may read."""
        texts: dict[str, bytes] = {}
        if given := source.get("configMap"):
            # One of them is of the distribution whose API server this is, and a controller of theirs would make it.
            absent = given.get("optional") or given["name"] == "openshift-service-ca.crt"
            found = self._get(where, "configmap", given["name"], absent).get("data") or {}
            texts = {key: text.encode() for key, text in found.items()}
        elif given := source.get("secret"):
            found = self._get(
                where, "secret", given.get("secretName") or given["name"], given.get("optional")
            )
            texts = {key: base64.b64decode(text) for key, text in found.get("data", {}).items()}
        elif given := source.get("serviceAccountToken"):
            account = pod["spec"]["serviceAccountName"]
            texts = {given["path"]: self._plane.kubectl("create", "token", account, "-n", where).encode()}
        wanted = {one["key"]: one["path"] for one in (given or {}).get("items") or []}
        for key, text in texts.items():
            if wanted and key not in wanted:
                continue
            file = folder / wanted.get(key, key)
            file.write_bytes(text)
            os.chown(file, 0, group)
            file.chmod(0o440 if group else 0o444)

    def _get(self, where: str, kind: str, name: str, optional: bool | None = False) -> dict[str, Any]:
        told = self._plane.kubectl("get", kind, name, "-n", where, "-o", "json", check=not optional)
        return dict(json.loads(told or "{}"))

    def until(
        self, true: Callable[[], Any], what: str, of: Sequence[Pod] = (), within_s: float = WITHIN_S
    ) -> None:
        """Waits for it."""
        deadline = time.monotonic() + within_s
        while not true():
            ended = [pod for pod in of if not pod.running]
            assert not ended, f"{ended[0].name} has ended: {ended[0].log[-3000:]}"
            logs = "\n".join(f"{pod.name}: {pod.log[-1500:]}" for pod in of or self.pods.values())
            assert time.monotonic() < deadline, f"{what}: {logs}"
            time.sleep(0.1)


@contextlib.contextmanager
def machines(plane: Plane, folder: Path) -> Iterator[Machines]:
    """Machines without pods yet; all of them end with the block."""
    with ExitStack() as stack:
        yield Machines(plane, folder, stack)
