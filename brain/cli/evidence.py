"""`gpuward evidence`: fetches an evidence bundle."""

import os
import stat
import sys
from pathlib import Path

import click

from agent.shared import files
from agent.shared.words import t
from brain.cli import completing
from brain.cli.client import Client, for_client


@click.command()
@click.argument("id_", metavar="ID", shell_complete=completing.any_incident)
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
        if what := _not_ours(path):
            raise click.ClickException(
                t(
                    "{path} is {what}, and a bundle goes into no such thing: remove it, or name another file "
                    "with --out",
                    path=path,
                    what=what,
                )
            )
        # Readable by the owner only, whatever was there: command lines of jobs may contain secrets.
        files.write(path, content, mode=0o600, whatever_umask=True)
    except OSError as error:
        raise click.ClickException(f"{error.filename or path}: {error.strerror}") from error
    click.echo(t("{path}: {content} bytes", path=path, content=len(content)))


def _not_ours(path: Path) -> str:
    """What stands there and is not replaced; empty: nothing, or a file of whoever asks. In a folder where others write, they may
    have laid a link, a pipe or a file of theirs under the name that a bundle will have.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(found.st_mode):
        return t("a link to {readlink}", readlink=path.readlink())
    if not stat.S_ISREG(found.st_mode):
        return t("no regular file")
    return "" if found.st_uid == os.geteuid() else t("a file of another user")
