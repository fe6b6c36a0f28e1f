"""Three NATS servers are upgraded while nodes report, one after the other, as docs/upgrades.md says, and back."""

import subprocess
from pathlib import Path

import pytest

from agent.contract import subjects
from brain.adapters import server_check
from tests.real.nats import NatsServer, nats_binary
from tests.real.test_nats_cluster import ClusterLab
from tests.real.test_nats_cluster_copies import until, well
from tests.real.test_nats_cluster_faults import Load, leader, under_load

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root]
OLDER = Path("/var/cache/gpuward-nats/bin/nats-server")  # deploy/dev/components.sh installs it


class OlderClusterLab(ClusterLab):
    """On servers of the oldest version that a brain takes."""

    binary = str(OLDER)


@pytest.fixture(autouse=True)
def _older() -> None:
    if not OLDER.exists():
        pytest.skip("needs an older NATS server: deploy/dev/components.sh installs it")


def version(binary: str) -> tuple[int, ...]:
    """What a server says of itself."""
    said = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(map(int, said.rpartition("v")[2].strip().split(".")))


async def exchanged(found: ClusterLab, load: Load, binary: str) -> None:
    """Each server, the leader of the log last, when the doctor has said that all have everything."""
    last = await leader(found, subjects.stream("default"))
    servers: list[NatsServer] = sorted(found.cluster.servers.values(), key=lambda one: one is last)
    for server in servers:
        await until(lambda: well(found), "the doctor finds all copies")
        server.stop()
        await load.goes_on()
        server.binary = binary
        server.start()
    await until(lambda: well(found), "the doctor finds all copies")


async def test_three_servers_are_upgraded_under_load(tmp_path: Path) -> None:
    """From the oldest version to the one that is shipped: nothing that was acknowledged is lost or twice (`under_load`)."""
    assert version(str(OLDER)) == server_check.LEAST_VERSION < version(nats_binary())
    async with under_load(tmp_path, OlderClusterLab) as (found, load):
        await exchanged(found, load, nats_binary())


@pytest.mark.nightly("the same exchange of three servers, with the versions the other way round")
async def test_and_back(tmp_path: Path) -> None:
    """What was made by the shipped version is taken up by the older one."""
    async with under_load(tmp_path) as (found, load):
        await exchanged(found, load, str(OLDER))
