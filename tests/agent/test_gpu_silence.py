"""What NVML leaves out is not known, and is neither well nor ill: fields that come and go, in thousands of timelines by chance.

The oracle keeps the last known value of each field, and asks of each event whether these values say the same.
"""

import random
from collections.abc import Callable, Iterator, Mapping

import pytest

from agent.collectors.base import Collector
from agent.collectors.gpu import GpuCollector
from agent.collectors.gpu_heat import GpuHeatCollector
from agent.collectors.gpu_links import GpuLinksCollector, ber_of
from agent.collectors.gpu_memory import GpuMemoryCollector
from agent.collectors.gpu_state import GpuStateCollector
from agent.collectors.samples import Gpu, GpuHealth
from agent.contract import kinds
from agent.contract.messages import Scalar, UnsentEvent

BDF = "0000:3b:00"
Values = dict[str, int | float | str]
LINKS = range(4)
WELL: Values = {
    "remap.pending": 0, "remap.failure": 0, "remap.corrected": 1, "remap.uncorrected": 0, "remap.banks_none": 0,
    "retired.pending": 0, "retired.single_bit": 2, "retired.double_bit": 0, "sram_threshold": 0, "recovery_action": 0,
    "pcie.width": 16, "pcie.width_max": 16, "pcie.generation": 5, "pcie.generation_max": 5,
    "fabric.state": 3, "fabric.status": 0, "fabric.health": 0, "margin": 30,
    **{f"nvlink.{link}.state": 1 for link in LINKS}, **{f"nvlink.{link}.effective_ber": 0x50F for link in LINKS},
}  # fmt: skip
# NVML answers some questions together: what is left out of one answer is left out whole.
TOGETHER = (
    ("fabric.state", "fabric.status", "fabric.health"),
    tuple(key for key in WELL if key.startswith("nvlink")),  # nvlink.links was not told
)


def worse(chance: random.Random, values: Values) -> Values:
    """One thing changes, for better or worse; counters only grow."""
    key = chance.choice(sorted(values))
    if key in ("remap.corrected", "remap.uncorrected", "retired.single_bit", "retired.double_bit"):
        return values | {key: int(values[key]) + chance.choice((0, 1, 3))}
    odd: dict[str, tuple[int, ...]] = {
        "pcie.width": (16, 8, 4),
        "pcie.generation": (5, 1),
        "recovery_action": (0, 1, 2),
        "fabric.state": (3,),
        "fabric.health": (0, 1),
        "margin": (30, 5, 1, 0, -4),
    }
    if key.endswith(("_max", "single_bit", "double_bit", "status")):
        return values
    if key.endswith("effective_ber"):
        return values | {key: chance.choice((0x50F, 0x50F, 0x10B, 0x109))}
    return values | {key: chance.choice(odd.get(key, (0, 1)))}


def timeline(seed: int) -> Iterator[tuple[Values, Values]]:
    """(what NVML answers, what is known by then) of each second."""
    chance = random.Random(seed)
    values, known = dict(WELL), dict[str, int | float | str]()
    for at in range(40):
        if at and chance.random() < 0.5:
            values = worse(chance, values)
        told = dict(values)  # the first time whole: what a link had then counts as all that it has
        if at and chance.random() < 0.5:
            groups = (*TOGETHER, *((key,) for key in WELL if not key.startswith("fabric")))
            for group in chance.sample(groups, chance.randrange(1, 8)):
                told = {key: value for key, value in told.items() if key not in group}
        known |= told
        yield told, known


def says(known: Mapping[str, int | float | str], unsent: UnsentEvent) -> dict[str, tuple[Scalar, Scalar]]:
    """What an event claims, and what is known of it."""
    data = unsent.data

    def count(key: str) -> int:
        return int(known.get(key, 0))

    claims: dict[str, Callable[[], dict[str, tuple[Scalar, Scalar]]]] = {
        "gpu.remap": lambda: {
            "pending": (data["pending"], bool(count("remap.pending"))),
            "failure": (data["failure"], bool(count("remap.failure"))),
            "corrected": (data["corrected"], count("remap.corrected")),
        },
        "gpu.retired_pages": lambda: {
            "pending": (data["pending"], bool(count("retired.pending"))),
            "double_bit": (data["double_bit"], count("retired.double_bit")),
        },
        "gpu.sram_threshold": lambda: {"exceeded": (data["exceeded"], bool(count("sram_threshold")))},
        "gpu.recovery_action": lambda: {"action": (data["action"], count("recovery_action"))},
        "gpu.fabric": lambda: {"healthy": (data["healthy"], not count("fabric.health"))},
        "gpu.nvlink_state": lambda: {
            "down": (data["down"], sum(known.get(f"nvlink.{link}.state") == 0 for link in LINKS))
        },
        "gpu.nvlink_ber": lambda: {
            "active": (
                data["active"],
                max(ber_of(count(f"nvlink.{link}.effective_ber")) for link in LINKS) > 1e-12,
            )
        },
        "gpu.pcie_degraded": lambda: {
            "active": (
                data["active"],
                count("pcie.width") < count("pcie.width_max")
                or (data["active"] is True and count("pcie.generation") < count("pcie.generation_max")),
            )
        },
    }
    return claims.get(unsent.kind, dict)()


COLLECTORS: tuple[type[Collector], ...] = (GpuMemoryCollector, GpuLinksCollector, GpuStateCollector)


@pytest.mark.parametrize("of", COLLECTORS, ids=lambda of: of.name)
def test_no_event_says_what_is_not_known(of: type[Collector]) -> None:
    """Neither what it reports nor what it tells again: a field that is left out ends nothing and begins nothing."""
    told_again = 0
    for seed in range(400):
        collector = of()
        for at, (told, known) in enumerate(timeline(seed)):
            sample = GpuHealth(index=0, bdf=BDF, values=told, mono_s=float(at))
            busy = Gpu(index=0, bdf=BDF, uuid="", utilization_now=90, mono_s=float(at))
            events = [*collector.feed(busy, float(at)), *collector.feed(sample, float(at))]
            again = list(collector.restate(sample, float(at)))
            told_again += len(again)
            for unsent in (*events, *again):
                kinds.check(unsent)
                wrong = {name: pair for name, pair in says(known, unsent).items() if pair[0] != pair[1]}
                assert not wrong, (seed, at, unsent.kind, wrong, unsent in again)
    assert told_again > 1000


def test_what_is_told_again_was_shown_by_the_sample() -> None:
    """`agent.look` asks whether things are well: what NVML did not answer now is no answer."""
    for of, key, kind in (
        (GpuMemoryCollector, "remap.failure", "gpu.remap"),
        (GpuMemoryCollector, "retired.pending", "gpu.retired_pages"),
        (GpuLinksCollector, "pcie.width_max", "gpu.pcie_degraded"),
        (GpuLinksCollector, "nvlink.2.state", "gpu.nvlink_state"),
    ):
        collector = of()
        for at_s, values in (
            (1.0, WELL),
            (2.0, {name: value for name, value in WELL.items() if name != key}),
        ):
            sample = GpuHealth(index=0, bdf=BDF, values=values, mono_s=at_s)
            list(collector.feed(sample, at_s))
            again = [unsent.kind for unsent in collector.restate(sample, at_s)]
            assert (kind in again) == (values is WELL), (key, again)


def test_a_card_with_a_margin_is_judged_by_nothing_else() -> None:
    """It is too hot by its margin; a second without that is not the second in which it has cooled down."""
    collector = GpuHeatCollector()
    limits: Values = {"threshold.gpu_max": 95}
    hot = GpuHealth(index=0, bdf=BDF, values=limits | {"margin": -2}, mono_s=1.0)
    assert [unsent.data["active"] for unsent in collector.feed(hot, 1.0)] == [True]
    gpu = Gpu(index=0, bdf=BDF, uuid="", temperature_c=80, slowdowns=0, mono_s=2.0)
    assert list(collector.feed(GpuHealth(index=0, bdf=BDF, values=limits, mono_s=2.0), 2.0)) == []
    assert list(collector.feed(gpu, 2.0)) == []
    assert [one.kind for one in collector.restate(gpu, 2.0) if one.kind == "gpu.temperature"] == []


def test_a_dying_gpu_that_gives_other_reasons_each_second_is_lost_once_for_each() -> None:
    """NVML says `lost`, then that nothing is answered, then `lost` again, for an hour."""
    chance = random.Random(7)
    collector = GpuCollector()
    reasons = ("lost", "unknown_error", "not_found", "")
    found = []
    for at in range(3600):
        reason = chance.choice(reasons)
        sample = Gpu(index=0, bdf=BDF, uuid="", lost=reason, answers=not reason, mono_s=float(at))
        found += [unsent for unsent in collector.feed(sample, float(at)) if unsent.kind == "gpu.lost"]
    returned = [
        unsent
        for at in range(3600, 3610)
        for unsent in collector.feed(Gpu(index=0, bdf=BDF, uuid="", mono_s=float(at)), float(at))
    ]
    assert [unsent.kind for unsent in returned] == ["gpu.returned"]
    assert len(found) <= 30, "a GPU that answers five times in a row has returned, and may be lost again"
