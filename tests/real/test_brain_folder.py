"""A brain's folder is its own."""

from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from tests.real.brain_kit import Lab, lab

pytestmark = pytest.mark.component("nats-server")


async def test_two_brains_cannot_share_a_folder(tmp_path: Path) -> None:
    """The second one says why it does not start."""
    async with lab(tmp_path) as whole:
        second = Lab(tmp_path, {})
        with pytest.raises(ConfigError, match="in use by another brain"):
            await second.start()
        assert (await whole.get("/api/v1/status"))["leads"]


async def test_a_snapshot_that_the_disk_does_not_give_back_keeps_no_brain_from_leading(
    tmp_path: Path,
) -> None:
    """What was said is known from the log; the next snapshot has its place."""
    whole = Lab(tmp_path, {"snapshot": {"every_s": 0.2}})
    try:
        await whole.start()
        assert (await whole.say("hold", scope="all", why="stays"))[0] == 200
        await whole.stop()
        snapshot = whole.config.data_dir / "state.snapshot"
        snapshot.unlink()
        snapshot.mkdir()
        await whole.start()
        assert [hold["why"] for hold in (await whole.get("/api/v1/status"))["holds"]] == ["stays"]
    finally:
        await whole.stop()
    assert snapshot.is_file()
    assert snapshot.with_name("state.snapshot.damaged").is_dir()


async def test_a_public_half_that_is_noise_is_written_again(tmp_path: Path) -> None:
    """The key itself is whole."""
    whole = Lab(tmp_path, {})
    await whole.start()
    await whole.stop()
    half = whole.config.signing_key.with_name("signing.key.pub")
    right = half.read_bytes()
    for noise in (b"\xfd\x00\xff" * 30, b""):
        half.write_bytes(noise)
        await whole.start()
        await whole.stop()
        assert half.read_bytes() == right
