"""`gpuward-agent decode`: kernel lines in; out one JSON line for each that means something."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from agent.collectors import collectors
from agent.collectors.base import CollectorSetup
from agent.collectors.samples import Line
from agent.contract import kernel_text
from agent.contract.messages import UnsentEvent

_FIRST = ("code", "name", "severity", "action")  # of a line's keys, after line, kind and component


def main(files: Sequence[Path], *, driver: str, out: TextIO) -> int:
    """Decodes files, or standard input where there are none. Returns 1 if most lines of one could not be read."""
    several = len(files) > 1
    status = 0
    for file in files or [Path("-")]:
        coverage = kernel_text.Coverage()
        with _open(file) as lines:
            for number, unsent in decode(_counted(lines, coverage), driver=driver):
                head = {"file": str(file)} if several else {}
                out.write(json.dumps(head | as_json(number, unsent), ensure_ascii=False) + "\n")
                out.flush()
        if coverage.unread:
            sys.stderr.write(f"{file}: {coverage}\n")
        status = status or int(coverage.mostly_unread())
    return status


def _counted(lines: Iterable[str], coverage: kernel_text.Coverage) -> Iterator[str]:
    for number, text in enumerate(lines, 1):
        coverage.see(number, text)
        yield text


def decode(lines: Iterable[str], *, driver: str = "") -> Iterator[tuple[int, UnsentEvent]]:
    """(1-based line, what the agent would report), by the agent's own collectors; no repeat is held back."""
    setup = CollectorSetup(driver=driver, burst_s=0, kept=True)
    readers = [collector for collector in collectors(setup) if Line in collector.wants]
    for number, line in kernel_text.records(lines):
        for reader in readers:
            for unsent in reader.feed(line, line.mono_s):
                yield number, unsent


def as_json(number: int, unsent: UnsentEvent) -> dict[str, Any]:
    """Keys: line, kind, component, code, name, severity, action, and what else is in the line."""
    fields = {"severity": unsent.severity.value, **unsent.data}
    head = {"line": number, "kind": unsent.kind, "component": unsent.component}
    return head | {key: fields[key] for key in _FIRST if key in fields} | fields


def _open(file: Path) -> TextIO:
    # Only \n ends a line, as in the kernel; bytes that are not UTF-8 must not end the run.
    if file == Path("-"):
        return open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False)
    return file.open(encoding="utf-8", errors="replace", newline="\n")
