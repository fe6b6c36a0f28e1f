"""Which brain.toml a command of this machine reads: the one that is named, or that of the brain's unit."""

from pathlib import Path

import click

from brain import config as brain_config
from brain.config import BrainConfig

DEFAULT_CONFIG = Path("/etc/gpuward/brain.toml")
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
    """Reads it. ConfigError: it cannot be read."""
    found = brain_config.load(chosen(path))
    return found.model_copy(update={"data_dir": data.resolve()}) if data else found
