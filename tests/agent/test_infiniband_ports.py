"""InfiniBand ports and devices: down and back, gone or in another namespace, another subnet manager, congestion."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors.congestion import CongestionOptions
from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.samples import IbDevices
from agent.contract.messages import Severity
from agent.host import Host
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from tests.agent.following import once
from tests.agent.infiniband_kit import NODE, events_of, port


def test_a_port_goes_down_and_comes_back() -> None:
    """Each change of the logical state is reported; ACTIVE is good news."""
    collector = InfinibandCollector(CongestionOptions())
    unsent_events = events_of(
        collector,
        port(1.0),
        port(2.0, "DOWN", "Polling", sm=0),
        port(3.0, "DOWN", "Disabled", sm=0),
        port(4.0, "INIT", "LinkUp"),
        port(5.0),
    )
    assert [(d.data["before"], d.data["state"], d.severity) for d in unsent_events] == [
        ("ACTIVE", "DOWN", Severity.WARNING),
        ("DOWN", "DOWN", Severity.WARNING),
        ("DOWN", "INIT", Severity.WARNING),
        ("INIT", "ACTIVE", Severity.INFO),
    ]


def test_a_disabled_port_is_told_from_one_without_a_link() -> None:
    """By its physical state; the drivers of Ethernet cards report that one for every port without a carrier."""
    states = [port(1.0), port(2.0, "DOWN", "Disabled", sm=0), port(3.0, "DOWN", "Polling", sm=0)]
    for layer, said in (("InfiniBand", [True, None]), ("Ethernet", [None, None])):
        samples = [replace(one, link_layer=layer) for one in states]
        found = events_of(InfinibandCollector(CongestionOptions()), *samples)
        assert [one.data.get("disabled") for one in found] == said


def test_an_uncabled_port_is_quiet() -> None:
    """A port that has never been up may change between physical states without an event."""
    collector = InfinibandCollector(CongestionOptions())
    phases = ["Polling", "Sleep", "Polling", "Disabled", "Polling"]
    assert events_of(collector, *(port(n, "DOWN", phys, sm=0) for n, phys in enumerate(phases, 1))) == []


def test_another_subnet_manager() -> None:
    """A change is reported once with both LIDs, also when the port knew none in between."""
    collector = InfinibandCollector(CongestionOptions())
    unsent_events = events_of(
        collector, port(1.0, sm=1), port(2.0, sm=0), port(3.0, sm=1), port(4.0, sm=0), port(5.0, sm=7)
    )
    assert [(d.kind, dict(d.data)) for d in unsent_events] == [("ib.sm_lid", {"sm_lid": 7, "before": 1})]


def test_a_device_is_gone_after_three_samples() -> None:
    """A driver reload is not a loss; a loss is reported once, and so is the return, without false resets."""
    collector = InfinibandCollector(CongestionOptions())
    both, one = IbDevices(names=("mlx5_0", "mlx5_1")), IbDevices(names=("mlx5_1",))
    assert events_of(collector, both, port(1.0, symbol_error=50), one, one, both) == []
    (gone,) = events_of(collector, one, one, one, one, one)
    assert (gone.component, gone.data, gone.severity) == ("nic/mlx5_0", {"present": False}, Severity.ERROR)
    (back,) = events_of(collector, both, port(9.0, symbol_error=0), both)
    assert (back.component, back.data, back.severity) == ("nic/mlx5_0", {"present": True}, Severity.INFO)


def test_a_device_in_another_network_namespace_is_not_gone() -> None:
    """A container has it: an information, once; and so is its return."""
    collector = InfinibandCollector(CongestionOptions())
    here = IbDevices(names=("mlx5_0", "mlx5_1"))
    moved = IbDevices(names=("mlx5_1",), moved=("mlx5_0",))
    (said,) = events_of(collector, here, port(1.0), *[moved] * 5)
    assert (said.component, said.data) == ("nic/mlx5_0", {"present": False, "moved": True})
    (back,) = events_of(collector, here, port(9.0))
    assert {said.severity, back.severity} == {Severity.INFO}
    assert back.data == {"present": True}


@pytest.mark.parametrize(
    ("beside", "goes"),
    [
        (["mlx5_core.rdma.0/driver", "mlx5_core.eth.0/driver"], "mlx5_core.rdma.0"),
        (["ice.roce.3/driver"], "ice.roce.3/driver"),
        (["i40e.iwarp.1/driver"], "i40e.iwarp.1"),
        (["infiniband_verbs/uverbs0"], "infiniband_verbs"),  # a card without auxiliary devices, e.g. efa
        ([], "driver"),
    ],
)
async def test_a_device_whose_function_has_all_that_it_had_is_in_another_namespace(
    tmp_path: Path, beside: list[str], goes: str
) -> None:
    """Whichever driver: what depends on the device stays when it goes into a namespace, and goes with it when it is removed."""
    shutil.copytree(NODE / "sys/class/infiniband", tmp_path / "sys/class/infiniband", symlinks=True)
    function = tmp_path / "sys/devices/0000:1a:00.0"
    for name in ("driver", "msi_irqs", *beside):
        (function / name).mkdir(parents=True)
    device = tmp_path / "sys/class/infiniband/mlx5_0"
    shutil.rmtree(device / "device", ignore_errors=True)
    (device / "device").symlink_to(function)
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())

    async def moved() -> tuple[str, ...]:
        return next(one for one in await once(source) if isinstance(one, IbDevices)).moved

    assert await moved() == ()
    device.rename(tmp_path / "away")
    (function / "msi_irqs").rmdir()
    assert await moved() == ("mlx5_0",)
    (function / goes).rename(tmp_path / "removed")
    assert await moved() == ()


def test_the_service_level_to_the_subnet_manager() -> None:
    """A change is reported; while no subnet manager is known the file means nothing."""
    collector = InfinibandCollector(CongestionOptions())
    levels = [
        port(1.0),
        replace(port(2.0), sm_sl=2),
        replace(port(3.0, sm=0), sm_sl=0),
        replace(port(4.0), sm_sl=2),
    ]
    unsent_events = events_of(collector, *levels)
    assert [(d.kind, dict(d.data)) for d in unsent_events] == [("ib.sm_sl", {"sm_sl": 2, "before": 0})]


def test_congestion_is_reported_by_the_minute_and_only_when_it_is_fast() -> None:
    """Slow growth is normal; ticks of waiting are counted with a bound of their own."""
    collector = InfinibandCollector(CongestionOptions(congestion_per_s=100.0))
    samples = [
        replace(
            port(10.0 * n),
            congestion={"rp_cnp_handled": 2000 * n, "np_cnp_sent": 10 * n, "port_xmit_wait": 1_000_000 * n},
            congestion_s=10.0 * n,
        )
        for n in range(7)
    ]
    again = [replace(samples[-1], mono_s=61.0)]  # the same reading of the counters, with newer errors
    unsent_events = events_of(collector, *samples, *again)
    assert [(d.kind, d.data["counter"], d.data["per_s"]) for d in unsent_events] == [
        ("ib.congestion", "rp_cnp_handled", 200.0)
    ]
