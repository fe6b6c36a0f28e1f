"""docs/slurm.md, done step by step on a real Slurm: its lines of brain.toml and slurm.conf, its commands, its samples."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.contract.drain_reason import words_of
from brain.actions import slurm as module
from brain.actions.marks import of_a_person, ours, read
from brain.config import load
from tests.agent.check_kit import agent, check, seen, until
from tests.fixtures import nvml_fake
from tests.fixtures.nvml_fake import LOST, FakeNvml
from tests.real import slurm_cluster
from tests.real.slurm_cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/slurm.md").read_text()
BLOCKS = [
    re.sub("(?m)^    ", "", block).strip() for block in re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", PAGE)
]
ETC = "/etc/slurm/gpuward"


def block(first: str) -> str:
    """The block that begins so."""
    (found,) = (one for one in BLOCKS if one.startswith(first))
    return found


def test_the_lines_of_brain_toml(tmp_path: Path) -> None:
    """They are a configuration, and a scheduler is made of it."""
    text = block("[schedulers.train]")
    (tmp_path / "brain.toml").write_text(f"{text}\n{block('[[modes]]')}\n")
    config = load(tmp_path / "brain.toml")
    assert [one.mode.value for one in config.modes] == ["approve", "auto"]
    assert (ROOT / f"runbooks/{config.modes[-1].runbook}.yaml").exists()
    table = tomllib.loads(text)["schedulers"]["train"]
    assert module.build("train", table, "schedulers.train").name == "train"


def test_whose_the_drains_of_the_sample_are() -> None:
    """One is a Prolog's, two are ours (one of them taken over), one is a person's."""
    prologs, taken, own, persons = block("$ sinfo").splitlines()[1:]
    assert words_of(prologs) == "GPU 0000:3b:00 is lost (not_found)"
    assert ours(taken)
    assert words_of(prologs) in read(taken)[0].why
    assert ours(own)
    assert of_a_person(persons)


@pytest.mark.parametrize("command", block("gpuward-agent check").splitlines())
def test_the_commands_of_the_check(tmp_path: Path, command: str) -> None:
    """They may be typed so."""
    _, *argv = command.partition("#")[0].split()
    argv = [sys.executable, "-m", "agent", *argv, "--socket", f"{tmp_path}/none"]
    assert subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    """Where the agent of all nodes answers."""
    return tmp_path / "check.sock"


@pytest.fixture
def cluster(socket: Path) -> Iterator[Cluster]:
    """Slurm with the page's lines in its slurm.conf, and the scripts installed by the page's commands."""
    conf = block("Prolog=").replace(ETC, "@LAB@/etc").replace("Interval=60", "Interval=1")
    with slurm_cluster.cluster(conf) as made:
        install = block("install -d").replace(ETC, f"{made.folder}/etc")
        subprocess.run(["sh", "-ec", install], cwd=ROOT / "deploy/slurm", check=True, timeout=60)
        command = made.folder / "gpuward-agent"
        command.write_text(
            f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m agent "$@" --socket {socket} --timeout 4s\n'
        )
        command.chmod(0o755)
        for script in (made.folder / "etc").iterdir():  # what a site may set stands at the top of each
            script.write_text(script.read_text().replace("/usr/bin/gpuward-agent", str(command)))
        yield made


@pytest.mark.root
@pytest.mark.component("slurm")
@pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-")
@pytest.mark.timeout(300)
def test_the_lines_of_slurm_conf(tmp_path: Path, socket: Path, cluster: Cluster) -> None:
    """Jobs run on a node that is well; on one that is not, it is drained in our words, and the job is queued again, not held."""
    nvml = FakeNvml(tmp_path / "state", nvml_fake.build(tmp_path / "lib"))
    for index in (0, 1):
        nvml.well(index)
    with agent(tmp_path, nvml, socket=socket):
        seen(nvml)
        cluster.submit("gpu1", seconds=0.1)
        cluster.until(lambda: "State=IDLE " in cluster.node("gpu1"), "its Epilog does not end")
        nvml.fail(0, LOST)
        until(lambda: check(socket).returncode == 1, "the lost GPU is not told")
        argv = ("sbatch", "--parsable", "-w", "gpu1", "-o", f"{cluster.folder}/jobs/%j.out")
        job = cluster.run(*argv, str(cluster.folder / "job.sh"), "1").strip()
        cluster.until(lambda: "gpuward-agent:" in cluster.run("sinfo", "-R"), "nothing is drained")
        cluster.until(lambda: cluster.job(job)[0] == "PENDING", "the job is not queued again")
        (reason,) = set(cluster.run("sinfo", "--noheader", "--nodes=gpu1", "--format=%E").splitlines())
        assert words_of(reason) == "GPU 0000:3b:00 is lost (lost)"
        typed = block("$ sinfo").splitlines()[0].removeprefix("$ ")
        assert reason in cluster.run(*typed.split()).splitlines()
        held = cluster.run("squeue", "--noheader", f"--jobs={job}", "--format=%r")
        assert "held" not in held, held
