"""Two people take the same page at once: both words stand on the log before either is handled. One has it, one hears who."""

from typing import Any

from brain.core.context import Context
from brain.core.effects import Note
from brain.core.inputs import OperatorCommand
from brain.core.operators import commands
from tests.brain.core.pager import Pager

STORM: dict[str, Any] = {"group_at_least": 2, "group_within_s": 30}


def says(it: Pager, who: str, id_: str) -> list[tuple[str, str]]:
    """(kind, text) of what came of an acknowledgement."""
    notes: list[tuple[str, str]] = []

    def say(ctx: Context) -> None:
        commands.handle(ctx, OperatorCommand(id=f"of-{who}", who=who, verb="ack", args={"id": id_}))
        notes.extend((one.kind, one.text) for one in ctx.effects if isinstance(one, Note))

    it.handles(say)
    return notes


def test_the_second_is_refused_by_the_name_of_the_first() -> None:
    """Two people who both believe that they have it are none."""
    it = Pager()
    (incident,) = it.opens("a")
    assert says(it, "ann", "a")[0] == ("page.acked", "acknowledged by ann")
    refused = "ben: ack id=a: ann took it before: nobody is called again"
    assert says(it, "ben", "a") == [("operator.refused", refused)]
    assert incident.pages.acked_by == "ann"


def test_whoever_has_it_may_say_so_again() -> None:
    """It changes nothing, and is no mistake."""
    it = Pager()
    it.opens("a")
    says(it, "ann", "a")
    assert says(it, "ann", "a") == []


def test_an_alert_group_is_taken_as_long_as_something_of_it_is_left() -> None:
    """The rest of it is theirs; of one that others have whole they are told so."""
    it = Pager(**STORM)
    it.opens("a", "b", "c")  # of these `a` has a page of its own
    group = it.group.id
    says(it, "ann", "b")
    assert [kind for kind, _ in says(it, "ben", group)] != ["operator.refused"]
    refused = f"cleo: ack id={group}: ann and ben took it before: nobody is called again"
    assert says(it, "cleo", group) == [("operator.refused", refused)]
    assert says(it, "ben", group) == []
