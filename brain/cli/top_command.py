"""`gpuward top`, as it is typed. Textual is imported when the terminal is one, and the brain answers: not before."""

import os
import sys
from typing import TYPE_CHECKING

import click

from agent.shared.words import language, t
from brain.cli.answers import StatusJson
from brain.cli.client import Client, for_client

if TYPE_CHECKING:
    from brain.cli.top.app import Top

_DUMB = ("", "dumb", "unknown")


@click.command()
@for_client
def top(client: Client) -> None:
    """Incidents, runs and nodes live in this terminal: what needs a person first, each explained, and answered by a key.

    `?` shows the keys, `q` ends it. Nothing is said to the brain without a question that shows exactly what is said. For a pipe
    or a script: `gpuward incidents --json`, `gpuward watch`.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "") in _DUMB:
        raise click.UsageError(
            t(
                "`gpuward top` needs a terminal that it can draw on. For a pipe or a script: `gpuward incidents`, `gpuward runs` "
                "and `gpuward nodes` (--json), and `gpuward watch`, which goes on"
            )
        )
    app = begun(client)
    app.run(mouse=False)  # the terminal's own selection copies an id, over ssh too
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)


def begun(client: Client) -> "Top":
    """The terminal, not yet drawn. ClickException: who is not let in, has the wrong --url, or asks another version, is told so
    on a line.
    """
    status: StatusJson = client.get("status")
    from brain.cli.top import ground, proof
    from brain.cli.top.app import Top
    from brain.console.words import Words

    words = Words(language())
    try:
        proof.state(words, status, None)
    except proof.BROKEN as error:
        raise click.ClickException(f"{client.url}: {words('top-odd-answer', why=repr(error))}") from error
    return Top(client, words, status, ground.of_terminal(os.environ))
