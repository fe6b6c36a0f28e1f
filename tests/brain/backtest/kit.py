"""Recordings for backtests: folders of kernel logs, and logs of gpuward that a simulated cell has written."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from agent.contract import subjects
from brain.adapters.codec import Codec, encode_event_body
from brain.adapters.log_file import LogFileWriter, LogName
from brain.adapters.log_record import Record
from brain.cli.backtest_command import backtest
from brain.core.effects import Effect
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input
from brain.core.pack.actions import ACTIONS

CELL = "east"
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus."
DOWN = "mlx5_core 0000:5e:00.0 ib3: Link down"
UP = "mlx5_core 0000:5e:00.0 ib3: Link up"
HELLO = "usb 1-1: new high-speed USB device number 7 using xhci_hcd"


def folder(where: Path, logs: Mapping[str, Iterable[str]]) -> Path:
    """A folder of files, by their names."""
    for name, lines in logs.items():
        file = where / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return where


def syslog(node: str, *rows: tuple[str, str]) -> list[str]:
    """Lines of one node: (time, text)."""
    return [f"2026-11-24T{time}+00:00 {node} kernel: {text}" for time, text in rows]


def ask(path: Path, *options: str, status: int = 0) -> str:
    """What the command prints."""
    result = CliRunner(env={"COLUMNS": "100"}).invoke(backtest, [str(path), *options])
    assert result.exit_code == status, f"{result.output} {result.exception!r}"
    return result.stdout


def ask_json(path: Path, *options: str, status: int = 0) -> dict[str, Any]:
    """The same as JSON."""
    return dict(json.loads(ask(path, "--json", *options, status=status)))


def causes(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(cause, place) of all incidents."""
    return [(one["cause"], one["place"]) for one in found["incidents"]]


class NotedEngine(Engine):
    """An engine that keeps its inputs, as a brain's log has them."""

    def __init__(self) -> None:
        super().__init__(actions=ACTIONS)
        self.log: list[tuple[Input, float]] = []

    def handle(self, given: Input, now: float) -> list[Effect]:
        """As the engine."""
        self.log.append((given, now))
        return super().handle(given, now)


def write_log(file: Path, log: Iterable[tuple[Input, float]], *, shift_s: float = 0.0) -> Path:
    """The file that `gpuward log export` writes of such a log. `shift_s`: the server stamps each message so much later."""
    codec = Codec(CELL)
    with file.open("wb") as sink:
        made = LogFileWriter(
            sink.write,
            LogName(cell=CELL, log="2026-11-25 16:57:51.534778+00:00"),
            1,
            packed=file.suffix == ".gz",
        )
        for seq, (given, at) in enumerate(log, 1):
            if isinstance(given, EventSeen):
                subject, body = subjects.event(CELL, given.event.node), encode_event_body(given)
            else:
                what, body = codec.encode(given)
                subject = subjects.brain_input(CELL, what)
            made.add(Record(seq, at + shift_s, subject, body, 0))
        made.finish()
    return file
