"""docs/cell.md: its commands, typed as root on a machine of the test's own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brain.adapters import nkey
from tests import alone as kit
from tests.alone import Alone

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    """With nothing but configurations."""
    with kit.alone(tmp_path) as one:
        yield one


def test_a_cell_is_made_and_joined_as_the_page_says(alone: Alone) -> None:
    """From nothing to a node that is heard; a rotation that it confirms; what a site's own NATS servers are given."""
    alone.types("gpuward cell init --name brain-1.example.com --write")
    alone.unit("gpuward", "run", "--config", "/etc/gpuward/brain.toml")
    alone.until(lambda: ", leads" in alone.says("gpuward status"), "the brain leads")
    told = alone.types("gpuward cell token --nodes 'gpu-*' --count 100 --for 24h")
    (alone.folder / "token.txt").write_text(told)
    alone.types("gpuward-agent join - < token.txt")
    alone.unit("gpuward-agent", "run", "--config", "/etc/gpuward/agent.toml")
    alone.until(lambda: "gpu-1" in alone.says("gpuward nodes"), "the node is heard")
    alone.types("gpuward cell rotate signing")
    assert "signing" in alone.types("gpuward cell show")
    alone.until(
        lambda: not keys(alone)["keys"]["rotations"],
        "the node has confirmed the new key, and the old one is gone",
    )
    alone.types("gpuward cell show --nats-accounts > gpuward-accounts.conf")
    assert "gpu-1" in (alone.folder / "gpuward-accounts.conf").read_text()
    alone.types("gpuward cell export --jwt FOLDER")
    assert list((alone.folder / "FOLDER").rglob("*.jwt"))
    nkey.load_or_make(alone.folder / "signing.nk", nkey.NkeyKind.OPERATOR)
    alone.types("gpuward cell export --jwt FOLDER --operator-seed signing.nk")


def keys(alone: Alone) -> dict[str, Any]:
    """What the page's command says of them, for scripts."""
    found: dict[str, Any] = json.loads(alone.types("gpuward cell show --json"))
    return found
