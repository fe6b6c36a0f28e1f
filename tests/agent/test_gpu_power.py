"""Power limits that gpuward has lowered: reported as long as they stand."""

from pathlib import Path

from agent.collectors.gpu_power import GpuPowerCollector
from agent.collectors.samples import GpuHealth, LoweredPower, Sample
from agent.contract import kinds
from agent.host import Host
from agent.shared.power_caps import PowerCap, PowerCaps
from agent.sources.power_caps import PowerCapSource
from tests.agent.following import once

BDF = "0000:3b:00"


def reported(*samples: Sample) -> list[tuple[float, bool]]:
    """(time, does it stand) of each event."""
    collector = GpuPowerCollector()
    found = []
    for sample in samples:
        for unsent in collector.feed(sample, sample.mono_s):
            assert (unsent.data["limit_w"], unsent.data["before_w"]) == (490.0, 700.0)
            found.append((sample.mono_s, bool(kinds.check(unsent).data["active"])))
    return found


def noted(at_s: float, *, over: bool = False) -> LoweredPower:
    return LoweredPower(bdf=BDF, limit_mw=490_000, before_mw=700_000, over=over, mono_s=at_s)


def limit(at_s: float, limit_mw: int) -> GpuHealth:
    return GpuHealth(index=0, bdf=BDF, values={"power_limit": limit_mw}, mono_s=at_s)


def test_a_lowered_limit_is_a_debt_until_it_is_restored() -> None:
    """Reported when it is seen to stand, again every 15 minutes, and when it is gone."""
    series: list[Sample] = [limit(0, 700_000), limit(1, 490_000), *(noted(10 + 300.0 * n) for n in range(5))]
    assert reported(*series, limit(2000, 700_000)) == [
        (10, True),
        (910, True),
        (2000, False),
    ]


def test_what_is_no_debt() -> None:
    """A limit that NVML has not told yet, that never stood, or that others set; one of an earlier boot is over."""
    assert reported(noted(0)) == []
    assert reported(limit(0, 700_000), noted(1)) == []
    assert reported(limit(0, 490_000)) == []
    assert reported(noted(0, over=True)) == [(0, False)]
    assert reported(limit(0, 490_400), noted(1)) == [(1, True)]  # rounded by the card


async def test_the_note_is_read_and_an_earlier_boots_is_over(tmp_path: Path) -> None:
    """Once; damaged entries are passed over."""
    caps, host = PowerCaps(tmp_path / "caps.json"), Host()
    for bdf, boot in ((BDF, host.boot_id()), ("0000:5d:00", "another")):
        caps.remember(PowerCap(bdf=bdf, uuid="u", cap_mw=490_000, before_mw=700_000, boot=boot))
    seen = [
        (one.bdf, one.over) for one in await once(PowerCapSource(host, caps)) if isinstance(one, LoweredPower)
    ]
    assert seen == [(BDF, False), ("0000:5d:00", True)]
    assert [one.bdf for one in caps.read()] == [BDF]
    (tmp_path / "caps.json").write_text(
        '[{"bdf": 1}, 7, {"bdf": "x", "uuid": "", "cap_mw": "a", "before_mw": 1, "boot": ""}]'
    )
    assert caps.read() == []
