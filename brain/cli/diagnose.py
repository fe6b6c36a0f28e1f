"""`gpuward diagnose`: reads kernel lines and prints what is wrong, how sure that is, what to do, and what gpuward would run.

The lines go through the same engine as a node's events, in observe mode and simulated time, so nothing is done.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from agent.contract import kernel_text
from agent.contract.counted import counted, span
from agent.contract.kernel_text import Clock
from agent.shared.log_text import PACKED_SUFFIXES, STDIN, log_lines
from brain.adapters import pack as packs
from brain.cli import diagnosis
from brain.cli.diagnosis import DiagnosedIncident, Diagnosis
from brain.cli.terminal import hanging, page_width, print_json

# `pci 0000:3b:00.0: ...`, of a log without times: a part of the kernel and a device, and no program's level or exception.
_SAYS = re.compile(
    r"(?!(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|\w*(?:Error|Exception|Warning)): )"
    r"[\w.()/-]+(?: [\w.:()/-]+)?: ?\S|Linux version ",
    re.ASCII,
)
_BESIDE = Path(__file__).resolve().parents[2]  # rules/ and runbooks/ are installed beside this package


def _version(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"\d+(\.\d+)*", value):
        raise click.BadParameter(f"a version has numbers and dots, as 580.82: not {value!r}")
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
    """Explains what a kernel log means (FILE, several for several nodes, or standard input; gzip, bzip2, xz too).

    Exit status 1: a line that may matter could not be read, or there were no lines.
    """
    pack = packs.load(rules or _BESIDE / "rules", runbooks or _BESIDE / "runbooks")
    logs: dict[str, list[str]] = {}
    for file in files or (STDIN,):
        # Two logs with the same name are still two nodes.
        name = Path(file.stem) if file.suffix in PACKED_SUFFIXES else file
        logs[diagnosis.node_name(name.stem, tuple(logs))] = list(log_lines(file))
    found = diagnosis.diagnose(pack, logs, driver=driver)
    if not found.meaningful:
        found.blind |= {
            node: why for node, lines in logs.items() if node not in found.blind and (why := _foreign(lines))
        }
    print_json(found.data()) if as_json else click.echo(_text(found, lang, page_width()))
    if found.blind:
        sys.exit(1)


def _foreign(lines: list[str]) -> str:
    """Why most lines are no kernel's: they have no time, and do not begin with who says it. Empty: they are."""
    told = [line for _, line in kernel_text.records(lines) if line.text.strip()]
    own = sum(line.clock is not Clock.NONE or bool(_SAYS.match(line.text)) for line in told)
    if 2 * own >= max(1, len(told)):
        return ""
    if own:
        looks = f"only {own} of {counted(len(told), 'line')} look like kernel lines"
    elif len(lines) != 1:
        looks = f"none of {counted(len(lines), 'line')} looks like a kernel line"
    else:
        looks = "its line looks like no kernel line"
    return f"{looks}. gpuward reads what dmesg, journalctl -k and /dev/kmsg print."


def _text(found: Diagnosis, lang: str, width: int) -> str:
    blocks = [[*hanging("", f"NO ALL-CLEAR for {node}: {what}", width)] for node, what in found.blind.items()]
    blocks += [[*_block(incident, lang, width)] for incident in found.incidents]
    if found.other:
        other = "Other lines that mean something, on which no rule acts:"
        blocks.append([other, *(row for line in found.other for row in hanging("  ", line, width))])
    read = found.lines - found.unread
    if found.is_well():
        blocks.append([f"Nothing wrong found in {counted(read, 'line')}."])
    tail = f"{counted(read, 'line')} read: {found.meaningful} with a known meaning, {read - found.meaningful} without."
    if found.unread:
        tail += f" {counted(found.unread, 'line')} could not be read."
    blocks.append([*hanging("", tail, width)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _block(incident: DiagnosedIncident, lang: str, width: int) -> Iterator[str]:
    cause, todo = incident.knowledge(lang)
    rows = [("why", incident.because), ("how sure", incident.sure), *(("", line) for line in incident.shown)]
    if incident.lasted_s:
        over = f"it lasted {incident.lasted_s:g} s; a line says that it has ended"
        rows.insert(1, ("over", over))
    elif incident.silent_s:
        open_ = f"its last sign is {span(incident.silent_s)} before the end of the log; no line says that it has ended"
        rows.insert(1, ("open", open_))
    for other in incident.explained:
        rows += [("explains", f"{other.cause} at {other.scope}"), *(("", line) for line in other.shown)]
    if cause:
        rows += [("cause", cause), ("to do", todo)]
    yield f"{incident.severity}  {incident.cause}  at {incident.scope}"
    yield from _rows(rows, width)
    if incident.plan:
        yield f"  gpuward would run {incident.runbook}:"
        yield from _rows([("", step) for step in incident.plan], width)
    else:
        yield "  gpuward would run nothing, only page"
    yield from _rows([("see", link) for link in incident.links], width)


def _rows(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for label, text in rows:
        yield from hanging(f"  {f'{label}:' if label else '':<9} ", text, width)
