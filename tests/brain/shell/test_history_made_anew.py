"""A history that is made from the log again keeps what stands nowhere else."""

from pathlib import Path

from brain.adapters.readmodel import ReadModel
from brain.core.effects import Note


def note(id_: str, kind: str) -> Note:
    """Of no incident."""
    return Note(id=id_, at=1000.0, kind=kind, text="as it was told")


def test_what_the_brain_itself_has_noted_outlives_a_history_that_is_made_anew(tmp_path: Path) -> None:
    """Who logged in, what was left to send: no log has it. What inputs caused comes from the log once more."""
    model = ReadModel(tmp_path / "history.sqlite")
    model.begin("log-1")
    model.write(1, [(1, note("l:1#0", "leader"))])
    model.note(note("brain:b1:7", "operator.unsent"))
    model.clear()
    model.begin("log-1")
    assert model.position("log-1") == 0
    model.write(1, [(1, note("l:1#0", "leader"))])
    assert sorted(one["kind"] for one in model.newest_notes(10)) == ["leader", "operator.unsent"]
    model.close()
