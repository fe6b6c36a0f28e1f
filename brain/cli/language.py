"""The command line in another language than English: its help, and how that is laid out."""

import copy
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from typing import TypeVar

import click

from agent.shared.columns import columns_of, wrapped
from agent.shared.words import language, t

_MOST, _GAP = 30, 2  # columns of the names of options, and behind them


class WideFormatter(click.HelpFormatter):
    """Lays out help by the columns that characters take."""

    def write_text(self, text: str) -> None:
        """As click's: paragraphs, of which those that begin with a line `\\b` keep their lines."""
        indent = " " * self.current_indent
        for number, paragraph in enumerate(cleandoc(text).split("\n\n")):
            self.write("\n" if number else "")
            kept = paragraph.startswith("\b\n")
            lines = paragraph.splitlines()[1:] if kept else wrapped(" ".join(paragraph.split()), self._room())
            for line in lines:
                self.write(f"{indent}{line}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = _MOST, col_spacing: int = _GAP
    ) -> None:
        """As click's: terms, and beside them what they mean."""
        rows = list(rows)
        widest = min(max((columns_of(term) for term, _ in rows), default=0), col_max) + col_spacing
        indent = " " * self.current_indent
        for term, text in rows:
            blanks = widest - columns_of(term)
            head = term + " " * blanks if blanks >= col_spacing else f"{term}\n{indent}{' ' * widest}"
            below = f"\n{indent}{' ' * widest}"
            lines = below.join(wrapped(text, max(10, self._room() - widest)))
            self.write(f"{indent}{head}{lines}".rstrip() + "\n")

    def _room(self) -> int:
        return max(self.width - self.current_indent, 11)


class WideContext(click.Context):
    """The context of commands whose help is laid out so."""

    formatter_class = WideFormatter


_Command = TypeVar("_Command", bound=click.Command)


def in_language(command: _Command) -> _Command:
    """Returns the command with all its help in the language that is spoken."""
    if language() == "en":
        return command
    own = copy.copy(command)
    own.context_class = WideContext
    own._help_option = None  # click keeps the first, with its text
    own.help = _help(command.help)
    own.short_help = _help(command.short_help)
    own.params = [_param(one) for one in command.params]
    if isinstance(own, click.Group):
        own.commands = {name: in_language(one) for name, one in own.commands.items()}
    return own


def helps(command: click.Command) -> Iterator[str]:
    """Every text of the help of a command and of those below it, in English."""
    for text in (command.help, command.short_help):
        yield from [cleandoc(text)] if text else []
    for one in command.params:
        if isinstance(one, click.Option) and one.help:
            yield one.help
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from helps(below)


def _help(text: str | None) -> str | None:
    return text and t(cleandoc(text))


def _param(one: click.Parameter) -> click.Parameter:
    if not isinstance(one, click.Option):
        return one
    own = copy.copy(one)
    own.help = _help(one.help)
    return own
