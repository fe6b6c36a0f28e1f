"""A click group that imports a command only when it is used, so that `gpuward --help` does not wait for pydantic."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from gettext import gettext

import click
from click.shell_completion import CompletionItem

from agent.shared.words import language, t


@dataclass(frozen=True, slots=True, kw_only=True)
class Lazy:
    """How to import a command, and its line in the list of commands."""

    load: Callable[[], click.Command]
    help: str


def lazy(place: str, text: str) -> Lazy:
    """Returns the lazy command at `module:name`."""

    def load() -> click.Command:
        module, _, attribute = place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} is not a command")
        return command

    return Lazy(load=load, help=text)


class LazyGroup(click.Group):
    """A group over a table of lazy commands."""

    def __init__(
        self, name: str, commands: Mapping[str, Lazy], *, options: click.Command, summary: str
    ) -> None:
        super().__init__(name=name, callback=options.callback, params=options.params, help=summary)
        self._lazy = dict(commands)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Returns the names in the order of the table."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Imports the command."""
        found = self._lazy.get(cmd_name)
        if found is None:
            return None
        command = found.load()
        if language() == "en":
            return command
        from brain.cli.language import in_language

        return in_language(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the name of a command from the table, and the options."""
        names = [
            CompletionItem(name, help=t(one.help))
            for name, one in self._lazy.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Writes the list from the table, without importing the commands."""
        with formatter.section(gettext("Commands")):
            formatter.write_dl([(name, t(one.help)) for name, one in self._lazy.items()])
