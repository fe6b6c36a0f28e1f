"""What `/metrics` says of NATS: of one server, and of three of which one is away."""

from pathlib import Path

import pytest

from brain.adapters import kept_streams
from brain.leader import nats_watch
from tests.real.brain_kit import lab
from tests.real.nats import nats_binary
from tests.real.test_metrics import samples
from tests.real.test_nats_cluster import ClusterLab
from tests.real.test_nats_cluster_copies import until
from tests.real.test_nats_cluster_faults import of_brain
from tests.real.test_nats_versions import version

pytestmark = pytest.mark.component("nats-server")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_watch, "EVERY_S", 0.5)


async def test_of_the_embedded_server(tmp_path: Path) -> None:
    """Which one, how large what it keeps is, and that all of it has its one copy."""
    async with lab(tmp_path) as whole:
        await (await whole.node("n1")).event("agent.started", version="1")
        found: dict[tuple[str, ...], float] = {}

        async def seen() -> bool:
            found.clear()
            found.update(await samples(whole))
            return found.get(("gpuward_nats_stream_bytes", "evidence")) is not None

        await until(seen, "the servers have told of all")
        number = ".".join(map(str, version(nats_binary())))
        assert found["gpuward_nats_server", "gpuward-default", number] == 1
        assert 0 < found["gpuward_nats_rtt_seconds",] < 10
        assert found["gpuward_log_bytes",] == found["gpuward_nats_stream_bytes", "log"] > 0
        assert (
            found["gpuward_log_max_bytes",] == found["gpuward_nats_stream_max_bytes", "log"] == 256 * 1024**2
        )
        assert ("gpuward_nats_stream_max_bytes", "lease") not in found, "it has no limit"
        for stream in ("log", "lease", "evidence", "lanes"):
            assert found["gpuward_nats_copies", stream] == found["gpuward_nats_copies_current", stream] == 1
        assert found["gpuward_nats_copies_wanted",] == 1
        assert found["gpuward_nats_leaderless_streams",] == 0
        assert found["gpuward_nats_server_behind", "gpuward-default"] == 0
        assert found["gpuward_nats_account_bytes", "file"] > 0


async def test_of_three_servers_one_dies(tmp_path: Path) -> None:
    """It is named, what it has had is led by the others, and all is whole when it is back."""
    streams = len(kept_streams.names("default"))
    async with lab(tmp_path, ClusterLab) as found:
        assert isinstance(found, ClusterLab)
        now: dict[tuple[str, ...], float] = {}

        async def copies(count: int) -> bool:
            now.clear()
            now.update(await samples(found))
            kept = [value for labels, value in now.items() if labels[0] == "gpuward_nats_copies_current"]
            return len(kept) >= 4 and set(kept) == {count}

        await until(lambda: copies(3), "all of it is on three servers")
        assert now["gpuward_nats_copies_wanted",] == 3
        leads = [value for labels, value in now.items() if labels[0] == "gpuward_nats_server_leads"]
        assert len(leads) == 3
        assert streams - 1 <= sum(leads) <= streams, "the state has none before its first copy"

        connected = await of_brain(found)
        name, server = next(one for one in found.cluster.servers.items() if one[1] is not connected)
        server.kill()

        async def without_it() -> bool:  # each stream's leader misses it in its own time
            return await copies(2) and now["gpuward_nats_server_behind", name] >= streams - 1

        await until(without_it, "two have it, and the third one nothing")
        assert now["gpuward_nats_server_leads", name] == 0
        others = [one for one in found.cluster.servers if one != name]
        assert [now["gpuward_nats_server_behind", one] for one in others] == [0, 0]
        server.start()
        await until(lambda: copies(3), "and three again")
        assert now["gpuward_nats_leaderless_streams",] == 0
