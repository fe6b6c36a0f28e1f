"""Driver counters of real interfaces: veth knows ethtool -S, loopback does not; neither leaves a line in the kernel log."""

import shutil
import subprocess

import pytest

from agent.collectors import nic
from agent.collectors.samples_node import NicCounters
from agent.host import Host
from agent.sources.nic import NicSource, NicSourceOptions
from tests.agent.following import following
from tests.real.netns import namespace


@pytest.mark.root
async def test_counters_of_a_veth(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are those that the ethtool program reads, name by name; lo and a missing one are passed over."""
    # veth has none of the names that matter: for this test all do.
    monkeypatch.setattr(nic, "wanted", bool)
    with namespace() as net:
        net.ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
        net.ip("link", "set", "v0", "up")
        net.ip("link", "set", "v1", "up")
        with net.inside():
            source = NicSource(
                Host(),
                NicSourceOptions(
                    nic_links=("lo", "v0", "gone0", "a-name-that-is-too-long"), nic_interval_s=0.05
                ),
            )
            samples = [sample for sample in source._poll() if isinstance(sample, NicCounters)]
            (sample,) = samples
            assert sample.name == "v0"
            assert len(sample.counters) > 3
            if shutil.which("ethtool"):
                text = subprocess.run(
                    ["ethtool", "-S", "v0"], capture_output=True, text=True, check=True
                ).stdout
                rows = dict(line.strip().split(": ") for line in text.splitlines()[1:])
                assert {name: int(value) for name, value in rows.items()}.keys() == sample.counters.keys()
                assert sample.counters["peer_ifindex"] == int(rows["peer_ifindex"]) > 0
            # The interface vanishes: no failure, no sample.
            net.ip("link", "del", "v0")
            assert source._poll() == []


@pytest.mark.root
async def test_it_runs_beside_interfaces_without_counters() -> None:
    """Loopback answers 'not supported': the source stays quiet and alive."""
    async with following(
        NicSource(Host(), NicSourceOptions(nic_links=("lo",), nic_interval_s=0.01))
    ) as emitted:
        assert emitted.task is not None
        for _ in range(20):
            await emitted.until(lambda _: True)
        assert list(emitted) == []
        assert not emitted.task.done()
