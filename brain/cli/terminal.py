"""What the command line writes to a terminal."""

import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click
from rich.console import Console

from agent.contract.inert import inert, inert_json
from agent.shared.columns import columns_of, wrapped

WAITS = 3  # exit status of a command that waits for a second person: nothing has happened yet
_LEAST, _NARROW = 20, 2  # columns that a text needs beside its head, and its indent below it
_LABEL = 12  # columns
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


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Text with blanks up to so many columns; Chinese takes two for a character."""
    blanks = " " * (columns - columns_of(text))
    return blanks + text if right else text + blanks


def hanging(head: str, text: str, width: int, *, below: str | None = None) -> Iterator[str]:
    """Yields inert text behind its head, wrapped with a hanging indent; long words (ids, paths) are not broken.

    `below`: what the other lines begin with; default: blanks as wide as the head. Where too few columns are left beside the
    head, the text stands below it.
    """
    indent = " " * columns_of(head) if below is None else below
    if width - max(columns_of(head), columns_of(indent)) >= _LEAST:
        lines = list(wrapped(inert(text), width - columns_of(indent), first=width - columns_of(head))) or [""]
        yield head + lines[0]
        yield from (indent + line for line in lines[1:])
        return
    if head.strip():
        yield head.rstrip()
    for line in wrapped(inert(text), max(1, width - _NARROW)):
        yield " " * _NARROW + line


def title(text: str) -> str:
    """A head line."""
    return click.style(text, fg="cyan", bold=True)


def labelled(label: str, text: str, width: int) -> Iterator[str]:
    """Yields `  label   text`, wrapped with a hanging indent."""
    yield from hanging(f"  {padded(label, _LABEL)} ", text, width)
