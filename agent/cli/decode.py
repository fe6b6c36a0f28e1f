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
from agent.contract.coverage import Coverage
from agent.contract.inert import inert_json
from agent.contract.messages import UnsentEvent
from agent.shared.log_text import STDIN, log_lines

_FIRST = ("code", "name", "severity", "action")  # of a line's keys, after line, kind and component


def main(files: Sequence[Path], *, driver: str, out: TextIO) -> int:
    """Decodes files, or standard input where there are none. Returns 1 if one is empty or could not be read in full."""
    several = len(files) > 1
    status = 0
    for file in files or [STDIN]:
        coverage = Coverage()
        for number, unsent in decode(log_lines(file), driver=driver, seen=coverage.see):
            head = {"file": str(file)} if several else {}
            out.write(inert_json(json.dumps(head | as_json(number, unsent), ensure_ascii=False)) + "\n")
            out.flush()
        if coverage.blind:
            sys.stderr.write(f"{file}: {coverage.blind}\n")
            status = 1
    return status


def decode(
    lines: Iterable[str], *, driver: str = "", seen: kernel_text.Seen | None = None
) -> Iterator[tuple[int, UnsentEvent]]:
    """(1-based line, what the agent would report), by the agent's own collectors; no repeat is held back."""
    setup = CollectorSetup(driver=driver, burst_s=0, kept=True)
    readers = [collector for collector in collectors(setup) if Line in collector.wants]
    for number, line in kernel_text.records(lines, seen):
        if line.facility != kernel_text.KERNEL:
            continue  # what a program says is not the kernel's word
        for reader in readers:
            for unsent in reader.feed(line, line.mono_s):
                yield number, unsent


def as_json(number: int, unsent: UnsentEvent) -> dict[str, Any]:
    """Keys: line, kind, component, code, name, severity, action, and what else is in the line."""
    fields = {"severity": unsent.severity.value, **unsent.data}
    head = {"line": number, "kind": unsent.kind, "component": unsent.component}
    return head | {key: fields[key] for key in _FIRST if key in fields} | fields
