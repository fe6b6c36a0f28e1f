"""OCI images of this tree, and their roots unpacked, to be run without a container engine.

    with rooted(image, scratch, volumes={"/var/lib/gpuward": folder}) as box:
        box.run("cell", "init", "--name", "brain.example.com")

What runs there is what the image says: its entry point, user and environment, on a root that is read-only, with a fresh /tmp.
It sees this machine's processes and network, as the agent's pods see those of their node.
"""

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tars import unpack

CACHE = Path("/var/cache/gpuward-images")  # deploy/dev/components.sh
_TOOLS = ("buildah", "mmdebstrap", "dpkg-deb", "unshare", "setpriv")


def missing() -> str:
    """Why no images can be built here; empty when they can."""
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    return "" if Path("/usr/bin/python3.11").exists() else "needs Debian 12's Python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An OCI archive."""

    digest: str
    name: str
    config: Mapping[str, Any]  # `config` of the image's configuration
    layers: Sequence[bytes]  # tar archives

    def unpack(self, into: Path) -> Path:
        """Its root, as an engine lays it out."""
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                assert not [one for one in archive.getnames() if "/.wh." in one], (
                    "nothing is deleted in a layer"
                )
            unpack(layer, into)
        return into


def read(file: Path) -> Image:
    """Reads an archive."""
    with tarfile.open(file) as archive:

        def blob(digest: str) -> bytes:
            found = archive.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert found is not None
            return found.read()

        index = archive.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
        manifest = json.loads(blob(entry["digest"]))
        config = json.loads(blob(manifest["config"]["digest"]))
        layers = [gzip.decompress(blob(layer["digest"])) for layer in manifest["layers"]]
    name = entry["annotations"]["org.opencontainers.image.ref.name"]
    return Image(digest=entry["digest"], name=name, config=config["config"], layers=layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An unpacked image."""

    image: Image
    root: Path

    def start(self, *argv: str, entry: Sequence[str] | None = None, log: Path) -> subprocess.Popen[bytes]:
        """Its entry point with other arguments, or another one; SIGTERM ends it."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self._command(entry, argv), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={}
            )

    def run(
        self,
        *argv: str,
        entry: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        apart: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """The same to its end. `apart`: among processes of its own, of which the first has this machine's root."""
        # A shell that waits is that first process.
        shell = ("sh", "-c", f'mount -t proc proc "{self.root}/proc" && "$@"; exit $?', "sh")
        around = ("/usr/bin/unshare", "--mount", "--pid", "--fork", *shell) if apart else ()
        return subprocess.run(
            [*around, *self._command(entry, argv, env)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={},
        )

    def _command(
        self, entry: Sequence[str] | None, argv: Sequence[str], env: Mapping[str, str] | None = None
    ) -> list[str]:
        user, _, group = str(self.image.config["User"]).partition(":")
        identity: tuple[str, ...] = (f"--reuid={user}", f"--regid={group}", "--clear-groups")
        if user != "0":  # as Pod Security `restricted` has it
            identity = (*identity, "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")
        given = [f"{key}={value}" for key, value in (env or {}).items()]
        return [
            *("/usr/bin/setpriv", "--pdeathsig", "TERM", "/usr/sbin/chroot", str(self.root)),
            *("/usr/bin/setpriv", *identity, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin"),
            *self.image.config["Env"],
            *given,
            *(self.image.config["Entrypoint"] if entry is None else entry),
            *argv,
        ]


@contextmanager
def rooted(image: Image, scratch: Path, *, volumes: Mapping[str, Path], user: int) -> Iterator[Box]:
    """Its root, read-only, with these folders of this machine in it, which `user` may write; unmounted when the block ends."""
    root = scratch / "root"
    root.mkdir(parents=True)
    image.unpack(root)
    mounted: list[Path] = []

    def mount(*argv: str, at: str) -> None:
        place = root / at.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", *argv, str(place)], check=True, capture_output=True)
        mounted.append(place)

    try:
        for at in ("dev", "proc", "sys", "tmp", *volumes):
            (root / at.lstrip("/")).mkdir(parents=True, exist_ok=True)
        mount("--bind", str(root), at="")
        subprocess.run(["mount", "-o", "remount,bind,ro", str(root)], check=True, capture_output=True)
        mount("-t", "proc", "proc", at="proc")
        mount("-t", "sysfs", "-o", "ro", "sysfs", at="sys")
        mount("--bind", "/dev", at="dev")
        mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", at="tmp")
        for at, folder in volumes.items():
            os.chown(folder, user, user)
            mount("--bind", str(folder), at=at)
        yield Box(image=image, root=root)
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)
