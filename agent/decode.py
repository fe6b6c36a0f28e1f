"""`gpuward-agent decode`: kernel lines in, one JSON line for each that means something out."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from agent.collectors import collectors
from agent.collectors.readings import Line
from agent.collectors.settings import Settings
from agent.contract import kernel_text
from agent.contract.messages import Draft

_FIRST = ("code", "name", "severity", "action")  # of a line's keys, after line, kind and component


def main(files: Sequence[Path], *, driver: str, out: TextIO) -> int:
    """Decodes files, or standard input where there are none."""
    several = len(files) > 1
    for file in files or [Path("-")]:
        with _open(file) as lines:
            for number, draft in decode(lines, driver=driver):
                head = {"file": str(file)} if several else {}
                out.write(json.dumps(head | as_json(number, draft), ensure_ascii=False) + "\n")
                out.flush()
    return 0


def decode(lines: Iterable[str], *, driver: str = "") -> Iterator[tuple[int, Draft]]:
    """(1-based line, what the agent would report), by the agent's own collectors; no repeat is held back."""
    readers = [one for one in collectors(Settings(driver=driver, burst_s=0)) if Line in one.wants]
    for number, line in kernel_text.records(lines):
        for reader in readers:
            for draft in reader.feed(line, line.mono_s):
                yield number, draft


def as_json(number: int, draft: Draft) -> dict[str, Any]:
    """Keys: line, kind, component, code, name, severity, action, and what else the line says."""
    said = {"severity": draft.severity.value, **draft.data}
    head = {"line": number, "kind": draft.kind, "component": draft.component}
    return head | {key: said[key] for key in _FIRST if key in said} | said


def _open(file: Path) -> TextIO:
    # Only \n ends a line, as in the kernel; bytes that are no UTF-8 must not end the run.
    if file == Path("-"):
        return open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False)
    return file.open(encoding="utf-8", errors="replace", newline="\n")
