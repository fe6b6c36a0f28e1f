"""Drivers that lack functions: each is tolerated by itself, and an older way is taken where there is one."""

import re
from pathlib import Path
from typing import Any

import pytest

from agent.collectors import collectors
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.nvml import NvmlSource
from tests.agent.nvml_kit import FIRST, PATIENT
from tests.fixtures.nvml_fake import SOURCE, FakeNvml, build

# Without these there is no NVML at all; every other function of our library may be missing.
_NEEDED = {"nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetCount_v2"}
_NEEDED |= {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3"}
OPTIONAL = sorted(set(re.findall(r"^(?:Ret |NUMBER\()(nvml\w+)", SOURCE.read_text(), re.M)) - _NEEDED)


async def sampled(
    tmp_path: Path, library: Path, prepare: Any = None
) -> tuple[Gpu, dict[str, Any], list[UnsentEvent]]:
    """One GPU, its health and what is reported of it, once."""
    fake = FakeNvml(tmp_path / "state", library, gpus=1)
    fake.well(0)
    if prepare is not None:
        prepare(fake)
    samples: list[Sample] = []
    await NvmlSource(Host(), timing=PATIENT, env=fake.env, bus=Host(root=tmp_path)).once(samples.append)
    unsent_events = [
        unsent
        for collector in collectors()
        for sample in samples
        if isinstance(sample, collector.wants)
        for unsent in collector.feed(sample, 0.0)
    ]
    health = next((dict(r.values) for r in samples if isinstance(r, GpuHealth)), {})
    return next(r for r in samples if isinstance(r, Gpu)), health, unsent_events


def test_the_table_has_the_functions() -> None:
    """Read from the library's source, so a new one is in it."""
    assert len(OPTIONAL) > 25
    assert {"nvmlDeviceGetFieldValues", "nvmlEventSetWait_v2", "nvmlDeviceGetPersistenceMode"} <= set(
        OPTIONAL
    )


@pytest.mark.parametrize("function", OPTIONAL)
async def test_a_missing_function_costs_only_what_it_reports(tmp_path: Path, function: str) -> None:
    """The GPU is sampled, the others' values are there, nothing is reported of a healthy GPU."""
    library = build(tmp_path / "lib", renamed={function: f"absent_{function}"})
    gpu, health, unsent_events = await sampled(tmp_path, library)
    assert (gpu.bdf, gpu.lost, unsent_events) == (FIRST, "", [])
    whole = 140 if function != "nvmlDeviceGetFieldValues" else 15
    assert len(health) >= whole


async def test_the_older_ways(tmp_path: Path) -> None:
    """R470: clock reasons by their old name, SRAM errors and NVLink states one by one, no fabric."""
    old = {
        "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetSramEccErrorStatus": "absent_1",
        "nvmlDeviceGetGpuFabricInfoV": "absent_2",
        "nvmlDeviceGetMarginTemperature": "absent_3",
    }

    def prepare(fake: FakeNvml) -> None:
        fake.fields(0, {(91, 0): 4, (12, 0): 0, (144, 0): 0})
        fake.set(0, links="1101", reasons=0x4, ecc_1_0_7=3)

    gpu, health, unsent_events = await sampled(tmp_path, build(tmp_path / "lib", renamed=old), prepare)
    assert gpu.slowdowns == 0x4
    assert [health[f"nvlink.{link}.state"] for link in range(4)] == [1, 1, 0, 1]
    assert health["ecc.volatile.uncorrected.sram"] == 3
    assert not [key for key in health if key.startswith(("fabric", "margin"))]
    assert unsent_events == []


async def test_one_unknown_field_does_not_spoil_the_others(tmp_path: Path) -> None:
    """A driver that refuses the whole call gets smaller ones."""
    library = build(tmp_path / "lib")
    _, health, _ = await sampled(tmp_path, library, lambda fake: fake.set(0, fields_max=170))
    assert health["remap.failure"] == 0
    assert health["nvlink.17.replay"] == 0
    assert "recovery_action" not in health
