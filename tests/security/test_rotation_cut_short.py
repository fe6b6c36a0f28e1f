"""`gpuward cell rotate signing --compromised` is killed while the brain runs: nobody has to notice."""

from itertools import count
from pathlib import Path

import pytest

from brain.adapters.rotation import KeyRotation
from brain.config import BrainConfig, load
from tests.brain.shell.test_rotation_killed import new_cell
from tests.killed import killed
from tests.security import rotation_kit as kit
from tests.security.test_cell import machine

pytestmark = pytest.mark.component("nats-server")


def announced_only(folder: Path) -> int:
    """The change of a file before which it must be killed so that its key is announced, and not in its place."""
    for at in count():
        config = new_cell(folder / str(at))
        assert killed(at, lambda config=config: KeyRotation(config).replace_compromised())  # type: ignore[misc]  # a default of a lambda has no type
        if stands_open(config):
            return at
    raise AssertionError


def stands_open(config: BrainConfig) -> bool:
    """Was a key announced that is not in its place?"""
    fresh = config.signing_key.with_name("signing.key.fresh")
    return fresh.exists() and bool(KeyRotation(config).file.state().serial)


def test_the_running_brain_carries_it_to_its_end(tmp_path: Path) -> None:
    """The node hears that the stolen key is revoked; the new one signs, and whoever joins again obeys it."""
    at = announced_only(tmp_path / "scratch")
    with machine(tmp_path) as whole:
        whole.join("gpu-1", whole.token("--count", "9"))
        kit.start_heard(whole, "gpu-1")
        config = load(tmp_path / "brain.toml")
        (stolen,) = kit.keys(whole)["signing"]
        assert killed(at, lambda: KeyRotation(config).replace_compromised())
        whole.until(lambda: not stands_open(config), "the key is in its place")
        whole.until(lambda: not list(whole.data.glob("signing.key.*fresh*")), "nothing is left over")
        (fresh,) = kit.keys(whole)["signing"]
        assert fresh != stolen
        whole.until(lambda: kit.trusted(whole, "gpu-1").get("keys") == {}, "the node obeys nobody")
        whole.join("gpu-1", whole.token("--count", "9"))
        kit.stop(whole, "gpu-1")
        kit.start_heard(whole, "gpu-1")
        whole.ask("mode", "accept-node", "auto")
        whole.ask("start", "accept-node", "--node", "gpu-1")
        log = tmp_path / "gpu-1.log"
        whole.until(lambda: "gpu.links_check" in log.read_text(), "a command has come, and is taken")
        assert stolen not in (tmp_path / "gpu-1/agent.toml").read_text()
