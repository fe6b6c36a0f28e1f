"""`gpuward console`: the way into the console for whoever has the command line."""

import shutil
import subprocess

import click

from agent.shared.words import t
from brain.cli.client import Client, for_client
from brain.cli.terminal import as_json, print_json

# Of desktops and macOS. Nothing is opened over ssh: the browser is on another machine then.
_OPENERS = ("xdg-open", "open")


@click.command()
@click.option("--open", "opens", is_flag=True, help="Opens it in this machine's browser, too.")
@as_json
@for_client
def console(client: Client, opens: bool, plain: bool) -> None:
    """Prints a link that opens the console, logged in as you.

    It works once, within a minute, for what your token may do, and until your token ends.
    """
    made = client.beside("/login/link", body={})
    url = f"{client.url}/sign-in#{made['code']}"
    if plain:
        print_json({"url": url, "lasts_s": made["lasts_s"]})
        return
    click.echo(url)
    click.echo(t("Open it within {lasts_s} s; it works once.", lasts_s=f"{made['lasts_s']:.0f}"), err=True)
    if opens:
        _open(url)


def _open(url: str) -> None:
    opener = next(filter(shutil.which, _OPENERS), None)
    if opener is None:
        raise click.ClickException(t("there is no browser here: open the link where there is one"))
    subprocess.run([opener, url], check=False)
