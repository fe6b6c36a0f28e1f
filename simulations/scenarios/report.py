"""What came of scenarios, as data with stable keys and as lines for a terminal. Pure: the same scenario gives the same bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent.shared.words import many, t
from brain.cli.terminal import hanging
from brain.core.effects import Note
from simulations.scenarios.judge import StoryJudgement
from simulations.scenarios.scene import Scene
from simulations.scenarios.spec import Class

Judged = tuple[StoryJudgement, Scene]  # with the cell in which it was played
RIGHT, WRONG = "✔", "✘"
# The kinds of notes that make the course of a scenario.
_COURSE = ("incident.", "run.", "step.result", "page.sent", "operator.", "leader")
_LEFT_OUT = ("run.intent", "run.verifying", "run.looked", "incident.explained", "incident.explains")


def data(judged: Sequence[Judged]) -> dict[str, Any]:
    """All of it."""
    return {
        "right": sum(one.right for one, _ in judged),
        "scenarios": [
            {
                "name": one.tale.name,
                "right": one.right,
                "cause_right": one.cause_right,
                "place_right": one.place_right,
                "unmet": list(one.unmet),
                "incidents_seen": one.seen,
                "needless_steps": one.needless,
                "pages": one.pages,
                "what_happened": one.line,
                "course": list(_entries(scene)),
            }
            for one, scene in judged
        ],
    }


def _entries(scene: Scene) -> Iterator[dict[str, Any]]:
    for note in _course(scene):
        yield {
            "at_s": round(note.at - scene.start, 1),
            "kind": note.kind,
            "scope": note.scope,
            "text": note.text,
        }


def _course(scene: Scene) -> Iterator[Note]:
    for note in scene.log.notes:
        if note.kind.startswith(_COURSE) and note.kind not in _LEFT_OUT and note.at >= scene.start:
            yield note


def page(judged: Sequence[Judged], width: int) -> list[str]:
    """Lines for a terminal: of one scenario its whole course, of several a line each and what is not as expected."""
    lines: list[str] = []
    for one, scene in judged:
        if len(judged) == 1:
            lines += _whole(one, scene, width)
        else:
            lines += hanging(f"{RIGHT if one.right else WRONG} ", f"{one.tale.name}: {one.line}", width)
        lines += [line for text in one.unmet for line in hanging(f"  {WRONG} ", text, width)]
    right = sum(one.right for one, _ in judged)
    if len(judged) > 1 or right:
        lines.append(t("{right} of {all} as expected", right=right, all=many(len(judged), "scenario")))
    return lines


def _whole(one: StoryJudgement, scene: Scene, width: int) -> Iterator[str]:
    yield from hanging("", f"{one.tale.name}: {one.tale.what}", width)
    yield ""
    for note in _course(scene):
        at = round(note.at - scene.start)
        head = f"{at // 3600}:{at // 60 % 60:02}:{at % 60:02} {note.kind:20} "
        yield from hanging(head, f"{note.scope}: {note.text}" if note.scope else note.text, width)
    yield ""
    yield from hanging("", one.line, width)
    yield from hanging("", t("Expected, because: {why}", why=one.tale.why), width)


def listed(classes: Mapping[str, Class], width: int) -> Iterable[str]:
    """What there is, by class."""
    for name, one in classes.items():
        yield from hanging(
            f"{name:16}", f"{one.title}: {', '.join(tale.name for tale in one.stories)}", width
        )
