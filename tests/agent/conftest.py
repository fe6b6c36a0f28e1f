"""What several tests of the agent share: two healthy GPUs behind a library of our own, and a PCI bus to fill."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.commander_kit import Tidy
from tests.fixtures.nvml_fake import FakeNvml, build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of libnvidia-ml.so.1."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def fake(tmp_path: Path, library: Path) -> FakeNvml:
    """GPUs 0 and 1, with nothing wrong."""
    fake = FakeNvml(tmp_path / "state", library)
    for index in (0, 1):
        fake.well(index)
    return fake


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    """A machine whose PCI bus a test fills; without GPUs the real one's do not disturb."""
    (tmp_path / "bus").mkdir()
    return tmp_path / "bus"


@pytest.fixture
async def tidy() -> AsyncIterator[Tidy]:
    """An action that puts things in order until the test, or its end, lets it go."""
    action = Tidy()
    yield action
    action.may_end.set()
