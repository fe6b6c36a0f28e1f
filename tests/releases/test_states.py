"""What each released version left on disk and on the log is read by this one: nothing of it is forgotten, nothing unreadable."""

from pathlib import Path

import pytest

from brain.adapters.codec import Codec
from brain.adapters.snapshot import Snapshots, dump
from brain.core.engine import Engine
from brain.core.inputs import Malformed
from brain.core.pack.actions import ACTIONS
from brain.core.state import State
from tests.releases.kit import CELL, KEPT, KeptState, Logged, states, summary, versions

STATES = [
    pytest.param(kept, id=f"{version}-{kept.name}") for version in versions() for kept in states(version)
]


def read(engine: Engine, log: list[Logged]) -> list[str]:
    """Lets the engine handle a log; what could not be read."""
    codec, unread = Codec(CELL), []
    for seq, (now, subject, body) in enumerate(log, 1):
        given = codec.decode(subject, body, seq)
        if isinstance(given, Malformed) and "malformed" not in subject:
            unread.append(f"{subject}: {given.why}")
        engine.handle(given, now)
    return unread


def loaded(kept: KeptState, folder: Path) -> State:
    """The state, as a brain of this version takes it up."""
    (folder / "state.snapshot").write_bytes(kept.snapshot)
    found = Snapshots(folder / "state.snapshot").load(KEPT)
    assert found.why == ""
    assert found.state is not None
    return found.state


def test_each_version_that_was_released_is_kept() -> None:
    """Five states each, in which something is held and drained."""
    assert versions()[0] == "0.1.0"
    for version in versions():
        kept = states(version)
        assert len(kept) == 5
        assert all(one.summary["holds"] and one.summary["drains"] for one in kept)


@pytest.mark.parametrize("kept", STATES)
def test_a_state_of_each_version_is_taken_up(kept: KeptState, tmp_path: Path) -> None:
    """Incidents, runs, holds, drains and modes are those that it had; what follows on its log is read and handled."""
    state = loaded(kept, tmp_path)
    assert summary(state) == kept.summary
    engine = Engine(state, actions=ACTIONS)
    assert read(engine, list(kept.after)) == []
    dump(engine.state)
    engine.close()


@pytest.mark.parametrize("kept", STATES)
def test_a_log_of_each_version_is_read_from_its_beginning(kept: KeptState) -> None:
    """Nothing on it is unreadable; operators' holds, which no code decides, are those of that time."""
    engine = Engine(actions=ACTIONS)
    assert read(engine, list(kept.before)) == []
    assert summary(engine.state)["holds"] == kept.summary["holds"]
    engine.close()
