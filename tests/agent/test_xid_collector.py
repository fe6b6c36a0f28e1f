"""XIDs in time: bursts are held together, and NVML and the kernel log are one witness."""

from agent.collectors.samples import Gpu, GpuEvent, GpuProcess, Line, Sample, Tick
from agent.collectors.xid import XidCollector
from agent.contract import kinds
from agent.contract.messages import UnsentEvent

XID_31 = "NVRM: Xid (PCI:0000:3b:00): 31, pid={pid}, name=python, Ch 00000008"
XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


def events_of(collector: XidCollector, *samples: Sample) -> list[UnsentEvent]:
    """The collector's events, each sample at its own time."""
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, sample.mono_s)]
    for unsent in unsent_events:
        kinds.check(unsent)
    return unsent_events


def line(text: str, at_s: float) -> Line:
    return Line(text=text, mono_s=at_s)


def event(code: int, at_s: float, type_: int = 8) -> GpuEvent:
    return GpuEvent(bdf="0000:3b:00", type=type_, data=code, mono_s=at_s)


def test_the_first_of_a_burst_is_reported_at_once_and_the_rest_counted() -> None:
    """A thousand equal lines are one event now and one with the count after five seconds."""
    collector = XidCollector()
    first = events_of(collector, line(XID_31.format(pid=1), 100.0))
    assert [unsent.count for unsent in first] == [1]
    assert events_of(collector, *(line(XID_31.format(pid=1), 100 + n / 1000) for n in range(1, 1000))) == []
    assert events_of(collector, Tick(mono_s=104.9)) == []
    (later,) = events_of(collector, Tick(mono_s=105.5))
    assert (later.count, later.data) == (999, first[0].data)
    assert 4.4 < later.age_s < 4.6  # as old as its last line
    assert events_of(collector, Tick(mono_s=111.0), Tick(mono_s=120.0)) == []
    assert len(events_of(collector, line(XID_31.format(pid=1), 121.0))) == 1


def test_the_next_line_flushes_too() -> None:
    """No tick is needed where lines keep coming."""
    collector = XidCollector()
    times = (0.0, 1.0, 2.0, 6.0, 7.0)
    unsent_events = events_of(collector, *(line(XID_31.format(pid=1), at_s) for at_s in times))
    assert [unsent.count for unsent in unsent_events] == [1, 2]
    assert [unsent.count for unsent in events_of(collector, Tick(mono_s=20.0))] == [2]


def test_different_facts_are_not_held_together() -> None:
    """Another process, code or GPU is news."""
    unsent_events = events_of(
        XidCollector(),
        line(XID_31.format(pid=1), 1.0),
        line(XID_31.format(pid=2), 1.0),
        line(XID_79, 1.0),
        line(XID_79.replace("3b", "3c"), 1.0),
        line("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", 1.0),
    )
    assert len(unsent_events) == 5


def test_a_storm_of_different_facts_is_bounded_and_loses_no_count() -> None:
    """With more open facts than it remembers, the oldest is let go; every line is counted in some event."""
    collector = XidCollector()
    lines = [line(XID_31.format(pid=n % 1500), 1.0) for n in range(4500)]
    unsent_events = events_of(collector, *lines, Tick(mono_s=10.0))
    assert sum(unsent.count for unsent in unsent_events) == 4500


def test_an_nvml_event_that_the_kernel_log_showed_is_not_reported_again() -> None:
    """In either order, within two seconds, it is one fact."""
    timelines: list[list[Sample]] = [
        [line(XID_79, 10.0), event(79, 10.5), Tick(mono_s=20.0)],
        [event(79, 10.0), line(XID_79, 11.5), Tick(mono_s=20.0)],
        [line(XID_79.replace("00)", "00 GPU-I:05 GPU-CI:00)"), 10.0), event(79, 10.5), Tick(mono_s=20.0)],
    ]
    for samples in timelines:
        assert len(events_of(XidCollector(), *samples)) == 1


def test_an_nvml_event_alone_is_reported_after_two_seconds() -> None:
    """Where the log is lost or filtered, NVML is witness enough."""
    collector = XidCollector()
    assert events_of(collector, event(79, 10.0), event(79, 10.1), Tick(mono_s=11.0)) == []
    (unsent,) = events_of(collector, Tick(mono_s=12.5))
    assert (unsent.component, unsent.data["code"], unsent.data["action"]) == (
        "gpu/0000:3b:00",
        79,
        "RESTART_BM",
    )
    assert unsent.age_s == 2.5
    assert "NVML" in unsent.evidence


def test_an_old_line_does_not_hide_a_new_nvml_event() -> None:
    """Two seconds apart they are two facts."""
    unsent_events = events_of(XidCollector(burst_s=0), line(XID_79, 10.0), event(79, 13.0), Tick(mono_s=16.0))
    assert len(unsent_events) == 2


def test_other_nvml_events_and_odd_ones_are_passed_over() -> None:
    """Clock changes are no XIDs; an event without an address names no GPU."""
    odd = GpuEvent(bdf="", type=8, data=79, mono_s=1.0)
    assert events_of(XidCollector(), event(1, 1.0, type_=0x10), odd, Tick(mono_s=9.0)) == []


XID_13 = (
    "NVRM: Xid (PCI:0000:3b:00): 13, pid={pid}, name=a, "
    "Graphics SM Warp Exception on (GPC {gpc}, TPC {tpc}, SM 0): Out Of Range Address"
)
XID_74 = "NVRM: Xid (PCI:0000:3b:00): 74, NVLink: fatal error detected on link {link}({bits}, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
HOUR_S = 3600.0


def repeats_of(*samples: Sample) -> list[int]:
    """The count in each XID's event; the first has none."""
    found = events_of(XidCollector(burst_s=0), *samples)
    return [int(unsent.data.get("repeats", 1)) for unsent in found]


def test_programs_that_fail_on_one_processing_cluster_only_are_counted() -> None:
    """XID 13: three programs that fail at one GPC and TPC are suspicious; one that fails everywhere is wrong itself."""
    here = [line(XID_13.format(pid=pid, gpc=1, tpc=3), pid * HOUR_S) for pid in (1, 2, 3)]
    assert repeats_of(*here) == [1, 2, 3]
    assert repeats_of(*(line(XID_13.format(pid=7, gpc=1, tpc=3), n) for n in range(3))) == [1, 1, 1]
    everywhere = [
        line(XID_13.format(pid=pid, gpc=gpc, tpc=3), pid * HOUR_S + gpc)
        for pid in (1, 2, 3)
        for gpc in (0, 1, 2)
    ]
    assert max(repeats_of(*everywhere)) == 1
    assert repeats_of(here[0], line(XID_13.format(pid=2, gpc=1, tpc=3), 26 * HOUR_S)) == [1, 1]  # a day later
    without = [line(XID_13.format(pid="'<unknown>'", gpc=1, tpc=3), at_s) for at_s in (0.0, 30.0, 2000.0)]
    assert repeats_of(*without) == [1, 1, 2]


def test_jobs_that_fail_on_one_gpu_only_are_counted() -> None:
    """XID 31: by the job that has the process; the same job again, or one that fails on other GPUs too, is not news."""

    def job(pid: int, number: str, at_s: float, bdf: str = "0000:3b:00") -> list[Sample]:
        held = Gpu(
            index=0, bdf=bdf, uuid="u", processes=(GpuProcess(pid=pid, memory_mb=1, job=number),), mono_s=at_s
        )
        return [held, line(XID_31.format(pid=pid).replace("0000:3b:00", bdf), at_s + 1)]

    assert repeats_of(*job(1, "a", 0.0), *job(2, "b", 100.0), *job(3, "c", 200.0)) == [1, 2, 3]
    assert repeats_of(*job(1, "a", 0.0), *job(2, "a", 100.0), *job(3, "a", 200.0)) == [1, 1, 1]
    two = [*job(1, "a", 0.0), *job(1, "a", 1.0, "0000:5d:00"), *job(2, "b", 50.0)]
    assert max(repeats_of(*two)) == 1
    assert repeats_of(*(line(XID_31.format(pid=n), n * 100.0) for n in (1, 2, 3))) == [
        1,
        1,
        1,
    ]  # one program's name


def test_an_nvlink_that_errs_again_persists_as_soon_as_its_registers_say() -> None:
    """XID 74: more than two on one link; two for bits that must not repeat; the lines of one failure are one."""

    def persists(bits: str, *at_s: float, link: int = 4) -> list[bool]:
        lines = [line(XID_74.format(link=link, bits=bits), at) for at in at_s]
        return [bool(one.data.get("persists")) for one in events_of(XidCollector(burst_s=0), *lines)]

    assert persists("0x10", 0.0, HOUR_S, 2 * HOUR_S) == [False, False, True]
    assert persists("0x10", 0.0, 1.0, 2.0) == [False, False, False]
    assert persists("0x08000000", 0.0, HOUR_S) == [False, True]
    apart = [line(XID_74.format(link=link, bits="0x10"), link * HOUR_S) for link in (1, 2, 3)]
    assert not any("persists" in one.data for one in events_of(XidCollector(), *apart))
