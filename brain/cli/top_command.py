"""`gpuward top`, as it is typed. Textual is imported when the terminal is one, and the brain answers: not before."""

import os
import sys

import click

from brain.cli.answers import StatusJson
from brain.cli.client import Client, for_client

_DUMB = ("", "dumb", "unknown")


@click.command()
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the view."
)
@for_client
def top(client: Client, lang: str) -> None:
    """Incidents, runs and nodes live in this terminal: what needs a person first, each explained, and answered by a key.

    `?` shows the keys, `q` ends it. Nothing is said to the brain without a question that shows exactly what is said. For a pipe
    or a script: `gpuward incidents --json`, `gpuward watch`.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "") in _DUMB:
        raise click.UsageError(
            "`gpuward top` needs a terminal that it can draw on. For a pipe or a script: `gpuward incidents`, `gpuward runs` and "
            "`gpuward nodes` (--json), and `gpuward watch`, which goes on"
        )
    status: StatusJson = client.get(
        "status"
    )  # who is not let in, or has the wrong --url, is told so on a line
    from brain.cli.top.app import Top
    from brain.console.words import Words

    app = Top(client, Words(lang), status)
    app.run(mouse=False)  # the terminal's own selection copies an id, over ssh too
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
