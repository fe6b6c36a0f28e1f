"""Which brain.toml a command of this machine reads: the one that is named, or that of the brain's unit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain import config as brain_config
from brain.cell.authority import Authority
from brain.cli.as_owner import as_owner
from brain.cli.own_brain import DEFAULT_CONFIG
from brain.config import BrainConfig

in_config = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    help=f"brain.toml; default: {DEFAULT_CONFIG} if it exists.",
)
in_data = click.option("--data", type=click.Path(path_type=Path), help="The brain's data folder, instead.")


def chosen(path: Path | None) -> Path | None:
    """Returns the file; None: only defaults."""
    return path or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)


def load(path: Path | None, data: Path | None) -> BrainConfig:
    """Reads it. ConfigError: it cannot be read. With neither a file nor a folder somebody is told of which brain this is."""
    found = brain_config.load(chosen(path))
    if chosen(path) is None and data is None:
        click.echo(
            t(
                "there is no {default_config}: this is about {data_dir}, the default",
                default_config=DEFAULT_CONFIG,
                data_dir=found.data_dir,
            ),
            err=True,
        )
    return found.model_copy(update={"data_dir": data.resolve()}) if data else found


def check_cell(config: BrainConfig) -> None:
    """ConfigError: there is nothing of a cell here, neither an authority nor a signing key."""
    if not (Authority(config.cell_dir).exists() or config.signing_key.exists()):
        raise ConfigError(
            t("{cell_dir}: there is no cell yet: `gpuward cell init --name NAME`", cell_dir=config.cell_dir)
        )


@contextmanager
def in_cell(path: Path | None, data: Path | None) -> Iterator[BrainConfig]:
    """As `load`, and what is done inside is done in the cell's folder: root does it with the rights of that folder's owner."""
    found = load(path, data)
    with as_owner(found.cell_dir):
        yield found
