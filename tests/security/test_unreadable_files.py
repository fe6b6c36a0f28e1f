"""A file of the brain that cannot be read for a while is no empty one: nobody is thrown out, and people are told."""

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import nkeys
import pytest

from agent.contract.errors import ConfigError
from brain import locked_file
from brain.cell.registry import CellRegistry
from brain.console.access import local_token
from brain.console.access.limits import WRONG
from brain.console.access.tokens import Tokens
from brain.console.server import Console
from brain.console_config import Role
from tests import people
from tests.security import rotation_kit as kit
from tests.security.test_cell import machine
from tests.security.test_door import ask
from tests.security.view import FolderView

pytestmark = pytest.mark.component("nats-server")


def public_key() -> str:
    """A node's."""
    pair = nkeys.from_seed(bytearray(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)))
    return str(pair.public_key.decode())


@contextlib.contextmanager
def no_descriptor_left() -> Iterator[None]:
    """This process can open nothing."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[0]), before[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "the last byte is lost": lambda body: body[:-1],
    "one byte is another": lambda body: body[:5] + b"\0" + body[6:],
    "it is empty": lambda _: b"",
    "half of it": lambda body: body[: len(body) // 2],
    "lists in lists": lambda _: b"[" * 100_000,
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_damaged_keeps_what_was_read_last(tmp_path: Path, what: str) -> None:
    """However often it is asked; why it cannot be read is told each time; what is whole again counts at once."""
    path, key = tmp_path / "registry.json", public_key()
    CellRegistry(path).add("gpu-1", key, now=1.0)
    brain = CellRegistry(path)
    good = path.read_bytes()
    assert list(brain.nodes()) == ["gpu-1"]
    path.write_bytes(DAMAGES[what](good))
    for _ in range(3):
        assert list(brain.nodes()) == ["gpu-1"]
        assert str(path) in brain.trouble()
    with pytest.raises(ConfigError, match="restore it"):
        brain.revoke("gpu-1", now=2.0)
    path.write_bytes(good)
    CellRegistry(path).add("gpu-2", public_key(), now=2.0)
    assert list(brain.nodes()) == ["gpu-1", "gpu-2"]
    assert not brain.trouble()


def test_what_was_never_read_is_not_empty_either(tmp_path: Path) -> None:
    """A brain that starts with a damaged file gets an error each time, until the file is whole; a missing one is empty."""
    path = tmp_path / "registry.json"
    assert not CellRegistry(path).nodes()
    CellRegistry(path).add("gpu-1", public_key(), now=1.0)
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    brain = CellRegistry(path)
    for _ in range(3):
        with pytest.raises(ConfigError, match="restore it"):
            brain.nodes()
    path.write_bytes(good)
    assert list(brain.nodes()) == ["gpu-1"]


def test_an_error_that_passes_needs_no_change_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No descriptor is free when a changed file is read: a moment later it is read again, and nobody was locked out meanwhile."""
    monkeypatch.setattr(locked_file, "AGAIN_S", 0.0)
    registry, tokens = tmp_path / "registry.json", tmp_path / "tokens.json"
    CellRegistry(registry).add("gpu-1", public_key(), now=1.0)
    _, shown = Tokens(tokens).make("ann", Role.VIEWER, now=1.0, lasts_s=100.0, by="bob")
    nodes, people = CellRegistry(registry), Tokens(tokens)
    assert list(nodes.nodes()) == ["gpu-1"]
    assert people.find(shown, 2.0)
    CellRegistry(registry).add("gpu-2", public_key(), now=1.0)
    _, another = Tokens(tokens).make("ann", Role.VIEWER, now=1.0, lasts_s=100.0, by="bob")
    with no_descriptor_left():
        assert list(nodes.nodes()) == ["gpu-1"]
        assert "Too many open files" in nodes.trouble()
        assert people.find(shown, 2.0)
        assert "Too many open files" in people.trouble()
    assert list(nodes.nodes()) == ["gpu-1", "gpu-2"]
    assert people.find(another, 2.0)
    assert not nodes.trouble()


@pytest.mark.parametrize("what", DAMAGES)
async def test_a_brain_that_starts_with_damaged_tokens_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It says that it cannot tell who somebody is, not that their token is wrong, and counts nobody as a guesser; who started the
    brain comes in. When the file is whole again, everybody does, at once.
    """
    monkeypatch.setattr(locked_file, "AGAIN_S", 0.0)
    ann = people.bearer(people.token_file(tmp_path / "d"))
    file = tmp_path / "d/tokens.json"
    good = file.read_bytes()
    file.write_bytes(DAMAGES[what](good))
    view = FolderView.of(tmp_path / "d", console={"port": 0} | people.ANN)
    async with Console(view).serving() as url:
        for _ in range(2 * WRONG):
            assert (await ask(url, **ann))[0] == 503
        own = (tmp_path / "d" / local_token.name(int(url.rpartition(":")[2]))).read_text()
        assert (await ask(url, Authorization=f"Bearer {own}"))[0] == 200
        file.write_bytes(good)
        assert (await ask(url, **ann))[0] == 200


def test_a_registry_that_is_damaged_throws_no_node_out_and_is_paged(tmp_path: Path) -> None:
    """While the brain runs, and when it starts with it; who was let in stays heard. When it is whole, a node can join again."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "2")
        whole.join("gpu-1", token)
        kit.start_heard(whole, "gpu-1")
        registry = whole.data / "cell/registry.json"
        good = registry.read_bytes()

        def told() -> bool:
            causes = [one["cause"] for one in whole.status().get("troubles", ())]
            return "registry_unreadable" in causes

        registry.write_bytes(good[:-1])
        whole.until(told, "people are told")
        assert "gpu-1" in (whole.data / "nats/nats.conf").read_text()
        assert "restore it" in whole.join("gpu-2", token, status=1)
        whole.stop_brain()
        registry_now = registry.read_bytes()
        whole.start_brain()
        whole.until(lambda: whole.beat_age_s("gpu-1") < 5, "gpu-1 is heard by the new run")
        whole.until(told, "people are told by the new run")
        assert registry.read_bytes() == registry_now
        registry.write_bytes(good)
        whole.until(lambda: not told(), "it is over")
        whole.join("gpu-2", token)
        kit.start_heard(whole, "gpu-2")
        assert whole.beat_age_s("gpu-1") < 5
