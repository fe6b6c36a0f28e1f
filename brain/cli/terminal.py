"""What the command line writes to a terminal."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click
from rich.console import Console

from agent.contract.inert import inert, inert_json

WAITS = 3  # exit status of a command that waits for a second person: nothing has happened yet
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


def hanging(head: str, text: str, width: int) -> Iterator[str]:
    """Yields inert text behind its head, wrapped with a hanging indent; long words (ids, paths) are not broken."""
    lines = textwrap.wrap(
        " ".join(inert(text).split()),
        max(20, width - len(head)),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
    yield head + lines[0]
    for line in lines[1:]:
        yield " " * len(head) + line
