"""What people write down about an incident stands in the audit, and decides nothing."""

import copy

import pytest

from brain.core.effects import Note
from brain.core.inputs import OperatorCommand
from brain.core.operators import commands
from tests.brain.core.cell import Cell


def said(cell: Cell, **args: str) -> list[tuple[str, str, str, str]]:
    """(kind, text, incident, scope) of what came of a note."""
    ctx = cell.ctx()
    commands.handle(ctx, OperatorCommand(id="s:1", who="ann", verb="note", args=args))
    return [(one.kind, one.text, one.incident, one.scope) for one in ctx.effects if isinstance(one, Note)]


def test_a_note_stands_with_its_incident_and_changes_nothing() -> None:
    cell = Cell()
    (incident,) = cell.state.incidents.values()
    before = copy.deepcopy(cell.state)
    for named in (incident.id, f"{incident.id}.r1"):
        assert said(cell, id=named, text="the riser is loose") == [
            ("operator.note", "ann: the riser is loose", incident.id, incident.scope)
        ]
    assert cell.state == before


def test_what_is_over_can_be_written_about() -> None:
    """The engine forgets closed incidents; their history is kept."""
    assert said(Cell(), id="inc-gone", text="card replaced") == [
        ("operator.note", "ann: card replaced", "inc-gone", "")
    ]


@pytest.mark.parametrize("args", [{"id": "inc-1"}, {"text": "x"}, {"id": "hold-1", "text": "x"}, {}])
def test_a_note_about_nothing_is_refused(args: dict[str, str]) -> None:
    ((kind, text, *_),) = said(Cell(), **args)
    assert kind == "operator.refused"
    assert "a note needs an incident and a text" in text
