"""The OCI images: what they hold, that they are the same each time, and that they run as Kubernetes runs them."""

import io
import json
import shutil
import ssl
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent import __version__
from tests.real import images_kit
from tests.real.images_kit import CACHE, Box, Image, read, rooted
from tests.real.nats import free_port
from tests.security.test_release import RELEASE, ROOT, checkout, run

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("buildah"),
    pytest.mark.skipif(bool(images_kit.missing()), reason=images_kit.missing() or "-"),
    pytest.mark.timeout(600),
]
BRAIN, AGENT = 65530, 65531
RIGHTS = {"CAP_SYSLOG": 34, "CAP_SYS_PTRACE": 19, "CAP_DAC_READ_SEARCH": 2}
WITHIN_S = 90.0


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Image, Image]:
    """Of brain and agent, built from this tree."""
    root = tmp_path_factory.mktemp("images") / "gpuward"
    root.mkdir()
    checkout(root, 0o022)
    base = run(RELEASE / "base_root.sh", CACHE).stdout.strip()
    done = run(root / "deploy/release/images.sh", root / "build", BASE_ROOT=base, BASE="")
    assert done.returncode == 0, done.stdout + done.stderr
    brain, agent = (read(root / f"build/gpuward-{part}.oci.tar") for part in ("brain", "agent"))
    return brain, agent


def members(image: Image) -> list[tarfile.TarInfo]:
    """Everything in its layers."""
    return [one for layer in image.layers for one in tarfile.open(fileobj=io.BytesIO(layer)).getmembers()]


def test_what_an_image_says_of_itself(images: tuple[Image, Image]) -> None:
    """The brain runs as a number, without a shell in between; labels say what it is, of which commit, and on which terms."""
    brain, agent = images
    assert (brain.config["User"], brain.config["Entrypoint"]) == (f"{BRAIN}:{BRAIN}", ["/usr/bin/gpuward"])
    assert f"--reuid={AGENT}" in agent.config["Entrypoint"]
    assert (brain.name, agent.name) == (f"gpuward/brain:{__version__}", f"gpuward/agent:{__version__}")
    for image in images:
        labels = {key.rpartition(".")[2]: text for key, text in image.config["Labels"].items()}
        assert (labels["version"], labels["licenses"]) == (__version__, "Apache-2.0")
        assert len(labels["revision"]) == 40
        assert labels["source"].startswith("https://")


def test_nothing_in_an_image_gives_rights_or_is_left_over(images: tuple[Image, Image]) -> None:
    """No setuid file, no file that anybody may change, no file capabilities, no package lists, no pip, no tests of ours."""
    for image in images:
        for one in members(image):
            assert not (one.isfile() and one.mode & 0o6000), one.name
            assert one.issym() or not one.mode & 0o002 or one.mode & 0o1000, (
                f"{one.name}: everybody may write"
            )
            assert "SCHILY.xattr.security.capability" not in one.pax_headers, one.name
            assert not {"pip", ".cache"} & set(Path(one.name).parts), one.name
            assert "libraries/tests" not in one.name, one.name
            assert not one.size or not one.name.startswith(
                ("var/lib/apt/lists/", "var/cache/", "var/log/")
            ), one.name
    brain, agent = images
    assert sum(map(len, agent.layers)) < 250_000_000
    assert sum(map(len, brain.layers)) < 400_000_000
    assert brain.layers[0] == agent.layers[0], "a machine fetches the base once"


@contextmanager
def running(box: Box, log: Path, *argv: str) -> Iterator[None]:
    """The image's entry point in the background; it ends cleanly on SIGTERM."""
    process = box.start(*argv, log=log)
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        status = process.wait(60)
    assert status == 0, (status, log.read_text()[-2000:])


def probe(port: int, path: str) -> int:
    """What the console answers a kubelet, which verifies no certificate; 0: nothing."""
    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", timeout=5, context=nobody) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def heard(brain: Box, port: int) -> set[str]:
    """The nodes that the brain hears, as a person asks by `kubectl exec`."""
    url = ("--url", f"https://127.0.0.1:{port}", "--ca-file", "/var/lib/gpuward/cell/ca.pem")
    told = brain.run(*url, "nodes", "--json")
    return {node["name"] for node in json.loads(told.stdout)} if told.returncode == 0 else set()


def rights_of(box: Box) -> set[int]:
    """The capabilities, as a mask, of all processes there; each must be of its user and may not get more."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "root").readlink() != box.root:
                continue
            lines = (process / "status").read_text().splitlines()
        except OSError:  # it has ended
            continue
        status = {key: text.split() for key, _, text in (line.partition(":") for line in lines)}
        assert status["Uid"] == [str(AGENT)] * 4
        assert (status["NoNewPrivs"], status["CapBnd"]) == (["1"], status["CapEff"])
        found.add(int(status["CapEff"][0], 16))
    return found


def until(true: Callable[[], bool], what: str, log: Path) -> None:
    """Waits for it."""
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, f"{what}: {log.read_text()[-3000:]}"
        time.sleep(0.1)


def test_a_brain_and_an_agent_run_from_their_images(images: tuple[Image, Image], tmp_path: Path) -> None:
    """As the pods do: a read-only root and one volume. The brain leads, and says so at /readyz; the agent joins by the script of
    the DaemonSet, gives up all but three rights, and is heard; the script is safe to run again without the token.
    """
    port, nats = free_port(), free_port()
    data, config = tmp_path / "data", tmp_path / "config"
    node, join, settings = tmp_path / "node", tmp_path / "join", tmp_path / "settings"
    for folder in (data, config, node, join, settings):
        folder.mkdir()
    text = (ROOT / "deploy/kubernetes/single/brain.toml").read_text()
    text = text.partition("[schedulers.kubernetes]")[0].replace("[console]", f"[console]\nport = {port}", 1)
    text = text.replace("[nats.embedded]", f"[nats.embedded]\nport = {nats}", 1)
    (config / "brain.toml").write_text(text)
    for name in ("agent.toml", "join.sh"):
        shutil.copy(ROOT / "deploy/kubernetes/agent" / name, settings)
    brain_log, agent_log = tmp_path / "brain.log", tmp_path / "agent.log"
    brain_volumes = {"/var/lib/gpuward": data, "/etc/gpuward": config}
    agent_volumes = {"/var/lib/gpuward-agent": node, "/etc/gpuward": settings, "/mnt": join}
    with (
        rooted(images[0], tmp_path / "brain", volumes=brain_volumes, user=BRAIN) as brain,
        rooted(images[1], tmp_path / "agent", volumes=agent_volumes, user=AGENT) as agent,
    ):
        done = brain.run("cell", "init", "--name", "127.0.0.1")
        assert done.returncode == 0, done.stderr
        with running(brain, brain_log, "run", "--config", "/etc/gpuward/brain.toml"):
            until(lambda: probe(port, "/readyz") == 200, "the brain is not ready", brain_log)
            assert probe(port, "/healthz") == 200
            token = brain.run("cell", "token", "--nodes", "gpu-*")
            assert token.returncode == 0, token.stderr
            script = ("sh", "/etc/gpuward/join.sh", "/var/lib/gpuward-agent", "/etc/gpuward", "/mnt")
            env = {"NODE_NAME": "gpu-1.example.com"}
            refused = agent.run(entry=script, env=env)
            assert (refused.returncode, "gpuward-join" in refused.stderr) == (1, True), (
                "there is no token yet"
            )
            (join / "token").write_text(token.stdout.strip())
            joined = agent.run(entry=script, env=env)
            assert joined.returncode == 0, joined.stdout + joined.stderr
            key = (node / "node.nk").read_bytes()
            for word in ("gwj_no-token", ""):
                (join / "token").write_text(word)
                assert agent.run(entry=script, env=env).returncode == 0, "what has joined goes on"
            assert (node / "node.nk").read_bytes() == key
            assert {file.stat().st_uid for file in node.iterdir()} == {AGENT}
            with running(agent, agent_log, "run", "--config", "/var/lib/gpuward-agent/agent.toml"):
                until(lambda: "gpu-1" in heard(brain, port), "the agent is not heard", agent_log)
                assert rights_of(agent) == {sum(1 << bit for bit in RIGHTS.values())}


def test_the_agent_looks_at_the_machines_mounts_and_not_at_its_own(
    images: tuple[Image, Image], tmp_path: Path
) -> None:
    """A file system of the machine that its image has no folder for is no fault: it is looked at below the root of process 1."""
    theirs = tmp_path / "of the machine"
    theirs.mkdir()
    look = (
        "import os, sys; from agent.filesystems.mount_table import reached; from agent.host import Host; "
        "found = reached(Host(), sys.argv[1]); print(found, os.statvfs(found).f_blocks > 0)"
    )
    with rooted(images[1], tmp_path / "agent", volumes={}, user=AGENT) as agent:
        entry = (*agent.image.config["Entrypoint"][:-1], "/usr/lib/gpuward-agent/bin/python3.11", "-IB", "-c")
        done = agent.run(look, str(theirs), entry=entry, apart=True)
    assert done.stdout == f"/proc/1/root{theirs} True\n", done.stderr
