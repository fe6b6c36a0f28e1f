"""`gpuward top`, as it is typed. Textual is imported when the terminal is one, and the brain answers: not before."""

import os
import sys

import click

from agent.shared.words import language, t
from brain.cli.answers import StatusJson
from brain.cli.client import Client, for_client

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
    status: StatusJson = client.get(
        "status"
    )  # who is not let in, or has the wrong --url, is told so on a line
    from brain.cli.top.app import Top
    from brain.console.words import Words

    app = Top(client, Words(language()), status)
    app.run(mouse=False)  # the terminal's own selection copies an id, over ssh too
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
