"""Kernel lines in time and on a machine: one event for a burst, and a card by the name that its ports have."""

from pathlib import Path

from agent import config_file, wiring
from agent.collectors.kernel_lines import KernelLinesCollector
from agent.collectors.samples import Line, Sample, Tick
from agent.contract.messages import UnsentEvent
from agent.host import Host

DEAD = "mlx5_core 0000:5e:00.0: poll_health:776:(pid 0): device's health compromised - reached miss count"


def events_of(collector: KernelLinesCollector, *samples: Sample) -> list[UnsentEvent]:
    """Its events, each sample at its own time."""
    return [unsent for sample in samples for unsent in collector.feed(sample, sample.mono_s)]


def test_a_burst_is_reported_at_once_and_then_counted() -> None:
    """A disk that fails sector by sector is one event now, and one with the count; another disk is news."""
    collector = KernelLinesCollector()
    lines = [
        Line(text=f"I/O error, dev sda, sector {n} op 0x0:(READ)", mono_s=10 + n / 1000) for n in range(500)
    ]
    (first,) = events_of(collector, *lines)
    assert (first.count, first.data["sector"]) == (1, 0)
    assert (
        len(events_of(collector, Line(text="I/O error, dev sdb, sector 1 op 0x0:(READ)", mono_s=11.0))) == 1
    )
    (rest,) = events_of(collector, Tick(mono_s=15.1))
    assert (rest.count, rest.component) == (499, "disk/sda")


def test_gone_and_back_are_never_held_together() -> None:
    """A server that answers again within the window is another fact, and so is a worse error of one device."""
    texts = (
        "nfs: server s1 not responding, still trying",
        "nfs: server s1 OK",
        "nfs: server s2 not responding, timed out",
    )
    assert len(events_of(KernelLinesCollector(), *(Line(text=text, mono_s=1.0) for text in texts))) == 3
    head = "nvidia 0000:3b:00.0: PCIe Bus Error: severity="
    classes = ("Corrected", "Uncorrected (Non-Fatal)", "Uncorrected (Fatal)")
    lines = [
        Line(text=f"{head}{word}, type=Transaction Layer, (Requester ID)", mono_s=1.0) for word in classes
    ]
    assert len(events_of(KernelLinesCollector(), *lines)) == 3


def test_a_late_line_is_as_old_as_it_is() -> None:
    """What was read after a pause carries its age."""
    (unsent,) = KernelLinesCollector().feed(Line(text=DEAD, mono_s=40.0), 100.0)
    assert unsent.age_s == 60.0


def test_a_card_has_the_name_of_its_infiniband_device(tmp_path: Path) -> None:
    """The driver's line and the counters of the port are then about one card."""
    device = tmp_path / "sys/class/infiniband/mlx5_3/device"
    device.mkdir(parents=True)
    (device / "uevent").write_text("DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:5e:00.0\n")
    host = Host(root=tmp_path)
    assert wiring.nic_names(host) == {"0000:5e:00.0": "mlx5_3"}
    collectors = wiring.collectors_for(host, config_file.load(None, {"root": str(tmp_path)}))
    (collector,) = [one for one in collectors if one.name == "kernel_lines"]
    other = DEAD.replace("5e:00.0", "5e:00.1")
    reported = [
        unsent.component
        for text in (DEAD, other)
        for unsent in collector.feed(Line(text=text, mono_s=1.0), 1.0)
    ]
    assert reported == ["nic/mlx5_3", "nic/0000:5e:00.1"]


def test_an_uncorrected_pci_error_is_counted_once() -> None:
    """The root port announces it and the device reports it; the next one, and one without an announcement, are others."""
    announced = (
        "pcieport 0000:80:01.1: AER: Uncorrectable (Non-Fatal) error message received from 0000:81:00.0"
    )
    own = "ahci 0000:81:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Requester ID)"
    (unsent,) = events_of(
        KernelLinesCollector(burst_s=0), Line(text=announced, mono_s=1.0), Line(text=own, mono_s=1.1)
    )
    assert (unsent.component, unsent.data["class"], unsent.data["port"]) == (
        "pcie/0000:81:00",
        "nonfatal",
        "0000:80:01.1",
    )
    lines = [
        Line(text=text, mono_s=at_s)
        for at_s, text in ((1, announced), (1.1, own), (1.2, own), (9, announced), (12, own))
    ]
    assert len(events_of(KernelLinesCollector(burst_s=0), *lines)) == 3
    fatal = own.replace("Non-Fatal", "Fatal")
    assert len(events_of(KernelLinesCollector(burst_s=0), lines[0], Line(text=fatal, mono_s=1.1))) == 2


def test_whose_pci_error_it_is(tmp_path: Path) -> None:
    """A root port names the address only; the machine knows that it is a GPU's, or a card's with its InfiniBand device."""
    for driver, address in (("nvidia", "0000:3b:00.0"), ("mlx5_core", "0000:5e:00.0")):
        (tmp_path / "sys/bus/pci/drivers" / driver / address).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/drivers" / driver / "bind").touch()
    device = tmp_path / "sys/class/infiniband/mlx5_3/device"
    device.mkdir(parents=True)
    (device / "uevent").write_text("DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:5e:00.0\n")
    host = Host(root=tmp_path)
    assert wiring.pci_drivers(host) == {"0000:3b:00.0": "nvidia", "0000:5e:00.0": "mlx5_core"}
    collectors = wiring.collectors_for(host, config_file.load(None, {"root": str(tmp_path)}))
    (collector,) = [one for one in collectors if one.name == "kernel_lines"]
    reported = [
        unsent.component
        for address in ("0000:3b:00.0", "0000:5e:00.0", "0000:80:00.0")
        for unsent in collector.feed(
            Line(
                text=f"pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error received: {address}", mono_s=1.0
            ),
            1.0,
        )
    ]
    assert reported == ["gpu/0000:3b:00", "nic/mlx5_3", "pcie/0000:80:00"]
