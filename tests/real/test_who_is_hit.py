"""Who is hit, with a real brain and a real Slurm: from the fault on a node to the job, its user and its share."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import slurm_cluster
from tests.real.brain_kit import Lab, lab
from tests.real.slurm_cluster import Cluster

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("slurm"),
    pytest.mark.component("nats-server"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.timeout(300),
]
GPU = "gpu/0000:3b:00"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for all."""
    with slurm_cluster.cluster() as made:
        yield made


async def hit(whole: Lab, node: str, known: str) -> dict[str, Any]:
    """Who is hit by the incident of a node, once that much is known."""

    def there(found: Any) -> bool:
        return any(one["node"] == node for one in found["incidents"])

    listed = (await whole.until(there, f"an incident of {node}", "/api/v1/incidents"))["incidents"]
    (one,) = [one for one in listed if one["node"] == node]
    path = f"/api/v1/incidents/{one['id']}"
    found = await whole.until(lambda incident: incident["hit"]["known"] == known, known, path)
    return {**found["hit"], "id": found["id"]}


async def shared(whole: Lab) -> str:
    """The incident of the cell, which explains those of its nodes."""
    found = await whole.until(
        lambda found: any(not one["node"] for one in found["incidents"]),
        "one of the cell",
        "/api/v1/incidents",
    )
    return str(next(one["id"] for one in found["incidents"] if not one["node"]))


async def test_a_fault_names_the_job_that_it_stops_and_keeps_it_over_a_restart(
    cluster: Cluster, tmp_path: Path
) -> None:
    """In observe mode, where no gate asks. The job is told, with since when; also by the next brain, and after it has left."""
    cluster.clean()
    job = await asyncio.to_thread(
        cluster.submit, "gpu1", "-N2", "-w", "gpu1,gpu2", "-J", "train-llama", gpus=2, pin=False
    )
    table = {"type": "slurm", "conf": str(cluster.conf), "nodes": "gpu*"}
    async with lab(tmp_path, schedulers={"train": table}) as whole:
        node = await whole.node("gpu1")
        await node.event("gpu.xid", GPU, code=79)
        found = await hit(whole, "gpu1", "known")
        (told,) = found["jobs"]
        assert (told["id"], told["name"], told["user"]) == (job, "train-llama", "root")
        assert (told["nodes"], told["here"], told["on"], told["gpus"]) == (2, 1, ["gpu1"], 2)
        assert told["text"] == f"job {job} (train-llama) of root: 1 of its 2 nodes, 2 GPUs"
        assert (found["asked"], found["answered"], found["left_out"], found["why"]) == (1, 1, 0, "")
        assert found["since"] <= found["at"]
        chain = await whole.get(f"/api/v1/explain/{found['id']}")
        notes = [one["text"] for one in chain["notes"] if one["kind"] == "incident.hit"]
        assert notes == [f"on gpu1 runs {told['text']}"]
        await whole.stop()
        await whole.start()
        assert (await hit(whole, "gpu1", "known"))["jobs"] == [told]
        idle = await whole.node("gpu4")
        await idle.event("gpu.xid", GPU, code=79)
        assert (await hit(whole, "gpu4", "known"))["jobs"] == []
        other = await whole.node("cpu1")  # no table has it
        await other.event("gpu.xid", GPU, code=79)
        wide = await shared(whole)
        whole_of = await whole.until(
            lambda one: (
                (one["hit"]["asked"], one["hit"]["answered"]) == (3, 2)
            ),  # the third when it no longer settles
            "all are known",
            f"/api/v1/incidents/{wide}",
        )
        assert [one["id"] for one in whole_of["hit"]["jobs"]] == [job]


async def test_a_scheduler_that_is_away_is_told_and_no_scheduler_is_too(tmp_path: Path) -> None:
    """Who must do what is told in either case, and the incident is there all the same."""
    table = {"type": "slurm", "squeue": "/nonexistent/squeue", "scontrol": "/nonexistent/scontrol"}
    configured: list[tuple[str, dict[str, Any]]] = [("silent", {"train": table}), ("no_scheduler", {})]
    for known, tables in configured:
        folder = tmp_path / known
        folder.mkdir()
        async with lab(folder, schedulers=tables) as whole:
            node = await whole.node("gpu1")
            await node.event("gpu.xid", GPU, code=79)
            found = await hit(whole, "gpu1", known)
            assert found["jobs"] == []
            assert ("/nonexistent/squeue" in found["why"]) == (known == "silent"), found
