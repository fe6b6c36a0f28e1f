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
