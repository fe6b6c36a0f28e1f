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
from agent.contract.log_hosts import Hosts
from agent.contract.messages import UnsentEvent
from agent.shared.log_text import STDIN, log_lines

_FIRST = ("code", "name", "severity", "action")  # of a line's keys, after line, kind and component


def main(files: Sequence[Path], *, driver: str, out: TextIO) -> int:
    """Decodes files, or standard input where there are none. Returns 1 if one is empty or could not be read in full."""
    several = len(files) > 1
    status = 0
    for file in files or [STDIN]:
        coverage, hosts, found = Coverage(), Hosts(), False
        lines = log_lines(file, unended=coverage.ends_within_a_line)
        for number, unsent in decode(coverage.records(lines, hosts.see), driver=driver):
            head = {"file": str(file)} if several else {}
            row = head | as_json(number, unsent, host=hosts.of(number))
            out.write(inert_json(json.dumps(row, ensure_ascii=False)) + "\n")
            out.flush()
            found = True
        if doubt := coverage.blind or ("" if found else coverage.no_log):
            status = 1
        for words in filter(None, (doubt, coverage.aside)):
            sys.stderr.write(f"{file}: {words}\n")
    return status


def decode(records: Iterable[tuple[int, Line]], *, driver: str = "") -> Iterator[tuple[int, UnsentEvent]]:
    """(1-based line, what the agent would report), by the agent's own collectors; no repeat is held back."""
    setup = CollectorSetup(driver=driver, burst_s=0, kept=True)
    readers = [collector for collector in collectors(setup) if Line in collector.wants]
    for number, line in records:
        if line.facility != kernel_text.KERNEL:
            continue  # what a program says is not the kernel's word
        for reader in readers:
            for unsent in reader.feed(line, line.mono_s):
                yield number, unsent


def as_json(number: int, unsent: UnsentEvent, *, host: str = "") -> dict[str, Any]:
    """Keys: line, host (where it names one), kind, component, code, name, severity, action, and what else is in the line."""
    fields = {"severity": unsent.severity.value, **unsent.data}
    head: dict[str, Any] = {"line": number, "kind": unsent.kind, "component": unsent.component}
    if host:
        head = {"line": number, "host": host} | head
    return head | {key: fields[key] for key in _FIRST if key in fields} | fields
