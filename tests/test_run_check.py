"""`run --check` of both services: would they start with this file? Whatever writes configurations asks before it replaces one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def checked(part: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the command of the agent or of the brain says of a file with this text."""
    file = folder / "draft.toml"
    file.write_text(text)
    command = [sys.executable, "-m", part, "run", "--check", "--config", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("part", "text", "says"),
    [
        (
            "agent",
            'node = "gpu-1"\n',
            "node gpu-1 of cell default: the agent can start with this configuration",
        ),
        ("brain", 'cell = "b"\n', "cell b: the brain can start with this configuration"),
        # As some editors of Windows begin a file; nobody would see what "Invalid statement" means.
        (
            "agent",
            '\ufeffnode = "gpu-1"\r\n',
            "node gpu-1 of cell default: the agent can start with this configuration",
        ),
        ("brain", '\ufeffcell = "b"\r\n', "cell b: the brain can start with this configuration"),
    ],
)
def test_a_good_file(part: str, text: str, says: str, tmp_path: Path) -> None:
    """It says whose it is, and makes nothing."""
    done = checked(part, text, tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, says)
    assert [path.name for path in tmp_path.iterdir()] == ["draft.toml"]


@pytest.mark.parametrize("text", ["", 'nats_url = "nats://nats-1:4222"\n'], ids=["as shipped", "joined"])
def test_a_node_that_has_not_joined(text: str, tmp_path: Path) -> None:
    """The file as the package brought it lets the agent start, and nobody would hear it: so it is said who does what."""
    done = checked("agent", f'node = "gpu-1"\n{text}', tmp_path)
    assert done.returncode == 0
    assert (
        "gpuward cell token --nodes gpu-1; here, as root: gpuward-agent join TOKEN" in done.stderr
    ) is not bool(text)


@pytest.mark.parametrize(
    ("part", "text", "says"),
    [
        ("agent", 'nodee = "gpu-1"\n', "draft.toml:1: unknown key 'nodee': did you mean node"),
        ("agent", 'allow = ["link.bounse"]\n', "unknown action 'link.bounse'"),
        (
            "agent",
            'nats_ca_file = "gone.pem"\n',
            "gone.pem cannot be read: No such file or directory: `gpuward-agent join`",
        ),
        ("agent", 'nats_ca_file = "/etc/hostname"\n', "nats_ca_file: not certificates in PEM"),
        (
            "agent",
            'nats_seed_file = "gone.nk"\n',
            "gone.nk cannot be read: No such file or directory: `gpuward-agent join`",
        ),
        ("agent", 'nats_seed_file = "/etc/hostname"\n', "/etc/hostname has no NKEY seed"),
        (
            "agent",
            'nats_jwt_file = "/gone/node.jwt"\n',
            "nats_jwt_file: /gone/node.jwt cannot be read: No such",
        ),
        ("brain", 'sel = "x"\n', "draft.toml:1: sel: unknown key"),
        ("brain", 'topology = "gone.yaml"\n', "gone.yaml: cannot be read"),
        (
            "brain",
            '[channels.lead]\ntype = "slak"\n',
            "draft.toml:2: channels.lead.type: unknown type 'slak'",
        ),
        (
            "brain",
            '[bmc.all]\ntype = "redfish"\nadress = "https://{node}-bmc"\nuser = "u"\npassword_file = "draft.toml"\n',
            "draft.toml:3: bmc.all.adress: is not an option here: did you mean address, addresses?",
        ),
        ("brain", '[bmc.all]\ntype = "redfish"\n', "draft.toml:1: bmc.all.user: is missing"),
        (
            "brain",
            '[schedulers.k]\ntype = "kubernetes"\nserver = "https://k"\n',
            "draft.toml:3: schedulers.k.server: is not an option here (have: ca_file, conditions, conditions_every_s, context, "
            "delete_emptydir_data, devices, evict_bare_pods, evict_wait_s, gpu_annotation, gpu_resource, in_cluster, "
            "keep_annotations, kubeconfig, ",
        ),
        ("brain", '\n[schedulers.t]\ntype = "slrum"\n', "draft.toml:3: schedulers.t.type: unknown type"),
    ],
)
def test_a_wrong_file(part: str, text: str, says: str, tmp_path: Path) -> None:
    """Also where only the start itself would have noticed: places and channels are files and tables of their own."""
    done = checked(part, text, tmp_path)
    assert done.returncode == 2
    assert says in done.stderr


def test_rules_that_are_not_there_are_a_warning(tmp_path: Path) -> None:
    """A brain that runs keeps those that are in force, and one that starts pages: so it is said, and nothing is refused."""
    done = checked("brain", 'rules = "gone"\n', tmp_path)
    assert done.returncode == 0
    assert f"warning: rules: {tmp_path}/gone: there is no such folder" in done.stderr


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda _: None, "there is no such folder"),
        (lambda folder: folder.write_text(""), "there is no such folder"),
    ],
    ids=["not there", "a file"],
)
def test_an_archive_that_is_not_there_is_a_warning(
    make: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    """The brain starts, and heals, without it: so it is no error; and it is not silent, as nothing would be kept."""
    place = tmp_path / "share"
    make(place)
    done = checked("brain", f'[archive]\nurl = "{place}"\n', tmp_path)
    assert done.returncode == 0
    assert "the brain can start with this configuration" in done.stdout
    assert f"warning: {place}: {says}" in done.stderr
    assert "archive.url" in done.stderr
