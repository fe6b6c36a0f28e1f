"""Operator commands: what can be said, and what comes of it."""

from pydantic import Field

from brain.console.api.base import Shape
from brain.console.api.incident_shapes import NoteShape
from brain.console.api.problems import ProblemShape


class SaidShape(Shape):
    """What came of a command."""

    id: str = Field(description="Of the command; empty: it waits for a second person.")
    seq: int = Field(description="Its position on the log.")
    by: str = Field(description="Under whose name it stands there.")
    handled: bool = Field(description="Has the brain handled it? If not: it is on the log, and will be.")
    refused: str = Field(description="Why it has no effect; empty: it has.")
    waiting: str = Field(description="What a second person must do; empty: nothing.")
    notes: list[NoteShape] = Field(description="What it has caused.")


class RefusedShape(ProblemShape):
    """A command that stands on the log, and has no effect."""

    id: str
    seq: int
    by: str
    handled: bool
    refused: str = Field(description="The same as `detail`.")
    waiting: str
    notes: list[NoteShape]
