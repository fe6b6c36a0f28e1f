"""A node in a container with a real agent, a real Slurm with our Prolog, and the brain: a job meets a GPU that wants a reset."""

import re
import time
from pathlib import Path

from agent.contract.drain_reason import words_of
from tests.agent.check_kit import check
from tests.agent.gpu_kit import FIRST
from tests.e2e.healing.gpu_node import RECOVERY, RESET, gpu_node
from tests.e2e.healing.kit import healed
from tests.e2e.healing.slurm_site import MARKS, slurm_site
from tests.fixtures import nvml_fake
from tests.real import slurm_prolog

pytestmark = MARKS


def test_a_prologs_drain_is_taken_over_healed_and_taken_off(tmp_path: Path) -> None:
    """While a person holds the node nobody drains it, so a job is sent there: its Prolog drains the node in the agent's words,
    and the job runs elsewhere. When the hold is over, the brain takes the drain over, resets the GPU, and gives the node back.
    """
    library = nvml_fake.build(tmp_path / "lib")
    with (
        slurm_site(tmp_path, slurm_prolog.CONF) as (whole, slurm),
        gpu_node(whole, tmp_path, library, "gpu1") as node,
    ):
        slurm_prolog.install(slurm, {"gpu1": node.socket})
        whole.wait_for(
            lambda: any(one["name"] == "gpu1" and one["boot"] for one in whole.get("/api/v1/nodes")["nodes"]),
            "gpu1 is heard",
        )
        whole.wait_for(
            lambda: check(node.socket, "--json").stdout.count('"known": true'), "its agent answers"
        )
        whole.gpuward("hold", "node/gpu1", "--why", "the night shift looks at it")
        began = time.time()
        node.nvml.change(0, {RECOVERY: RESET})
        whole.wait_for(lambda: check(node.socket).returncode == 1, "the agent knows")
        assert check(node.socket).stdout == f"GPU {FIRST} needs reset\n"
        out = f"{slurm.folder}/jobs/%j.out"
        job = slurm.run(
            "sbatch", "--parsable", "--open-mode=append", "-o", out, str(slurm.folder / "job.sh"), "1"
        ).strip()
        slurm.until(lambda: "again: 1" in slurm.output(job), "the job does not run elsewhere", within_s=120)
        assert "on gpu1" not in slurm.output(job)
        reason = re.search(r"Reason=(.*) \[", slurm.node("gpu1"))
        assert reason is not None
        assert words_of(reason[1]) == f"GPU {FIRST} needs reset"

        whole.gpuward("release", "node/gpu1")
        reset = healed(
            whole, "gpu-fatal-xid", component=f"gpu/gpu1/{FIRST}",
            counterpart="Slurm with our Prolog, a node in a container", began=began, within_s=250,
        )  # fmt: skip
        assert "gpu.reset" in reset.actions
        assert reset.actions[-1] == "scheduler.resume"
        log = (slurm.folder / "log/slurmctld.log").read_text()
        taken = re.search(
            rf"update_node: node gpu1 reason set to: (gpuward: .*GPU {FIRST} needs reset.*)", log
        )
        assert taken is not None, log
        assert "DRAIN" not in slurm.node("gpu1")
        assert check(node.socket).returncode == 0
