"""`gpuward watch` on a terminal: what is open and the newest notes, whatever the size of the terminal."""

import io
from collections.abc import Iterator
from typing import Any

import click
import pytest
from rich.console import Console

from brain.cli import watch
from brain.cli.client import NotLetIn
from brain.cli.watch import Screen


def incident(number: int) -> Any:
    """An open incident, as the console gives it."""
    return {
        "id": f"inc-{number:08}", "severity": "P1", "state": "needs_human", "opened_at": "2026-01-31T12:00:00Z",
        "cause": "gpu-lost", "scope": f"gpu/n{number}/0000:3b:00", "nodes": 1, "runs": [],
        "pages": {"acked_by": ""},
    }  # fmt: skip


def note(number: int) -> Any:
    """A note, the newer the higher its number."""
    text = f"note {number:03} of something that happened on a node, in more words than a narrow terminal has room for"
    return {"at": "2026-01-31T12:00:00Z", "kind": "page.sent", "incident": "", "scope": "", "text": text}


def shown(columns: int, rows: int, incidents: int, notes: int) -> list[str]:
    """The lines on the terminal."""
    screen = Screen(
        [incident(number) for number in range(incidents)], [note(number) for number in range(notes)]
    )
    terminal = Console(
        width=columns, height=rows, file=io.StringIO(), markup=False, emoji=False, highlight=False
    )
    lines = terminal.render_lines(screen, terminal.options.update(height=rows), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines][:rows]


@pytest.mark.parametrize(
    ("columns", "rows", "incidents"),
    [
        (100, 24, 0),
        (100, 24, 7),
        (100, 24, 11),
        (40, 24, 7),
        (40, 24, 11),
        (40, 24, 300),
        (100, 10, 11),
        (200, 60, 20),
    ],
)
def test_the_newest_notes_are_seen(columns: int, rows: int, incidents: int) -> None:
    """They take a third of the terminal at least, and what the incidents leave. The last line is the newest note."""
    lines = shown(columns, rows, incidents, 50)
    assert len(lines) == rows
    told = [one for one in lines if "note" in one]
    assert "note 049" in told[-1]
    assert lines[-1] == told[-1]
    assert [one.partition("note ")[2][:3] for one in told] == [
        f"{number:03}" for number in range(50 - len(told), 50)
    ]
    assert len(told) >= round((rows - 3) / 3)


def test_incidents_that_do_not_fit_are_counted() -> None:
    """None is there by half, and the line names the command that shows all."""
    lines = shown(40, 24, 11, 10)
    there = sum("inc-" in line for line in lines)
    assert f"and {11 - there} more: gpuward incidents" in lines
    assert sum("gpu-lost at" in line for line in lines) == there
    assert there == 4


def test_incidents_take_what_the_notes_leave() -> None:
    """One note needs one line."""
    lines = shown(100, 24, 15, 1)
    assert sum("inc-" in line for line in lines) == 15
    assert not [line for line in lines if "more" in line.split()[:3]]


def test_a_quiet_site() -> None:
    """It says that nothing is open."""
    assert shown(100, 24, 0, 0)[:3] == ["gpuward — 0 open", "", "nothing is open"]


@pytest.mark.parametrize("columns", [20, 24, 30, 39])
def test_no_identifier_is_cut(columns: int) -> None:
    """However narrow: it is what a person types next."""
    screen = Screen([], [note(at) | {"incident": f"inc-7kq2m4x{at}"} for at in range(3)])
    terminal = Console(width=columns, height=24, file=io.StringIO(), markup=False, emoji=False)
    lines = terminal.render_lines(screen, terminal.options.update(height=24), pad=False)
    text = "\n".join("".join(segment.text for segment in one).rstrip() for one in lines)
    assert [at for at in range(3) if f"inc-7kq2m4x{at}" not in text] == []
    assert max(map(len, text.splitlines())) <= columns


class Flaky:
    """A client whose connections end; what it was asked for, and what it answers each time."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[tuple[int, str]] = []
        self._answers = iter(answers)

    def watch(self, last: int, after: str = "") -> Iterator[tuple[str, Any]]:
        """The next answer."""
        self.asked.append((last, after))
        answer = next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        yield from answer


def test_lines_go_on_when_the_connection_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From where they were; that the brain is away is said once, also when it is for long, and once more the next time."""
    monkeypatch.setattr(watch, "RECONNECT_S", 0)
    away = click.ClickException("no brain answers")
    client = Flaky([("p1", note(1))], away, away, [("p2", note(2))], away, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        watch._lines(client, 5, plain=False)  # type: ignore[arg-type]
    said = capsys.readouterr()
    assert [line.partition(" of")[0].rpartition("note ")[2] for line in said.out.splitlines()] == [
        "001",
        "002",
    ]
    assert client.asked == [(5, ""), (5, "p1"), (5, "p1"), (5, "p1"), (5, "p2"), (5, "p2")]
    assert said.err.splitlines() == ["the brain has ended the connection: goes on when it answers again"] * 2


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([click.ClickException("no brain answers")], id="it has never answered"),
        pytest.param([[("p1", None)], NotLetIn("revoked", 401)], id="it lets nobody in any more"),
    ],
)
def test_lines_end_where_waiting_is_of_no_use(answers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A script learns it by the exit status."""
    monkeypatch.setattr(watch, "RECONNECT_S", 0)
    with pytest.raises(click.ClickException):
        watch._lines(Flaky(*answers), 5, plain=True)  # type: ignore[arg-type]
