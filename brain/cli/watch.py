"""`gpuward watch`: shows incidents and notes as they happen; plain lines when the output is not a terminal."""

import errno
import os
import sys
import time
from collections import deque

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from agent.shared.words import t
from brain.cli.answers import IncidentJson, NoteJson
from brain.cli.client import Client, NotLetIn, for_client
from brain.cli.queries import IncidentList, clock
from brain.cli.terminal import as_json, console, hanging, print_json

RECONNECT_S = 1.0
_KEPT = 100  # notes, for a tall terminal
_NOTES = 1 / 3  # of the lines that are left to the notes, however many incidents are open


@click.command()
@click.option(
    "--last",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="How many past notes to begin with.",
)
@as_json
@for_client
def watch(client: Client, last: int, plain: bool) -> None:
    """Incidents and notes as they happen, until Ctrl-C.

    If the output is not a terminal: one line for each note (--json: JSON lines). It goes on where it was when a connection ends.
    """
    try:
        if plain or not sys.stdout.isatty():
            _lines(client, last, plain)
        else:
            _screen(client, last)
    except KeyboardInterrupt:
        return
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        os._exit(0)  # whoever read it has gone, and what is left in the buffer cannot be written either


def _lines(client: Client, last: int, plain: bool) -> None:
    """Goes on when the connection ends, from where it was: said once on standard error, as long as nothing comes again. A brain
    that has never answered, or lets nobody in any more, is an error.
    """
    at, told = "", False
    while True:
        why = t("the brain has ended the connection")
        try:
            for where, note in client.watch(last, at):
                if where:
                    at, told = where, False
                if note is not None:
                    print_json(note, None) if plain else click.echo(line(note))
        except NotLetIn:
            raise
        except click.ClickException as error:
            if not at:
                raise
            why = error.message
        if not told:
            click.echo(t("{why}: goes on when it answers again", why=why), err=True)
            told = True
        time.sleep(RECONNECT_S)  # a brain that starts is not asked without end


def _screen(client: Client, last: int) -> None:
    notes: deque[NoteJson] = deque(maxlen=_KEPT)
    at = ""  # where the watch goes on after a connection is lost
    with Live(console=console(), screen=True, auto_refresh=False) as live:
        while True:
            try:
                incidents = client.get("incidents")["incidents"]
                for where, note in client.watch(last, at):
                    at = where
                    if note is not None:
                        notes.append(note)
                        if note["incident"] or note["run"]:
                            incidents = client.get("incidents")["incidents"]
                    live.update(Screen(incidents, list(notes)), refresh=True)
            except click.ClickException as error:
                live.update(Text(error.message), refresh=True)
            time.sleep(RECONNECT_S)


class Screen:
    """What is open, and below it the newest notes: as much of both as the terminal has lines for."""

    def __init__(self, incidents: list[IncidentJson], notes: list[NoteJson]) -> None:
        self._incidents, self._notes = incidents, notes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.height
        yield Text(t("gpuward — {incidents} open", incidents=len(self._incidents)), "bold")
        yield Text()
        room = height - 3
        notes = [note_lines(note, options.max_width) for note in self._notes]
        for_notes = min(sum(map(len, notes)), max(1, round(room * _NOTES)))
        shown = self._fitting(console, options, room - for_notes)
        yield (
            IncidentList(self._incidents[:shown]) if self._incidents else Text(t("nothing is open"), "green")
        )
        if more := len(self._incidents) - shown:
            yield Text(t("and {more} more: gpuward incidents", more=more), "dim")
        yield Text()
        left = room - self._lines(console, options, shown)
        newest: list[str] = []
        while notes and len(newest) + len(notes[-1]) <= left:
            newest = notes.pop() + newest
        for one in newest:
            yield Text(one, no_wrap=True, overflow="ellipsis")

    def _fitting(self, console: Console, options: ConsoleOptions, room: int) -> int:
        """How many incidents fit into so many lines."""
        shown = min(len(self._incidents), max(0, room))
        while shown and self._lines(console, options, shown) > room:
            shown -= 1
        return shown

    def _lines(self, console: Console, options: ConsoleOptions, shown: int) -> int:
        """How many lines the first incidents take, with the word about the others."""
        if not self._incidents:
            return 1
        lines = console.render_lines(IncidentList(self._incidents[:shown]), options.update(height=None))
        return len(lines) + (shown < len(self._incidents))


def line(note: NoteJson) -> str:
    """Formats a note as one line."""
    return f"{_head(note)} {' '.join(note['text'].split())}"


def note_lines(note: NoteJson, columns: int) -> list[str]:
    """Formats a note for a terminal: one line that may be cut in its text; where not even its identifier fits, more."""
    if cell_len(_head(note)) <= columns:
        return [line(note)]
    return list(hanging("", _head(note), columns, below=" "))


def _head(note: NoteJson) -> str:
    where = f" {note['incident'] or note['scope']}" if note["incident"] or note["scope"] else ""
    return f"{clock(note['at'])[6:14]} {note['kind']}{where}:"
