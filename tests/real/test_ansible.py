"""The roles of deploy/ansible do what docs/install.md says, over ssh, on two machines that had none of gpuward; and again,
when nothing is left to do.
"""

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import __version__
from tests.real import ansible_kit, netns, packages_kit
from tests.real.packages_kit import Box, agent_heard, box
from tests.security.figures import Record

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.component("openssh-server"),
    pytest.mark.skipif(
        bool(packages_kit.missing() or ansible_kit.missing()),
        reason=packages_kit.missing() or ansible_kit.missing(),
    ),
    pytest.mark.timeout(900),  # as tests/real/test_packages.py
]
ALL = "ansible-playbook site.yml"
BACK = f"ansible-playbook site.yml -e gpuward_version={__version__}"
LATER = f"ansible-playbook site.yml -e gpuward_version={packages_kit.LATER}"
NODES = ("--limit", "gpuward_nodes")
NOBODY = {"brain.example.com": 0, "gpu-1": 0}
# What is wrong, and what is said of it: by the role's list of arguments, by the agent, by the checksums.
WRONG = (
    ("gpuward_agent_hands=perhaps", "gpuward_agent_hands"),
    ('{"gpuward_agent_config": {"allow": ["link.bounse"]}}', "unknown action 'link.bounse'"),
    (
        f'{{"gpuward_agent_version": "{packages_kit.LATER}", "gpuward_agent_sums": "packages/WRONG"}}',
        f"gpuward-agent_{packages_kit.LATER}-1_amd64.deb has not the checksum that packages/WRONG says: it is not installed",
    ),
)
# What Ansible keeps of its own, and rpm, which it asks for its packages on this machine because it has one.
OF_ANSIBLE = ("root/.ansible", "root/.rpmdb")
TOKEN = re.compile(rb"gwj_[A-Za-z0-9_-]{40}")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the DEBs of both, and of the agent those of a later version; their checksums, and wrong ones."""
    folder = tmp_path_factory.mktemp("packages")
    for dist in (packages_kit.release(tmp_path_factory), packages_kit.later(tmp_path_factory)):
        for package in dist.glob("*.deb"):
            shutil.copy(package, folder)
    sums = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    (folder / "WRONG").write_text("".join(f"{digest[::-1]}  {name}\n" for name, digest in sums.items()))
    return folder


@pytest.fixture
def network() -> Iterator[str]:
    with netns.namespace() as made:
        made.ip("link", "set", "lo", "up")
        yield made.name


def tokens_left(machine: Box) -> list[str]:
    """Files of the machine with a whole join token in them; its journal too."""
    journal = machine.machine.run("journalctl", "--no-pager").stdout
    files = [path for path in machine.upper.rglob("*") if path.is_file() and not path.is_symlink()]
    found = [
        str(path) for path in files if path.stat().st_size < 10_000_000 and TOKEN.search(path.read_bytes())
    ]
    return [*found, *(["journal"] if TOKEN.search(journal.encode()) else [])]


def own_files(node: Box) -> dict[str, bytes]:
    """What no version may take from a node: its configuration and its key."""
    return {name: node.file(f"/etc/gpuward/{name}").read_bytes() for name in ("agent.toml", "node.nk")}


def another_version_comes_and_goes(site: ansible_kit.Control, brain: Box, node: Box) -> None:
    """Where the brain does not hear a node in it, no further batch is begun."""
    mine = own_files(node)
    brain.does("systemctl", "stop", "gpuward")
    unheard = site.documented(LATER, *NODES, "-e", "gpuward_agent_heard_within_s=1").failed()
    assert "Wait until the brain hears it in its version" in unheard, "no further batch is begun"
    brain.does("systemctl", "start", "gpuward")
    node.waits(lambda: agent_heard(brain) == {"gpu-1": packages_kit.LATER}, "the later version is heard")
    assert site.documented(BACK, *NODES).changed()["gpu-1"]
    node.waits(lambda: agent_heard(brain) == {"gpu-1": __version__}, "the node is heard")
    assert mine == own_files(node)


@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.nightly("the same way, with what comes later"))]
)
def test_a_site_by_its_inventory(
    packages: Path, network: str, tmp_path: Path, record_property: Record, whole: bool
) -> None:
    """A brain and a node are installed and joined; the second run finds nothing to do; a wrong variable changes nothing; and in
    the end nothing is left. Of the whole: all wrong variables, and another version comes and goes.
    """
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="cp-") as short,
        box(tmp_path, "brain", network) as brain,
        box(tmp_path, "node", network) as node,
    ):
        node.does("hostname", "gpu-1")
        machines = {"brain.example.com": brain, "gpu-1": node}
        site = ansible_kit.control(tmp_path / "site", network, machines, Path(short))
        shutil.copytree(packages, site.folder / "packages")
        before = brain.traces(), node.traces()

        told = site.documented("ansible-doc -t role -r roles gpuward_agent")
        assert "only observes until gpuward_agent_config.allow says more" in " ".join(told.shown.split())
        would = site.documented(f"{ALL} --check")
        assert all(would.changed().values()), "on each machine something would be done"
        assert f"gpuward-agent_{__version__}-1_amd64.deb would be installed" in would.shown
        assert not brain.file("/usr/bin/gpuward").exists()
        assert not node.file("/usr/bin/gpuward-agent").exists()

        first = site.documented(ALL)
        assert all(first.changed().values())
        node.waits(lambda: agent_heard(brain) == {"gpu-1": __version__}, "the node is heard")
        assert "modes: observe everywhere" in brain.types("Is all well?").stdout
        assert "services = " in node.file("/etc/gpuward/agent.toml").read_text()
        assert not TOKEN.search(first.shown.encode())
        assert (tokens_left(brain), tokens_left(node)) == ([], [])

        assert site.documented(ALL).changed() == NOBODY, "the second run changes nothing"

        for wrong, says in WRONG if whole else WRONG[-1:]:
            mine = own_files(node)
            assert says in site.documented(ALL, *NODES, "-e", wrong).failed()
            assert mine == own_files(node)
        if whole:
            another_version_comes_and_goes(site, brain, node)

        site.documented("ansible-playbook remove.yml").changed()
        for machine, traces in zip((brain, node), before, strict=True):
            left = {path for path in machine.traces() - traces if not path.startswith(OF_ANSIBLE)}
            assert left == set()
        took_s = time.monotonic() - began
        record_property("took_s", round(took_s))
        print(f"all runs of the playbooks: {took_s:.0f} s")
