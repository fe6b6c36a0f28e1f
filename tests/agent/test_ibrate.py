"""Ports that are less than their like cards."""

from dataclasses import replace

import pytest

from agent.collectors.ibrate import IbRateCollector, IbRateOptions
from agent.collectors.samples import IbDevices, IbPort, Sample, Tick
from agent.contract import kinds

TICK = Tick(mono_s=0.0)


def port(number: int, what: str = "400 4X", model: str = "MT4129", index: int = 1) -> IbPort:
    """`what`: rate and width of an active port, or its state."""
    rate, _, width = what.partition(" ")
    active = rate.isdigit()
    return IbPort(
        device=f"mlx5_{number}",
        port=index,
        state="ACTIVE" if active else rate,
        phys_state="LinkUp" if active else "Polling",
        rate=f"{rate} Gb/sec ({width} NDR)" if active else "10 Gb/sec (4X SDR)",
        lid=1,
        sm_lid=1,
        link_layer="InfiniBand",
        model=model,
    )


def reported(collector: IbRateCollector, *ports: IbPort) -> list[str]:
    shown = []
    samples: list[Sample] = [*ports, TICK]
    for sample in samples:
        for unsent in collector.feed(sample, 0.0):
            kinds.check(unsent)
            data = unsent.data
            sign = "-" if data["degraded"] else "+"
            shown.append(
                f"{unsent.component} {sign}{data['what']} {data['value']}/{data['expected']} {data['by']}"
            )
    return shown


@pytest.mark.parametrize(
    ("ports", "says"),
    [
        ([port(0), port(1), port(2)], []),
        ([port(0), port(1), port(2, "200 4X")], ["port/mlx5_2.1 -rate 200/400 peers"]),
        (
            [port(0), port(1), port(2, "100 1X")],
            ["port/mlx5_2.1 -rate 100/400 peers", "port/mlx5_2.1 -width 1X/4X peers"],
        ),
        ([port(0), port(1), port(2, "DOWN")], ["port/mlx5_2.1 -state DOWN/ACTIVE peers"]),
        ([port(0), port(1), port(2, "INIT")], []),  # on its way
        ([port(0), port(1, "DOWN")], []),  # one card is no majority
        ([port(0), port(1, "200 4X")], []),
        ([port(0), port(1), port(2, "200 4X"), port(3, "200 4X"), port(4, "200 4X")], []),  # two kinds of use
        ([port(0), port(1), port(2, "DOWN", model="MT4125")], []),  # another card
        ([port(0, model=""), port(1, model=""), port(2, "DOWN", model="")], []),
        (
            [port(n, index=1) for n in range(3)] + [port(n, "DOWN", index=2) for n in range(3)],
            [],
        ),  # no cables there
    ],
)
def test_like_cards_are_compared(ports: list[IbPort], says: list[str]) -> None:
    """A port should have what the majority of its peers has; where none has a cable, none is missing."""
    assert reported(IbRateCollector(IbRateOptions()), *ports) == says


@pytest.mark.parametrize(
    "rate", ["", "0 Gb/sec (0X SDR)", ".. Gb/sec", "1.2.3 Gb/sec (4X NDR)", "Gb/sec", "400 Gb/sec (0X NDR)"]
)
def test_a_rate_that_is_none_is_compared_with_nothing(rate: str) -> None:
    """A driver that knows no rate writes 0, or what it likes: neither its port nor the others are less for it."""
    odd = replace(port(3), rate=rate)
    assert reported(IbRateCollector(IbRateOptions()), port(0), port(1), port(2), odd) == []
    assert reported(IbRateCollector(IbRateOptions()), odd, replace(odd, device="mlx5_4")) == []


def test_it_is_reported_once_and_taken_back() -> None:
    """The same port is not reported each second; its recovery is."""
    collector = IbRateCollector(IbRateOptions())
    assert reported(collector, port(0), port(1), port(2, "200 4X")) == ["port/mlx5_2.1 -rate 200/400 peers"]
    assert reported(collector, port(0), port(1), port(2, "200 4X")) == []
    assert reported(collector, port(2)) == ["port/mlx5_2.1 +rate 400/400 peers"]


def test_a_port_is_measured_by_what_it_had() -> None:
    """A single card that came back slower after a retraining."""
    collector = IbRateCollector(IbRateOptions())
    assert reported(collector, port(0)) == []
    assert reported(collector, port(0, "DOWN")) == []
    assert reported(collector, port(0, "200 4X")) == ["port/mlx5_0.1 -rate 200/400 before"]


def test_the_configured_rate_counts_for_all() -> None:
    """Although every card is alike."""
    slow = [port(n, "200 4X") for n in range(3)]
    assert reported(IbRateCollector(IbRateOptions(ib_expected_gbps=400)), *slow) == [
        f"port/mlx5_{n}.1 -rate 200/400 config" for n in range(3)
    ]


@pytest.mark.parametrize("exempt", ["mlx5_2", "mlx5_2.1"])
def test_a_management_card_is_exempt(exempt: str) -> None:
    """By device or by port."""
    assert (
        reported(IbRateCollector(IbRateOptions(ib_exempt=(exempt,))), port(0), port(1), port(2, "DOWN")) == []
    )


def test_a_device_that_vanished_is_compared_no_more() -> None:
    """ib.device reports its loss."""
    collector = IbRateCollector(IbRateOptions())
    reported(collector, port(0), port(1), port(2))
    assert list(collector.feed(IbDevices(names=("mlx5_0",)), 0.0)) == []
    assert reported(collector, port(3, "200 4X")) == []


def test_another_link_layer_is_another_port() -> None:
    """A port that a person set from InfiniBand to Ethernet has another rate: it is not slower than before, and what it lacked as
    the other one is over.
    """
    collector = IbRateCollector(IbRateOptions())
    ethernet = replace(port(2, "100 4X"), link_layer="Ethernet")
    assert reported(collector, port(0), port(1), port(2)) == []
    assert reported(collector, ethernet) == []
    assert reported(collector, port(2, "200 4X")) == ["port/mlx5_2.1 -rate 200/400 peers"]
    assert reported(collector, ethernet) == ["port/mlx5_2.1 +rate 100/100 before"]
    assert reported(collector, replace(ethernet, rate="25 Gb/sec (1X EDR)")) == [
        "port/mlx5_2.1 -rate 25/100 before"
    ]
