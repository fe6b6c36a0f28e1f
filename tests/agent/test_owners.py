"""Whose process it is, by cgroup files of real set-ups."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.owner import Owner, owner
from agent.host import Host
from agent.process_owner import owner_of

UID = "0a1b2c3d-1111-2222-3333-444455556666"
UNDER = UID.replace("-", "_")

CGROUPS = [
    ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", Owner(job="4711")),
    ("0::/system.slice/node1_slurmstepd.scope/job_4711/step_batch/user/task_0", Owner(job="4711")),
    (
        "4:memory:/slurm/uid_1000/job_4711/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service",
        Owner(job="4711"),
    ),
    ("4:memory:/slurm_node1/uid_1000/job_4711_3/step_0", Owner(job="4711_3")),
    (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/cri-containerd-ab12.scope",
        Owner(job=UID),
    ),
    (f"0::/kubepods/besteffort/pod{UID}/0123456789abcdef", Owner(job=UID)),
    (
        f"1:name=systemd:/system.slice/containerd.service/kubepods-pod{UNDER}.slice:cri-containerd:ab",
        Owner(job=UID),
    ),
    # Guaranteed pods have no class in their path; CRI-O; static pods, whose uid has no dashes; kind's kubelet slice.
    (f"0::/kubepods.slice/kubepods-pod{UNDER}.slice/crio-0123456789abcdef.scope", Owner(job=UID)),
    (f"0::/kubepods.slice/kubepods-pod{UNDER}.slice/crio-0123.scope/container", Owner(job=UID)),
    ("0::/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/ab", Owner(job="0123456789abcdef" * 2)),
    (
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        f"kubelet-kubepods-besteffort-pod{UNDER}.slice/cri-containerd-ab.scope",
        Owner(job=UID),
    ),
    (
        f"12:devices:/kubepods/burstable/pod{UID}/ab\n1:name=systemd:/system.slice/containerd.service",
        Owner(job=UID),
    ),
    # A container of Slurm's (enroot, pyxis) stays in the step's cgroup; extern is where ssh sessions are adopted.
    ("0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special", Owner(job="4711")),
    ("0::/system.slice/slurmstepd.scope/system", Owner()),
    ("0::/system.slice/slurmd.service", Owner(unit="slurmd.service")),
    ("0::/machine.slice/libpod-0123456789abcdef.scope/container", Owner()),
    ("0::/system.slice/nvidia-dcgm.service", Owner(unit="nvidia-dcgm.service")),
    ("0::/system.slice/system-getty.slice/getty@tty1.service", Owner(unit="getty@tty1.service")),
    ("0::/system.slice/ollama.service/worker", Owner(unit="ollama.service")),
    ("0::/user.slice/user-1000.slice/session-3.scope", Owner()),
    ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service", Owner()),
    ("0::/system.slice/docker-0123456789abcdef.scope", Owner()),
    ("0::/home/job_12/x", Owner()),
    ("0::/", Owner()),
    ("", Owner()),
]


@pytest.mark.parametrize(("cgroup", "want"), CGROUPS)
def test_the_cgroup_names_the_owner(cgroup: str, want: Owner) -> None:
    """Slurm on cgroup v1 and v2, Kubernetes with both drivers, services; sessions are nobody's."""
    assert owner(cgroup) == want


@pytest.mark.parametrize(
    ("environ", "want"),
    [
        ("PATH=/bin\0SLURM_JOB_ID=4711\0", Owner(job="4711", claimed=True)),
        ("SLURM_JOBID=4711_3\0", Owner(job="4711_3", claimed=True)),
        ("SLURM_JOB_ID=$(reboot)\0", Owner(unit="slurmd.service")),
        ("XSLURM_JOB_ID=4711\0", Owner(unit="slurmd.service")),
        ("", Owner(unit="slurmd.service")),
    ],
)
def test_the_environment_is_asked_when_the_cgroup_says_nothing(environ: str, want: Owner) -> None:
    """Slurm without cgroups; only a number is taken for a job, and it is marked as the process's own word."""
    assert owner("0::/system.slice/slurmd.service", environ) == want


@pytest.mark.parametrize(
    ("cgroup", "want"),
    [
        ("0::/user.slice/user-1001.slice/session-3.scope", Owner()),
        ("0::/user.slice/user-1001.slice/user@1001.service/app.slice/x.service", Owner()),
        ("4:memory:/\n1:name=systemd:/user.slice/user-1001.slice/session-3.scope", Owner()),
        ("0::/system.slice/cron.service", Owner(unit="cron.service")),
        ("0::/system.slice/ssh.service", Owner(unit="ssh.service")),
        ("0::/system.slice/my-slurmd.service.d.service", Owner(unit="my-slurmd.service.d.service")),
        ("0::/system.slice/node1_slurmd.service", Owner(job="4711", claimed=True)),
        ("0::/system.slice/slurmd@node1.service", Owner(job="4711", claimed=True)),
        ("0::/system.slice/docker-0123456789abcdef.scope", Owner(job="4711", claimed=True)),
        ("0::/", Owner(job="4711", claimed=True)),
        ("", Owner(job="4711", claimed=True)),
    ],
)
def test_who_is_in_no_job_does_not_become_one_by_saying_so(cgroup: str, want: Owner) -> None:
    """A login, a user's service, cron: their cgroups say what they are."""
    assert owner(cgroup, "SLURM_JOB_ID=4711\0") == want


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ("system.slice/slurmstepd.scope", False),
        ("system.slice/node1_slurmstepd.scope", False),
        ("freezer/slurm", False),
        ("memory/slurm_node1", False),
        ("system.slice/ssh.service", True),
        ("memory/user.slice", True),
    ],
)
def test_where_slurm_makes_cgroups_no_environment_is_asked(tmp_path: Path, made: str, asked: bool) -> None:
    """A container that somebody runs on such a node is in no job, whatever it says."""
    process = tmp_path / "proc/7"
    process.mkdir(parents=True)
    (process / "cgroup").write_text("0::/machine.slice/libpod-01.scope\n")
    (process / "environ").write_text("SLURM_JOB_ID=4711\0")
    (tmp_path / "sys/fs/cgroup" / made).mkdir(parents=True)
    assert owner_of(Host(root=tmp_path), 7) == (Owner(job="4711", claimed=True) if asked else Owner())


def test_the_cgroup_overrules_the_environment() -> None:
    """A process can write its environment, not its cgroup."""
    assert owner("0::/system.slice/slurmstepd.scope/job_1/step_0", "SLURM_JOB_ID=2").job == "1"


@given(st.text(max_size=2000), st.text(max_size=500))
def test_no_text_breaks_it(cgroup: str, environ: str) -> None:
    """Odd files name nobody; nothing raises."""
    assert isinstance(owner(cgroup, environ), Owner)
