"""`gpuward evidence`: fetches an evidence bundle."""

import os
import sys
from pathlib import Path

import click

from brain.cli.client import Client, for_client


@click.command()
@click.argument("id_", metavar="ID")
@click.option(
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Where to write it; -: to standard output. Default: its own name, in this folder.",
)
@for_client
def evidence(client: Client, id_: str, out: Path | None) -> None:
    """Fetches an evidence bundle, a .tar.gz. ID: an incident, run or step (the newest bundle of it), or the bundle's
    name as `gpuward explain` shows it.
    """
    name, content = client.fetch("evidence", id_)
    if str(out) == "-":
        sys.stdout.buffer.write(content)
        return
    path = out or Path(name)
    try:
        # Readable by the owner only: command lines of jobs may contain secrets.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink:
            sink.write(content)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from error
    click.echo(f"{path}: {len(content)} bytes")
