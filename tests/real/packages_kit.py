"""The packages of this tree, and containers in which the distribution's own tools install them.

A container is an overlay of this machine, so what is in its upper layer is what has changed there: `Box.traces` names it.
"""

import fcntl
import filecmp
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from agent import __version__
from brain.cli.client import Client
from brain.console.access import local_token
from tests.real import nspawn
from tests.real.netns import Namespace
from tests.security.test_release import RELEASE, checkout, run

WITHIN_S = 120.0
PAGE = (RELEASE.parents[1] / "docs/install.md").read_text()
# The commands of the page, without what is said of them.
DOCUMENTED = {line[4:].split("   #")[0].rstrip() for line in PAGE.splitlines() if line.startswith("    ")}
NEEDED = ("dpkg-deb", "apt-get", "rpm", "git")
# What the tools of the machine write about their own work, whatever the package; and where the packages lie.
_OF_TOOLS = (
    *("opt/", "run/", "tmp/", "var/cache/", "var/log/", "var/tmp/systemd-private-"),
    *(f"var/lib/{tool}/" for tool in ("dpkg", "apt", "rpm", "systemd", "PackageKit")),
    *(f"etc/{file}-" for file in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")),
    "etc/.pwd.lock",
)


def missing() -> str:
    """Why packages cannot be built and installed here; empty when they can."""
    absent = [tool for tool in NEEDED if shutil.which(tool) is None]
    if nspawn.missing() or absent:
        return nspawn.missing() or f"needs {', '.join(absent)}"
    own = Path("/usr/bin/python3.11").exists()  # which apt finds in the containers
    return "" if own and "3.12" in pythons() else "needs Python 3.11 of the distribution, and 3.12"


def pythons() -> dict[str, str]:
    """Version → interpreter of this machine, of those that packages are made for; the newest first."""
    says = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
    here = run(RELEASE / "pythons.sh").stdout.split()
    lines = (run(python, "-c", says).stdout.split() for python in here)
    return {version: path for version, path in lines}  # noqa: C416  dict() of pairs of no fixed length is no such dict


LATER = "0.3.0"  # the version after this one, as what the same tree is built once more


def built(root: Path, *, umask: int = 0o022, version: str = "", packages: str = "", **env: str) -> Path:
    """A folder with a release of this tree and its bundle, or with `packages` alone; as another `version` if one is given."""
    root.mkdir(parents=True)
    checkout(root, umask)
    if version:
        for name in ("pyproject.toml", "agent/__init__.py"):
            text = (root / name).read_text()
            (root / name).write_text(
                text.replace(f'version = "{__version__}"', f'version = "{version}"').replace(
                    f'__version__ = "{__version__}"', f'__version__ = "{version}"'
                )
            )
        # A new version has new defaults: the configuration that people have must outlive them.
        config = root / "deploy/agent.toml"
        config.write_text(config.read_text() + "\n# a key of the next version\n")
        date = "2026-02-03T04:05:06Z"
        git = ("git", "-C", root, "-c", "user.name=lab", "-c", "user.email=lab@localhost")
        done = run(*git, "commit", "-qam", version, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)
        assert done.returncode == 0, done.stderr
    script = ("packages.sh", root / "dist", packages) if packages else ("dist.sh", root / "dist", "bundle")
    done = run(root / "deploy/release" / script[0], *script[1:], GPUWARD_SIGNING_KEY="", **env)
    assert done.returncode == 0, done.stderr
    return root / "dist"


def release(factory: pytest.TempPathFactory) -> Path:
    """A release of this tree with its packages and its bundle, built once for all files of tests."""
    return _once(factory, "release", built)


def later(factory: pytest.TempPathFactory) -> Path:
    """The agent's packages of a later version, which has other defaults; likewise."""
    return _once(factory, "later", lambda root: built(root, version=LATER, packages="gpuward-agent"))


def _once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Path]) -> Path:
    """It takes a minute of a processor; who comes second, in this process or another worker, waits and takes the same."""
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "gpuward-packages"
    shared.mkdir(exist_ok=True)
    done = shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(shared / name, ignore_errors=True)  # of one that failed
            done.write_text(str(build(shared / name / "gpuward")))
    return Path(done.read_text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A container that packages are installed in."""

    machine: nspawn.Machine
    upper: Path  # the layer with what has changed there
    network: str  # the namespace that it is in

    def does(self, *argv: str) -> str:
        """What a command there prints; it must succeed."""
        done = self.machine.run(*argv)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def fails(self, *argv: str) -> str:
        """What a command says that must fail."""
        done = self.machine.run(*argv)
        assert done.returncode != 0, f"{' '.join(argv)}: {done.stdout}"
        return done.stdout + done.stderr

    def documented(self, line: str, folder: str = "opt", **words: str) -> str:
        """Does what a line of docs/install.md says, in a folder there, with `words` in the place of its capital ones."""
        assert line in DOCUMENTED, f"docs/install.md does not say {line}"
        for word, meant in words.items():
            line = line.replace(word, meant)
        # Nobody answers a question there.
        return self.does(
            "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", f"cd /{folder} && {line} </dev/null"
        )

    def follows(self, section: str, **words: str) -> str:
        """Types all commands of a section of docs/install.md there, and returns what they show; none may fail."""
        done = self.types(section, **words)
        assert done.returncode == 0, f"{section}: {done.stdout[-4000:]}{done.stderr[-2000:]}{self.journal()}"
        return done.stdout

    def types(self, section: str, **words: str) -> subprocess.CompletedProcess[str]:
        """As `follows`, in one shell that ends where a command fails."""
        text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
        assert lines, f"docs/install.md has no commands under {section}"
        script = "\n".join(lines)
        for word, meant in words.items():
            script = script.replace(word, meant)
        typed = ("env", "DEBIAN_FRONTEND=noninteractive", "sh", "-ec", f"cd /opt; exec </dev/null\n{script}")
        return self.machine.run(*typed, within_s=300)

    def has(self, package: Path, folder: str = "opt") -> str:
        """Copies a package there; its path in the container."""
        self.file(folder).mkdir(exist_ok=True)
        shutil.copy(package, self.file(folder))
        return f"/{folder}/{package.name}"

    def file(self, path: str) -> Path:
        """A file there, as this machine sees it."""
        return self.machine.root / path.lstrip("/")

    def waits(self, condition: Callable[[], bool], what: str) -> None:
        """Until it holds."""
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {WITHIN_S:g} s\n{self.journal()}"
            time.sleep(0.2)

    def journal(self) -> str:
        """The last words of both services."""
        return self.machine.run("journalctl", "-n", "40", "--no-pager", "-u", "gpuward*").stdout

    def active(self, unit: str) -> bool:
        """Does the service run?"""
        return self.machine.run("systemctl", "is-active", unit).stdout.strip() == "active"

    def traces(self) -> set[str]:
        """What is new, changed or gone there in comparison with this machine; not what tools write about their own work."""
        found = set()
        for folder, folders, files in os.walk(self.upper):
            for name in (*folders, *files):
                path = Path(folder, name)
                relative = str(path.relative_to(self.upper))
                if f"{relative}/".startswith(_OF_TOOLS) and not relative.startswith("var/log/gpuward"):
                    continue
                below = Path("/", relative)
                if path.is_char_device():  # how an overlay says that something is deleted
                    found.add(f"{relative} is gone")
                elif not os.path.lexists(below) or _differs(path, below):
                    found.add(relative)
        return found


def _differs(path: Path, below: Path) -> bool:
    """Has a file been changed?"""
    return path.is_file() and not path.is_symlink() and not filecmp.cmp(path, below, shallow=False)


@contextmanager
def box(scratch: Path, label: str, network: str) -> Iterator[Box]:
    """A booted container, in a network namespace that others may share."""
    with nspawn.machine(
        scratch / label, {}, network=network, capabilities=("CAP_SYSLOG",), name=label
    ) as machine:
        for name in (
            "etc/gpuward",
            "var/lib/gpuward",
            "var/lib/gpuward-agent",
        ):  # of an agent of this machine
            shutil.rmtree(machine.root / name, ignore_errors=True)
        hosts = machine.root / "etc/hosts"
        hosts.write_text(f"{hosts.read_text()}\n127.0.0.1 brain.example.com\n")
        yield Box(machine=machine, upper=scratch / label / "layers/upper", network=network)


def agent_heard(brain: Box) -> dict[str, str]:
    """Node → version of its agent, of those that the brain has just heard."""
    # Asked from the container's network without a `gpuward` each time: who waits asks often.
    ca_file = brain.file("/var/lib/gpuward/cell/ca.pem")
    # Root's token there lies in a file system of the container alone.
    root = Path(f"/proc/{brain.machine.leader}/root")
    tokens = [root / str(one).lstrip("/") / local_token.name(8470) for one in local_token.SYSTEM]
    token = next((one for one in tokens if one.exists()), None)
    with Namespace(name=brain.network).inside():
        try:
            nodes = Client("https://127.0.0.1:8470", token, ca_file).get("nodes")["nodes"]
        except click.ClickException:
            nodes = []
    return {node["name"]: node["version"] for node in nodes if (node["beat_age_s"] or 0) < 2}


def distribution(folder: Path, nfpm: Path) -> Path:
    """An RPM that provides what ours need of a distribution, with one of the Pythons: rpm judges what they ask for."""
    needs = (
        "/usr/bin/python3.11",
        "/bin/sh",
        "libc.so.6(GLIBC_2.28)(64bit)",
        "libudev.so.1()(64bit)",
        "systemd",
    )
    config = folder / "nfpm.yaml"
    config.write_text(
        "name: distribution\narch: amd64\nversion: 1.0.0\nmaintainer: lab <lab@localhost>\n"
        f"provides: [{', '.join(repr(one) for one in needs)}]\n"
    )
    done = run(nfpm, "package", "-f", config, "-p", "rpm", "-t", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("distribution*.rpm"))
