"""What happened to a GPU or a node while no agent ran is reported once."""

from pathlib import Path

from agent import config, wiring
from agent.collectors.gpu_memory import GpuMemoryCollector
from agent.collectors.samples import Gpu, GpuHealth
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.remembered.last_known import LastKnown

BDF = "0000:3b:00"
VOLATILE, AGGREGATE = (f"ecc.{counter}.uncorrected.dram" for counter in ("volatile", "aggregate"))


def run(path: Path, *aggregates: int, uuid: str = "GPU-1", save: bool = True) -> list[UnsentEvent]:
    """One run of the agent: its events while the counter takes these values; it dies at the end."""
    known = LastKnown(path)
    readers = wiring.collectors_for(Host(root=path.parent), config.AgentConfig(node="n1"), known=known)
    (collector,) = (one for one in readers if isinstance(one, GpuMemoryCollector))
    found: list[UnsentEvent] = []
    for at_s, value in enumerate(aggregates):
        list(collector.feed(Gpu(index=0, bdf=BDF, uuid=uuid, mono_s=at_s), at_s))
        values = {VOLATILE: value - aggregates[0], AGGREGATE: value}
        unsent_events = list(collector.feed(GpuHealth(index=0, bdf=BDF, values=values, mono_s=at_s), at_s))
        known.note(unsent_events)
        found += unsent_events
    if save:
        known.save()
    return found


def test_ecc_errors_while_the_agent_was_down_are_reported_once(tmp_path: Path) -> None:
    """Old errors are history, new ones are not, and what a killed agent reported last is not reported again."""
    path = tmp_path / "last_known.json"
    assert run(path, 5, 5) == []
    (unsent,) = run(path, 7, 7, save=False)
    assert (unsent.data["delta"], unsent.data["errors"], unsent.data["counter"]) == (2, 7, "aggregate")
    assert run(path, 7) == []
    (unsent,) = run(path, 7, 8, save=False)  # seen as it happens, by the better name
    assert (unsent.data["delta"], unsent.data["counter"]) == (1, "volatile")
    assert run(path, 8) == []


def test_another_gpu_in_the_slot_has_its_own_history(tmp_path: Path) -> None:
    """Its errors are no growth; and the first one's are remembered for its return."""
    path = tmp_path / "last_known.json"
    run(path, 5)
    assert run(path, 900, uuid="GPU-2") == []
    (unsent,) = run(path, 6)
    assert unsent.data["delta"] == 1


def test_a_spoiled_file_counts_as_none(tmp_path: Path) -> None:
    """Whatever is in it."""
    path = tmp_path / "last_known.json"
    for text in (
        "",
        "[]",
        "{",
        '{"ecc": 3, "node": []}',
        '{"ecc": {"GPU-1": 4}}',
        '{"ecc": {"GPU-1": {"x": null}}}',
    ):
        path.write_text(text)
        assert run(path, 5, save=False) == []


def test_a_disk_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    """The growth is reported all the same."""
    assert len(run(tmp_path / "missing/last_known.json", 5, 6)) == 1
