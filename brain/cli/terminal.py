"""What the command line writes to a terminal."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click
from rich.cells import cell_len
from rich.console import Console

from agent.contract.inert import inert, inert_json

WAITS = 3  # exit status of a command that waits for a second person: nothing has happened yet
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]")
_STOPS = "\u3001\u3002\uff0c\uff1b\uff1a\uff1f\uff01\uff09\u300b\u201d"  # begin no line
# What stands together in a line, and whether a blank stands before it: a wide character with the stops behind it, or a word.
_PIECES = re.compile(rf"(\s*)({_WIDE.pattern}[{_STOPS}]*|(?:(?!{_WIDE.pattern})\S)+[{_STOPS}]*)")
_LEAST, _NARROW = 20, 2  # columns that a text needs beside its head, and its indent below it
WIDTH = 100  # columns: the most that is comfortable to read, and what a pipe gets


def _faithful(ctx: click.Context, _: click.Parameter, plain: bool) -> bool:
    if plain and ctx.obj is not None:
        ctx.obj = ctx.obj.at(faithful=True)
    return plain


as_json = click.option("--json", "plain", is_flag=True, callback=_faithful, help="JSON, for scripts.")


def print_json(value: Any, indent: int | None = 2) -> None:
    """Prints JSON that means exactly the value, and does nothing to a terminal."""
    click.echo(inert_json(json.dumps(value, indent=indent, ensure_ascii=False)))


def waits(answer: Mapping[str, Any], *, plain: bool) -> NoReturn:
    """Ends a command to which a second person must agree (console.two_persons)."""
    if plain:
        print_json(answer)
    else:
        click.echo(answer["waiting"])
    raise click.exceptions.Exit(WAITS)


def console() -> Console:
    """Returns the terminal for tables; `[red]` and `:bomb:` in a name are letters."""
    return Console(markup=False, emoji=False, highlight=False)


def page_width() -> int:
    """Returns the columns of a line: those of the terminal, at most WIDTH."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 40)).columns)


def hanging(head: str, text: str, width: int, *, below: str | None = None) -> Iterator[str]:
    """Yields inert text behind its head, wrapped with a hanging indent; long words (ids, paths) are not broken.

    `below`: what the other lines begin with; default: blanks as wide as the head. Where too few columns are left beside the
    head, the text stands below it.
    """
    indent = " " * cell_len(head) if below is None else below
    if width - max(cell_len(head), cell_len(indent)) >= _LEAST:
        lines = list(_wrapped(inert(text), width - cell_len(indent), first=width - cell_len(head))) or [""]
        yield head + lines[0]
        yield from (indent + line for line in lines[1:])
        return
    if head.strip():
        yield head.rstrip()
    for line in _wrapped(inert(text), max(1, width - _NARROW)):
        yield " " * _NARROW + line


def _wrapped(text: str, columns: int, *, first: int | None = None) -> Iterator[str]:
    """Yields lines of so many columns; the first one may have others. Chinese takes two for a character, breaks between any
    two, and has no blanks within.
    """
    line, room = "", columns if first is None else first
    for blank, piece in _PIECES.findall(text):
        within = bool(line) and (line[-1] in _STOPS or (_WIDE.match(line[-1]) and _WIDE.match(piece)))
        gap = "" if not line or within else blank if blank.strip(" ") == "" else " "
        if line and cell_len(line + gap + piece) > room:
            yield line
            line, room = piece, columns
        else:
            line += gap + piece
    if line:
        yield line
