"""`gpuward diagnose`: reads kernel lines and prints what is wrong, how sure that is, what to do, and what gpuward would run.

The lines go through the same engine as a node's events, in observe mode and simulated time, so nothing is done.
"""

import json
import sys
from pathlib import Path

import click

from agent.contract.errors import ConfigError
from brain.adapters import pack as packs
from brain.cli import diagnosis
from brain.cli.diagnosis import DiagnosedIncident, Diagnosis

_BESIDE = Path(__file__).resolve().parents[2]  # rules/ and runbooks/ are installed beside this package


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--driver", default="", help="Driver version, e.g. 580.82; default: as the log says.")
@click.option("--rules", type=click.Path(path_type=Path), help="Folder of the rules; default: gpuward's own.")
@click.option(
    "--runbooks", type=click.Path(path_type=Path), help="Folder of the runbooks; default: gpuward's own."
)
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", help="Language of the advice.")
@click.option("--json", "as_json", is_flag=True, help="JSON, for scripts.")
def diagnose(
    files: tuple[Path, ...],
    driver: str,
    rules: Path | None,
    runbooks: Path | None,
    lang: str,
    as_json: bool,
) -> None:
    """Explains what a kernel log means (FILE, several for several nodes, or standard input).

    Exit status 1: most lines of a log could not be read, or there were none.
    """
    pack = packs.load(rules or _BESIDE / "rules", runbooks or _BESIDE / "runbooks")
    logs: dict[str, list[str]] = {}
    for file in files or (Path("-"),):
        # Two logs with the same name are still two nodes.
        logs[diagnosis.node_name(file.stem, tuple(logs))] = _lines(file)
    found = diagnosis.diagnose(pack, logs, driver=driver)
    click.echo(json.dumps(found.data(), indent=2, ensure_ascii=False) if as_json else _text(found, lang))
    if found.blind or not found.lines:
        sys.exit(1)


def _lines(file: Path) -> list[str]:
    try:
        content = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    if content.startswith(b"\x1f\x8b"):
        raise ConfigError(f"{file}: is compressed: `zcat {file} | gpuward diagnose`")
    # Only \n ends a line, as in the kernel; bytes that are not UTF-8 must not stop the diagnosis.
    lines = content.decode("utf-8", "replace").split("\n")
    return lines if lines[-1] else lines[:-1]


def _text(found: Diagnosis, lang: str) -> str:
    if not found.lines:
        return "No lines were given, so nothing was diagnosed. Did dmesg need more rights (sudo)?"
    blocks = [f"NO ALL-CLEAR for {node}: {what}, one record a line." for node, what in found.blind.items()]
    blocks += [_block(incident, lang) for incident in found.incidents]
    if found.other:
        blocks.append(
            "\n".join(
                [
                    "Other lines that mean something, on which no rule acts:",
                    *(f"  {line}" for line in found.other),
                ]
            )
        )
    read = found.lines - found.unread
    if found.is_well():
        blocks.append(f"Nothing wrong found in {read} lines.")
    tail = f"{read} lines read: {found.meaningful} with a known meaning, {read - found.meaningful} without."
    if found.unread:
        tail += f" {found.unread} lines in a form that is not known were not read."
    return "\n\n".join((*blocks, tail))


def _block(incident: DiagnosedIncident, lang: str) -> str:
    cause, todo = incident.knowledge(lang)
    lines = [
        f"{incident.severity}  {incident.cause}  at {incident.scope}",
        f"  why:      {incident.because}",
        f"  how sure: {incident.sure}",
        *(f"            {line}" for line in incident.shown),
    ]
    if cause:
        lines.append(f"  cause:    {cause}")
        lines.append(f"  to do:    {todo}")
    if incident.plan:
        lines.append(f"  gpuward would run {incident.runbook}:")
        lines += [f"            {step}" for step in incident.plan]
    else:
        lines.append("  gpuward would run nothing, only page")
    lines += [f"  see:      {link}" for link in incident.links]
    return "\n".join(lines)
