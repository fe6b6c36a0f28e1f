"""Faults that are repaired from outside the node: by its BMC over IPMI, in a real Slurm, by the API of a Kubernetes.

A machine is its agent's process, which OpenIPMI's simulator starts and kills. Each that says something in the kernel log
does so under a facility of its own: this machine has one log for all.
"""

import functools
import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.healing.kit import AUTO, healed
from tests.e2e.healing.machines import Machine, kubernetes, machine
from tests.e2e.healing.nodes import agents, agreeing, brain, causes, hears
from tests.e2e.stack import Stack
from tests.real import ipmi_host, kernel_log, slurm_cluster
from tests.real.kube_fake import Fake
from tests.real.slurm_cluster import Cluster
from tests.real.test_kubernetes import KUBECTL

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("slurm ipmi_sim kubectl"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.skipif(bool(ipmi_host.missing()), reason=ipmi_host.missing() or "-"),
    pytest.mark.skipif(not KUBECTL, reason="needs apt-get install kubernetes-client"),
    pytest.mark.timeout(400),
]
SLURM, KUBE = "OpenIPMI's BMC, Slurm", "OpenIPMI's BMC, a Kubernetes API"
LOST, DEAD = "0000:3b:00", "0000:5d:00"
LINE = "<{priority}>NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.\n"
# Others hear none that is used; another run of the tests on this machine uses others.
FACILITY = {"gpu1": kernel_log.FACILITY, "kube2": 24 + (kernel_log.FACILITY + 100 - 24) % 200}
HANGS = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, OpType=ALLREDUCE) ran for 1800107 ms"
JOB = """#!/bin/sh
echo "start $SLURM_JOB_ID, again: ${{SLURM_RESTART_COUNT:-0}}"
[ -n "$SLURM_RESTART_COUNT" ] || {{ until [ -e {go} ]; do sleep 0.2; done; echo "{hangs}"; }}
sleep 600 & wait
"""
BMC_NODES = ("gpu1", "gpu2", "kube1", "kube2")


def test_machines_and_jobs_of_a_site_that_fail_in_six_ways_at_once(tmp_path: Path) -> None:
    """A GPU off the bus that a power cycle brings back; a machine that hangs; one without power; a GPU that is dead for
    good; a job and a pod whose collective hangs. Each by its own ladder; all in service again but the dead GPU's node."""
    with (
        slurm_cluster.cluster() as slurm,
        kubernetes(tmp_path, "kube1", "kube2", "kube3") as kube,
        machine(tmp_path, "gpu1") as lost,
        machine(tmp_path, "gpu2") as hung,
        machine(tmp_path, "kube1") as dark,
        machine(tmp_path, "kube2") as dead,
    ):
        machines = (lost, hung, dark, dead)
        with brain(tmp_path, _config(slurm, kube, machines), first="unreachable_after_s = 4\n") as whole:
            try:
                first = _start(whole, machines)
                with agents(
                    whole, {"gpu3": _follows(f"{slurm.folder}/jobs/*.out"), "kube3": _pods(tmp_path)}
                ):
                    hears(whole, *BMC_NODES)
                    _story(whole, slurm, kube, machines, first)
            finally:
                for one in machines:
                    one.bmc.ask("off")


def _story(
    whole: Stack, slurm: Cluster, kube: Fake, machines: tuple[Machine, ...], first: dict[str, int]
) -> None:
    lost, hung, dark, dead = machines
    short = slurm.submit("gpu1", seconds=8)
    stuck = _hanging_job(slurm)
    kube.pod("kube2", "train-0")
    kube.pod("kube3", "train-1")
    kube.budget_answers = 2
    began = time.time()
    Path("/dev/kmsg").write_text(_line("gpu1", LOST))
    dead.dies_with(_line("kube2", DEAD))
    del kube.pods["train", "train-0"]  # it ends with its GPU
    hung.freeze()
    dark.bmc.ask("off")
    (slurm.folder / "go").touch()
    (whole.folder / "pods/train/train-1.log").write_text(f"{HANGS}\n")

    heals = functools.partial(healed, whole, began=began, within_s=250)
    with agreeing(whole, "node-unreachable", "job-hung"):
        on = heals("node-unreachable", component="node/kube1", counterpart=KUBE)
        end = heals("gpu-lost", component=f"gpu/kube2/{DEAD}", counterpart=KUBE, ends="exhausted")
        back = heals("gpu-lost", component=f"gpu/gpu1/{LOST}", counterpart=SLURM)
        anew = heals("node-unreachable", component="node/gpu2", counterpart=SLURM)
        again = heals("job-hung", component="node/gpu3", counterpart="Slurm")
        moved = heals("job-hung", component="node/kube3", counterpart="a Kubernetes API")

    assert on.actions == ("bmc.evidence", "scheduler.drain", "bmc.power_on", "scheduler.resume")
    assert anew.actions == ("bmc.evidence", "scheduler.drain", "bmc.restart", "scheduler.resume")
    assert back.actions == ("evidence.collect", "scheduler.drain", "bmc.power_cycle", "scheduler.resume")
    assert end.actions == ("evidence.collect", "scheduler.drain", "bmc.power_cycle", "node.isolate", "page")
    assert again.actions == moved.actions == ("evidence.collect", "page", "scheduler.requeue")
    assert [one.bmc.node not in (0, first[one.node]) for one in (lost, hung, dark)] == [True, True, True]
    assert dead.bmc.node == 0, "it is off, and nobody has switched it on again"
    assert "off" in dead.bmc.ask("status")
    for node in ("gpu1", "gpu2"):
        slurm.until(lambda node=node: "DRAIN" not in slurm.node(node), f"{node} is not in service")  # type: ignore[misc]  # mypy infers no lambda with a default
    assert slurm.job(short)[0] in ("COMPLETED", ""), "the drain let the node's other job end"
    slurm.until(
        lambda: "again: 1" in slurm.output(stuck) and slurm.job(stuck)[0] == "RUNNING",
        "it does not run again",
    )
    assert ("train", "train-1") not in kube.pods, "its budget allowed no eviction twice, and then it did"
    assert [_tainted(kube, node) for node in ("kube1", "kube2")] == [False, True]
    pages = [
        page for page in whole.pages() if DEAD in json.dumps(page) and "switched off" in json.dumps(page)
    ]
    assert pages, "people were told, with what to do"
    (off,) = [one for one in whole.incidents("node-unreachable") if one["node"] == "kube2"]
    assert (off["state"], off["runs"], off["pages"]["sent"]) == ("settling", [], 0), (
        "we switched it off ourselves"
    )
    assert "gpu1 reason set to: gpuward: gpu-lost" in (slurm.folder / "log/slurmctld.log").read_text()
    said = whole.gpuward("explain", _incident(whole, "gpu1"))
    assert f"PCI:{LOST}" in said
    assert "power cycle worked" in said
    assert causes(whole) == {
        f"gpu/gpu1/{LOST}": "gpu-lost",
        f"gpu/kube2/{DEAD}": "gpu-lost",
        "node/gpu2": "node-unreachable",
        "node/kube1": "node-unreachable",
        "node/gpu3": "job-hung",
        "node/kube3": "job-hung",
    }


def _config(slurm: Cluster, kube: Fake, machines: tuple[Machine, ...]) -> str:
    return (
        f"{AUTO}[settings]\nshared_small_share = 2\ndisruptive_runs = 8\n"
        '[schedulers.slurm]\ntype = "slurm"\nnodes = "gpu*"\n'
        f'conf = "{slurm.conf}"\n[schedulers.kube]\ntype = "kubernetes"\nnodes = "kube*"\nurl = "{kube.url}"\n'
        f'ca_file = "{kube.ca}"\ntoken_file = "{kube.token}"\n' + "".join(one.table for one in machines)
    )


def _start(whole: Stack, machines: tuple[Machine, ...]) -> dict[str, int]:
    """All machines on; node → its first process."""
    return {
        one.node: one.start(whole, f"kmsg_facilities = [{FACILITY.get(one.node, 23)}]") for one in machines
    }


def _line(node: str, gpu: str) -> str:
    """What the driver writes to the kernel log, under the node's own facility."""
    return LINE.format(priority=FACILITY[node] * 8 + 4, where=gpu)


def _incident(whole: Stack, node: str) -> str:
    """The lost GPU of a node."""
    (found,) = [one["id"] for one in whole.incidents("gpu-lost", over=True) if one["node"] == node]
    return str(found)


def _follows(logs: str) -> str:
    """An agent that follows logs of jobs."""
    return f'job_logs = ["{logs}"]\nkmsg_facilities = [23]\n'


def _pods(folder: Path) -> str:
    """The same with logs of pods, namespace/pod.log."""
    (folder / "pods/train").mkdir(parents=True)
    return _follows(f"{folder}/pods/*/*.log") + "job_id_pattern = '(?P<job>[^/]+/[^/]+)\\.log$'\n"


def _hanging_job(slurm: Cluster) -> str:
    """A job on gpu3 whose first attempt hangs in a collective once there is a file `go`; its id when it runs."""
    script = slurm.folder / "hangs.sh"
    script.write_text(JOB.format(go=slurm.folder / "go", hangs=HANGS))
    out = f"{slurm.folder}/jobs/%j.out"
    job = slurm.run(
        *("sbatch", "--parsable", "--open-mode=append", "--requeue", "-o", out, "-w", "gpu3", str(script))
    ).strip()
    slurm.until(lambda: "start" in slurm.output(job), f"job {job} does not run")
    return job


def _tainted(kube: Fake, node: str) -> bool:
    """What the real kubectl says of it."""
    argv = [
        KUBECTL,
        f"--kubeconfig={kube.kubeconfig}",
        "get",
        "node",
        node,
        "-o",
        "jsonpath={.spec.taints[*].key}",
    ]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    return "gpuward/drained" in shown
