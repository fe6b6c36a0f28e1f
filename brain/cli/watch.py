"""`gpuward watch`: shows incidents and notes as they happen; plain lines when the output is not a terminal."""

import errno
import os
import sys
import time
from collections import deque
from typing import Any

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from brain.cli.client import Client, for_client
from brain.cli.queries import IncidentList, clock
from brain.cli.terminal import as_json, console, print_json

RECONNECT_S = 1.0
_SHOWN = 15  # notes under the table


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

    If the output is not a terminal: one line for each note (--json: JSON lines).
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
    for note in client.watch(last):
        if note is not None:
            print_json(note, None) if plain else click.echo(line(note))
    click.echo("the brain closed the connection", err=True)


def _screen(client: Client, last: int) -> None:
    notes: deque[dict[str, Any]] = deque(maxlen=_SHOWN)
    with Live(console=console(), screen=True, auto_refresh=False) as live:
        while True:
            try:
                incidents = client.get("incidents")["incidents"]
                for note in client.watch(last):
                    if note is not None:
                        notes.append(note)
                        if note["incident"] or note["run"]:
                            incidents = client.get("incidents")["incidents"]
                    live.update(_view(incidents, notes), refresh=True)
                last = 0
            except click.ClickException as error:
                live.update(Text(error.message), refresh=True)
            time.sleep(RECONNECT_S)


def _view(incidents: list[dict[str, Any]], notes: deque[dict[str, Any]]) -> Group:
    head = Text(f"gpuward — {len(incidents)} open", "bold")
    body = IncidentList(incidents) if incidents else Text("nothing is open", "green")
    return Group(
        head, Text(), body, Text(), *(Text(line(note), no_wrap=True, overflow="ellipsis") for note in notes)
    )


def line(note: dict[str, Any]) -> str:
    """Formats a note as one line."""
    where = f" {note['incident'] or note['scope']}" if note["incident"] or note["scope"] else ""
    return f"{clock(note['at'])[6:14]} {note['kind']}{where}: {' '.join(note['text'].split())}"
