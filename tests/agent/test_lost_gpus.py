"""A GPU that was lost before a reboot and works after it: its return must be reported."""

from pathlib import Path

import pytest

from agent.collectors.gpu import STEADY_SAMPLES, GpuCollector
from agent.collectors.samples import Gpu
from agent.contract.messages import Severity, UnsentEvent
from agent.remembered.lost_gpus import LostGpus

BDF = "0000:3b:00"
WELL = Gpu(index=0, bdf=BDF, uuid="GPU-1", mono_s=1.0)


def unsent(kind: str, component: str = f"gpu/{BDF}", **data: int) -> UnsentEvent:
    return UnsentEvent(kind=kind, component=component, severity=Severity.FATAL, data=data)


@pytest.mark.parametrize(
    "reported",
    [unsent("gpu.lost"), unsent("gpu.off_bus"), unsent("gpu.removed"), unsent("gpu.xid", code=79)],
    ids=["NVML", "kernel", "udev", "XID 79"],
)
def test_the_next_run_reports_that_it_returned_once(tmp_path: Path, reported: UnsentEvent) -> None:
    """Whichever event had reported the loss; the run after that reports nothing any more."""
    file = tmp_path / "lost.json"
    LostGpus(file).note([reported])
    after_reboot = LostGpus(file)
    collector = GpuCollector(lost_before=after_reboot.addresses)
    unsent_events = [unsent for _ in range(STEADY_SAMPLES) for unsent in collector.feed(WELL, 1.0)]
    assert [d.kind for d in unsent_events] == ["gpu.returned"]
    after_reboot.note(unsent_events)
    assert list(collector.feed(WELL, 2.0)) == []
    assert LostGpus(file).addresses == frozenset()


def test_one_that_is_still_lost_is_reported_again(tmp_path: Path) -> None:
    """The reboot did not help: that is news to whoever ordered it."""
    collector = GpuCollector(lost_before=[BDF])
    (lost,) = collector.feed(Gpu(index=0, bdf=BDF, uuid="", lost="lost", mono_s=1.0), 1.0)
    assert lost.kind == "gpu.lost"


def test_other_facts_are_not_remembered(tmp_path: Path) -> None:
    """An XID that leaves the GPU in its place, a switch, the node."""
    file = tmp_path / "lost.json"
    LostGpus(file).note(
        [unsent("gpu.xid", code=31), unsent("gpu.lost", "nvswitch/0000:c1:00"), unsent("gpu.count", "node")]
    )
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "{", "7", '["x", 3, null, "0000:3b:00"]', '{"0000:3b:00": 1}', "\0"])
def test_a_spoilt_file_does_no_harm(tmp_path: Path, text: str) -> None:
    """What is an address counts, all else is forgotten."""
    file = tmp_path / "lost.json"
    file.write_text(text)
    assert LostGpus(file).addresses == (frozenset({BDF}) if text.startswith('["x"') else frozenset())


def test_a_full_disk_is_no_crash(tmp_path: Path) -> None:
    """The file's folder may not even exist."""
    lost = LostGpus(tmp_path / "gone" / "lost.json")
    lost.note([unsent("gpu.lost")])
    assert lost.addresses == {BDF}
