"""A fault mended off the node, end to end: real brain, real agent, a real Slurm and a real BMC.

The "machine" is the agent's process: the BMC (OpenIPMI's simulator) switches it on and kills it. The story's own rules
are small; the actions, the gates and the protocols are those of production.
"""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import BIN, Stack
from tests.e2e.test_spine import address, write_kernel_line
from tests.real import ipmi_host, slurm_cluster
from tests.real.ipmi_host import FILES

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("slurm ipmi_sim"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.skipif(bool(ipmi_host.missing()), reason=ipmi_host.missing() or "-"),
    pytest.mark.timeout(150),
]
NODE = "gpu1"
RULES = """
symptoms:
  gpu_off_bus:
    scope: node
    summary: the GPU has fallen off the bus
    on: [{kind: gpu.xid, where: {code: 79}}]
    clear: [{kind: agent.started}]
rules:
  gpu-lost:
    scope: node
    when: {symptom: gpu_off_bus}
    severity: P1
    because: the driver says so
    runbook: gpu-lost
    quiet_s: 1
    page: open
    knowledge: {cause: {en: a test, zh: 测试}, todo: {en: nothing, zh: 无}}
    examples:
      - name: it is
        given: [{kernel: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."}]
        expect: {incident: gpu-lost}
      - name: it is not
        given: [{kernel: "NVRM: Xid (PCI:0000:3b:00): 13, Graphics Exception"}]
        expect: {nothing: true}
"""
LADDER = """
summary: Evidence, drain, power cycle, and back into service.
rungs:
  - {name: evidence, do: evidence.collect, params: {component: $component, window_s: 5}}
  - {name: jobs, do: scheduler.jobs}
  - {name: drain, do: scheduler.drain, params: {wait_s: 1, then: requeue}}
  - {name: look, do: bmc.evidence}
  - {name: power cycle, do: bmc.power_cycle, verify: {within_s: 30, for_s: 1}}
  - {name: oncall, do: page}
way_back:
  - {name: resume, do: scheduler.resume}
"""


def test_a_lost_gpu_is_drained_in_slurm_power_cycled_by_the_bmc_and_returned(tmp_path: Path) -> None:
    """Its job goes on elsewhere, the node is back in service only after the verification, and all of it is explained."""
    whole = Stack(tmp_path, NODE)
    for path in (*tmp_path.glob("rules/*.yaml"), *tmp_path.glob("runbooks/*.yaml")):
        path.unlink()
    (tmp_path / "rules" / "lost.yaml").write_text(RULES)
    (tmp_path / "runbooks" / "gpu-lost.yaml").write_text(LADDER)
    bmc = tmp_path / "bmc"
    bmc.mkdir()
    chassis = bmc / "chassis.sh"
    agent = f"{BIN}/gpuward-agent run --config {tmp_path}/agent.toml"
    script = (FILES / "chassis.sh").read_text()
    assert "setsid sleep 600 < /dev/null > /dev/null 2>&1" in script
    chassis.write_text(
        script.replace(
            "setsid sleep 600 < /dev/null > /dev/null 2>&1",
            f"setsid {agent} < /dev/null >> {tmp_path}/agent.log 2>&1",
        )
    )
    chassis.chmod(0o755)
    with (
        slurm_cluster.cluster() as slurm,
        ipmi_host.ipmi_host(bmc, f'chassis_control "{chassis} {bmc}"') as host,
    ):
        try:
            whole.nats.start()
            whole.start_receiver()
            whole.write_brain_config(
                '[[modes]]\nmode = "auto"\n[settings]\nsettle_s = 0.5\n'
                f'[schedulers.slurm]\ntype = "slurm"\nnodes = "gpu*"\nconf = "{slurm.conf}"\n'
                f'[bmc.racks]\ntype = "ipmi"\nnodes = "{NODE}"\naddress = "127.0.0.1:{host.port}"\nuser = "admin"\n'
                f'password_file = "{host.password}"\ncipher_suite = 3\n'
            )
            whole.start_brain()
            whole.write_agent_config('kmsg_facilities = [0, 1]\nallow = ["evidence.collect"]')
            first = host.fresh()
            whole.wait_for(lambda: _boot(whole), "the agent is heard", within_s=20)
            job = slurm.submit(NODE, pin=False, seconds=300)
            where = address()
            began = time.monotonic()
            write_kernel_line(f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.")
            whole.wait_for(lambda: "DRAIN" in slurm.node(NODE), "Slurm has drained it", within_s=30)
            reason = re.search(r"Reason=(.*)", slurm.node(NODE))
            assert reason is not None
            assert "gpuward" in reason[1]
            (incident,) = whole.wait_for(
                lambda: [i for i in whole.incidents("gpu-lost", over=True) if i["state"] == "closed"],
                "it is healed",
                within_s=60,
            )
            took_s = time.monotonic() - began
            assert where in incident["evidence"][0]["text"]
            assert host.node not in (0, first), "the machine is another process now"
            slurm.until(lambda: "DRAIN" not in slurm.node(NODE), "the node is not back in service")
            slurm.until(lambda: slurm.job(job)[0] == "RUNNING", "the job does not go on", within_s=30)
            assert slurm.job(job)[1] != NODE or "RESTART" in slurm.run("scontrol", "show", "job", job).upper()
            steps = _steps(whole, incident["id"])
            assert [(action, outcome) for action, outcome, _ in steps] == [
                ("evidence.collect", "ok"),
                ("scheduler.jobs", "ok"),
                ("scheduler.drain", "ok"),
                ("bmc.evidence", "ok"),
                ("bmc.power_cycle", "ok"),
                ("scheduler.resume", "ok"),
            ]
            assert job in steps[1][2], "the list of jobs names the job"
            said = whole.gpuward("explain", incident["id"])
            assert f"PCI:{where}" in said
            assert "power cycle worked" in said
            assert {page["status"] for page in whole.pages()} == {"trigger", "resolve"}
            print(f"fault to closed incident: {took_s:.1f} s")
        finally:
            host.ask("off")
            whole.end()


def _boot(whole: Stack) -> bool:
    nodes: list[dict[str, Any]] = whole.get("/api/nodes").get("nodes", [])
    return any(node["name"] == NODE and node["boot"] for node in nodes)


def _steps(whole: Stack, incident: str) -> list[tuple[str, str, str]]:
    runs = whole.get(f"/api/explain/{incident}")["runs"]
    return [(step["action"], step["outcome"], step["why"]) for run in runs for step in run["steps"]]
