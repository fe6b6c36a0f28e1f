"""`gpuward completion`: what a shell needs to complete its lines."""

import click
from click.shell_completion import get_completion_class

from agent.shared.words import t

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints the completion of SHELL, for its file: bash ~/.local/share/bash-completion/completions/gpuward; zsh _gpuward in a
    folder of $fpath; fish ~/.config/fish/completions/gpuward.fish. The packages have installed it.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(t("this version of click does not know {shell}", shell=shell))
    click.echo(found(ctx.find_root().command, {}, "gpuward", "_GPUWARD_COMPLETE").source())
