"""A GPU that was lost before a reboot and is well after it: somebody must say that it is back."""

from pathlib import Path

import pytest

from agent.collectors.gpu import GpuCollector
from agent.collectors.readings import Gpu
from agent.contract.messages import Draft, Severity
from agent.lost_gpus import LostGpus

BDF = "0000:3b:00"
WELL = Gpu(index=0, bdf=BDF, uuid="GPU-1", mono_s=1.0)


def draft(kind: str, component: str = f"gpu/{BDF}", **data: int) -> Draft:
    return Draft(kind=kind, component=component, severity=Severity.FATAL, data=data)


@pytest.mark.parametrize(
    "said",
    [draft("gpu.lost"), draft("gpu.off_bus"), draft("gpu.removed"), draft("gpu.xid", code=79)],
    ids=["NVML", "kernel", "udev", "XID 79"],
)
def test_the_next_run_says_that_it_returned_once(tmp_path: Path, said: Draft) -> None:
    """Whoever had said that it was lost; and the run after that says nothing any more."""
    file = tmp_path / "lost.json"
    LostGpus(file).note([said])
    after_reboot = LostGpus(file)
    collector = GpuCollector(lost_before=after_reboot.addresses)
    drafts = list(collector.feed(WELL, 1.0))
    assert [d.kind for d in drafts] == ["gpu.returned"]
    after_reboot.note(drafts)
    assert list(collector.feed(WELL, 2.0)) == []
    assert LostGpus(file).addresses == frozenset()


def test_one_that_is_still_lost_is_said_again(tmp_path: Path) -> None:
    """The reboot did not help: that is news to whoever ordered it."""
    collector = GpuCollector(lost_before=[BDF])
    (lost,) = collector.feed(Gpu(index=0, bdf=BDF, uuid="", lost="lost", mono_s=1.0), 1.0)
    assert lost.kind == "gpu.lost"


def test_other_facts_are_not_remembered(tmp_path: Path) -> None:
    """An XID that leaves the GPU in its place, a switch, the node."""
    file = tmp_path / "lost.json"
    LostGpus(file).note(
        [draft("gpu.xid", code=31), draft("gpu.lost", "nvswitch/0000:c1:00"), draft("gpu.count", "node")]
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
    lost.note([draft("gpu.lost")])
    assert lost.addresses == {BDF}
