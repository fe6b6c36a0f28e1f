"""The command: which checks there are, and how their lines are shown."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from agent.contract.errors import ConfigError
from agent.contract.inert import inert
from agent.shared.words import t
from brain import config as brain_config
from brain.cli.as_owner import as_owner, owner
from brain.cli.brain_toml import chosen, in_config, in_data, load
from brain.cli.checkup import broker, counterparts, fleet, keys, machine
from brain.cli.checkup.installation import Installation, ask, client_of
from brain.cli.checkup.lines import Health, HealthLine, fail, unchecked
from brain.cli.client import Client, for_client
from brain.cli.own_brain import DEFAULT_CONFIG
from brain.cli.terminal import as_json, padded, print_json

# What is looked at, in the order in which it is shown. The first ones read files and what the brain has said ...
READING: Sequence[Callable[[Installation], Iterator[HealthLine]]] = (
    machine.configuration,
    machine.rules,
    machine.files,
    machine.disk,
    machine.clock,
    machine.units,
    keys.signing,
    keys.broker_key,
    keys.rotation,
    keys.certificates,
    keys.tokens,
    machine.group_names,
    fleet.brain,
)
# Of these, those that read what the brain has written, and the names of their lines.
IN_ITS_FOLDER: Mapping[Callable[[Installation], Iterator[HealthLine]], str] = {
    machine.disk: "disk",
    keys.signing: "signing key",
    keys.broker_key: "brain's key",
    keys.rotation: "key rotation",
    keys.certificates: "certificates",
    keys.tokens: "tokens",
}
# ... and these talk to others.
ASKING: Sequence[Callable[[Installation], AsyncIterator[HealthLine]]] = (
    broker.broker,
    counterparts.own_actions,
    counterparts.way_out,
    counterparts.channels,
    counterparts.reports,
    counterparts.logins,
    counterparts.traces,
    counterparts.archive,
    counterparts.schedulers,
    counterparts.bmcs,
    counterparts.fabric_managers,
)
_WIDTH = max(map(len, Health))


@click.command()
@in_config
@in_data
@click.option(
    "--login", is_flag=True, help="Also logs in to one BMC of each table, and reads its power state."
)
@as_json
@for_client
def doctor(client: Client, path: Path | None, data: Path | None, login: bool, plain: bool) -> None:
    """Looks over a whole installation: a line for each check, with what to do. Exit status 1 when something fails.

    Run it on the brain's machine, as root or as the brain's user, while the brain runs or not. It changes nothing and tells
    nobody anything.
    """
    lines = _examined(client, path, data, login=login)
    ill = any(line.health is Health.FAIL for line in lines)
    if plain:
        print_json({"ok": not ill, "checks": [asdict(line) for line in lines]})
    else:
        for line in lines:
            click.echo(_text(line))
    if ill:
        sys.exit(1)


def _text(line: HealthLine) -> str:
    action = f" → {line.action}" if line.action else ""
    return inert(f"{padded(t(line.health.value), _WIDTH)}  {t(line.check)}: {line.text}{action}")


def _examined(client: Client, path: Path | None, data: Path | None, *, login: bool) -> list[HealthLine]:
    try:
        with _warnings() as warnings:
            path, data = _of_which(client, path, data)
            config = load(path, data)
    except ConfigError as error:
        return [
            fail(
                "configuration",
                "; ".join(str(error).splitlines()),
                t("correct it: the brain does not start with it"),
            ),
            unchecked(t("all that it configures"), t("the configuration cannot be read")),
        ]
    brain, why = ask(client_of(client, config))
    found = Installation(
        file=chosen(path),
        config=config,
        warnings=warnings,
        brain=brain,
        silent_why=why,
        login=login,
        now=time.time(),
    )
    return [line for check in READING for line in _read(check, found)] + asyncio.run(_asked(found))


def _of_which(client: Client, path: Path | None, data: Path | None) -> tuple[Path | None, Path | None]:
    """The file and the folder to look at. Where nothing says which, those of the brain that answers on this machine, as beside
    `gpuward up`; but root reads no file because another user's brain has named it: what is then wrong is told (fleet.brain).
    """
    if data is not None or chosen(path) is not None:
        return path, data
    brain, _ = ask(client)
    if brain is None or brain.data_dir is None:
        return path, data
    named = [one for one in (brain.config_file, brain.data_dir) if one is not None]
    if any((found := owner(one)) and found[0] != os.geteuid() for one in named):
        return path, data
    click.echo(
        t(
            "there is no {default_config}: this is about the brain that answers at {url}, with its data in {data_dir}",
            default_config=DEFAULT_CONFIG,
            url=client.url,
            data_dir=inert(str(brain.data_dir)),
        ),
        err=True,
    )
    return brain.config_file, brain.data_dir


def _read(check: Callable[[Installation], Iterator[HealthLine]], found: Installation) -> list[HealthLine]:
    """The lines of a check. What lies in the brain's folder is looked at with the rights of whoever decides what lies there."""
    if check not in IN_ITS_FOLDER:
        return [*check(found)]
    try:
        with as_owner(found.config.data_dir):
            return [*check(found)]
    except ConfigError as error:
        return [unchecked(IN_ITS_FOLDER[check], str(error))]


async def _asked(found: Installation) -> list[HealthLine]:
    """All at once: some wait for their deadlines."""

    async def all_of(check: Callable[[Installation], AsyncIterator[HealthLine]]) -> list[HealthLine]:
        return [line async for line in check(found)]

    return [line for lines in await asyncio.gather(*map(all_of, ASKING)) for line in lines]


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What brain/config.py warns of meanwhile: old names. Our lines say the rest, so nothing is logged beside them."""
    texts: list[str] = []

    class _Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    handler, log = _Kept(), logging.getLogger(brain_config.__name__)
    log.addHandler(handler)
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        yield texts
    finally:
        log.removeHandler(handler)
