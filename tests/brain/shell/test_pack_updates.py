"""Which packs a leader publishes, on a log that is slower than the files."""

from types import SimpleNamespace
from typing import Any

from brain.core.pack.spec import Pack
from brain.leader.packs import PackUpdates


class Leader:
    """A leader whose log takes its time: what it publishes is in force when the test says so."""

    def __init__(self) -> None:
        self.published: list[str] = []
        self.replica = SimpleNamespace(state=SimpleNamespace(pack=None))
        self.leadership = SimpleNamespace(epoch=1, leads=lambda: True)
        nothing: Any = SimpleNamespace(write=lambda *_: None, clear=lambda *_: None, open=lambda *_: None)
        given: Any = SimpleNamespace(append_or_drop=lambda given: self.published.append(given.pack.version))
        replica: Any = self.replica
        leadership: Any = self.leadership
        self.updates = PackUpdates(
            watch=nothing, replica=replica, leadership=leadership, writer=given, notes=nothing, alerts=nothing
        )

    def finds(self, version: str) -> None:
        """The watch of the files finds this pack."""
        self.updates._take(pack(version))

    def comes_back(self, version: str) -> None:
        """The log has it."""
        self.replica.state.pack = pack(version)


def pack(version: str) -> Pack:
    """An empty one."""
    return Pack(version=version, symptoms=(), rules=(), runbooks=())


def test_what_was_published_is_not_published_again_before_it_comes_back() -> None:
    """The same content twice, e.g. after a SIGHUP."""
    leader = Leader()
    for version in ("a", "a"):
        leader.finds(version)
    leader.comes_back("a")
    leader.finds("a")
    assert leader.published == ["a"]


def test_a_change_that_is_taken_back_at_once() -> None:
    """The newest content of the files comes into force, not the one before it."""
    leader = Leader()
    leader.finds("a")
    leader.comes_back("a")
    leader.finds("b")
    leader.finds("a")
    assert leader.published == ["a", "b", "a"]


def test_a_new_epoch_asks_what_is_in_force() -> None:
    """What was published under the last lease may be lost."""
    leader = Leader()
    leader.finds("a")
    leader.leadership.epoch = 2
    leader.finds("a")
    leader.comes_back("a")
    leader.leadership.epoch = 3
    leader.finds("a")
    assert leader.published == ["a", "a"]
