"""agent.look: what collectors tell again of the conditions that last, the present ones and the well ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors import every_collector
from agent.collectors.samples import Sample
from agent.contract import kinds
from agent.contract.look import RESTATED, SOURCES_OF_KINDS, blind_sources, concerns
from tests.agent.restate_kit import BOND, GPU, LINK, NOTHING, ON, PORT, PRESENT, UNIT, WELL, health, told


@pytest.mark.parametrize("name", PRESENT)
def test_a_present_condition_is_told_again(tmp_path: Path, name: str) -> None:
    """With the kind and component with which it began, fresh, as something that is wrong."""
    before, look, kind, component, data = PRESENT[name]
    (found,) = [
        one for one in told(tmp_path, before, look)
        if one.kind == kind and one.component == component and one.data.items() >= data.items()
    ]  # fmt: skip
    assert found.severity.value not in ("info", "unknown")
    assert found.age_s == 0


@pytest.mark.parametrize("name", WELL)
def test_what_is_well_is_told_well(tmp_path: Path, name: str) -> None:
    """Although no clearing event is due: it may have been lost, or there was none as the agent was new."""
    before, look, kind, component, data = WELL[name]
    found = [
        one for one in told(tmp_path, before, look)
        if one.kind == kind and one.component == component and one.data.items() >= data.items()
    ]  # fmt: skip
    assert found
    assert {one.severity.value for one in found} == {"info"}


@pytest.mark.parametrize("name", NOTHING)
def test_what_happened_is_not_told_again(tmp_path: Path, name: str) -> None:
    """Nor what is ordinary on this machine, nor what is not decided yet."""
    before, look = NOTHING[name]
    assert told(tmp_path, before, look) == []


def test_the_tables_have_every_kind_that_is_told_again() -> None:
    """And the brain knows of each: by RESTATED. A hung NVML is told anew, as it is tried again."""
    rows = [*PRESENT.values(), *WELL.values()]
    assert {kind for _, _, kind, _, _ in rows} | {"nvml.hung"} == RESTATED


def test_every_collector_that_tells_again_has_rows() -> None:
    """Else its kinds would be in no table, and in RESTATED neither."""
    rows = {kind for _, _, kind, _, _ in (*PRESENT.values(), *WELL.values())}
    silent = [
        f"{collector.__name__}: rows in PRESENT and WELL of restate_kit.py, of one of {', '.join(collector.kinds)}"
        for collector in every_collector()
        if "restate" in vars(collector) and not rows & set(collector.kinds)
    ]
    assert silent == []


def test_a_gpu_that_answers_has_not_returned(tmp_path: Path) -> None:
    """gpu.returned ends what a fatal XID began: a look must not."""
    assert "gpu.returned" not in {
        one.kind for one in told(tmp_path, [GPU, replace(GPU, lost="lost"), GPU], [GPU])
    }


def test_nothing_is_told_well_beside_a_present_condition(tmp_path: Path) -> None:
    """The gauge of the memory is above its limit, that of the GPU is not: a symptom of either must not end."""
    look = [health(margin=20, threshold__memory_max=95, memory_temp=97)]
    found = [(one.data["sensor"], one.data["active"]) for one in told(tmp_path, [], look)]
    assert found == [("memory", True)]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (LINK, replace(LINK, carrier=False, operstate="down", mono_s=1.0)),
        (PORT, replace(PORT, state="DOWN", phys_state="Polling", mono_s=1.0)),
        (UNIT, replace(UNIT, active="failed", sub="failed", mono_s=1.0)),
        (BOND, replace(BOND, slaves=BOND.slaves[:1], mono_s=1.0)),
    ],
)
def test_what_has_changed_since_its_sample_is_not_told(tmp_path: Path, first: Sample, then: Sample) -> None:
    """It went down before the look was over: that it was up must not follow as if it were news."""
    found = told(tmp_path, [], [first, then])
    assert found
    assert "info" not in {one.severity.value for one in found}


@pytest.mark.parametrize(
    ("component", "others"),
    [
        ("", (True, True, True, True)),
        ("node", (True, True, True, True)),
        (ON, (True, False, True, False)),
        (f"{ON}/gi5", (True, False, True, False)),
        ("port/mlx5_0.1", (False, True, True, False)),
        ("service/slurmd.service", (False, False, True, True)),
    ],
)
def test_a_look_at_one_component(component: str, others: tuple[bool, ...]) -> None:
    """Of a GPU, of the network, of the node, of a unit: only what concerns the component."""
    wanted = concerns(component)
    assert tuple(map(wanted, (ON, "link/eth1", "node", "service/slurmd.service"))) == others


def test_blind_sources_are_told_by_what_rests_on_them() -> None:
    """Separated by commas, so no name has one; each is the `source` of a kind."""
    named = {name for names in SOURCES_OF_KINDS.values() for name in names}
    assert named <= {kind.source for kind in kinds.KINDS.values()}
    assert not any("," in name for name in named)
    assert blind_sources(("nvml", "udev")) == "NVML,udev or NVML,udev"
