"""NATS loses its newest messages, and the log has grown past them again by the time that a brain comes back to it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.contract import subjects
from tests.real.archive_kit import connected, event
from tests.real.brain_kit import Lab
from tests.real.nats import nats_server
from tests.real.test_nobody_leads import outside, told

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.timeout(300)]


async def heard(brain: Lab, url: str, *names: str) -> None:
    """An event of each of these nodes is on the log, and the brain has read it."""
    async with connected(url) as client:
        for number, name in enumerate(names):
            await client.jetstream().publish(subjects.event("default", name), event(number, name))
    await known(brain, *names)


async def known(brain: Lab, *names: str) -> None:
    """Until the brain knows these nodes."""
    await brain.until(
        lambda found: {*names} <= {one["name"] for one in found["nodes"]}, f"knows {names}", "/api/v1/nodes"
    )


@pytest.mark.parametrize("runs", [True, False], ids=["it runs on", "it is started again"])
async def test_a_brain_that_comes_back_late_misses_nothing(tmp_path: Path, runs: bool) -> None:
    """The first brain has read of 40 nodes what is lost, as the disk has lied. The second one reads of more than that before the
    first one is there again: what has taken the lost positions is read as well, and people hear that the log was shortened.
    """
    lost, later = ([f"{what}-{number}" for number in range(many)] for what, many in (("a", 40), ("b", 80)))
    with nats_server(tmp_path / "nats") as server:
        async with outside() as out:
            more: dict[str, Any] = {"settings": {"hold_off_s": 0}}
            first = Lab(tmp_path / "b1", more | {"nats": {"url": server.url}, "brain": "b1"} | out.config)
            await first.start()
            await heard(first, server.url, "before")
            await first.stop()
            server.stop()
            shutil.copytree(server.store, tmp_path / "other/nats/js")
            server.start()
            await first.start()
            await heard(first, server.url, *lost)
            if not runs:
                await first.stop()
            server.kill()
            with nats_server(tmp_path / "other") as other:  # where the first brain does not find it
                key = {"signing_key_file": str(first.config.signing_key)}
                second = Lab(tmp_path / "b2", more | {"nats": {"url": other.url}, "brain": "b2"} | key)
                await second.start()
                await heard(second, other.url, *later)
                await second.stop()
                other.stop()
                shutil.rmtree(server.store)
                shutil.copytree(other.store, server.store)
                other.start()
            server.start()
            if not runs:
                await first.start()
            await known(first, "before", *later)
            await told(out, "log_shortened")
            await first.stop()
