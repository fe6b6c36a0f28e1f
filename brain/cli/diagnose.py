"""`gpuward diagnose`: reads kernel lines and prints what is wrong, how sure that is, what to do, and what gpuward would run.

The lines go through the same engine as a node's events, in observe mode and simulated time, so nothing is done.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from agent.contract.errors import ConfigError
from agent.contract.log_hosts import host_of
from agent.shared.log_text import STDIN, Most, log_lines
from agent.shared.words import either, language, many, span, t
from brain.adapters import pack as packs
from brain.cli import diagnosis
from brain.cli.backtest.folder import looked_at, node_of_name
from brain.cli.diagnosis import DiagnosedIncident, Diagnosis
from brain.cli.log_nodes import node_name
from brain.cli.terminal import hanging, padded, page_width, print_json
from brain.topology.places_file import read_places

_GATES = re.compile(r"; gates: .*?(?=; verified by |$)")  # of brain.core.healing.outline
# More than the kernel log of a year has; it takes a minute or two, and half a gigabyte of memory.
MOST = Most(lines=2_000_000, characters=256_000_000)
_BESIDE = Path(__file__).resolve().parents[2]  # rules/ and runbooks/ are installed beside this package


def _version(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"\d+(\.\d+)*", value):
        raise click.BadParameter(
            t("a version has numbers and dots, as 580.82: not {value}", value=repr(value))
        )
    return value


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--driver", default="", callback=_version, help="Driver version, e.g. 580.82; default: as the log says."
)
@click.option("--rules", type=click.Path(path_type=Path), help="Folder of the rules; default: gpuward's own.")
@click.option(
    "--runbooks", type=click.Path(path_type=Path), help="Folder of the runbooks; default: gpuward's own."
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    help="Where the nodes stand, as in brain.toml; default: topology.yaml in the folder, if it is there.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON, for scripts.")
def diagnose(
    files: tuple[Path, ...],
    driver: str,
    rules: Path | None,
    runbooks: Path | None,
    topology: Path | None,
    as_json: bool,
) -> None:
    """Explains what a kernel log means (FILE, several for several nodes, a folder of them, or standard input; gzip, bzip2, xz
    too).

    Exit status 1: a line that may matter could not be read, or there were no lines.
    """
    given = _looked_at(files)
    where = topology or given.topology
    places = read_places(where) if where is not None else {}
    pack = packs.load(rules or _BESIDE / "rules", runbooks or _BESIDE / "runbooks", places=places)
    logs: dict[str, list[str]] = {}
    unended: set[str] = set()
    for file, name in given.files or ((STDIN, ""),):
        lines: list[str] = []
        ends_within: list[bool] = []
        try:
            lines += log_lines(file, MOST, unended=partial(ends_within.append, True))
        except ConfigError as error:
            if file in files:
                raise
            given.unreadable[str(file)] = str(error).removeprefix(f"{file}: ")
        # Two logs with the same name are still two nodes.
        node = node_name(name or next(filter(None, map(host_of, lines)), "") or file.stem, tuple(logs))
        logs[node] = lines
        unended |= {node} if ends_within else set()
    found = diagnosis.diagnose(pack, logs, driver=driver, unended=unended)
    found.blind |= {name: t("it was not read: {why}", why=why) for name, why in given.unreadable.items()}
    print_json(found.data()) if as_json else click.echo(_text(found, page_width()))
    if found.blind:
        sys.exit(1)


@dataclass(slots=True, kw_only=True)
class _Given:
    """The files that are to be read."""

    # Each with the node that its name tells; empty: none
    files: list[tuple[Path, str]] = field(default_factory=list)
    topology: Path | None = None
    # Of a folder: what cannot be read, and why
    unreadable: dict[str, str] = field(default_factory=dict)


def _looked_at(paths: Iterable[Path]) -> _Given:
    """Files as they were named, and those of folders."""
    found = _Given()
    for path in paths:
        if not path.is_dir():
            name = node_of_name(path.name) if path != STDIN else "-"
            found.files.append((path, name))
            continue
        folder = looked_at(path)
        if not folder.files:
            raise ConfigError(t("{path}: there is no log in this folder", path=path))
        found.files += [(one.path, one.node) for one in folder.files]
        found.topology = found.topology or folder.topology
        found.unreadable |= {str(path / name): why for name, why in folder.unreadable.items()}
    return found


def _text(found: Diagnosis, width: int) -> str:
    blocks = [
        [*hanging("", t("NO ALL-CLEAR for {node}: {what}", node=node, what=what), width)]
        for node, what in found.blind.items()
    ]
    blocks += [[*_block(incident, width)] for incident in found.incidents]
    if found.other:
        other = t("Other lines that mean something, on which no rule acts:")
        blocks.append([other, *(row for line in found.other for row in hanging("  ", line, width))])
    read = found.lines - found.unread
    if found.is_well() and found.other:
        blocks.append(
            [
                *hanging(
                    "",
                    t("No incident: no rule acts on what is above, and nothing else means anything."),
                    width,
                )
            ]
        )
    elif found.is_well():
        blocks.append([t("Nothing wrong found in {lines}.", lines=many(read - found.foreign, "line"))])
    blocks += [[*hanging("", f"{node}: {what}", width)] for node, what in found.aside.items()]
    tail = t(
        "{lines} read: {meaningful} with a known meaning, {read} without.",
        lines=many(read, "line"),
        meaningful=found.meaningful,
        read=read - found.meaningful,
    )
    if found.unread:
        tail += t(" {lines} could not be read.", lines=many(found.unread, "line"))
    blocks.append([*hanging("", tail, width)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _block(incident: DiagnosedIncident, width: int) -> Iterator[str]:
    cause, todo = incident.knowledge(language())
    rows = [
        (t("why"), either(incident.because, incident.because_zh)),
        (t("how sure"), incident.sure),
        *(("", line) for line in incident.shown),
    ]
    if incident.lasted_s:
        over = t("it lasted {lasted_s} s; a line says that it has ended", lasted_s=f"{incident.lasted_s:g}")
        rows.insert(1, (t("over"), over))
    elif incident.booted:
        open_ = t(
            "its last sign is from before the machine started again ({booted}); no line says whether it is so since",
            booted=incident.booted,
        )
        rows.insert(1, (t("open"), open_))
    elif incident.silent_s:
        open_ = t(
            "its last sign is {silent_s} before the end of the log; no line says that it has ended",
            silent_s=span(incident.silent_s),
        )
        rows.insert(1, (t("open"), open_))
    for other in incident.explained:
        rows += [
            (t("explains"), t("{cause} at {scope}", cause=other.cause, scope=other.scope)),
            *(("", line) for line in other.shown),
        ]
    if cause:
        rows += [(t("cause"), cause), (t("to do"), todo)]
    yield t(
        "{severity}  {cause}  at {scope}",
        severity=incident.severity,
        cause=incident.cause,
        scope=incident.scope,
    )
    yield from _rows(rows, width)
    if incident.plan:
        yield t("  gpuward would run {runbook}:", runbook=incident.runbook)
        yield from _rows([("", step) for step in _told_once(incident.plan)], width)
    else:
        yield t("  gpuward would run nothing, only page")
    yield from _rows([(t("see"), link) for link in incident.links], width)


def _told_once(plan: Iterable[str]) -> Iterator[str]:
    """The steps of a plan; what the gates say to several of them is told with the first."""
    told: set[str] = set()
    for step in plan:
        gates = _GATES.search(step)
        if gates is None or gates[0] not in told:
            told |= {gates[0]} if gates else set()
            yield step
        else:
            yield t("{step}; gates: the same{step2}", step=step[: gates.start()], step2=step[gates.end() :])


def _rows(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for label, text in rows:
        yield from hanging(f"  {padded(f'{label}:' if label else '', 9)} ", text, width)
