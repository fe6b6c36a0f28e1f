"""The stream of the log on a real server: how large it is, whose, and what of it each brain sets."""

from pathlib import Path

import pytest
from nats.js.api import Placement, StoreCompression

from agent.contract import subjects
from agent.contract.errors import ConfigError
from brain.adapters import log, streams
from brain.nats_config import LogConfig
from tests.real.nats import client, nats_server

pytestmark = pytest.mark.component("nats-server")
SMALL = LogConfig(max_bytes=64 * 1024**2)


async def test_another_stream_of_our_name_is_refused(tmp_path: Path) -> None:
    """It is somebody else's: nothing of it is changed."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await connection.jetstream().add_stream(name=subjects.stream("c"), subjects=["other.>"])
            with pytest.raises(ConfigError, match="not made by gpuward"):
                await log.ensure(connection, "c", SMALL)
            await connection.jetstream().add_stream(name="theirs", subjects=["ward.d.>"])
            with pytest.raises(
                ConfigError, match=r"has subjects of WARD_d \(ward.d.event.>, ward.d.input.>\)"
            ):
                await log.ensure(connection, "d", SMALL)


async def test_a_log_that_is_larger_than_the_server_allows_becomes_smaller(tmp_path: Path) -> None:
    """A brain that does not start for want of disk space would help nobody."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await log.ensure(connection, "c", LogConfig(max_bytes=64 * 1024**3))
            await log.ensure(connection, "c", LogConfig(max_bytes=64 * 1024**3))
            found = await connection.jetstream().stream_info(subjects.stream("c"))
            assert 0 < (found.config.max_bytes or 0) <= 10**9


async def test_a_log_that_is_there_needs_no_room_a_second_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Others have filled the disk since: the server would promise less than it has promised, and the brain goes on."""
    many = LogConfig(max_bytes=512 * 1024**2)
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            first = await log.ensure(connection, "c", many)
        server.stop()
        store = tmp_path / "nats/js"
        server.configure(
            f'jetstream {{ store_dir: "{store}", max_mem: 1200MB, max_file: 100MB, strict: true }}'
        )
        server.start()
        async with client(server.url) as connection:
            shorter = LogConfig(max_bytes=512 * 1024**2, max_age_s=7200)
            assert await log.ensure(connection, "c", shorter, alone=True) == first
            with pytest.raises(streams.NoRoom, match=r"lower log\.max_bytes"):
                await log.ensure(connection, "another", many)
    assert "NATS may not use 512 MiB more of its disk for log.max_bytes" in caplog.text


async def test_a_second_brain_cuts_off_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its brain.toml says less than that of the first one: what is within the first one's limits stays, and a line says what to
    write. Where one brain has a server of its own, its limits are in force.
    """
    body = b"x" * (3 * 1024**2 // 4)
    most = LogConfig(max_bytes=256 * 1024**2, max_age_s=60 * 86400)
    less = LogConfig(max_bytes=64 * 1024**2, max_age_s=30 * 86400)
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await log.ensure(connection, "c", most)
            for _ in range(100):
                await connection.jetstream().publish(subjects.event("c", "n1"), body, timeout=60)
            kept = await log.ensure(connection, "c", less)
            assert (kept.first_seq, kept.max_bytes, kept.max_age_s) == (1, most.max_bytes, most.max_age_s)
            (line,) = [one.getMessage() for one in caplog.records if "keeps up to" in one.getMessage()]
            assert "256 MiB and 60 days" in line
            assert "64 MiB and 30 days" in line
            assert "nats stream edit WARD_c" in line
            caplog.clear()
            await log.ensure(connection, "c", most)
            assert "keeps up to" not in caplog.text, "the same is said"
            more = LogConfig(max_bytes=320 * 1024**2, max_age_s=30 * 86400)
            kept = await log.ensure(connection, "c", more)
            assert (kept.max_bytes, kept.max_age_s) == (more.max_bytes, most.max_age_s), "the larger of each"
            cut = await log.ensure(connection, "c", less, alone=True)
            assert cut.first_seq > 1
            assert (cut.max_bytes, cut.max_age_s) == (less.max_bytes, less.max_age_s)


async def test_what_a_person_has_set_of_a_stream_is_kept(tmp_path: Path) -> None:
    """`nats stream edit`: a brain that connects sets what it needs, and nothing else."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await log.ensure(connection, "c", SMALL)
            manager, name = connection.jsm(), subjects.stream("c")
            there = (await manager.stream_info(name)).config
            by_hand = there.evolve(
                compression=StoreCompression.S2,
                metadata={"team": "gpu"},
                description="ask the GPU team",
                placement=Placement(cluster="", tags=["ssd"]),
                max_msgs_per_subject=5,
            )
            await manager.update_stream(by_hand)
            await log.ensure(connection, "c", LogConfig(max_bytes=128 * 1024**2), alone=True)
            kept = (await manager.stream_info(name)).config
            assert (kept.compression, kept.description) == (StoreCompression.S2, "ask the GPU team")
            assert (kept.metadata or {})["team"] == "gpu"
            assert kept.placement
            assert kept.placement.tags == ["ssd"]
            assert kept.max_bytes == 128 * 1024**2
            assert kept.max_msgs_per_subject == -1, "the log would lose messages"
            changed = await connection.subscribe(f"$JS.EVENT.ADVISORY.STREAM.UPDATED.{name}")
            for limit in (128, 128, 192):
                await log.ensure(connection, "c", LogConfig(max_bytes=limit * 1024**2), alone=True)
            await changed.next_msg(5)
            assert not changed.pending_msgs, (
                "what is as it should be is not written back over what a person edits"
            )
