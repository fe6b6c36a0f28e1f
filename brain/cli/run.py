"""`gpuward run`: the brain service."""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from agent.contract.errors import ConfigError, Unreachable
from agent.contract.inert import inert_lines
from agent.shared import inert_log
from agent.shared.inert_log import LogFormat
from agent.shared.words import t
from brain import app, config
from brain.actions import BuildActions, build_real
from brain.adapters import archive_store, files
from brain.cli import as_start
from brain.cli.as_owner import owner
from brain.leader import executor
from brain.options import WrongText

# Of Python's collector: an event leaves no cycle behind, and to look for some each 700 objects (the default), took a
# tenth of the time in which a log is read. What does make cycles (requests of the console) waits as a few megabytes.
COLLECT_AFTER = (20_000, 20, 100)
WRONG_TEXT = 78  # exit status, EX_CONFIG of sysexits.h: gpuward.service does not start a brain again that ended so (decision 81)


@click.command()
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file; see deploy/brain.toml.",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Overrides data_dir.")
@click.option("--port", type=click.IntRange(0, 65535), help="Overrides console.port.")
@click.option("-v", "--verbose", is_flag=True, help="More lines in the log.")
@click.option(
    "--check",
    is_flag=True,
    help="Only reads the configuration: exit status 0, or 2 and what is wrong. Warns of what keeps no brain from starting.",
)
def run(path: Path | None, data: Path | None, port: int | None, verbose: bool, check: bool) -> None:
    """The brain service. SIGTERM and Ctrl-C stop it cleanly, SIGHUP reads rules and runbooks again."""
    try:
        _run_or_check(path, data, port, verbose=verbose, check=check)
    except WrongText as error:
        if check:
            raise WrongText(
                asyncio.run(as_start.with_the_rest(path, str(error))) if path else str(error)
            ) from error
        click.echo(f"gpuward: {inert_lines(str(error))}", err=True)
        raise click.exceptions.Exit(WRONG_TEXT) from error


def _run_or_check(
    path: Path | None, data: Path | None, port: int | None, *, verbose: bool, check: bool
) -> None:
    loaded = overridden(config.load(path), data, port)
    if check:
        with config.locating(loaded):
            asyncio.run(as_start.check(loaded))
        for text in _warnings(loaded):
            click.echo(t("warning: {text}", text=text), err=True)
        click.echo(t("cell {cell}: the brain can start with this configuration", cell=loaded.cell))
        return
    serve(loaded, verbose=verbose, may_run=partial(_may_run, loaded))


def _may_run(loaded: config.BrainConfig) -> bool:
    """True. ConfigError: as root in a folder that is another user's."""
    if os.geteuid() == 0 and (found := owner(loaded.data_dir)):
        raise ConfigError(
            t(
                "data_dir {data_dir} belongs to user {found}: a brain that runs as root follows whatever that "
                "user lays there, and locks that user out of its files. Run it as that user, e.g. `systemctl "
                "start gpuward`",
                data_dir=loaded.data_dir,
                found=found[0],
            )
        )
    return True


def _warnings(loaded: config.BrainConfig) -> Iterator[str]:
    """What is missing now, and no fault of the configuration. An archive on S3 is not asked: `gpuward doctor` does that."""
    for file in as_start.missing_of_the_cell(loaded):
        yield t("{file} is not there yet: `gpuward cell init` makes it before the first start", file=file)
    for key, folder in (("rules", loaded.rules_dir), ("runbooks", loaded.runbooks_dir)):
        if not folder.is_dir():
            yield t(
                "{key}: {folder}: there is no such folder: the brain starts, and pages that no rules are in force",
                key=key,
                folder=folder,
            )
    if loaded.archive.folder is not None:
        try:
            archive_store.opened(loaded.archive)
        except Unreachable as error:
            yield t("{error}: the brain starts, and archives nothing until it is there", error=error)


def serve(
    loaded: config.BrainConfig,
    *,
    make: BuildActions = build_real,
    verbose: bool = False,
    may_run: Callable[[], bool] = lambda: True,
) -> None:
    """Runs the brain until SIGTERM or SIGINT, with its log on stderr. `may_run`: as of `app.run`."""
    layout = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        handlers=[inert_log.handler(layout, loaded.log_format)],
    )
    if loaded.log_format is LogFormat.TEXT:  # people read the notes elsewhere (`gpuward watch`)
        logging.getLogger(executor.NOTES).setLevel(logging.WARNING)
    logging.getLogger("nats").setLevel(logging.WARNING)
    files.keep_private()
    gc.set_threshold(*COLLECT_AFTER)
    with config.locating(loaded):
        asyncio.run(_run(loaded, make, may_run))


def overridden(loaded: config.BrainConfig, data: Path | None, port: int | None) -> config.BrainConfig:
    """Returns the configuration with the values of the command line."""
    if data is not None:
        loaded = loaded.model_copy(update={"data_dir": data.resolve()})
    if port is not None:
        loaded = loaded.model_copy(update={"console": loaded.console.model_copy(update={"port": port})})
    return loaded


async def _run(loaded: config.BrainConfig, make: BuildActions, may_run: Callable[[], bool]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await app.run(loaded, stop, make=make, may_run=may_run)
