"""InfiniBand ports by chance: thousands of timelines of counters, devices and restarts, against what the documents promise.

Each law keeps its own simple account of the machine, and compares what the collector has told with it.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson

from agent.collectors.congestion import CongestionOptions
from agent.collectors.ibrate import IbRateCollector, IbRateOptions
from agent.collectors.infiniband import LIMITS, MISSING_SAMPLES, InfinibandCollector
from agent.collectors.samples import IbDevices, IbPort, Sample, Tick
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions

COUNTERS = ("symbol_error", "link_downed", "local_link_integrity_errors", "VL15_dropped", "out_of_sequence")
SMALL = "local_link_integrity_errors"
PORT = IbPort(
    device="mlx5_0", port=1, state="ACTIVE", phys_state="LinkUp", rate="400 Gb/sec (4X NDR)", lid=7, sm_lid=1,
    link_layer="InfiniBand",
)  # fmt: skip


def fed(collector: InfinibandCollector | IbRateCollector, *samples: Sample) -> list[UnsentEvent]:
    """Its events, all of them declared."""
    return [kinds.check(unsent) for sample in samples for unsent in collector.feed(sample, 0.0)]


def counters(chance: random.Random, values: dict[str, int]) -> dict[str, int]:
    """A second later: errors, a burst, a reset by a tool, a driver that was reloaded."""
    values = dict(values)
    for name in COUNTERS:
        limit = LIMITS.get(name, 2**32 - 1)
        dice = chance.random()
        if dice < 0.3:
            values[name] = min(limit, values[name] + chance.choice((1, 3, 200, limit // 2)))
        elif dice < 0.33:
            values[name] = 0
        elif dice < 0.35:
            values[name] = limit
    return values if chance.random() > 0.03 else dict.fromkeys(COUNTERS, 0)


def test_what_is_full_is_known_at_any_time() -> None:
    """Over resets, files that cannot be read, ports that change to Ethernet and back, devices that go, restarts of the agent: a
    counter that was told to be full and is not any more was told to be cleared, and one that is full was told.
    """
    for seed in range(600):
        chance = random.Random(seed)
        collector = InfinibandCollector(CongestionOptions())
        values, layer = dict.fromkeys(COUNTERS, 0), "InfiniBand"
        told: set[str] = set()
        for at in range(60):
            values = counters(chance, values)
            if chance.random() < 0.03:
                layer = "Ethernet" if layer == "InfiniBand" else "InfiniBand"
            if chance.random() < 0.05:
                collector = InfinibandCollector(CongestionOptions(), before=dict(collector.remembered()))
            if chance.random() < 0.05:
                away = [IbDevices(names=(), mono_s=float(at))] * (MISSING_SAMPLES + 1)
                fed(collector, IbDevices(names=("mlx5_0",)), *away, IbDevices(names=("mlx5_0",)))
            read = {name: value for name, value in values.items() if chance.random() > 0.05}
            sample = replace(PORT, link_layer=layer, counters=read, mono_s=float(at))
            for unsent in fed(collector, sample):
                counter = str(unsent.data.get("counter", ""))
                if unsent.kind == "ib.saturated":
                    told.add(counter)  # again after a restart, or when its device is back
                elif unsent.kind == "ib.counter_reset":
                    told.discard(counter)
            for name, value in read.items():
                full = layer == "InfiniBand" and value == LIMITS.get(name)
                # One of four bits that is full when it is first seen may have been so for months.
                assert full == (name in told) or (full and name == SMALL), (
                    seed,
                    at,
                    name,
                    value,
                    layer,
                    told,
                )


def test_no_error_is_invented_and_none_that_shows_is_lost() -> None:
    """The sum of what is reported is what the counters have shown since they were first seen."""
    for seed in range(300):
        chance = random.Random(seed)
        collector = InfinibandCollector(CongestionOptions())
        values = {name: chance.randrange(0, 9) for name in COUNTERS}
        shown, reported = dict.fromkeys(COUNTERS, 0), dict.fromkeys(COUNTERS, 0)
        fed(collector, replace(PORT, counters=values))
        for at in range(1, 60):
            later = counters(chance, values)
            for name, value in later.items():
                shown[name] += value - values[name] if value >= values[name] else value
            values = later
            for unsent in fed(collector, replace(PORT, counters=values, mono_s=float(at))):
                if unsent.kind == "ib.errors":
                    reported[str(unsent.data["counter"])] += int(unsent.data["delta"])
        assert reported == shown, seed


def devices(chance: random.Random) -> Iterator[IbDevices]:
    """A card stays somewhere for a while: here, in a container, nowhere."""
    for _ in range(20):
        where = chance.choice(("here", "moved", "gone"))
        for _ in range(chance.choice((1, 2, MISSING_SAMPLES, MISSING_SAMPLES + 2))):
            yield IbDevices(
                names=("mlx5_0",) if where == "here" else (), moved=("mlx5_0",) if where == "moved" else ()
            )


def test_where_a_device_is_was_told_and_is_told_again_alike() -> None:
    """What `agent.look` tells again contradicts nothing: a device in a container is not gone, however it came there."""
    for seed in range(2000):
        chance = random.Random(seed)
        collector = InfinibandCollector(CongestionOptions())
        fed(collector, IbDevices(names=("mlx5_0",)))
        told, missing = (True, False), 0
        for at, sample in enumerate(devices(chance)):
            missing = 0 if sample.names or sample.moved else missing + 1
            for unsent in fed(collector, sample):
                told = bool(unsent.data["present"]), bool(unsent.data.get("moved"))
            if sample.names:
                assert told == (True, False), (seed, at)
            elif sample.moved:
                assert told == (False, True), (seed, at)
            elif missing >= MISSING_SAMPLES:
                assert told == (False, False), (seed, at)
            for unsent in collector.restate(sample, 0.0):
                kinds.check(unsent)
                again = bool(unsent.data["present"]), bool(unsent.data.get("moved"))
                assert again == told, (seed, at, again, told)


def test_a_slow_port_is_not_well_because_nobody_is_left_to_compare_with() -> None:
    """Its peers go into containers, or down: what it was compared with holds until it is that fast, or its peers are back."""
    for seed in range(600):
        chance = random.Random(seed)
        collector = IbRateCollector(IbRateOptions())
        rates = dict.fromkeys(range(4), 400)
        here, up = set(rates), set(rates)
        degraded: dict[str, float] = {}
        for at in range(60):
            dice, number = chance.random(), chance.randrange(4)
            if dice < 0.2:
                rates[number] = chance.choice((100, 200, 400))
            elif dice < 0.4:
                here ^= {number}
            elif dice < 0.6:
                up ^= {number}
            ports = [
                replace(
                    PORT, device=f"mlx5_{one}", model="MT4129", rate=f"{rates[one]} Gb/sec (4X NDR)",
                    state="ACTIVE" if one in up else "DOWN", mono_s=float(at),
                )
                for one in sorted(here)
            ]  # fmt: skip
            listed = IbDevices(names=tuple(port.device for port in ports))
            for unsent in fed(collector, listed, *ports, Tick(mono_s=float(at))):
                if unsent.data["what"] != "rate":
                    continue
                where, value = unsent.component, float(str(unsent.data["value"]))
                if unsent.data["degraded"]:
                    degraded[where] = float(str(unsent.data["expected"]))
                    assert value < degraded[where]
                    continue
                expected = degraded.pop(where)
                fast = sum(rates[one] > value for one in here & up)
                alike = sum(rates[one] <= value for one in here & up) - 1
                assert value >= expected or alike >= 2 or (fast == 0 and alike >= 2), (
                    seed,
                    at,
                    where,
                    value,
                    expected,
                )


def written(folder: Path, values: dict[str, int | str]) -> None:
    """The files of a port's counters; `out_of_sequence` is the device's own."""
    for name, value in values.items():
        group = "hw_counters" if name == "out_of_sequence" else "counters"
        (folder / group).mkdir(parents=True, exist_ok=True)
        (folder / group / name).write_text(f"{value}\n")


def test_the_source_loses_nothing_of_what_the_files_show(tmp_path: Path) -> None:
    """Through calm times in which it reads less, counters that are not there for a while, and numbers of any size."""
    root = "/sys/class/infiniband"
    for seed in range(12):
        chance = random.Random(seed)
        host = Host(root=tmp_path / str(seed))
        folder = host.path(f"{root}/mlx5_0/ports/1")
        folder.mkdir(parents=True)
        for name, text in {
            "state": "4: ACTIVE", "phys_state": "5: LinkUp", "lid": "0x7", "sm_lid": "0x1", "sm_sl": "0",
            "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand",
        }.items():  # fmt: skip
            (folder / name).write_text(text + "\n")
        values = dict.fromkeys(COUNTERS, 0)
        written(folder, dict(values))
        source = InfinibandSource(host, InfinibandSourceOptions())
        collector = InfinibandCollector(CongestionOptions())
        shown, reported = dict.fromkeys(COUNTERS, 0), dict.fromkeys(COUNTERS, 0)
        events: list[UnsentEvent] = []
        for at in range(400):
            if at and chance.random() < (0.4 if at < 150 else 0.01):
                name = chance.choice(COUNTERS)
                least, most = values[name], LIMITS.get(name, 2**64 - 1)
                values[name] = min(most, least + chance.choice((1, 5, 100, most // 3)))
                shown[name] += values[name] - least
                written(folder, {name: values[name]})
            if chance.random() < 0.02:  # for a while the device does not provide it
                name = chance.choice(COUNTERS)
                written(folder, {name: "N/A (no PMA)"})
                events += fed(collector, *source._poll())
                written(folder, {name: values[name]})
            events += fed(collector, *source._poll())
        for _ in range(20):  # what rests is read again
            events += fed(collector, *source._poll())
        for unsent in events:
            if unsent.kind == "ib.errors":
                reported[str(unsent.data["counter"])] += int(unsent.data["delta"])
                orjson.dumps(dict(unsent.data))
        assert reported == shown, seed
