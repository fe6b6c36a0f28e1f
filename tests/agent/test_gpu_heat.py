"""GPUs that are too hot, or slowed down by their hardware or driver: timelines, one sample a second."""

from dataclasses import replace

import pytest

from agent.collectors.gpu_heat import GpuHeatCollector
from agent.collectors.samples import Sample
from tests.agent.health_kit import GPU, events_of, health, seconds


@pytest.mark.parametrize("reasons", [0x0, 0x1, 0x2, 0x4, 0x10, 0x100, 0x117])
def test_ordinary_clock_reasons_are_silent(reasons: int) -> None:
    """Idle, application clocks, the power cap, sync boost, the display."""
    assert events_of(GpuHeatCollector(), seconds(replace(GPU, slowdowns=reasons), 0, 30)) == []


def test_a_slowdown_begins_grows_and_ends() -> None:
    """After three samples; a further reason is reported; over after ten calm seconds, with how long it took."""
    slow, hot = replace(GPU, slowdowns=0x88), replace(GPU, slowdowns=0xC8)
    reported = events_of(
        GpuHeatCollector(),
        [*seconds(slow, 0, 5), *seconds(hot, 5, 8), *seconds(GPU, 8, 40), *seconds(slow, 40, 42)],
    )
    assert [(at_s, d["active"], d["reasons"], d["lasted_s"]) for at_s, _, d in reported] == [
        (2, True, "hw_slowdown,power_brake", 2.0),
        (5, True, "hw_slowdown,hw_thermal,power_brake", 5.0),
        (17, False, "hw_slowdown,hw_thermal,power_brake", 7.0),
    ]


def test_a_reason_that_is_over_is_told() -> None:
    """The hardware's slowdown ends and the driver's own goes on: ten seconds later only that is left, and is what ends."""
    both, driver = replace(GPU, slowdowns=0x60), replace(GPU, slowdowns=0x20)
    samples = [
        *seconds(both, 0, 5),
        *seconds(driver, 5, 8),
        *seconds(both, 8, 9),
        *seconds(driver, 9, 60),
        *seconds(GPU, 60, 80),
    ]
    assert [
        (at_s, d["active"], d["reasons"], d["hardware"])
        for at_s, _, d in events_of(GpuHeatCollector(), samples)
    ] == [
        (2, True, "sw_thermal,hw_thermal", True),
        (18, True, "sw_thermal", False),
        (69, False, "sw_thermal", False),
    ]


@pytest.mark.parametrize(("reasons", "hardware"), [(0x20, False), (0x28, True), (0x40, True), (0x80, True)])
def test_a_slowdown_says_whether_the_hardware_asks_for_it(reasons: int, hardware: bool) -> None:
    """The driver's own slowdown near the limit is ordinary."""
    (found,) = events_of(GpuHeatCollector(), seconds(replace(GPU, slowdowns=reasons), 0, 5))
    assert found[2]["hardware"] is hardware


def test_a_slowdown_that_comes_and_goes_is_one() -> None:
    """Every other second: it begins once and ends once."""
    flicker = [replace(GPU, mono_s=float(t), slowdowns=0x8 * (t % 2)) for t in range(60)]
    reported = events_of(GpuHeatCollector(), [*flicker, *seconds(GPU, 60, 80)])
    assert [data["active"] for _, _, data in reported] == [True, False]


@pytest.mark.parametrize(
    ("limits", "temperatures", "want"),
    [
        ({"threshold__gpu_max": 87}, [86, 87, 88, 85, 84, 83], [(87, True), (84, False)]),
        ({"threshold__slowdown": 90}, [89, 90], [(90, True)]),
        ({"threshold__gpu_max": 0, "threshold__slowdown": 0}, [120], []),
        ({}, [120], []),
    ],
)
def test_old_cards_have_absolute_limits(
    limits: dict[str, int], temperatures: list[int], want: list[tuple[int, bool]]
) -> None:
    """With 3 °C of hysteresis; without a limit nothing is judged."""
    samples: list[Sample] = [health(**limits)]
    samples += [replace(GPU, temperature_c=t, mono_s=float(i)) for i, t in enumerate(temperatures)]
    assert [(d["temperature_c"], d["active"]) for _, _, d in events_of(GpuHeatCollector(), samples)] == want


def test_the_margin_decides_where_there_is_one() -> None:
    """T.Limit: its operating limit may be above zero; the absolute temperature means nothing then."""
    samples: list[Sample] = [
        health(0, margin=3, tlimit__gpu_max=2, threshold__gpu_max=50),
        replace(GPU, temperature_c=60),
        health(1, margin=2, tlimit__gpu_max=2),
        health(2, margin=4, tlimit__gpu_max=2),
        health(3, margin=5, tlimit__gpu_max=2),
    ]
    assert [(at_s, d["active"]) for at_s, _, d in events_of(GpuHeatCollector(), samples)] == [
        (1, True),
        (3, False),
    ]
