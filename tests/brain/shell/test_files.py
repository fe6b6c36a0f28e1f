"""What the brain keeps on disk: snapshot, read model, quarantine."""

import copy
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent import __version__
from brain.adapters import readmodel
from brain.adapters import snapshot as snapshots
from brain.adapters.quarantine import Quarantine
from brain.adapters.readmodel import ReadModel
from brain.adapters.snapshot import Snapshots
from brain.core.effects import Note
from brain.core.pack.spec import Mode
from brain.core.state import Incident, IncidentState
from tests.brain.world import GPU, Story, pack


def story() -> Story:
    """An engine in the middle of things: incidents, a run, holds, modes, pages, timers."""
    told = Story(pack(Mode.APPROVE), undelivered=1)
    told.event(1, "gpu.xid", GPU, code=79)
    told.event(2, "link.state", "link/eth0", up=False)
    told.say(3, "hold", scope="node/n2", why="mine")
    told.say(4, "mode", runbook="bounce", mode="auto", nodes="n*")
    told.time.run(30)
    assert told.engine.state.incidents
    assert told.engine.state.runs
    return told


def test_a_snapshot_gives_back_exactly_the_state(tmp_path: Path) -> None:
    """Every incident, run, timer and hold; and for the same log only."""
    state = story().engine.state
    kept = Snapshots(tmp_path / "s")
    kept.write(snapshots.dump(state), 17, "log-1")
    found = kept.load("log-1")
    assert (found.seq, found.why) == (17, "")
    read = found.state
    assert read is not None
    assert snapshots.dump(read) == snapshots.dump(state)
    assert read.incidents == state.incidents
    assert read.timers == state.timers


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda raw: raw[: len(raw) // 2], "damaged"),
        (lambda raw: raw.replace(b'"epoch":1', b'"epoch":7'), "damaged"),
        (lambda raw: raw[7:], "damaged"),
        (lambda raw: raw[:0], "damaged"),
        (lambda raw: raw.replace(b'"format":1', b'"format":2'), "of a newer version"),
        (lambda raw: unchecked(raw).replace(b'"log":"log-1"', b'"log":"log-0"'), "damaged"),
        (lambda raw: of_the_first(raw).replace(b'"log":"log-1"', b'"log":"log-0"'), "another log"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_moved_away(tmp_path: Path, spoil: object, says: str) -> None:
    """It is kept for whoever investigates, and the log is read again."""
    kept = Snapshots(tmp_path / "s")
    kept.write(snapshots.dump(story().engine.state), 17, "log-1")
    raw = (tmp_path / "s").read_bytes()
    spoilt = spoil(raw)  # type: ignore[operator]
    assert spoilt != raw
    (tmp_path / "s").write_bytes(spoilt)
    found = kept.load("log-1")
    assert (found.state, found.seq) == (None, 0)
    assert says in found.why
    assert not (tmp_path / "s").exists()
    assert [path.name for path in tmp_path.glob("s.*")]


def of_the_first(raw: bytes) -> bytes:
    """A snapshot of 0.1, whose heads have no check."""
    return re.sub(rb'"version":"[^"]*"', b'"version":"0.1.0"', unchecked(raw), count=1)


def unchecked(raw: bytes) -> bytes:
    """A snapshot of which the head has no check."""
    return re.sub(rb',"head":"[0-9a-f]{64}"', b"", raw, count=1)


def of_version(kept: Path, version: bytes, **head: bytes) -> None:
    """As if another version had written it."""
    raw = unchecked(kept.read_bytes()).replace(
        b'"version":"' + __version__.encode(), b'"version":"' + version
    )
    for key, value in head.items():
        raw = re.sub(b'"' + key.encode() + rb'":\d+', b'"' + key.encode() + b'":' + value, raw, count=1)
    kept.write_bytes(raw)


def test_a_snapshot_outlives_the_version_that_wrote_it(tmp_path: Path) -> None:
    """What was open and held stays so over an upgrade. What the earlier version wrote is kept, to go back to."""
    state = story().engine.state
    Snapshots(tmp_path / "s").write(snapshots.dump(state), 17, "log-1")
    of_version(tmp_path / "s", b"0.1.9")
    upgraded = Snapshots(tmp_path / "s")
    found = upgraded.load("log-1")
    assert (found.seq, found.why) == (17, "")
    assert found.state is not None
    assert found.state.incidents == state.incidents
    upgraded.write(snapshots.dump(state), 18, "log-1")
    upgraded.write(snapshots.dump(state), 19, "log-1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "s.of-0.1.9"]
    assert b'"seq":17' in (tmp_path / "s.of-0.1.9").read_bytes()


def test_who_goes_back_to_an_earlier_version_has_the_snapshot_of_that_time(tmp_path: Path) -> None:
    """The newer version's is of a format that this one does not know: it goes on from what it left itself, and reads the log."""
    state = story().engine.state
    Snapshots(tmp_path / "s").write(snapshots.dump(state), 17, "log-1")
    (tmp_path / "s").rename(tmp_path / f"s.of-{__version__}")
    Snapshots(tmp_path / "s").write(snapshots.dump(state), 40, "log-1")
    of_version(tmp_path / "s", b"9.0.0", format=b"99")
    found = Snapshots(tmp_path / "s").load("log-1")
    assert found.seq == 17
    assert found.why == (
        f"the snapshot was of a newer version of gpuward (9.0.0), moved to s.newer: s.of-{__version__} is used"
    )


def test_only_the_newest_earlier_snapshots_are_kept(tmp_path: Path) -> None:
    """Two versions back."""
    state = story().engine.state
    for number in range(4):
        Snapshots(tmp_path / "s").write(snapshots.dump(state), number, "log-1")
        of_version(tmp_path / "s", b"0.0.%d" % number)
        if number:
            os.utime(tmp_path / f"s.of-0.0.{number - 1}", (number, number))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "s.of-0.0.1", "s.of-0.0.2"]


def test_the_copy_in_nats_is_taken_where_it_is_newer(tmp_path: Path) -> None:
    """Or where there is no other; of another log it is none."""
    state = story().engine.state
    copy = snapshots.packed(snapshots.dump(state), 30, "log-1")
    kept = Snapshots(tmp_path / "s")
    found = kept.load("log-1", copy)
    assert (found.seq, found.why) == (30, "there is no snapshot: the copy in NATS is used")
    kept.write(snapshots.dump(state), 17, "log-1")
    assert kept.load("log-1", copy).seq == 30
    kept.write(snapshots.dump(state), 31, "log-1")
    assert kept.load("log-1", copy).seq == 31
    assert kept.load("log-1", b"nonsense").seq == 31
    (tmp_path / "s").unlink()
    assert kept.load("log-2", copy).state is None


def write(model: ReadModel, told: Story) -> None:
    """Each note at a place of its own on the log, incidents and runs with the last."""
    for seq, note in enumerate(told.time.notes, 1):
        model.write(seq, [(seq, note)])
    model.write(len(told.time.notes), (), told.time.incidents.values(), told.time.runs.values())


def test_the_read_model_made_again_is_the_same(tmp_path: Path) -> None:
    """Written once, twice, or again after its file was lost: the same rows."""
    told = story()
    for name in ("a", "b"):
        model = ReadModel(tmp_path / name)
        model.begin("log-1")
        write(model, told)
        if name == "b":
            write(model, told)
        model.close()
    (tmp_path / "c").write_bytes(b"this is no database, but long enough to be taken for one" * 20)
    broken = ReadModel(tmp_path / "c")
    broken.begin("log-1")
    write(broken, told)
    broken.close()
    views = []
    for name in ("a", "b", "c"):
        model = ReadModel(tmp_path / name)
        incidents = model.incidents(open_only=False)
        views.append(
            (
                incidents,
                [model.runs_of(one["id"]) for one in incidents],
                [model.notes_of(one["id"]) for one in incidents],
                model.newest_notes(1000),
            )
        )
        assert model.position("log-1") == len(told.time.notes)
        assert model.position("log-2") == 0, "a place on another log means nothing"
        model.close()
    assert views[0] == views[1] == views[2]
    assert views[0][0]


def test_incidents_are_found_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    """As far as only one begins so."""
    told = story()
    model = ReadModel(tmp_path / "a")
    write(model, told)
    known = list(told.time.incidents)
    assert len(known) > 1
    assert model.incident(known[0][:8]) == model.incident(known[0])
    assert model.incident("inc-") is None, "ambiguous"
    assert model.incident("%") is None
    model.close()


def test_of_more_incidents_than_are_listed_every_node_has_some(tmp_path: Path) -> None:
    """The newest of one node do not hide an older one of another; what is over comes after what is open."""
    told = story()
    model = ReadModel(tmp_path / "a")
    one = next(iter(told.engine.state.incidents.values()))
    kept = [replace(one, id=f"inc-{number:03}", node="n9", opened_at=1000.0 + number) for number in range(50)]
    kept.append(replace(one, id="inc-honest", node="n2", opened_at=5.0))
    kept.append(replace(one, id="inc-over", node="n3", opened_at=9000.0, state=IncidentState.CLOSED))
    model.write(1, (), kept)
    listed = [row["id"] for row in model.incidents(open_only=False, limit=30)]
    assert listed == [f"inc-{number:03}" for number in range(49, 20, -1)] + ["inc-honest"]
    assert [row["id"] for row in model.incidents(open_only=False)][:2] == ["inc-over", "inc-049"]
    model.close()


def test_after_a_replay_by_other_code_the_engine_is_right(tmp_path: Path) -> None:
    """What it does not know any more is closed with a reason; what it has is shown."""
    told = story()
    model = ReadModel(tmp_path / "a")
    write(model, told)
    new = copy.deepcopy(next(iter(told.engine.state.incidents.values())))
    old, new.id = new.id, "inc-new"
    model.reconcile([new], [], "not known any more", 99.0)
    assert [one["id"] for one in model.incidents(open_only=True)] == ["inc-new"]
    gone = model.incident(old)
    assert gone is not None
    assert (gone["state"], gone["closed_why"]) == ("closed", "not known any more")
    model.note(Note(id="x", at=1.0, kind="brain.test", text="hello"))
    assert model.newest_notes(1)[0]["text"] == "hello"
    model.close()


def test_an_input_that_crashes_the_brain_twice_is_quarantined(tmp_path: Path) -> None:
    """Real crashes: a process is killed by SIGKILL while it handles input 7; the marker outlives it."""
    program = (
        "import os,sys,signal\nfrom pathlib import Path\nfrom brain.adapters.quarantine import Quarantine\n"
        "quarantine = Quarantine(Path(sys.argv[1]), 'log-1')\n"
        "for seq in range(5, 9):\n"
        "    if seq in quarantine.quarantined: continue\n"
        "    quarantine.begin(seq)\n"
        "    if seq == 7: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    quarantine.end()\n"
    )
    ends = [
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=Path.cwd(), timeout=60).returncode
        for _ in range(3)
    ]
    assert ends == [-signal.SIGKILL, -signal.SIGKILL, 0]
    quarantine = Quarantine(tmp_path, "log-1")
    assert quarantine.quarantined == {7}
    quarantine.close()
    other = Quarantine(tmp_path, "log-2")
    assert other.quarantined == frozenset(), "a position on another log is another input"
    other.close()


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"log": "log-1", "crashes": {"x": 1}}', b"\xff"])
def test_a_damaged_ledger_of_crashes_counts_from_zero(tmp_path: Path, content: bytes) -> None:
    """It must not keep the brain from starting."""
    (tmp_path / "quarantine.json").write_bytes(content)
    (tmp_path / "handling.mark").write_bytes(b"x")
    quarantine = Quarantine(tmp_path, "log-1")
    assert quarantine.quarantined == frozenset()
    quarantine.close()


def test_what_an_older_version_quarantined_stays_so(tmp_path: Path) -> None:
    """An upgrade reads the whole log again: the input that crashed the brain is on it, and must not get its chance."""
    (tmp_path / "deaths.json").write_bytes(b'{"log": "log-1", "deaths": {"7": 2, "8": 1}}')
    quarantine = Quarantine(tmp_path, "log-1")
    assert quarantine.quarantined == {7}
    assert quarantine.count_crash(8) == 2
    quarantine.close()
    again = Quarantine(tmp_path, "log-1")
    assert again.quarantined == {7, 8}
    again.close()


def test_a_node_with_many_incidents_loses_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are over are bounded, and who has few keeps them; what is open stays."""
    monkeypatch.setattr(readmodel, "KEEP_OVER", 100)
    told = story()
    one = next(iter(told.engine.state.incidents.values()))
    model = ReadModel(tmp_path / "a")

    def show(node: str, number: int, state: IncidentState) -> Incident:
        found = copy.deepcopy(one)
        found.id, found.node, found.state, found.opened_at = f"{node}-{number}", node, state, float(number)
        return found

    honest = [show("n1", number, IncidentState.CLOSED) for number in range(5)]
    still_open = [show("n2", -number, IncidentState.OPEN) for number in range(1, 5)]
    model.write(1, (), honest + still_open)
    model.write(
        2, (), [show("liar", 10 + number, IncidentState.CLOSED) for number in range(readmodel._CHECK_EVERY)]
    )
    kept = [row["id"] for row in model.incidents(open_only=False, limit=9999)]
    assert len(kept) == 104
    assert {row.id for row in honest + still_open} <= set(kept)
    assert f"liar-{9 + readmodel._CHECK_EVERY}" in kept, "its newest"
    model.close()
