"""Energy by tenant: a real Prometheus scrapes counters that grow, as dcgm-exporter has them in Kubernetes; the brain reckons."""

import csv
import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.brain_kit import Lab, lab
from tests.real.exporter_kit import exporter
from tests.real.nats import free_port
from tests.real.test_counters import console, site

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.component("prometheus")]
KW_MJ_PER_S = 1e6  # of a kilowatt
GPUS = (  # uuid, further labels, kW, use in percent
    ("GPU-1", 'exported_namespace="alice",exported_pod="a-1"', 600.0, 90),
    ("GPU-2", 'exported_namespace="alice",exported_pod="a-2"', 300.0, 60),
    ("GPU-3", 'exported_namespace="bob",exported_pod="b-1"', 300.0, 20),
    ("GPU-4", "", 100.0, 0),
    ("GPU-5", 'GPU_I_ID="3",exported_namespace="bob"', 5000.0, 50),
)


def cards() -> Callable[[], str]:
    """The exporter's page. The cards draw far more than real ones do, so that some seconds are kilowatt-hours."""
    began_s = time.monotonic()

    def lines(cluster: str, factor: float) -> list[str]:
        passed_s = time.monotonic() - began_s
        found = []
        for uuid, more, kw, use in GPUS:
            labels = (
                f'gpu="0",UUID="{cluster}{uuid}",Hostname="n1",cluster="{cluster}"{"," if more else ""}{more}'
            )
            found += [
                f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{labels}}} {factor * kw * KW_MJ_PER_S * passed_s:.0f}",
                f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {use}",
            ]
        return found

    return lambda: "\n".join([*lines("ours", 1.0), *lines("theirs", 50.0)]) + "\n"


async def _with_gpus(whole: Lab) -> None:
    node = await whole.node("n1")
    await node.event("node.inventory", driver="580.82.07", gpus=5, gpu_models="5 NVIDIA H100", changed=False)
    await whole.until(lambda found: found.get("gpus") == 5, "its GPUs", "/api/v1/reports/energy")


async def test_the_energy_of_each_tenant_is_what_its_cards_have_counted(tmp_path: Path) -> None:
    """In the ratio of the cards' power; a card without a pod is nobody's, a split one is not counted and told, and another
    cluster's cards in the same Prometheus are not ours. The file for mail and the CSV say the same.
    """
    async with exporter(cards()) as dcgm:
        with site(tmp_path, dcgm) as url:
            given = console(url=url, tenant_label="exported_namespace", only='cluster="ours"')
            async with lab(tmp_path / "brain", console=given) as whole:
                await _with_gpus(whole)
                path = f"/api/v1/reports/energy?from={time.time() - 900:.0f}"
                found = await whole.until(
                    lambda found: found.get("kwh", 0.0) > 5 and len(found["tenants"]) == 3,
                    "some seconds are measured",
                    path,
                    within_s=120,
                )
                by = {one["tenant"]: one for one in found["tenants"]}
                assert set(by) == {"alice", "bob", ""}
                assert by["alice"]["kwh"] / by["bob"]["kwh"] == pytest.approx(3.0, rel=0.05)
                assert by["bob"]["kwh"] / by[""]["kwh"] == pytest.approx(3.0, rel=0.05)
                assert sum(one["share"] for one in by.values()) == pytest.approx(1.0, abs=0.01)
                assert [by[one]["use"] for one in ("alice", "bob", "")] == pytest.approx(
                    [0.75, 0.2, 0.0], abs=0.01
                )
                assert (found["gpus"], found["split"], found["failed"]) == (5, 1, [])
                assert 0 < found["measured"] < 1, (
                    "before Prometheus ran nothing was measured, and of one card nothing is"
                )
                said = " ".join(one["en"] for one in found["not_known_texts"])
                assert "of their time: Prometheus has nothing of it" in said
                assert "the energy of 1 GPUs is that are split" in said
                html = await _text(whole, path.replace("/energy?", "?format=html&"))
                assert "alice" in html
                assert "Energy of the GPUs" in html
                rows = list(csv.DictReader(io.StringIO(await _text(whole, f"{path}&format=csv"))))
                assert {row["tenant"] for row in rows} == {"alice", "bob", ""}


async def _text(whole: Lab, path: str) -> str:
    async with whole.fetch(path) as answer:
        assert answer.status == 200
        return await answer.text()


async def test_a_prometheus_that_does_not_answer_is_told(tmp_path: Path) -> None:
    """The figures are empty, who must do what is said, and the report itself is there."""
    async with lab(tmp_path, console=console(url=f"http://127.0.0.1:{free_port()}")) as whole:
        found = await whole.get("/api/v1/reports/energy")
        assert (found["configured"], found["tenants"], len(found["failed"])) == (True, [], 1)
        assert "Not answered: Prometheus" in await _text(whole, "/api/v1/reports?format=html")
