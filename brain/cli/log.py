"""`gpuward log`: the log as a file: out of the running brain or out of its archive, looked at, and replayed."""

import contextlib
import math
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from agent.contract.errors import BugError, ConfigError
from agent.shared.words import many, t
from brain import config as brain_config
from brain.adapters import archive_reader, archive_store, log_file
from brain.adapters.archive_store import ArchiveStore
from brain.adapters.log import Record
from brain.adapters.log_file import End, Gap, Head, LogFileWriter, Part
from brain.archive_config import ArchiveConfig
from brain.cli import brain_toml
from brain.cli.client import Client, for_client
from brain.cli.operator_commands import Duration
from brain.cli.terminal import as_json, print_json
from brain.outgoing import outgoing, to_environment


class When(click.ParamType[float]):
    """A time: `2026-03-01`, `2026-03-01T12:00:00+01:00`, without a zone UTC; or so long ago: `36h`, `7d`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns seconds since 1970."""
        text = str(value)
        if text[-1:] in "smhd":
            return time.time() - Duration().convert(text, param, ctx)
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                t("{text} is no time such as 2026-03-01T12:00:00Z, and none ago such as 7d", text=repr(text)),
                param,
                ctx,
            )
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


_in_archive = (
    click.option("--cell", default="", help="Which cell of an archive; default: its only one."),
    click.option(
        "--log", "name", default="", help="Which log of it (`gpuward log show`); default: the newest."
    ),
    brain_toml.in_config,
)


def _of_archive(command: Any) -> Any:
    for option in reversed(_in_archive):
        command = option(command)
    return command


@click.group()
def log() -> None:
    """The log as a file: everything that was told, decided and done, in order (docs/operations.md)."""


@log.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--since", type=When(), default=None, help="From then on: a time, or so long ago, e.g. 7d.")
@click.option("--until", type=When(), default=None, help="Before then.")
@click.option(
    "--from-archive", "archive", metavar="URL", help="Out of this archive; default: of the brain's log."
)
@_of_archive
@for_client
def export(
    client: Client,
    file: Path,
    since: float | None,
    until: float | None,
    archive: str | None,
    cell: str,
    name: str,
    path: Path | None,
) -> None:
    """Writes the log into FILE: a line of JSON for each message; compressed when its name ends in .gz."""
    begin, end = since or 0.0, math.inf if until is None else until
    if begin >= end:
        raise click.UsageError(
            t("--since must be before --until: `--since 2h --until 1h` is the hour before the last")
        )
    if archive is None:
        query = f"since={begin}" + ("" if until is None else f"&until={until}")
        parts = log_file.read(client.pieces("log", query=query), client.url)
    else:
        store = _opened(archive, path)
        cell, name = _chosen(store, cell, name)
        parts = archive_reader.between(
            archive_reader.archive_parts(store, cell, name, since=begin), begin, end
        )
    size = _write(parts, file)
    click.echo(
        t(
            "{file}: {messages} messages up to {last}, {st_size} bytes",
            file=file,
            messages=size.messages,
            last=size.last,
            st_size=file.stat().st_size,
        )
    )
    if size.missing:
        click.echo(
            t(
                "{missing} messages are missing: they had gone from the log (`gpuward log show {file}`)",
                missing=size.missing,
                file=file,
            )
        )


@log.command()
@click.argument("source")
@_of_archive
@as_json
def show(source: str, cell: str, name: str, path: Path | None, plain: bool) -> None:
    """What SOURCE has, a file or the URL of an archive, and whether it is whole: reads all of it."""
    whole = _Size()
    if _is_archive(source):
        store = _opened(source, path)
        cell, name = _chosen(store, cell, name)
        files = store.segments(cell, name)
        about: dict[str, Any] = {
            "logs": store.logs(cell),
            "log": name,
            "files": len(files),
            "file_bytes": sum(one.size for one in files),
        }
        parts = archive_reader.archive_parts(store, cell, name)
    else:
        about = {
            "logs": [],
            "log": "",
            "files": 1,
            "file_bytes": Path(source).stat().st_size if Path(source).exists() else 0,
        }
        parts = archive_reader.file_parts(Path(source))
    for part in parts:
        whole.take(part)
    about |= {
        "cell": whole.cell,
        "made": whole.made,
        "first": whole.first,
        "last": whole.last,
        "messages": whole.messages,
        "since": _iso(whole.since),
        "until": _iso(whole.until),
        "gaps": [{"first": gap.first, "last": gap.last} for gap in whole.gaps],
    }
    if plain:
        print_json(about)
        return
    size = t(
        "{file_bytes} bytes in {files}", file_bytes=about["file_bytes"], files=many(about["files"], "file")
    )
    if whole.messages:
        click.echo(
            t(
                "cell {cell}, log of {made}: messages {first} to {last}, {messages}",
                cell=whole.cell,
                made=whole.made,
                first=whole.first,
                last=whole.last,
                messages=whole.messages,
            )
        )
        click.echo(
            t("from {since} to {until}; {size}", since=about["since"], until=about["until"], size=size)
        )
    else:
        click.echo(
            t("cell {cell}, log of {made}: no message; {size}", cell=whole.cell, made=whole.made, size=size)
        )
    for gap in whole.gaps:
        click.echo(t("missing: {first} to {last}", first=gap.first, last=gap.last))
    for other in about.get("logs", ()):
        if other != name:
            click.echo(t("also there: --log {other}", other=other))


@log.command()
@click.argument("source")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for history.sqlite and state.snapshot.",
)
@click.option(
    "--skip",
    type=int,
    multiple=True,
    metavar="POSITION",
    help="Leave out this message, as a brain does that it has crashed twice; again for each.",
)
@_of_archive
@as_json
def replay(
    source: str, into: Path, skip: tuple[int, ...], cell: str, name: str, path: Path | None, plain: bool
) -> None:
    """Makes a brain's history and state of SOURCE, a file or the URL of an archive, as if a brain had read it all. Nothing is
    done, and nobody is paged.
    """
    if _is_archive(source):
        store = _opened(source, path)
        cell, name = _chosen(store, cell, name)
        parts = archive_reader.archive_parts(store, cell, name)
    else:
        parts = archive_reader.file_parts(Path(source))
    from brain.leader import replay as replaying  # the engine: half a second that the others need not wait

    began_s = time.monotonic()
    try:
        done = replaying.rebuild(parts, into, quarantined=skip)
    except BugError as error:
        raise BugError(
            t(
                "{error}\nThis is a bug of gpuward: please report it with the log (`gpuward log export`). "
                "`--skip` with its position leaves the message out, as the brain does",
                error=error,
            )
        ) from error
    took_s = time.monotonic() - began_s
    missing = sum(gap.last - gap.first + 1 for gap in done.gaps)
    if plain:
        print_json(
            {
                "first": done.first,
                "last": done.last,
                "messages": done.messages,
                "missing": missing,
                "took_s": took_s,
            }
        )
        return
    click.echo(
        t(
            "{into}: messages {first} to {last}, {messages} in {took_s} s",
            into=into,
            first=done.first,
            last=done.last,
            messages=done.messages,
            took_s=f"{took_s:.1f}",
        )
    )
    if done.first > 1 or missing:
        click.echo(t("It is not the whole log: what was open, held and drained before is not in this state."))


class _Size:
    """What was read."""

    def __init__(self) -> None:
        self.cell = self.made = ""
        self.first = self.last = self.messages = self.missing = 0
        self.since = self.until = 0.0
        self.gaps: list[Gap] = []

    def take(self, part: Part) -> None:
        """The next part."""
        match part:
            case Head():
                self.cell, self.made, self.first = part.name.cell, part.name.log, part.first
            case Gap():
                self.gaps.append(part)
                self.missing += part.last - part.first + 1
            case Record():
                self.since = self.since or part.at
                self.until = part.at
            case End():
                self.last, self.messages = part.last, part.messages


def _write(parts: Iterable[Part], file: Path) -> _Size:
    """Writes a file, readable by its owner only; either all of it, or it is not there."""
    size = _Size()
    scratch = file.with_name(f"{file.name}.part")
    try:
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink:
            made: LogFileWriter | None = None
            for part in parts:
                size.take(part)
                match part:
                    case Head():
                        made = LogFileWriter(sink.write, part.name, part.first, packed=file.suffix == ".gz")
                    case Record() if made is not None:
                        made.add(part)
                    case Gap() if made is not None:
                        made.gap(part)
                    case End() if made is not None:
                        made.finish()
            sink.flush()
            os.fsync(sink.fileno())
        scratch.replace(file)
    except OSError as error:
        raise ConfigError(
            t("{file}: cannot be written: {strerror}", file=file, strerror=error.strerror or error)
        ) from error
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
    return size


def _is_archive(source: str) -> bool:
    return "://" in source or Path(source).is_dir()


def _opened(url: str, path: Path | None) -> ArchiveStore:
    """An archive, with the endpoint and credentials of brain.toml."""
    url = url if "://" in url else str(Path(url).resolve())
    chosen = brain_toml.chosen(path) if path is not None or url.startswith("s3:") else None
    loaded = brain_config.load(chosen) if chosen is not None else None
    known = loaded.archive if loaded is not None else ArchiveConfig()
    if loaded is not None:
        to_environment(outgoing(loaded.outgoing))
    try:
        config = ArchiveConfig.model_validate(known.model_dump() | {"url": url})
    except ValidationError as error:
        said = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors(include_url=False))
        raise ConfigError(
            t("{url}: {said} ([archive] of brain.toml, --config)", url=url, said=said)
        ) from error
    return archive_store.opened(config)


def _chosen(store: ArchiveStore, cell: str, name: str) -> tuple[str, str]:
    """Which cell, and which log of it. ConfigError: it is not there."""
    cells = store.cells()
    if not cells:
        raise ConfigError(
            t(
                "{url}: there is no log in it: a new archive has its first file when the hour is over; else name it as `url` of "
                "[archive] in brain.toml does, without CELL/LOG below it",
                url=store.url,
            )
        )
    if (cell and cell not in cells) or (not cell and len(cells) > 1):
        raise ConfigError(
            t("{url}: which cell? --cell, one of: {sorted}", url=store.url, sorted=", ".join(sorted(cells)))
        )
    logs = store.logs(cell := cell or cells[0])
    if not logs or (name and name not in logs):
        raise ConfigError(t("{url}: which log? --log, one of: {logs}", url=store.url, logs=", ".join(logs)))
    return cell, name or logs[-1]


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else ""
